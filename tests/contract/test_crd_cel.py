"""Rules of custom kinds (CEL): asked of new objects and of changes, in the words the rules give."""

import pytest

from contract.backend import Api
from contract.crds import CRDS, Object, Own, causes, own, ruled, spec_of, version

SMALL = ruled("self.size < 5", message="must be small")


async def test_a_rule_refuses_what_breaks_it(api: Api) -> None:
    async with own(api, version(SMALL)) as kind:
        assert (await kind.offer(spec={"size": 4})).code == 201
        assert causes(await kind.offer(spec={"size": 5})) == [("spec", "Invalid value: must be small")]


async def test_a_rule_on_a_single_value_shows_it(api: Api) -> None:
    size = {"type": "integer", "x-kubernetes-validations": [{"rule": "self < 5", "message": "must be small"}]}
    async with own(api, version(spec_of(size=size))) as kind:
        assert causes(await kind.offer(spec={"size": 5})) == [("spec.size", "Invalid value: 5: must be small")]


async def test_a_rule_without_a_message_shows_itself(api: Api) -> None:
    async with own(api, version(ruled("self.size < 5"))) as kind:
        assert causes(await kind.offer(spec={"size": 5})) == [("spec", "Invalid value: failed rule: self.size < 5")]


async def test_a_message_can_be_worked_out(api: Api) -> None:
    said = ruled("self.size < 5", messageExpression="self.size > 9 ? 'huge' : 'big'")
    async with own(api, version(said)) as kind:
        assert causes(await kind.offer(spec={"size": 5})) == [("spec", "Invalid value: big")]
        assert causes(await kind.offer(spec={"size": 10})) == [("spec", "Invalid value: huge")]


async def test_a_rule_can_point_at_a_member_and_give_a_reason(api: Api) -> None:
    rule = ruled("self.size < 5", message="too big", fieldPath=".size", reason="FieldValueForbidden")
    async with own(api, version(rule)) as kind:
        answer = await kind.offer(spec={"size": 5})
        assert causes(answer) == [("spec.size", "Forbidden: too big")]
        assert answer.fields == [("FieldValueForbidden", "spec.size")]


async def test_a_rule_on_the_whole_object_sees_its_name(api: Api) -> None:
    schema = {**spec_of(), "x-kubernetes-validations": [{"rule": "self.metadata.name.startsWith('a')", "message": "a"}]}
    async with own(api, version(schema)) as kind:
        assert (await kind.offer("abc")).code == 201
        assert causes(await kind.offer("xyz")) == [("<nil>", "Invalid value: a")]


async def test_a_rule_that_misses_something_refuses(api: Api) -> None:
    async with own(api, version(SMALL)) as kind:
        message = 'Invalid value: "object": no such key: size evaluating rule: must be small'
        assert causes(await kind.offer(spec={})) == [("spec", message)]


async def test_a_rule_about_a_change_is_asked_of_changes_only(api: Api) -> None:
    async with own(api, version(ruled("self.size >= oldSelf.size", message="may only grow"))) as kind:
        await kind.make(spec={"size": 3})
        assert (await kind.change(spec={"size": 4})).code == 200
        assert causes(await kind.change(spec={"size": 2})) == [("spec", "Invalid value: may only grow")]


async def test_a_rule_can_ask_whether_there_was_anything_before(api: Api) -> None:
    rule = ruled("oldSelf.hasValue() || self.size == 1", message="starts at 1", optionalOldSelf=True)
    async with own(api, version(rule)) as kind:
        assert causes(await kind.offer(spec={"size": 2})) == [("spec", "Invalid value: starts at 1")]
        await kind.make(spec={"size": 1})
        assert (await kind.change(spec={"size": 2})).code == 200


async def test_the_order_of_a_set_means_nothing(api: Api) -> None:
    async with own(api, version(ruled("self.names == oldSelf.names", message="stays"))) as kind:
        await kind.make(spec={"names": ["a", "b"]})
        assert (await kind.change(spec={"names": ["b", "a"]})).code == 200
        assert causes(await kind.change(spec={"names": ["b", "c"]})) == [("spec", "Invalid value: stays")]


async def test_what_broke_a_rule_before_there_was_one_may_stay(api: Api) -> None:
    plain = spec_of(size={"type": "integer"}, name={"type": "string", "maxLength": 9})
    plain["properties"]["note"] = {"type": "string"}
    async with own(api, version(plain)) as kind:
        await kind.make(spec={"size": 9})

        async def is_ruled() -> bool:
            return (await kind.offer("y", spec={"size": 9})).code == 422

        await kind.redefine(version(ruled("self.size < 5", plain, message="must be small")), until=is_ruled)
        assert (await kind.change(note="x")).code == 200
        assert causes(await kind.change(spec={"name": "x"})) == [("spec", "Invalid value: must be small")]


async def test_a_status_is_asked_too(api: Api) -> None:
    ready = {"type": "integer", "x-kubernetes-validations": [{"rule": "self >= 0", "message": "counts up"}]}
    schema = {"type": "object", "properties": {"status": {"type": "object", "properties": {"ready": ready}}}}
    async with own(api, version(schema, subresources={"status": {}})) as kind:
        await kind.make()
        answer = await api.merge(kind.path("x", part="status"), {"status": {"ready": -1}})
        assert causes(answer) == [("status.ready", "Invalid value: -1: counts up")]


LANGUAGE: tuple[tuple[str, Object, Object], ...] = (
    ("self.name.matches('^[a-z]+$')", {"name": "abc"}, {"name": "ABC"}),
    ("self.names.isSorted()", {"names": ["a", "b"]}, {"names": ["b", "a"]}),
    ("self.names.all(n, n.size() < 3)", {"names": ["a"]}, {"names": ["abc"]}),
    ("self.names.exists_one(n, n == 'a')", {"names": ["a", "b"]}, {"names": ["b"]}),
    ("quantity(self.name).isLessThan(quantity('1Gi'))", {"name": "512Mi"}, {"name": "2Gi"}),
    ("self.name.find('[0-9]+') == '42'", {"name": "a42"}, {"name": "a43"}),
    ("isURL(self.name) && url(self.name).getHost() == 'a.b'", {"name": "http://a.b/x"}, {"name": "http://b/x"}),
    ("sets.contains(['a', 'b'], self.names)", {"names": ["b"]}, {"names": ["c"]}),
    ("self.?size.orValue(3) == 3", {}, {"size": 4}),
    ("cidr('10.0.0.0/8').containsIP(ip(self.name))", {"name": "10.1.1.1"}, {"name": "11.1.1.1"}),
    ("int(self.name) == self.size", {"name": "5", "size": 5}, {"name": "5", "size": 6}),
    ("self.name.lowerAscii() == self.name", {"name": "abc"}, {"name": "Abc"}),
)


async def test_rules_speak_the_language_of_kubernetes(api: Api) -> None:
    members = ruled("true")["properties"]["spec"]["properties"]
    parts = {
        f"r{index}": {
            "type": "object",
            "properties": members,
            "x-kubernetes-validations": [{"rule": rule, "message": "no"}],
        }
        for index, (rule, _, _) in enumerate(LANGUAGE)
    }
    async with own(api, version(spec_of(**parts))) as kind:
        for index, (rule, good, bad) in enumerate(LANGUAGE):
            assert (await kind.offer(spec={f"r{index}": good})).code == 201, rule
            assert causes(await kind.offer(spec={f"r{index}": bad})) == [(f"spec.r{index}", "Invalid value: no")], rule


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("self.weight > 1", "undefined field 'weight'"),
        ("self.size == 'x'", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("self.name.shout()", "undeclared reference to 'shout' (in container '')"),
        ("self.size", "cel expression must evaluate to a bool"),
    ],
)
async def test_a_rule_that_does_not_compile_is_refused(api: Api, rule: str, said: str) -> None:
    answer = await api.ask("POST", CRDS, Own(api).definition(version(ruled(rule))), dryRun="All")
    [(field, message)] = causes(answer)
    assert field == "spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule"
    assert said in message

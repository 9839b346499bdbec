"""Schemas of custom kinds: what they refuse, and in which words; the whole table is in `embedded/custom`."""

from typing import Any

import pytest

from contract.backend import Api
from contract.crds import CRDS, TEXT, Object, Own, causes, own, spec_of, version

KEYED: Object = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["name"],
    "items": {"type": "object", "required": ["name"], "properties": {"name": TEXT}},
}
NOT_ASKED = (
    "Invalid value: null: some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


MISFITS: dict[str, tuple[Object, Any, str]] = {
    "a": ({"type": "integer"}, "x", 'Invalid value: "string": spec.a in body must be of type integer: "string"'),
    "b": (
        {"type": "integer", "minimum": 2},
        1,
        "Invalid value: 1: spec.b in body should be greater than or equal to 2",
    ),
    "c": ({"type": "string", "maxLength": 2}, "abc", "Too long: may not be more than 2 bytes"),
    "d": (
        {"type": "string", "minLength": 2},
        "a",
        'Invalid value: "a": spec.d in body should be at least 2 chars long',
    ),
    "e": ({"type": "string", "pattern": "^a$"}, "b", "Invalid value: \"b\": spec.e in body should match '^a$'"),
    "f": ({"type": "string", "enum": ["a"]}, "b", 'Unsupported value: "b": supported values: "a"'),
    "g": (
        {"type": "string", "format": "date-time"},
        "now",
        'Invalid value: "now": spec.g in body must be of type date-time: "now"',
    ),
    "h": ({"type": "array", "items": TEXT, "maxItems": 1}, ["a", "b"], "Too many: 2: must have at most 1 item"),
    "i": (
        {"type": "object", "properties": {"b": TEXT}, "minProperties": 1},
        {},
        "Invalid value: 0: spec.i in body should have at least 1 properties",
    ),
}


async def test_a_value_that_does_not_fit_is_refused(api: Api) -> None:
    schema = spec_of(**{name: one for name, (one, _, _) in MISFITS.items()})
    async with own(api, version(schema)) as kind:
        for name, (_, value, message) in MISFITS.items():
            assert causes(await kind.offer(spec={name: value})) == [(f"spec.{name}", message)]


async def test_the_refusal_names_kind_and_object(api: Api) -> None:
    async with own(api, version(spec_of(a={"type": "boolean"}))) as kind:
        said = 'spec.a: Invalid value: "integer": spec.a in body must be of type boolean: "integer"'
        message = f'Widget.{kind.group} "x" is invalid: {said}'
        assert (await kind.offer(spec={"a": 1})).refusal == (422, "Invalid", message)


async def test_what_is_required_must_be_there(api: Api) -> None:
    schema = {"type": "object", "required": ["spec"], "properties": {"spec": {"type": "object", "required": ["a"]}}}
    schema["properties"]["spec"]["properties"] = {"a": TEXT}  # type: ignore[index]
    async with own(api, version(schema)) as kind:
        assert causes(await kind.offer()) == [("spec", "Required value")]
        assert causes(await kind.offer(spec={})) == [("spec.a", "Required value")]


async def test_keys_tell_items_apart(api: Api) -> None:
    async with own(api, version(spec_of(a=KEYED))) as kind:
        answer = await kind.offer(spec={"a": [{"name": "x"}, {"name": "y"}, {"name": "x"}]})
        assert causes(answer) == [("spec.a[2]", 'Duplicate value: {"name":"x"}')]


async def test_a_set_has_everything_once(api: Api) -> None:
    async with own(api, version(spec_of(a={"type": "array", "x-kubernetes-list-type": "set", "items": TEXT}))) as kind:
        assert causes(await kind.offer(spec={"a": ["x", "x"]})) == [("spec.a[1]", 'Duplicate value: "x"')]


async def test_an_object_inside_says_what_it_is(api: Api) -> None:
    inside = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
    async with own(api, version(spec_of(a=inside))) as kind:
        found = [("spec.a.apiVersion", "Required value"), ("spec.a.kind", "Required value")]
        assert causes(await kind.offer(spec={"a": {}})) == found
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "x": 1}
        assert (await kind.offer(spec={"a": pod})).body["spec"]["a"] == pod


async def test_what_was_wrong_before_the_schema_got_strict_may_stay(api: Api) -> None:
    async with own(api, version(spec_of(a=TEXT, b=TEXT))) as kind:
        await kind.make(spec={"a": "long"})
        strict = version(spec_of(a={**TEXT, "maxLength": 2}, b=TEXT))

        async def is_strict() -> bool:
            return (await kind.offer("y", spec={"a": "long"})).code == 422

        await kind.redefine(strict, until=is_strict)
        assert (await kind.change(spec={"b": "x"})).code == 200
        assert causes(await kind.change(spec={"a": "longer"})) == [("spec.a", "Too long: may not be more than 2 bytes")]


async def test_a_status_is_checked_when_it_is_written(api: Api) -> None:
    ready = {"type": "object", "properties": {"ready": {"type": "integer", "minimum": 0}}}
    schema = {"type": "object", "properties": {"spec": {"type": "object"}, "status": ready}}
    async with own(api, version(schema, subresources={"status": {}})) as kind:
        await kind.make()
        answer = await api.merge(kind.path("x", part="status"), {"status": {"ready": -1}})
        message = "Invalid value: -1: ready in body should be greater than or equal to 0"
        assert causes(answer) == [("status.ready", message)]


async def test_rules_are_not_asked_of_what_does_not_fit(api: Api) -> None:
    schema = spec_of(a={"type": "integer"})
    schema["properties"]["spec"]["x-kubernetes-validations"] = [{"rule": "self.a > 5"}]
    async with own(api, version(schema)) as kind:
        message = 'Invalid value: "string": spec.a in body must be of type integer: "string"'
        assert causes(await kind.offer(spec={"a": "x"})) == [("<nil>", NOT_ASKED), ("spec.a", message)]


@pytest.mark.parametrize(
    ("schema", "field", "message"),
    [
        (spec_of(a={}), "properties[a].type", "Required value: must not be empty for specified object fields"),
        (
            spec_of(a={**TEXT, "default": 1}),
            "properties[a].default",
            'Invalid value: "integer":  in body must be of type string: "integer"',
        ),
        (
            spec_of(a={"type": "array", "items": TEXT, "x-kubernetes-list-type": "map"}),
            "properties[a].x-kubernetes-list-map-keys",
            "Required value: must not be empty if x-kubernetes-list-type is map",
        ),
    ],
)
async def test_a_schema_that_cannot_work_is_refused(api: Api, schema: Object, field: str, message: str) -> None:
    answer = await api.ask("POST", CRDS, Own(api).definition(version(schema)), dryRun="All")
    where = f"spec.validation.openAPIV3Schema.properties[spec].{field}"
    assert (where, message) in causes(answer)


async def test_the_name_of_a_definition_is_that_of_its_kind(api: Api) -> None:
    crd = {**Own(api).definition(), "metadata": {"name": "things.kedge.dev"}}
    message = 'Invalid value: "things.kedge.dev": must be spec.names.plural+"."+spec.group'
    assert causes(await api.ask("POST", CRDS, crd)) == [("metadata.name", message)]


@pytest.mark.parametrize(
    ("within", "message"),
    [
        ({"type": "array", "items": {"properties": []}}, "cannot unmarshal array into Go struct field"),
        ({"type": "array", "items": {"type": 1}}, "cannot unmarshal number into Go struct field"),
        ({"type": "object", "additionalProperties": {"required": "a"}}, "cannot unmarshal string into Go struct field"),
        ({"type": "object", "additionalProperties": "x"}, "boolean or JSON schema expected"),
    ],
    ids=["items", "a-word-of-items", "values", "no-schema"],
)
async def test_a_nested_schema_of_the_wrong_type_is_refused(api: Api, within: Object, message: str) -> None:
    answer = await api.ask("POST", CRDS, Own(api).definition(version(spec_of(a=within))))
    code, reason, said = answer.refusal
    assert (code, reason) == (400, "BadRequest")
    assert message in said


async def test_null_in_a_nested_schema_stands_for_nothing(api: Api) -> None:
    items: Object = {"type": "object", "properties": None, "required": None, "x-kubernetes-map-type": "atomic"}
    async with own(api, version(spec_of(a={"type": "array", "items": items}))) as kind:
        schema = (await api.look(kind.crd))["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        assert schema["properties"]["spec"]["properties"]["a"]["items"] == {
            "type": "object",
            "x-kubernetes-map-type": "atomic",
        }


@pytest.mark.parametrize("status", [True, [], "on"], ids=["true", "a-list", "a-word"])
async def test_a_status_subresource_is_an_object(api: Api, status: Any) -> None:
    crd = Own(api).definition(version(subresources={"status": status}))
    code, _, said = (await api.ask("POST", CRDS, crd)).refusal
    assert code == 400
    assert "CustomResourceSubresources.spec.versions.subresources.status of type" in said

"""Several versions of one custom kind: one is stored, each is served, and only the name is converted."""

from typing import Any

import pytest

from contract.backend import Api
from contract.crds import CRDS, TEXT, Object, Own, causes, own, spec_of, version
from kedge.api.resource import Resource
from kedge.kube.codec import untyped

OLD = spec_of(shared=TEXT, old=TEXT, mode={"type": "string", "default": "slow"})
NEW = spec_of(shared=TEXT, new=TEXT, mode={"type": "string", "default": "fast"})
BOTH = (version(OLD), version(NEW, "v2"))


async def test_an_object_is_seen_in_every_version(api: Api) -> None:
    async with own(api, *BOTH) as kind:
        made = await kind.make(spec={"shared": "a"})
        found = await api.look(kind.path("x", version="v2"))
        assert (found["apiVersion"], found["spec"]) == (f"{kind.group}/v2", {"shared": "a", "mode": "slow"})
        assert found["metadata"]["uid"] == made["metadata"]["uid"]
        assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_what_the_asked_version_does_not_know_is_not_shown(api: Api) -> None:
    async with own(api, *BOTH) as kind:
        await kind.make(spec={"shared": "a", "old": "b"})
        assert "old" not in (await api.look(kind.path("x", version="v2")))["spec"]
        assert (await api.look(kind.path("x")))["spec"]["old"] == "b"


async def test_what_the_stored_version_does_not_know_is_not_kept(api: Api) -> None:
    async with own(api, *BOTH) as kind:
        made = await kind.make(version="v2", spec={"shared": "a", "new": "b"})
        assert (made["apiVersion"], made["spec"]) == (f"{kind.group}/v2", {"shared": "a", "mode": "fast"})


async def test_a_list_is_of_the_asked_version(api: Api) -> None:
    async with own(api, *BOTH) as kind:
        await kind.make("a", spec={})
        await kind.make("b", version="v2", spec={})
        for name in ("v1", "v2"):
            body = (await api.ask("GET", kind.path(version=name))).body
            assert body["apiVersion"] == f"{kind.group}/{name}"
            assert [item["apiVersion"] for item in body["items"]] == [f"{kind.group}/{name}"] * 2


async def test_a_write_in_one_version_is_seen_in_the_other(api: Api) -> None:
    async with own(api, *BOTH) as kind:
        await kind.make(spec={"shared": "a"})
        answer = await api.merge(kind.path("x", version="v2"), {"spec": {"shared": "b"}})
        assert (answer.body["apiVersion"], answer.metadata["generation"]) == (f"{kind.group}/v2", 2)
        assert (await api.look(kind.path("x")))["spec"]["shared"] == "b"


async def test_a_watch_tells_in_its_version(api: Api) -> None:
    async with own(api, *BOTH) as kind:
        widgets = untyped(Resource(kind.group, "v2", "Widget", "widgets"))
        start = (await api.ask("GET", kind.path(version="v2"))).metadata["resourceVersion"]
        async with api.client.watch(widgets, api.namespace, resource_version=start) as watch:
            await kind.make(spec={"shared": "a", "old": "b"})
            event: Any = await anext(aiter(watch))
        assert event.type == "ADDED"
        assert (event.object["apiVersion"], event.object["spec"]) == (
            f"{kind.group}/v2",
            {"shared": "a", "mode": "slow"},
        )


async def test_an_object_must_be_of_the_version_it_is_sent_to(api: Api) -> None:
    async with own(api, *BOTH) as kind:
        answer = await api.ask("POST", kind.path(version="v2"), kind.obj(spec={}))
        assert answer.code == 400


async def test_each_version_has_its_own_demands(api: Api) -> None:
    strict = spec_of(shared={**TEXT, "maxLength": 2})
    async with own(api, version(OLD), version(strict, "v2")) as kind:
        assert (await kind.offer(spec={"shared": "long"})).code == 201
        obj = kind.obj(version="v2", spec={"shared": "long"})
        answer = await api.ask("POST", kind.path(version="v2"), obj)
        assert causes(answer) == [("spec.shared", "Too long: may not be more than 2 bytes")]


async def test_a_version_that_is_not_served_is_not_there(api: Api) -> None:
    async with own(api, version(OLD), version(NEW, "v2", served=False)) as kind:
        assert (await api.ask("GET", kind.path(version="v2"))).code == 404


async def test_a_deprecated_version_warns(api: Api) -> None:
    async with own(api, version(OLD, deprecated=True), version(NEW, "v2")) as kind:
        said = f"{kind.group}/v1 Widget is deprecated; use {kind.group}/v2 Widget"
        assert said in await kind.warned("GET", kind.path())
        assert said in await kind.warned("POST", kind.path(), kind.obj(spec={}))
        assert await kind.warned("GET", kind.path(version="v2")) == ""


async def test_a_deprecated_version_warns_in_its_own_words(api: Api) -> None:
    async with own(api, version(OLD, deprecated=True, deprecationWarning="go away")) as kind:
        assert '299 - "go away"' in await kind.warned("GET", kind.path())


async def test_every_version_that_was_stored_is_remembered(api: Api) -> None:
    async with own(api, *BOTH) as kind:
        later = (version(OLD, storage=False), version(NEW, "v2", storage=True))
        answer = await kind.redefine(*later)
        assert answer.body["status"]["storedVersions"] == ["v1", "v2"]
        refused = await kind.redefine(version(NEW, "v2", storage=True))
        assert ("FieldValueInvalid", "status.storedVersions[0]") in refused.fields


async def test_objects_outlive_the_change_of_what_is_stored(api: Api) -> None:
    async with own(api, *BOTH) as kind:
        await kind.make(spec={"shared": "a", "old": "b"})
        await kind.redefine(version(OLD, storage=False), version(NEW, "v2", storage=True))
        assert (await api.look(kind.path("x")))["spec"]["shared"] == "a"
        assert (await api.merge(kind.path("x"), {"metadata": {"labels": {"a": "b"}}})).code == 200
        assert (await api.look(kind.path("x", version="v2")))["spec"]["shared"] == "a"


async def test_exactly_one_version_is_stored(api: Api) -> None:
    kind = Own(api)
    crd = kind.definition(version(OLD), version(NEW, "v2", storage=True))
    found = causes(await api.ask("POST", CRDS, crd))
    assert [field for field, _ in found] == ["spec.versions", "status.storedVersions"]
    assert found[0][1].endswith(": must have exactly one version marked as storage version")
    assert found[1][1] == 'Invalid value: ["v1"]: must have the storage version v2'


@pytest.mark.parametrize("versions", [[], None], ids=["empty", "absent"])
async def test_a_crd_without_versions_is_refused(api: Api, versions: list[Object] | None) -> None:
    crd = Own(api).definition()
    crd["spec"]["versions"] = versions
    (field, why), stored = causes(await api.ask("POST", CRDS, crd))
    assert field == "spec.versions"
    assert why.endswith(": must have exactly one version marked as storage version")
    assert stored == ("status.storedVersions", "Invalid value: null: must have at least one stored version")


async def test_a_version_without_a_name_is_refused(api: Api) -> None:
    nameless = {key: value for key, value in version(OLD).items() if key != "name"} | {"storage": True}
    answer = await api.ask("POST", CRDS, Own(api).definition(nameless))
    assert answer.code == 422
    assert ("FieldValueInvalid", "spec.versions[0].name") in answer.fields
    assert "spec.version" not in [field for _, field in answer.fields]

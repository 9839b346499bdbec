"""CustomResourceDefinitions: a kind of one's own is defined, established, served, changed and removed."""

import json

import pytest

from contract.backend import HELD, JSON_PATCH, Api
from contract.crds import CRDS, TEXT, Object, Own, causes, own, spec_of, version
from support.waiting import until_so


async def test_a_definition_is_completed(api: Api) -> None:
    answer = await api.ask("POST", CRDS, Own(api).definition(version()), dryRun="All")
    assert answer.code == 201
    spec = answer.body["spec"]
    assert spec["names"] == {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    assert spec["conversion"] == {"strategy": "None"}
    assert answer.body["status"]["storedVersions"] == ["v1"]


async def test_a_definition_gets_its_names_and_is_established(api: Api) -> None:
    async with own(api, shortNames=["wd"]) as kind:
        status = (await api.look(kind.crd))["status"]
        assert status["acceptedNames"] == {
            "plural": "widgets",
            "singular": "widget",
            "shortNames": ["wd"],
            "kind": "Widget",
            "listKind": "WidgetList",
        }
        assert status["storedVersions"] == ["v1"]
        assert await kind.condition("NamesAccepted") == ("True", "NoConflicts", "no conflicts found")
        said = "the initial names have been accepted"
        assert await kind.condition("Established") == ("True", "InitialNamesAccepted", said)


async def test_objects_of_the_kind_are_kept(api: Api) -> None:
    async with own(api) as kind:
        made = await kind.make(spec={"size": 3})
        assert made["metadata"]["generation"] == 1
        assert (await api.look(kind.path("x")))["spec"] == {"size": 3}
        listed = await api.ask("GET", kind.path())
        assert (listed.body["kind"], listed.names) == ("WidgetList", ["x"])


async def test_a_change_of_anything_but_metadata_is_a_new_generation(api: Api) -> None:
    async with own(api) as kind:
        await kind.make(spec={"size": 3})
        assert (await kind.change(spec={"size": 4})).metadata["generation"] == 2
        assert (await kind.change(metadata={"labels": {"a": "b"}})).metadata["generation"] == 2
        assert (await kind.change(status={"ready": 1})).metadata["generation"] == 3


async def test_a_status_of_its_own_is_written_apart(api: Api) -> None:
    async with own(api, version(subresources={"status": {}})) as kind:
        made = await kind.make(spec={"size": 3}, status={"ready": 1})
        assert "status" not in made
        answer = await api.merge(kind.path("x", part="status"), {"status": {"ready": 2}, "spec": {"size": 9}})
        assert (answer.body["status"], answer.body["spec"], answer.metadata["generation"]) == (
            {"ready": 2},
            {"size": 3},
            1,
        )
        assert (await kind.change(spec={"size": 4}, status={"ready": 5})).body["status"] == {"ready": 2}


async def test_without_a_status_of_its_own_there_is_no_such_place(api: Api) -> None:
    async with own(api) as kind:
        await kind.make(status={"ready": 1})
        assert (await api.ask("GET", kind.path("x", part="status"))).code == 404


async def test_what_can_be_scaled_is_scaled(api: Api) -> None:
    paths = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.ready"}
    async with own(api, version(subresources={"scale": paths, "status": {}})) as kind:
        await kind.make(spec={"size": 3})
        scale = await api.look(kind.path("x", part="scale"))
        assert (scale["kind"], scale["spec"], scale["status"]) == ("Scale", {"replicas": 3}, {"replicas": 0})
        answer = await api.merge(kind.path("x", part="scale"), {"spec": {"replicas": 5}})
        assert answer.code == 200, answer
        assert (await api.look(kind.path("x")))["spec"] == {"size": 5}


async def test_a_put_needs_the_version_of_what_it_replaces(api: Api) -> None:
    async with own(api) as kind:
        await kind.make(spec={"size": 3})
        answer = await api.ask("PUT", kind.path("x"), kind.obj(spec={"size": 4}))
        assert causes(answer) == [("metadata.resourceVersion", "Invalid value: 0: must be specified for an update")]


async def test_a_strategic_merge_patch_is_not_for_custom_kinds(api: Api) -> None:
    async with own(api) as kind:
        await kind.make(spec={"size": 3})
        patch = b'{"spec":{"size":4}}'
        answer = await api.ask("PATCH", kind.path("x"), patch, "application/strategic-merge-patch+json")
        assert (answer.code, answer.body["reason"]) == (415, "UnsupportedMediaType")


async def test_a_json_patch_is(api: Api) -> None:
    async with own(api) as kind:
        await kind.make(spec={"size": 3})
        operations = [{"op": "replace", "path": "/spec/size", "value": 4}]
        answer = await api.ask("PATCH", kind.path("x"), operations, JSON_PATCH)
        assert answer.body["spec"] == {"size": 4}


async def test_what_the_schema_does_not_name_is_dropped(api: Api) -> None:
    async with own(api, version(spec_of(size={"type": "integer"}))) as kind:
        made = await kind.make(spec={"size": 3, "more": 1}, extra={})
        assert made["spec"] == {"size": 3}
        assert "extra" not in made


async def test_what_it_names_is_filled_in(api: Api) -> None:
    deep = {"type": "object", "default": {}, "properties": {"mode": {"type": "string", "default": "fast"}}}
    async with own(api, version(spec_of(deep=deep, size={"type": "integer", "default": 1}))) as kind:
        assert (await kind.make("empty", spec={}))["spec"] == {"deep": {"mode": "fast"}, "size": 1}
        assert (await kind.make("null", spec={"size": None, "deep": {}}))["spec"]["size"] == 1
        assert "spec" not in await kind.make("nothing")


async def test_what_is_in_lists_and_maps_is_filled_in_too(api: Api) -> None:
    part = {"type": "object", "properties": {"mode": {"type": "string", "default": "fast"}}}
    members = {"parts": {"type": "array", "items": part}, "named": {"type": "object", "additionalProperties": part}}
    async with own(api, version(spec_of(**members))) as kind:
        made = await kind.make(spec={"parts": [{}, {"mode": "slow"}], "named": {"a": {}}})
        assert made["spec"] == {"parts": [{"mode": "fast"}, {"mode": "slow"}], "named": {"a": {"mode": "fast"}}}


async def test_what_is_there_already_is_filled_in_when_it_is_read(api: Api) -> None:
    async with own(api, version(spec_of(size={"type": "integer"}))) as kind:
        made = await kind.make(spec={})

        async def is_filled() -> bool:
            return bool((await api.look(kind.path("x")))["spec"])

        await kind.redefine(version(spec_of(size={"type": "integer", "default": 7})), until=is_filled)
        found = await api.look(kind.path("x"))
        assert found["spec"] == {"size": 7}
        assert found["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        assert (await api.ask("GET", kind.path())).body["items"][0]["spec"] == {"size": 7}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"scope": "Cluster"}, "spec.scope"),
        ({"names": {"plural": "widgets", "kind": "Other"}}, "spec.names.kind"),
        ({"group": "other.kedge.dev"}, "spec.group"),
    ],
)
async def test_what_decides_where_objects_are_kept_stays(api: Api, change: Object, field: str) -> None:
    async with own(api) as kind:
        there = await api.look(kind.crd)
        answer = await api.ask("PUT", kind.crd, {**there, "spec": {**there["spec"], **change}})
        assert answer.code == 422
        assert ("FieldValueInvalid", field) in answer.fields


async def test_a_kind_that_is_taken_is_not_accepted(api: Api) -> None:
    async with own(api) as kind:
        rival = kind.definition(version(), plural="gadgets", singular="gadget", listKind="Gadgets")
        rival["metadata"] = {"name": f"gadgets.{kind.group}"}
        other = Own(api)
        other.crd = f"{CRDS}/gadgets.{kind.group}"
        assert (await api.ask("POST", CRDS, rival)).code == 201
        assert await other.condition("NamesAccepted") == ("False", "KindConflict", '"Widget" is already in use')
        assert await other.condition("Established") == ("False", "NotAccepted", "not all names are accepted")
        await api.ask("DELETE", other.crd)


async def test_a_removed_definition_takes_its_objects_along(api: Api) -> None:
    async with own(api) as kind:
        await kind.make("a")
        await kind.make("b")
        answer = await api.ask("DELETE", kind.crd)
        assert answer.code == 200
        await until_so(lambda: _is_gone(api, kind.crd))
        await until_so(lambda: _is_gone(api, kind.path()))


async def test_a_definition_waits_for_objects_that_are_held(api: Api) -> None:
    async with own(api) as kind:
        await kind.make("held", metadata={"finalizers": HELD})
        marked = await api.ask("DELETE", kind.crd)
        assert marked.metadata["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
        await until_so(lambda: _is_going(api, kind.path("held")))
        assert (await api.look(kind.crd))["metadata"]["deletionTimestamp"]
        assert (await kind.condition("Terminating"))[0] == "True"
        assert (await kind.change("held", metadata={"finalizers": None})).code == 200
        await until_so(lambda: _is_gone(api, kind.crd))


async def test_a_definition_comes_back_without_its_objects(api: Api) -> None:
    async with own(api) as kind:
        await kind.make("a")
        await api.ask("DELETE", kind.crd)
        await until_so(lambda: _is_gone(api, kind.crd))
        await kind.define()
        assert (await api.ask("GET", kind.path())).names == []


async def test_objects_can_be_selected_by_fields_the_definition_names(api: Api) -> None:
    schema = spec_of(color=TEXT)
    async with own(api, version(schema, selectableFields=[{"jsonPath": ".spec.color"}])) as kind:
        await kind.make("red", spec={"color": "red"})
        await kind.make("none", spec={})
        assert (await api.ask("GET", kind.path(), fieldSelector="spec.color=red")).names == ["red"]
        assert (await api.ask("GET", kind.path(), fieldSelector="spec.color!=red")).names == ["none"]
        assert (await api.ask("GET", kind.path(), fieldSelector="spec.size=1")).code == 400


async def test_finalizers_of_nobody_in_particular_are_warned_of(api: Api) -> None:
    async with own(api) as kind:
        body = kind.obj(metadata={"finalizers": ["mine"]})
        said = "prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
        assert said in await kind.warned("POST", kind.path(), body)
        assert (await kind.change(metadata={"finalizers": None})).code == 200


async def _is_gone(api: Api, path: str) -> bool:
    return (await api.ask("GET", path)).code == 404


async def _is_going(api: Api, path: str) -> bool:
    answer = await api.ask("GET", path)
    return answer.code == 200 and "deletionTimestamp" in answer.metadata


async def test_a_custom_object_says_what_it_is(api: Api) -> None:
    async with own(api) as kind:
        whole = kind.obj()
        nameless = {"metadata": {"name": "x"}}
        expected = f"does not match the expected API version ({kind.group}/v1)"
        shown = json.dumps(nameless, separators=(",", ":"))
        unrecognized = "the object provided is unrecognized (must be of type Widget)"
        untold = (400, "BadRequest", f"{unrecognized}: Object 'Kind' is missing in '{shown}' ({shown})")
        assert (await api.ask("POST", kind.path(), nameless)).refusal == untold
        without_version = {key: value for key, value in whole.items() if key != "apiVersion"}
        for offered, said in ((without_version, ""), ({**whole, "apiVersion": "other/v1"}, "other/v1")):
            why = f"the API version in the data ({said}) {expected}"
            assert (await api.ask("POST", kind.path(), offered)).refusal == (400, "BadRequest", why)
        made = await kind.make()
        unchanged = await api.ask("PUT", kind.path("x"), {"metadata": made["metadata"]})
        assert (unchanged.code, unchanged.body["message"].startswith(unrecognized)) == (400, True)

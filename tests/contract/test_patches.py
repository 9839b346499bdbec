"""Patches: a change that names only what it changes, all of it or nothing."""

from typing import Any

import pytest

from contract.backend import CONFIG_MAPS, JSON_PATCH, MERGE, MODIFIED_MEANWHILE, Api, config_map, rv
from kedge.api.core import ConfigMap
from kedge.api.resource import Resource
from kedge.kube.codec import untyped
from kedge.kube.errors import Conflict, NotFound, Vanished
from kedge.kube.patches import JsonPatch, MergePatch, Patch

OURS = "the server rejected our request due to an error in our request"
ANOTHER_UID = "00000000-0000-0000-0000-000000000000"


async def made(api: Api) -> dict[str, Any]:
    return await api.make("a", {"k": "v", "l": "w"}, annotations={"x.io/y": "1"})


@pytest.mark.parametrize(
    ("patch", "data"),
    [
        ({"data": {"m": "x"}}, {"k": "v", "l": "w", "m": "x"}),
        ({"data": {"k": "x"}}, {"k": "x", "l": "w"}),
        ({"data": {"k": None}}, {"l": "w"}),
        ({"data": {"nobody": None}}, {"k": "v", "l": "w"}),
        ({"data": None}, None),
        ({"data": {"k": None, "l": "x"}}, {"l": "x"}),
        ({}, {"k": "v", "l": "w"}),
    ],
)
async def test_a_merge_patch_sets_what_it_names_and_null_removes(api: Api, patch: dict[str, Any], data: object) -> None:
    await made(api)
    answer = await api.merge(f"{api.maps}/a", patch)
    assert answer.code == 200
    assert answer.body.get("data") == data
    assert await api.look(f"{api.maps}/a") == answer.body


async def test_a_merge_patch_replaces_lists_whole(api: Api) -> None:
    await api.make("a", finalizers=["x.io/a", "x.io/b"])
    answer = await api.merge(f"{api.maps}/a", {"metadata": {"finalizers": ["x.io/c"]}})
    assert answer.metadata["finalizers"] == ["x.io/c"]
    await api.merge(f"{api.maps}/a", {"metadata": {"finalizers": None}})


@pytest.mark.parametrize(
    ("operations", "data"),
    [
        ([{"op": "add", "path": "/data/m", "value": "x"}], {"k": "v", "l": "w", "m": "x"}),
        ([{"op": "add", "path": "/data/k", "value": "x"}], {"k": "x", "l": "w"}),
        ([{"op": "add", "path": "/data", "value": {"z": "z"}}], {"z": "z"}),
        ([{"op": "remove", "path": "/data/k"}], {"l": "w"}),
        ([{"op": "replace", "path": "/data/k", "value": "x"}], {"k": "x", "l": "w"}),
        ([{"op": "replace", "path": "/data/m", "value": "x"}], {"k": "v", "l": "w", "m": "x"}),
        ([{"op": "move", "from": "/data/k", "path": "/data/m"}], {"l": "w", "m": "v"}),
        ([{"op": "copy", "from": "/data/k", "path": "/data/m"}], {"k": "v", "l": "w", "m": "v"}),
        (
            [{"op": "test", "path": "/data/k", "value": "v"}, {"op": "remove", "path": "/data/l"}],
            {"k": "v"},
        ),
        ([{"op": "copy", "from": "/metadata/annotations/x.io~1y", "path": "/data/k"}], {"k": "1", "l": "w"}),
        ([], {"k": "v", "l": "w"}),
    ],
)
async def test_a_json_patch_does_its_operations_in_turn(api: Api, operations: list[Any], data: object) -> None:
    await made(api)
    answer = await api.ask("PATCH", f"{api.maps}/a", operations, JSON_PATCH)
    assert answer.code == 200
    assert answer.body["data"] == data


async def test_a_json_patch_appends_and_inserts(api: Api) -> None:
    await api.make("a", finalizers=["x.io/b"])
    path = "/metadata/finalizers"
    operations = [
        {"op": "add", "path": f"{path}/-", "value": "x.io/c"},
        {"op": "add", "path": f"{path}/0", "value": "x.io/a"},
    ]
    answer = await api.ask("PATCH", f"{api.maps}/a", operations, JSON_PATCH)
    assert answer.metadata["finalizers"] == ["x.io/a", "x.io/b", "x.io/c"]
    answer = await api.ask("PATCH", f"{api.maps}/a", [{"op": "remove", "path": f"{path}/-1"}], JSON_PATCH)
    assert answer.metadata["finalizers"] == ["x.io/a", "x.io/b"]


@pytest.mark.parametrize(
    "last",
    [
        {"op": "test", "path": "/data/k", "value": "not v"},
        {"op": "test", "path": "/data/nobody", "value": "v"},
        {"op": "remove", "path": "/data/nobody"},
        {"op": "add", "path": "/nobody/home/k", "value": "x"},
        {"op": "move", "from": "/data/nobody", "path": "/data/m"},
    ],
    ids=lambda operation: f"{operation['op']} {operation['path']}",
)
async def test_a_json_patch_that_fails_in_the_end_does_nothing(api: Api, last: dict[str, str]) -> None:
    before = await made(api)
    operations = [{"op": "add", "path": "/data/new", "value": "x"}, last]
    answer = await api.ask("PATCH", f"{api.maps}/a", operations, JSON_PATCH)
    assert answer.refusal[:2] == (422, "Invalid")
    assert answer.refusal[2].startswith(OURS)
    assert await api.look(f"{api.maps}/a") == before


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (MERGE, b"{"),
        (MERGE, b"[]"),
        (JSON_PATCH, b"{"),
        (JSON_PATCH, b"{}"),
        (JSON_PATCH, b"nonsense"),
    ],
)
async def test_a_patch_that_is_none_is_a_bad_request(api: Api, kind: str, body: bytes) -> None:
    await made(api)
    answer = await api.ask("PATCH", f"{api.maps}/a", body, kind)
    assert answer.refusal[:2] == (400, "BadRequest")


PATCHES: list[Patch] = [
    MergePatch({"data": {"k": "x"}}),
    JsonPatch([{"op": "replace", "path": "/data/k", "value": "x"}]),
]


@pytest.mark.parametrize("patch", PATCHES, ids=["merge", "json"])
async def test_a_patch_of_the_version_and_uid_that_are_there_is_done(api: Api, patch: Patch) -> None:
    meta = (await made(api))["metadata"]
    conditions = {"uid": meta["uid"], "resource_version": meta["resourceVersion"]}
    changed = await api.client.patch(CONFIG_MAPS, "a", patch, api.namespace, **conditions)
    assert changed["data"]["k"] == "x"


@pytest.mark.parametrize("patch", PATCHES, ids=["merge", "json"])
async def test_a_patch_of_an_older_version_is_a_conflict(api: Api, patch: Patch) -> None:
    old = (await made(api))["metadata"]["resourceVersion"]
    newer = (await api.merge(f"{api.maps}/a", {"data": {"l": "x"}})).body
    with pytest.raises(Conflict) as caught:
        await api.client.patch(CONFIG_MAPS, "a", patch, api.namespace, resource_version=old)
    assert caught.value.message == f'Operation cannot be fulfilled on configmaps "a": {MODIFIED_MEANWHILE}'
    assert await api.look(f"{api.maps}/a") == newer


@pytest.mark.parametrize("patch", PATCHES, ids=["merge", "json"])
async def test_a_patch_of_another_uid_is_a_conflict(api: Api, patch: Patch) -> None:
    before = await made(api)
    with pytest.raises(Conflict):
        await api.client.patch(CONFIG_MAPS, "a", patch, api.namespace, uid=ANOTHER_UID)
    assert await api.look(f"{api.maps}/a") == before


async def test_an_amendment_of_what_has_gone_meanwhile_is_a_conflict(api: Api) -> None:
    seen = (await api.client.create(ConfigMap, config_map("a"), api.namespace)).metadata
    await api.ask("DELETE", f"{api.maps}/a")
    with pytest.raises(Vanished) as caught:
        await api.client.amend(ConfigMap, seen, {"data": {"k": "x"}})
    assert isinstance(caught.value, Conflict)
    assert isinstance(caught.value, NotFound)
    assert caught.value.message == 'configmaps "a" not found'


@pytest.mark.parametrize(
    ("plural", "subresource"), [("configmaps", "status"), ("nothings", None)], ids=["subresource", "kind"]
)
async def test_an_amendment_where_nothing_is_served_is_none(api: Api, plural: str, subresource: str | None) -> None:
    seen = (await api.client.create(ConfigMap, config_map("a"), api.namespace)).metadata
    kind = untyped(Resource("", "v1", "ConfigMap", plural))
    with pytest.raises(NotFound) as caught:
        await api.client.amend(kind, seen, {"data": {"k": "x"}}, subresource=subresource)
    assert not isinstance(caught.value, Conflict)


@pytest.mark.parametrize("patch", [{}, {"data": {"k": "v"}}, {"metadata": {"labels": {}}}])
async def test_a_patch_that_changes_nothing_keeps_the_version(api: Api, patch: dict[str, Any]) -> None:
    before = await made(api)
    assert (await api.merge(f"{api.maps}/a", patch)).body == before


async def test_a_patch_raises_the_version_and_keeps_the_uid(api: Api) -> None:
    before = await made(api)
    after = (await api.merge(f"{api.maps}/a", {"data": {"k": "x"}})).body
    assert rv(after) > rv(before)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]


@pytest.mark.parametrize(("patch", "generation"), [({"spec": {"replicas": 5}}, 2), ({"spec": {"replicas": 2}}, 1)])
async def test_a_patch_of_a_spec_counts_if_it_changes_it(api: Api, patch: dict[str, Any], generation: int) -> None:
    await api.make_deployment()
    assert (await api.merge(f"{api.deployments}/web", patch)).metadata["generation"] == generation


async def test_a_patch_of_what_is_not_there_is_not_found(api: Api) -> None:
    answer = await api.merge(f"{api.maps}/a", {"data": {"k": "x"}})
    assert answer.refusal == (404, "NotFound", 'configmaps "a" not found')


async def test_a_patch_cannot_rename(api: Api) -> None:
    await made(api)
    answer = await api.merge(f"{api.maps}/a", {"metadata": {"name": "b"}})
    why = "the name of the object (b) does not match the name on the URL (a)"
    assert answer.refusal == (400, "BadRequest", why)


async def test_a_patch_cannot_move_to_another_namespace(api: Api) -> None:
    await made(api)
    answer = await api.merge(f"{api.maps}/a", {"metadata": {"namespace": "default"}})
    why = "the namespace of the provided object does not match the namespace sent on the request"
    assert answer.refusal == (400, "BadRequest", why)


@pytest.mark.parametrize("patch", [{"metadata": {"labels": {"a b": "x"}}}, {"metadata": {"finalizers": ["not ours"]}}])
async def test_a_patch_that_breaks_a_rule_does_nothing(api: Api, patch: dict[str, Any]) -> None:
    before = await made(api)
    assert (await api.merge(f"{api.maps}/a", patch)).refusal[:2] == (422, "Invalid")
    assert await api.look(f"{api.maps}/a") == before

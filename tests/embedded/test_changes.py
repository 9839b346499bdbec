"""Changing: replace, patch and apply; what changes along with it, and what never does."""

from typing import Any

import pytest

from embedded.world import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    THINGS,
    World,
    config_map,
    deployment,
    meta,
    pod,
    thing,
    virtually,
)
from kedge.api.core import ConfigMap
from kedge.kube.codec import Codec, Untyped
from kedge.kube.errors import AlreadyExists, BadRequest, Conflict, Invalid, NotFound
from kedge.kube.patches import JsonPatch, MergePatch

NOW = "2030-01-01T00:00:00Z"


@virtually
async def test_a_put_replaces_the_whole_object() -> None:
    world = World()
    made = await world.client.create(CONFIG_MAPS, config_map("a", data={"k": "v"}, extra=1))
    put = await world.client.replace(CONFIG_MAPS, config_map("a", data={"l": "w"}))
    assert (put["data"], "extra" in put) == ({"l": "w"}, False)
    assert meta(put)["uid"] == meta(made)["uid"]
    assert int(meta(put)["resourceVersion"]) > int(meta(made)["resourceVersion"])


@virtually
async def test_a_write_from_an_old_version_is_a_conflict() -> None:
    world = World()
    old = await world.config_map("a")
    await world.client.patch(CONFIG_MAPS, "a", MergePatch({"data": {"k": "v"}}), "default")
    stale = meta(old)["resourceVersion"]
    modified = "the object has been modified; please apply your changes to the latest version and try again"
    with pytest.raises(Conflict, match=modified):
        await world.client.replace(CONFIG_MAPS, {**old, "data": {"k": "w"}})
    with pytest.raises(Conflict, match=modified):
        patch = MergePatch({"data": {"k": "w"}})
        await world.client.patch(CONFIG_MAPS, "a", patch, "default", resource_version=stale)
    with pytest.raises(Conflict, match=modified):
        await world.client.apply(CONFIG_MAPS, {**old, "data": {"k": "w"}}, manager="me", force=True)
    with pytest.raises(Conflict, match=modified):
        await world.client.patch(CONFIG_MAPS, "a", JsonPatch([]), "default", resource_version=stale)
    assert (await world.client.get(CONFIG_MAPS, "a", "default"))["data"] == {"k": "v"}


@virtually
async def test_a_write_meant_for_another_object_of_that_name_is_refused() -> None:
    world = World()
    await world.config_map("a")
    with pytest.raises(Conflict, match="Precondition failed: UID in precondition: other, UID in object meta: "):
        await world.client.replace(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "default", "uid": "other"}})
    with pytest.raises(Conflict, match=r'metadata\.uid: Invalid value: "other": field is immutable'):
        await world.client.patch(CONFIG_MAPS, "a", MergePatch({}), "default", uid="other")
    with pytest.raises(Conflict):
        await world.client.patch(CONFIG_MAPS, "a", JsonPatch([]), "default", uid="other")
    with pytest.raises(Conflict, match="uid mismatch: the provided object specified uid other"):
        body = {"metadata": {"name": "b", "namespace": "default", "uid": "other"}}
        await world.client.apply(CONFIG_MAPS, body, manager="me")


NO_OPS: list[Any] = [
    MergePatch({}),
    MergePatch({"data": {"k": "v"}}),
    MergePatch({"metadata": {"labels": {}}}),
    MergePatch({"metadata": {"creationTimestamp": "2000-01-01T00:00:00Z", "generation": 9}}),
    MergePatch({"metadata": {"managedFields": [{"manager": "me"}]}}),
    JsonPatch([]),
    JsonPatch([{"op": "replace", "path": "/data/k", "value": "v"}]),
]


@pytest.mark.parametrize("patch", NO_OPS, ids=str)
@virtually
async def test_a_write_that_changes_nothing_is_no_write(patch: Any) -> None:
    world = World()
    made = await world.client.create(CONFIG_MAPS, config_map("a", data={"k": "v"}))
    assert await world.client.patch(CONFIG_MAPS, "a", patch, "default") == made
    assert await world.client.replace(CONFIG_MAPS, made) == made
    assert str(world.server.store.number) == meta(made)["resourceVersion"]


@virtually
async def test_one_and_true_are_not_the_same() -> None:
    world = World()
    await world.client.create(THINGS, thing("a"))
    made = await world.client.patch(THINGS, "a", MergePatch({"spec": {"size": True}}), "default")
    assert (made["spec"]["size"], meta(made)["generation"]) == (True, 2)


@pytest.mark.parametrize("kind", [PODS, DEPLOYMENTS, THINGS], ids=lambda kind: kind.resource.kind)
@virtually
async def test_the_generation_counts_changes_of_what_is_wanted(kind: Codec[Untyped]) -> None:
    world = World()
    name = ("a", "default")

    async def generation(patch: Untyped, subresource: str | None = None) -> object:
        made = await world.client.patch(kind, name[0], MergePatch(patch), name[1], subresource=subresource)
        return meta(made)["generation"]

    made = await world.client.create(kind, {PODS: pod, DEPLOYMENTS: deployment, THINGS: thing}[kind]("a"))
    assert meta(made)["generation"] == 1
    wanted = {PODS: {"activeDeadlineSeconds": 9}, DEPLOYMENTS: {"replicas": 2}, THINGS: {"size": 2}}[kind]
    assert await generation({"spec": wanted}) == 2
    assert await generation({"spec": wanted}) == 2
    assert await generation({"metadata": {"labels": {"a": "b"}}}) == 2
    assert await generation({"status": {"observedGeneration": 1}}, "status") == 2
    assert await generation({"status": {"observedGeneration": 2}}) == 2
    assert await generation({"metadata": {"generation": 9}}) == 2


@pytest.mark.parametrize(
    ("kind", "generation"), [(DEPLOYMENTS, 2), (THINGS, 1)], ids=lambda kind: getattr(kind, "resource", "")
)
@virtually
async def test_only_of_a_deployment_do_annotations_count(kind: Codec[Untyped], generation: int) -> None:
    world = World()
    await world.client.create(kind, deployment("a") if kind is DEPLOYMENTS else thing("a"))
    made = await world.client.patch(kind, "a", MergePatch({"metadata": {"annotations": {"a": "b"}}}), "default")
    assert meta(made)["generation"] == generation


@virtually
async def test_kinds_without_generations_have_none() -> None:
    world = World()
    await world.config_map("a")
    made = await world.client.patch(CONFIG_MAPS, "a", MergePatch({"data": {"k": "v"}}), "default")
    assert "generation" not in meta(made)


@virtually
async def test_a_status_is_written_on_its_own() -> None:
    world = World()
    made = await world.client.create(THINGS, thing("a", status={"ready": True}))
    assert "status" not in made
    both = {"spec": {"size": 2}, "status": {"ready": True}, "metadata": {"labels": {"a": "b"}}}
    only_status = await world.client.patch(THINGS, "a", MergePatch(both), "default", subresource="status")
    assert (only_status["spec"], only_status["status"]) == ({"size": 1}, {"ready": True})
    assert "labels" not in meta(only_status)
    both["status"] = {"ready": False}
    all_but_status = await world.client.patch(THINGS, "a", MergePatch(both), "default")
    assert (all_but_status["spec"], all_but_status["status"]) == ({"size": 2}, {"ready": True})
    put = await world.client.replace(THINGS, {**all_but_status, "status": None}, subresource="status")
    assert put["status"] is None
    assert await world.client.get(THINGS, "a", "default", subresource="status") == put


@virtually
async def test_built_in_kinds_take_metadata_along_with_their_status() -> None:
    world = World()
    await world.client.create(DEPLOYMENTS, deployment("a"))
    patch = MergePatch({"metadata": {"annotations": {"a": "b"}}, "spec": {"replicas": 5}, "status": {"replicas": 1}})
    made = await world.client.patch(DEPLOYMENTS, "a", patch, "default", subresource="status")
    assert (meta(made)["annotations"], meta(made)["generation"]) == ({"a": "b"}, 1)
    assert (made["spec"]["replicas"], made["status"]) == (1, {"replicas": 1})


@virtually
async def test_kinds_without_a_status_subresource_have_no_such_place() -> None:
    world = World()
    await world.config_map("a")
    with pytest.raises(NotFound, match="the server could not find the requested resource"):
        await world.client.get(CONFIG_MAPS, "a", "default", subresource="status")


@virtually
async def test_an_apply_creates_or_lays_itself_over() -> None:
    world = World()
    body = {"metadata": {"name": "a", "namespace": "default", "labels": {"a": "b"}}, "spec": {"size": 1}}
    made = await world.client.apply(THINGS, body, manager="me")
    assert meta(made)["generation"] == 1
    again = await world.client.apply(THINGS, body, manager="me")
    assert again == made
    more = {"metadata": {"name": "a", "namespace": "default"}, "spec": {"colour": "red"}}
    laid = await world.client.apply(THINGS, more, manager="you")
    assert (laid["spec"], meta(laid)["labels"]) == ({"size": 1, "colour": "red"}, {"a": "b"})


@virtually
async def test_an_apply_to_a_status_needs_the_object() -> None:
    world = World()
    body = {"metadata": {"name": "a", "namespace": "default"}, "status": {"ready": True}}
    with pytest.raises(NotFound, match=r'things\.t\.io "a" not found'):
        await world.client.apply(THINGS, body, manager="me", subresource="status")
    await world.client.create(THINGS, thing("a"))
    made = await world.client.apply(THINGS, body, manager="me", subresource="status")
    assert (made["spec"], made["status"]) == ({"size": 1}, {"ready": True})


@virtually
async def test_a_dry_run_shows_and_does_nothing() -> None:
    world = World()
    there = await world.config_map("a")
    number = world.server.store.number
    made = await world.client.create(CONFIG_MAPS, config_map("b"), dry_run=True)
    assert "resourceVersion" not in meta(made)
    with pytest.raises(AlreadyExists):
        await world.client.create(CONFIG_MAPS, config_map("a"), dry_run=True)
    patch = MergePatch({"data": {"k": "v"}})
    changed = await world.client.patch(CONFIG_MAPS, "a", patch, "default", dry_run=True)
    assert (changed["data"], meta(changed)) == ({"k": "v"}, meta(there))
    await world.client.apply(CONFIG_MAPS, config_map("c"), manager="me", dry_run=True)
    await world.client.replace(CONFIG_MAPS, config_map("a", data={"k": "v"}), dry_run=True)
    await world.client.delete(ConfigMap, "a", "default", dry_run=True)
    assert (await world.client.list(CONFIG_MAPS)).items == (there,)
    assert world.server.store.number == number


@virtually
async def test_a_kind_that_needs_the_version_cannot_be_put_without() -> None:
    world = World()
    made = await world.client.create(THINGS, thing("a"))
    with pytest.raises(Invalid, match=r"metadata\.resourceVersion: Invalid value: 0: must be specified for an update"):
        await world.client.replace(THINGS, thing("a"))
    await world.client.replace(THINGS, {**made, "spec": {"size": 2}})


@virtually
async def test_an_object_of_another_name_or_place_is_not_taken() -> None:
    world = World()
    await world.config_map("a")
    for change in ({"name": "b"}, {"namespace": "kube-system"}):
        with pytest.raises(BadRequest, match="does not match the name"):
            await world.client.patch(CONFIG_MAPS, "a", MergePatch({"metadata": change}), "default")


@virtually
async def test_what_lives_in_no_namespace_is_never_given_one() -> None:
    world = World()
    made = await world.client.create(NAMESPACES, {"metadata": {"name": "shop", "namespace": "default"}})
    patch = MergePatch({"metadata": {"namespace": "default"}})
    assert await world.client.patch(NAMESPACES, "shop", patch) == made
    assert "namespace" not in meta(made)

"""Deleting: at once, after a while, or not at all."""

import pytest

from embedded.world import (
    CONFIG_MAPS,
    PODS,
    THINGS,
    World,
    meta,
    pod,
    virtually,
)
from kedge.api.core import ConfigMap
from kedge.kube.codec import Untyped
from kedge.kube.errors import Conflict, Invalid, NotFound
from kedge.kube.patches import MergePatch

NOW = "2030-01-01T00:00:00Z"


@virtually
async def test_a_delete_is_of_the_object_that_was_meant() -> None:
    world = World()
    made = await world.config_map("a")
    with pytest.raises(Conflict, match=r"the UID in the precondition \(other\) does not match the UID in record"):
        await world.client.delete(ConfigMap, "a", "default", uid="other")
    with pytest.raises(Conflict, match=r"the ResourceVersion in the precondition \(1\) does not match"):
        await world.client.delete(ConfigMap, "a", "default", resource_version="1")
    uid, version = meta(made)["uid"], meta(made)["resourceVersion"]
    await world.client.delete(ConfigMap, "a", "default", uid=uid, resource_version=version)
    with pytest.raises(NotFound):
        await world.client.delete(ConfigMap, "a", "default")


@virtually
async def test_a_finalizer_holds_an_object_that_is_deleted() -> None:
    world = World()
    await world.client.create(THINGS, {"metadata": {"name": "a", "finalizers": ["x.io/one", "x.io/two"]}}, "default")
    await world.client.delete(THINGS, "a", "default")
    held = await world.client.get(THINGS, "a", "default")
    marks = {key: meta(held)[key] for key in ("deletionTimestamp", "deletionGracePeriodSeconds", "generation")}
    assert marks == {"deletionTimestamp": NOW, "deletionGracePeriodSeconds": 0, "generation": 2}
    world.clock.pass_by(60)
    await world.client.delete(THINGS, "a", "default")
    assert await world.client.get(THINGS, "a", "default") == held
    fewer = MergePatch({"metadata": {"finalizers": ["x.io/two"]}})
    assert meta(await world.client.patch(THINGS, "a", fewer, "default"))["deletionTimestamp"] == NOW
    put = {"metadata": {**meta(await world.client.get(THINGS, "a", "default")), "finalizers": []}}
    last = await world.client.replace(THINGS, put)
    assert "finalizers" not in meta(last)
    with pytest.raises(NotFound):
        await world.client.get(THINGS, "a", "default")


@virtually
async def test_an_object_being_deleted_takes_no_new_finalizer_and_keeps_its_mark() -> None:
    world = World()
    await world.config_map("a", finalizers=["x.io/one"])
    await world.client.delete(ConfigMap, "a", "default")
    with pytest.raises(Invalid, match="no new finalizers can be added if the object is being deleted"):
        more = MergePatch({"metadata": {"finalizers": ["x.io/one", "x.io/two"]}})
        await world.client.patch(CONFIG_MAPS, "a", more, "default")
    with pytest.raises(Invalid, match="field is immutable"):
        moved = MergePatch({"metadata": {"deletionTimestamp": "2031-01-01T00:00:00Z"}})
        await world.client.patch(CONFIG_MAPS, "a", moved, "default")
    unmarked = MergePatch({"metadata": {"deletionTimestamp": None}, "data": {"k": "v"}})
    assert meta(await world.client.patch(CONFIG_MAPS, "a", unmarked, "default"))["deletionTimestamp"] == NOW


@virtually
async def test_nobody_but_a_delete_marks_an_object() -> None:
    world = World()
    await world.config_map("a")
    with pytest.raises(Invalid, match=r"metadata\.deletionTimestamp: Invalid value: .*: field is immutable"):
        patch = MergePatch({"metadata": {"deletionTimestamp": NOW}})
        await world.client.patch(CONFIG_MAPS, "a", patch, "default")


@virtually
async def test_in_the_background_an_object_goes_before_its_dependents() -> None:
    world = World()
    await world.config_map("a")
    await world.client.delete(ConfigMap, "a", "default", propagation="Background")
    with pytest.raises(NotFound):
        await world.client.get(ConfigMap, "a", "default")


@pytest.mark.parametrize(("policy", "finalizer"), [("Foreground", "foregroundDeletion"), ("Orphan", "orphan")])
@virtually
async def test_otherwise_it_waits_for_the_garbage_collector(policy: str, finalizer: str) -> None:
    world = World()
    await world.config_map("a")
    await world.client.delete(ConfigMap, "a", "default", propagation=policy)
    left = await world.client.get(ConfigMap, "a", "default")
    assert left.metadata.finalizers == (finalizer,)
    assert left.metadata.deletion_timestamp is not None


RUNNING: Untyped = {"nodeName": "node-1"}
GRACE = [
    ("one that runs stays for its grace period", RUNNING, None, 30),
    ("its own grace period", {"nodeName": "n", "terminationGracePeriodSeconds": 7}, None, 7),
    ("the one the delete asks for", RUNNING, 5, 5),
    ("asked for none it goes", RUNNING, 0, None),
    ("one that runs nowhere goes", {}, None, None),
]


@pytest.mark.parametrize(("why", "spec", "asked", "grace"), GRACE, ids=[case[0] for case in GRACE])
@virtually
async def test_pods_get_time_to_stop(why: str, spec: Untyped, asked: int | None, grace: int | None) -> None:
    world = World()
    await world.client.create(PODS, pod("a", spec))
    await world.client.delete(PODS, "a", "default", grace_seconds=asked)
    found = await world.client.list(PODS)
    assert [meta(one)["deletionGracePeriodSeconds"] for one in found.items] == ([] if grace is None else [grace])
    if grace:
        assert meta(found.items[0])["deletionTimestamp"] == f"2030-01-01T00:00:{grace:02}Z"


@virtually
async def test_a_grace_period_can_only_become_shorter() -> None:
    world = World()
    await world.client.create(PODS, pod("a", RUNNING))
    seen = []
    for asked in (None, None, 50, 5, 20):
        await world.client.delete(PODS, "a", "default", grace_seconds=asked)
        found = await world.client.get(PODS, "a", "default")
        seen.append((meta(found)["deletionGracePeriodSeconds"], meta(found)["generation"]))
    assert seen == [(30, 2), (30, 2), (30, 2), (5, 2), (5, 2)]
    await world.client.delete(PODS, "a", "default", grace_seconds=0)
    assert (await world.client.list(PODS)).items == ()


@virtually
async def test_a_pod_that_has_finished_goes_at_once() -> None:
    world = World()
    await world.client.create(PODS, pod("a", RUNNING))
    done = MergePatch({"status": {"phase": "Succeeded"}})
    await world.client.patch(PODS, "a", done, "default", subresource="status")
    await world.client.delete(PODS, "a", "default")
    assert (await world.client.list(PODS)).items == ()


@virtually
async def test_a_pod_with_a_finalizer_waits_for_both() -> None:
    world = World()
    await world.client.create(PODS, pod("a", RUNNING, finalizers=["x.io/f"]))
    await world.client.delete(PODS, "a", "default")
    await world.client.patch(PODS, "a", MergePatch({"metadata": {"finalizers": None}}), "default")
    assert len((await world.client.list(PODS)).items) == 1
    await world.client.delete(PODS, "a", "default", grace_seconds=0)
    assert (await world.client.list(PODS)).items == ()


@virtually
async def test_a_collection_is_deleted_by_selector() -> None:
    world = World()
    for name in ("a", "b", "c"):
        await world.config_map(name, labels={"old": "yes"} if name != "b" else {})
    await world.config_map("held", labels={"old": "yes"}, finalizers=["x.io/hold"])
    answer = world.ask("DELETE", "/api/v1/namespaces/default/configmaps", query={"labelSelector": "old"})
    assert answer.status == 200
    assert answer.body.count(b'"kind":"ConfigMap"') == 3
    assert [meta(one)["name"] for one in (await world.client.list(CONFIG_MAPS)).items] == ["b", "held"]

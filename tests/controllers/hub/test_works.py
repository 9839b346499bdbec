"""Works: made from bindings, kept as they should be, reported on, and taken away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime

import pytest

from kedge.api.condition import FALSE, TRUE, find_condition
from kedge.api.core import Namespace
from kedge.api.fleet import (
    BINDING_CLEANUP,
    ON_DELETE,
    PARENT_BINDING,
    PARENT_NAMESPACE,
    PARENT_PLACEMENT,
    PARENT_SNAPSHOT_INDEX,
    PARENT_SNAPSHOT_NAME,
    WORK_CLEANUP,
    member_namespace,
)
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, PlacementKinds
from kedge.api.reasons import (
    APPLIED,
    APPLY_IN_PROGRESS,
    AVAILABLE,
    NO_OVERRIDE,
    NOT_ALL_TRACKABLE,
    NOT_STARTED,
    OVERRIDDEN,
    OVERRIDDEN_FAILED,
    ROLLOUT_STARTED,
    SYNC_FAILED,
    WORK_AVAILABLE,
    WORK_NOT_APPLIED,
    WORK_NOT_AVAILABLE,
    WORK_SYNCED,
    WORK_SYNCHRONIZED,
    WORK_UNTRACKABLE,
)
from kedge.api.work import Work
from kedge.controllers.hub.pointed_bindings import PointedBindings
from kedge.controllers.hub.works import UNDERWAY_AFTER, Works
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from support.fleets import client_of, fleet_cluster, managed
from support.placed import NAMESPACE, Placed, config_map
from support.stage import LoopClock
from support.virtual import run
from support.waiting import until_so

Play = Callable[[Placed], Awaitable[None]]


@asynccontextmanager
async def stage(kinds: PlacementKinds = CLUSTER, pointed: PointedBindings | None = None) -> AsyncIterator[Placed]:
    """A hub with the controller running, and one member called `a`."""
    async with fleet_cluster() as cluster, client_of(cluster) as client, managed() as manager:
        hub = await manager.connect("hub", cluster.transport())
        manager.add_controller(Works(hub, kinds, clock=LoopClock(), pointed=pointed).controller)
        namespace = "shop" if kinds is NAMESPACED else None
        if namespace:
            await client.create(Namespace, {"metadata": {"name": namespace}})
        placed = Placed(client, kinds, namespace=namespace)
        await placed.join("a")
        yield placed


def play(act: Play, kinds: PlacementKinds = CLUSTER) -> None:
    async def main() -> None:
        async with stage(kinds) as placed:
            await act(placed)

    run(main())


async def bound(placed: Placed, *objects: Mapping[str, object]) -> str:
    """A binding to `a`, given its first resources."""
    await placed.place()
    snapshot = await placed.snapshot(0, objects or (NAMESPACE,))
    name = await placed.bind("a")
    await placed.point(name, snapshot)
    await placed.until_binding(name, APPLIED, APPLY_IN_PROGRESS)
    return name


async def gone(placed: Placed, cluster: str = "a", part: int | None = None) -> bool:
    try:
        await placed.work(cluster, part)
    except NotFound:
        return True
    return False


# Making


def test_a_bound_binding_gets_a_work_with_the_objects_of_its_snapshot() -> None:
    async def act(placed: Placed) -> None:
        name = await bound(placed, NAMESPACE, config_map("one"))
        work = await placed.work("a")
        assert work.metadata.name == "crp-work"
        assert work.spec.workload.manifests == (NAMESPACE, config_map("one"))
        assert work.metadata.labels == {PARENT_PLACEMENT: "crp", PARENT_BINDING: name, PARENT_SNAPSHOT_INDEX: "0"}
        assert work.metadata.annotations[PARENT_SNAPSHOT_NAME] == "crp-0-snapshot"
        assert work.spec.apply_strategy is not None
        binding = await placed.binding(name)
        assert binding.metadata.finalizers == (BINDING_CLEANUP, WORK_CLEANUP)
        said = [(one.type, one.status, one.reason) for one in binding.status.conditions]
        assert said == [
            (ROLLOUT_STARTED, TRUE, "RolloutStarted"),
            (OVERRIDDEN, TRUE, NO_OVERRIDE),
            (WORK_SYNCHRONIZED, TRUE, WORK_SYNCED),
            (APPLIED, FALSE, APPLY_IN_PROGRESS),
        ]

    play(act)


def test_a_work_of_a_namespaced_placement_says_whose_namespace_it_is_of() -> None:
    async def act(placed: Placed) -> None:
        await bound(placed, config_map("one"))
        work = await placed.work("a")
        assert work.metadata.name == "shop.crp-work"
        assert work.metadata.labels[PARENT_NAMESPACE] == "shop"

    play(act, NAMESPACED)


def test_each_part_of_the_resources_is_a_work_of_its_own_and_one_too_many_goes() -> None:
    async def act(placed: Placed) -> None:
        await placed.place()
        name = await placed.bind("a")
        await placed.point(name, await placed.snapshot(0, (NAMESPACE,), (config_map("one"),), (config_map("two"),)))
        await placed.until_binding(name, APPLIED, APPLY_IN_PROGRESS)
        assert (await placed.work("a", 1)).spec.workload.manifests == (config_map("two"),)
        for part in (None, 0, 1):
            await placed.report("a", part)
        await placed.until_binding(name, AVAILABLE, WORK_AVAILABLE)
        await placed.point(name, await placed.snapshot(1, (NAMESPACE,), (config_map("one"),)))
        await until_so(lambda: gone(placed, part=1))
        assert (await placed.work("a", 0)).metadata.labels[PARENT_SNAPSHOT_INDEX] == "1"

    play(act)


def test_resources_without_objects_are_a_work_without_objects() -> None:
    async def act(placed: Placed) -> None:
        await placed.place()
        name = await placed.bind("a")
        await placed.point(name, await placed.snapshot(0, ()))
        await placed.until_binding(name, APPLIED, APPLY_IN_PROGRESS)
        assert (await placed.work("a")).spec.workload.manifests == ()

    play(act)


def test_nothing_is_made_before_a_rollout_speaks_of_the_binding_as_it_is() -> None:
    async def act(placed: Placed) -> None:
        await placed.place()
        name = await placed.bind("a")
        await placed.start(name)
        await placed.point(name, await placed.snapshot(0), started=False)
        await asyncio.sleep(10)
        assert await gone(placed)
        await placed.start(name)
        await placed.until_binding(name, WORK_SYNCHRONIZED, WORK_SYNCED)

    play(act)


def test_works_follow_what_is_decided_beside_them_before_it_is_said_and_tell_of_it_after() -> None:
    async def main() -> None:
        pointed_bindings = PointedBindings("hub")
        async with stage(pointed=pointed_bindings) as placed:
            name = await bound(placed)
            await placed.report("a")
            await placed.until_binding(name, AVAILABLE, WORK_AVAILABLE)
            before = (await placed.binding(name)).status
            await placed.point(name, await placed.snapshot(1, (config_map("new"),)), started=False)
            await asyncio.sleep(10)
            assert (await placed.work("a")).spec.workload.manifests == (NAMESPACE,), "nobody has decided that"
            pointed_bindings.add(await placed.binding(name))
            await until_so(lambda: _has_objects(placed, config_map("new")), 1.0)
            await asyncio.sleep(10)
            await placed.report("a")
            reported = LoopClock().now()
            await asyncio.sleep(10)
            assert (await placed.binding(name)).status == before
            await placed.start(name)
            await placed.until_binding(name, AVAILABLE, WORK_AVAILABLE)
            assert not pointed_bindings.has(await placed.binding(name))
            assert await _since(placed, name, APPLIED) == reported.replace(microsecond=0), "not when it was said"

    run(main())


def test_a_new_binding_waits_for_the_word_also_of_those_beside() -> None:
    async def main() -> None:
        pointed_bindings = PointedBindings("hub")
        async with stage(pointed=pointed_bindings) as placed:
            await placed.place()
            name = await placed.bind("a")
            await placed.point(name, await placed.snapshot(0), started=False)
            pointed_bindings.add(await placed.binding(name))
            await asyncio.sleep(10)
            assert await gone(placed)
            await placed.start(name)
            await placed.until_binding(name, WORK_SYNCHRONIZED, WORK_SYNCED)

    run(main())


def test_what_was_decided_counts_for_that_generation_only() -> None:
    async def main() -> None:
        pointed_bindings = PointedBindings("hub")
        async with stage(pointed=pointed_bindings) as placed:
            name = await bound(placed)
            await placed.point(name, await placed.snapshot(1, (config_map("new"),)), started=False)
            pointed = await placed.binding(name)
            await placed.point(name, await placed.snapshot(2, (config_map("newer"),)), started=False)
            pointed_bindings.add(pointed)
            await asyncio.sleep(10)
            assert (await placed.work("a")).spec.workload.manifests == (NAMESPACE,)

    run(main())


# Reporting


def test_how_far_a_cluster_has_come_is_told_late_and_that_it_works_or_fails_at_once() -> None:
    async def act(placed: Placed) -> None:
        name = await bound(placed)
        await placed.until_binding(name, APPLIED, APPLY_IN_PROGRESS)
        await placed.report("a", available="0 of 3")
        await asyncio.sleep(UNDERWAY_AFTER / 2)
        assert await _reason(placed, name, APPLIED) == APPLY_IN_PROGRESS
        await placed.until_binding(name, AVAILABLE, WORK_NOT_AVAILABLE, within=UNDERWAY_AFTER)
        await placed.report("a")
        await placed.until_binding(name, AVAILABLE, WORK_AVAILABLE, within=UNDERWAY_AFTER / 2)
        await placed.report("a", available="1 of 3")
        await placed.until_binding(name, AVAILABLE, WORK_NOT_AVAILABLE, within=UNDERWAY_AFTER / 2)
        await placed.report("a", applied="exceeded quota")
        await placed.until_binding(name, APPLIED, WORK_NOT_APPLIED, within=UNDERWAY_AFTER / 2)

    play(act)


async def _since(placed: Placed, name: str, kind: str) -> datetime | None:
    found = find_condition((await placed.binding(name)).status.conditions, kind)
    return found.last_transition_time if found is not None else None


async def _reason(placed: Placed, name: str, kind: str) -> str | None:
    found = find_condition((await placed.binding(name)).status.conditions, kind)
    return found.reason if found is not None else None


def test_a_member_that_reports_is_believed_at_the_works_own_generation_only() -> None:
    async def act(placed: Placed) -> None:
        name = await bound(placed)
        await placed.report("a", generation=7)
        await asyncio.sleep(5)
        await placed.until_binding(name, APPLIED, APPLY_IN_PROGRESS)
        await placed.report("a")
        await placed.until_binding(name, AVAILABLE, WORK_AVAILABLE)

    play(act)


def test_what_a_member_cannot_apply_is_named() -> None:
    async def act(placed: Placed) -> None:
        name = await bound(placed, config_map("one"), config_map("two"))
        await placed.report("a", applied="exceeded quota")
        found = await placed.until_binding(name, APPLIED, WORK_NOT_APPLIED)
        assert found is not None
        assert found.message == "ConfigMap shop/one is not applied: exceeded quota"
        binding = await placed.binding(name)
        assert [(one.kind, one.namespace, one.name) for one in binding.status.failed_placements] == [
            ("ConfigMap", "shop", "one")
        ]
        assert find_condition(binding.status.conditions, AVAILABLE) is None
        await placed.report("a")
        await placed.until_binding(name, AVAILABLE, WORK_AVAILABLE)
        assert (await placed.binding(name)).status.failed_placements == ()

    play(act)


def test_what_does_not_work_on_a_member_is_named() -> None:
    async def act(placed: Placed) -> None:
        name = await bound(placed, config_map("one"))
        await placed.report("a", available="ConfigMap shop/one has 0 of 3 updated replicas")
        found = await placed.until_binding(name, AVAILABLE, WORK_NOT_AVAILABLE)
        assert found is not None
        assert found.message == "ConfigMap shop/one has 0 of 3 updated replicas"

    play(act)


def test_a_binding_that_waits_for_newer_resources_is_still_reported_on() -> None:
    async def act(placed: Placed) -> None:
        name = await bound(placed)
        await placed.report("a")
        await placed.until_binding(name, AVAILABLE, WORK_AVAILABLE)
        await placed.snapshot(1, (config_map("new"),))
        await placed.start(name, FALSE, NOT_STARTED, "a waits: for its turn")
        await placed.report("a", available="it broke")
        await placed.until_binding(name, AVAILABLE, WORK_NOT_AVAILABLE)
        found = await placed.binding(name)
        assert found.status.conditions[0].type == ROLLOUT_STARTED
        assert (await placed.work("a")).spec.workload.manifests == (NAMESPACE,)

    play(act)


def test_an_unscheduled_binding_keeps_its_works_and_is_reported_on_at_its_new_generation() -> None:
    async def act(placed: Placed) -> None:
        name = await bound(placed)
        await placed.report("a")
        await placed.until_binding(name, AVAILABLE, WORK_AVAILABLE)
        await placed.client.patch(placed.kinds.binding, name, MergePatch({"spec": {"state": "Unscheduled"}}))
        await placed.until_binding(name, AVAILABLE, WORK_AVAILABLE)
        assert not await gone(placed)

    play(act)


def test_an_unscheduled_binding_without_works_says_that_there_is_nothing_there() -> None:
    async def act(placed: Placed) -> None:
        await placed.place()
        name = await placed.bind("a", state="Unscheduled")
        await placed.until_binding(name, WORK_SYNCHRONIZED, SYNC_FAILED)
        assert await gone(placed)

    play(act)


# Times


async def untracked_since(placed: Placed, name: str) -> float:
    found = await placed.until_binding(name, AVAILABLE, WORK_UNTRACKABLE)
    assert found is not None
    return found.last_transition_time.timestamp()


def test_the_wait_for_what_cannot_be_seen_goes_on_when_nothing_changed_on_the_member() -> None:
    async def act(placed: Placed) -> None:
        name = await bound(placed)
        await placed.report("a", reason=NOT_ALL_TRACKABLE)
        since = await untracked_since(placed, name)
        await asyncio.sleep(100)
        await placed.client.patch(
            placed.kinds.binding, name, MergePatch({"spec": {"schedulingPolicySnapshotName": "crp-1"}})
        )
        await placed.start(name)
        await placed.report("a", reason=NOT_ALL_TRACKABLE)
        assert await untracked_since(placed, name) == since

    play(act)


def test_the_wait_for_what_cannot_be_seen_begins_anew_with_new_resources() -> None:
    async def act(placed: Placed) -> None:
        name = await bound(placed)
        await placed.report("a", reason=NOT_ALL_TRACKABLE)
        since = await untracked_since(placed, name)
        await asyncio.sleep(100)
        await placed.point(name, await placed.snapshot(1, (config_map("new"),)))
        await placed.until_binding(name, APPLIED, APPLY_IN_PROGRESS)
        await placed.report("a", reason=NOT_ALL_TRACKABLE)
        assert await untracked_since(placed, name) >= since + 100

    play(act)


def test_a_crash_between_a_work_and_the_word_of_it_does_not_shorten_the_wait() -> None:
    """The moment it became available is taken back before its Works change, so it can be lost but not kept."""

    async def act() -> None:
        async with fleet_cluster() as cluster, client_of(cluster) as client:
            placed = Placed(client)
            await placed.join("a")
            async with managed() as manager:
                hub = await manager.connect("hub", cluster.transport())
                works = Works(hub, CLUSTER, clock=LoopClock())
                manager.add_controller(works.controller)
                name = await bound(placed)
                await placed.report("a", reason=NOT_ALL_TRACKABLE)
                since = await untracked_since(placed, name)
                await asyncio.sleep(100)
                snapshot = await placed.snapshot(1, (config_map("new"),))
                crash_after_the_work(works)
                await placed.point(name, snapshot)
                await until_so(lambda: _is_at(placed, 2))
            await placed.report("a", reason=NOT_ALL_TRACKABLE)
            async with managed() as manager:
                hub = await manager.connect("hub", cluster.transport())
                manager.add_controller(Works(hub, CLUSTER, clock=LoopClock()).controller)
                assert await untracked_since(placed, name) >= since + 100

    run(act())


def crash_after_the_work(works: Works) -> None:
    """From now on, what follows the writes of Works never happens."""

    async def stuck(*_: object) -> None:
        await asyncio.sleep(10_000)

    works._report = stuck  # type: ignore[method-assign, assignment]  # the moment between two writes


async def _is_at(placed: Placed, generation: int) -> bool:
    return (await placed.work("a")).metadata.generation == generation


# Keeping


def test_a_work_is_written_only_if_it_differs() -> None:
    async def act(placed: Placed) -> None:
        name = await bound(placed)
        await placed.report("a")
        await placed.until_binding(name, AVAILABLE, WORK_AVAILABLE)
        before, binding = await placed.work("a"), await placed.binding(name)
        await placed.start(name, message="once more")
        await asyncio.sleep(10)
        assert (await placed.work("a")).metadata.resource_version == before.metadata.resource_version
        after = await placed.binding(name)
        assert after.metadata.resource_version == str(int(binding.metadata.resource_version) + 1)

    play(act)


def test_the_same_objects_under_another_index_do_not_disturb_the_member() -> None:
    async def act(placed: Placed) -> None:
        name = await bound(placed)
        await placed.report("a")
        await placed.until_binding(name, AVAILABLE, WORK_AVAILABLE)
        await placed.point(name, await placed.snapshot(1))
        await placed.until_binding(name, AVAILABLE, WORK_AVAILABLE)
        work = await placed.work("a")
        assert work.metadata.generation == 1
        assert work.metadata.labels[PARENT_SNAPSHOT_INDEX] == "1"

    play(act)


def test_a_work_that_somebody_changed_or_deleted_is_put_right() -> None:
    async def act(placed: Placed) -> None:
        name = await bound(placed)
        work = await placed.work("a")
        await placed.client.patch(
            Work, "crp-work", MergePatch({"spec": {"workload": {"manifests": []}}}), work.metadata.namespace
        )
        await until_so(lambda: _has_objects(placed))
        await placed.client.delete(Work, "crp-work", work.metadata.namespace)
        await until_so(lambda: _is_another(placed, work.metadata.uid))
        await placed.report("a")
        await placed.until_binding(name, AVAILABLE, WORK_AVAILABLE)

    play(act)


async def _has_objects(placed: Placed, wanted: Mapping[str, object] = NAMESPACE) -> bool:
    return (await placed.work("a")).spec.workload.manifests == (wanted,)


async def _is_another(placed: Placed, uid: str) -> bool:
    return not await gone(placed) and (await placed.work("a")).metadata.uid != uid


def test_a_change_of_how_to_apply_reaches_the_work_and_leaves_nothing_of_the_old() -> None:
    async def act(placed: Placed) -> None:
        await placed.place()
        name = await placed.bind("a")
        how = {"type": "ServerSideApply", "serverSideApplyConfig": {"force": True}}
        await placed.point(name, await placed.snapshot(0), applyStrategy=how)
        await placed.until_binding(name, WORK_SYNCHRONIZED, WORK_SYNCED)
        work = await placed.work("a")
        assert work.spec.apply_strategy is not None
        assert work.spec.apply_strategy.server_side_apply_config is not None
        other = {"type": "ClientSideApply", "serverSideApplyConfig": None}
        await placed.point(name, "crp-0-snapshot", applyStrategy=other)
        await placed.until_binding(name, WORK_SYNCHRONIZED, WORK_SYNCED)
        work = await placed.work("a")
        assert work.spec.apply_strategy == (await placed.binding(name)).spec.apply_strategy
        assert work.spec.apply_strategy is not None
        assert work.spec.apply_strategy.server_side_apply_config is None

    play(act)


def test_whether_statuses_come_back_is_kept_current_on_the_work() -> None:
    async def act(placed: Placed) -> None:
        name = await bound(placed)
        back = {"type": "Mirror", "destination": "WorkAPI"}
        strategy = MergePatch({"spec": {"strategy": {"reportBackStrategy": back}}})
        await placed.client.patch(placed.kinds.placement, "crp", strategy)
        await until_so(lambda: _reports_back(placed, True))
        await placed.client.patch(placed.kinds.placement, "crp", MergePatch({"spec": {"strategy": None}}))
        await until_so(lambda: _reports_back(placed, False))
        assert name

    play(act)


async def _reports_back(placed: Placed, wanted: bool) -> bool:
    return ((await placed.work("a")).spec.report_back_strategy is not None) == wanted


# Trouble


def test_a_missing_snapshot_is_said_and_mended_when_it_comes() -> None:
    async def act(placed: Placed) -> None:
        await placed.place()
        name = await placed.bind("a")
        await placed.point(name, "crp-0-snapshot")
        found = await placed.until_binding(name, OVERRIDDEN, OVERRIDDEN_FAILED)
        assert found is not None
        assert found.message == "ClusterResourceSnapshot crp-0-snapshot does not exist"
        await placed.snapshot(0)
        await placed.until_binding(name, WORK_SYNCHRONIZED, WORK_SYNCED)

    play(act)


def test_a_snapshot_deleted_by_hand_disturbs_nobody_who_has_it() -> None:
    async def act(placed: Placed) -> None:
        name = await bound(placed)
        await placed.client.delete(placed.kinds.resource_snapshot, "crp-0-snapshot")
        await placed.start(name, message="once more")
        await placed.report("a")
        await placed.until_binding(name, AVAILABLE, WORK_AVAILABLE)

    play(act)


def test_a_placement_made_again_under_its_name_does_not_get_the_objects_of_the_old_one() -> None:
    async def act(placed: Placed) -> None:
        name = await bound(placed, config_map("one", "old"))
        await placed.client.delete(placed.kinds.resource_snapshot, "crp-0-snapshot")
        await placed.unbind(name)
        await until_so(lambda: gone(placed))
        await placed.snapshot(0, (config_map("one", "new"),))
        again = await placed.bind("a", suffix="1")
        await placed.point(again, "crp-0-snapshot")
        await placed.until_binding(again, WORK_SYNCHRONIZED, WORK_SYNCED)
        assert (await placed.work("a")).spec.workload.manifests == (config_map("one", "new"),)

    play(act)


def test_a_cluster_without_a_namespace_on_the_hub_is_said_and_served_when_it_joins() -> None:
    async def act(placed: Placed) -> None:
        await placed.place()
        name = await placed.bind("b")
        await placed.point(name, await placed.snapshot(0))
        found = await placed.until_binding(name, WORK_SYNCHRONIZED, SYNC_FAILED)
        assert found is not None
        assert "There is no namespace fleet-member-b on the hub" in found.message
        await placed.join("b")
        await placed.until_binding(name, WORK_SYNCHRONIZED, WORK_SYNCED, within=2)

    play(act)


def test_a_name_that_is_another_placements_is_said() -> None:
    async def act(placed: Placed) -> None:
        labels = {PARENT_PLACEMENT: "crp", PARENT_NAMESPACE: "else", PARENT_BINDING: "other"}
        meta = {"name": "crp-work", "namespace": member_namespace("a"), "labels": labels}
        await placed.client.create(Work, {"metadata": meta})
        await placed.place()
        name = await placed.bind("a")
        await placed.point(name, await placed.snapshot(0))
        found = await placed.until_binding(name, WORK_SYNCHRONIZED, SYNC_FAILED)
        assert found is not None
        assert "belongs to else/crp: rename one of the two placements" in found.message

    play(act)


# Leaving


def test_a_deleted_binding_stays_until_its_works_are_really_gone() -> None:
    async def act(placed: Placed) -> None:
        name = await bound(placed)
        await placed.take_up("a")
        await placed.unbind(name)
        await asyncio.sleep(120)
        assert (await placed.work("a")).metadata.deletion_timestamp is not None
        assert (await placed.binding(name)).metadata.finalizers == (WORK_CLEANUP,)
        await placed.let_go("a")
        await until_so(lambda: _unbound(placed, name))

    play(act)


async def _unbound(placed: Placed, name: str) -> bool:
    try:
        await placed.binding(name)
    except NotFound:
        return True
    return False


def test_a_new_binding_waits_for_the_works_of_the_old_one() -> None:
    async def act(placed: Placed) -> None:
        old = await bound(placed)
        await placed.take_up("a")
        await placed.unbind(old)
        new = await placed.bind("a", suffix="1")
        await placed.point(new, "crp-0-snapshot")
        found = await placed.until_binding(new, WORK_SYNCHRONIZED, SYNC_FAILED)
        assert found is not None
        assert "is being deleted, and is made again when it is gone" in found.message
        await placed.let_go("a")
        await placed.until_binding(new, WORK_SYNCHRONIZED, WORK_SYNCED)
        assert (await placed.work("a")).metadata.labels[PARENT_BINDING] == new

    play(act)


def test_works_of_a_binding_that_was_forced_away_are_cleared_away() -> None:
    async def act(placed: Placed) -> None:
        name = await bound(placed)
        await placed.client.delete(placed.kinds.binding, name)
        await placed.client.patch(placed.kinds.binding, name, MergePatch({"metadata": {"finalizers": None}}))
        await until_so(lambda: gone(placed))

    play(act)


ABANDON = {"deleteStrategy": {"propagationPolicy": "Abandon"}}


async def abandoning(placed: Placed) -> str:
    await placed.place(strategy=ABANDON)
    name = await placed.bind("a")
    await placed.point(name, await placed.snapshot(0))
    await placed.until_binding(name, WORK_SYNCHRONIZED, WORK_SYNCED)
    await placed.take_up("a")
    assert (await placed.work("a")).metadata.annotations[ON_DELETE] == "Abandon"
    return name


def test_abandon_holds_when_the_placement_itself_is_deleted() -> None:
    async def act(placed: Placed) -> None:
        name = await abandoning(placed)
        await placed.client.delete(placed.kinds.placement, "crp")
        await placed.unbind(name)
        await until_so(lambda: _is_leaving(placed))
        assert (await placed.work("a")).metadata.annotations[ON_DELETE] == "Abandon"

    play(act)


def test_abandon_does_not_hold_when_only_the_cluster_is_no_longer_picked() -> None:
    async def act(placed: Placed) -> None:
        name = await abandoning(placed)
        await placed.unbind(name)
        await until_so(lambda: _is_leaving(placed))
        assert ON_DELETE not in (await placed.work("a")).metadata.annotations

    play(act)


@pytest.mark.parametrize("policy", ["Delete", "Abandon"])
def test_a_change_of_mind_about_what_stays_reaches_the_works(policy: str) -> None:
    async def act(placed: Placed) -> None:
        await abandoning(placed) if policy == "Delete" else await bound(placed)
        change = {"spec": {"strategy": {"deleteStrategy": {"propagationPolicy": policy}}}}
        await placed.client.patch(placed.kinds.placement, "crp", MergePatch(change))
        await until_so(lambda: _is_marked(placed, policy == "Abandon"))

    play(act)


async def _is_marked(placed: Placed, wanted: bool) -> bool:
    return (ON_DELETE in (await placed.work("a")).metadata.annotations) == wanted


async def _is_leaving(placed: Placed) -> bool:
    return (await placed.work("a")).metadata.deletion_timestamp is not None

"""Rollouts on an embedded hub in virtual time; the tests play users, scheduler and members."""

from __future__ import annotations

import asyncio

import pytest

from controllers.hub.rolling import Rolling, placed_on, play
from kedge.api.cluster import MemberCluster
from kedge.api.condition import FALSE, TRUE, find_condition, is_true
from kedge.api.dialect import Dialect
from kedge.api.fleet import PAUSED, PINNED, WORK_CLEANUP
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, Binding, PlacementKinds
from kedge.api.reasons import APPLIED, NOT_STARTED, ROLLOUT_STARTED, STARTED
from kedge.controllers.hub.rollout import STARTED_AFTER
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from plan.rolling.making import AVAILABLE, BAD, IN_PROGRESS, NOT_AVAILABLE, UNTRACKABLE
from support.waiting import until_so

ONE_AT_A_TIME = {"strategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}}
PICK_3 = {"policy": {"placementType": "PickN", "numberOfClusters": 3}, **ONE_AT_A_TIME}
THREE = ("cluster-1", "cluster-2", "cluster-3")


def given(*indexes: str) -> dict[str, str]:
    return {f"cluster-{number}": index for number, index in enumerate(indexes, 1)}


@pytest.mark.parametrize("kinds", [CLUSTER, NAMESPACED])
def test_seed_example_1_a_bad_image_stops_after_one_cluster(kinds: PlacementKinds) -> None:
    async def act(placed: Rolling) -> None:
        await placed_on(placed, *THREE, **PICK_3)
        await placed.snapshot(1)
        await placed.until_given(given("1", "0", "0"))
        await placed.say(NOT_AVAILABLE, "cluster-1")
        await placed.rest(600)
        assert await placed.given() == given("1", "0", "0")
        bindings = await placed.all()
        for name in THREE[1:]:
            said = find_condition(bindings[name].status.conditions, ROLLOUT_STARTED)
            assert said is not None
            assert (said.status, said.reason) == (FALSE, NOT_STARTED)
            assert said.observed_generation == bindings[name].metadata.generation
            assert said.message == (
                f"{name} waits: at most 1 of 3 clusters may be unavailable, and cluster-1 is not available: {BAD}"
            )

    play(act, kinds)


def test_a_good_release_goes_from_cluster_to_cluster_and_a_fix_reaches_the_broken_one_first() -> None:
    async def act(placed: Rolling) -> None:
        await placed_on(placed, *THREE, **PICK_3)
        await placed.snapshot(1)
        await placed.until_given(given("1", "0", "0"))
        await placed.say(AVAILABLE, "cluster-1")
        await placed.until_given(given("1", "1", "0"))
        await placed.say(NOT_AVAILABLE, "cluster-2")
        await placed.snapshot(2)
        await placed.until_given(given("1", "2", "0"))
        await placed.say(AVAILABLE, "cluster-2")
        await placed.until_given(given("2", "2", "0"))
        await placed.say(AVAILABLE, "cluster-1")
        await placed.until_given(given("2", "2", "2"))
        await placed.say(AVAILABLE, "cluster-3")
        await placed.rest()
        for binding in (await placed.all()).values():
            said = find_condition(binding.status.conditions, ROLLOUT_STARTED)
            assert said is not None
            assert (said.status, said.reason) == (TRUE, STARTED)
            assert said.observed_generation == binding.metadata.generation

    play(act)


def test_seed_example_2_new_clusters_come_before_old_ones_go() -> None:
    async def act(placed: Rolling) -> None:
        policy = {"placementType": "PickN", "numberOfClusters": 2}
        strategy = {"rollingUpdate": {"maxSurge": 2}}
        await placed_on(placed, "cluster-1", "cluster-2", policy=policy, strategy=strategy)
        await placed.members("cluster-3", "cluster-4")
        await placed.unpick("cluster-1", "cluster-2")
        await placed.pick("cluster-3", "cluster-4")
        await placed.say(AVAILABLE, "cluster-1", "cluster-2")
        await placed.until_given(given("0", "0", "0", "0"))
        await placed.say(IN_PROGRESS, "cluster-3")
        await placed.rest()
        assert await placed.given() == given("0", "0", "0", "0")
        said = await placed.started("cluster-1")
        assert said is not None
        assert said.message == "cluster-1 waits to be removed: cluster-4 has to be sent the resources first"
        await placed.say(IN_PROGRESS, "cluster-4")
        await placed.until_given(given("-", "0", "0", "0"))
        await placed.rest(600)
        assert await placed.given() == given("-", "0", "0", "0")
        await placed.say(AVAILABLE, "cluster-4")
        await placed.until_given(given("-", "-", "0", "0"))

    play(act)


def test_where_nothing_can_be_seen_the_next_cluster_starts_when_the_time_is_over() -> None:
    async def act(placed: Rolling) -> None:
        strategy = {"rollingUpdate": {"maxUnavailable": 1, "unavailablePeriodSeconds": 30}}
        await placed_on(placed, *THREE, strategy=strategy)
        await placed.say(UNTRACKABLE, *THREE)
        await placed.rest(31)
        await placed.snapshot(1)
        await placed.until_given(given("1", "0", "0"))
        await placed.say(UNTRACKABLE, "cluster-1")
        await placed.rest(25)
        assert await placed.given() == given("1", "0", "0")
        assert "it cannot be seen whether the resources of cluster-1 work" in await placed.waits_for("cluster-2")
        await placed.until_given(given("1", "1", "0"), within=6)

    play(act)


def test_a_paused_placement_stands_still_until_it_is_resumed() -> None:
    async def act(placed: Rolling) -> None:
        await placed_on(placed, *THREE, **PICK_3)
        await placed.annotate(**{PAUSED: "true"})
        await placed.rest()
        await placed.snapshot(1)
        await placed.edit(strategy={"applyStrategy": {"type": "ServerSideApply"}})
        await placed.rest(600)
        assert await placed.given() == given("0", "0", "0")
        assert "the placement is paused" in await placed.waits_for("cluster-1")
        await placed.annotate(**{PAUSED: None})
        await placed.rest()
        assert await placed.given() == given("1", "0", "0")

    play(act)


def test_a_rollback_goes_to_older_resources_and_ends_with_the_annotation() -> None:
    async def act(placed: Rolling) -> None:
        await placed_on(placed, *THREE, **PICK_3)
        await placed.snapshot(1)
        await placed.until_given(given("1", "0", "0"))
        await placed.say(NOT_AVAILABLE, "cluster-1")
        await placed.annotate(**{PINNED: "0"})
        await placed.until_given(given("0", "0", "0"))
        assert not await placed.waits_for("cluster-2")
        await placed.say(AVAILABLE, "cluster-1")
        await placed.annotate(**{PINNED: "5"})
        await placed.rest()
        assert "asks for resources '5', and there are 0, 1" in await placed.waits_for("cluster-1")
        await placed.annotate(**{PINNED: None})
        await placed.until_given(given("1", "0", "0"))

    play(act)


def test_an_unreachable_cluster_stops_the_rollout_and_is_named_with_its_last_heartbeat() -> None:
    async def act(placed: Rolling) -> None:
        await placed_on(placed, *THREE, **PICK_3)
        said = "cluster-3 cannot be reached: its last heartbeat was at noon"
        await placed.silence("cluster-3", said)
        await placed.rest()
        await placed.snapshot(1)
        await placed.until_given(given("0", "0", "1"))  # it cannot get worse, and nobody else is touched
        assert (await placed.waits_for("cluster-1")).endswith(f"it is not known whether cluster-3 is available: {said}")
        await placed.silence("cluster-3", None)
        await placed.say(AVAILABLE, "cluster-3")
        await placed.until_given(given("1", "0", "1"))

    play(act)


def test_nothing_is_removed_from_a_member_that_leaves_until_it_is_gone() -> None:
    async def act(placed: Rolling) -> None:
        await placed_on(placed, *THREE)
        body = {"metadata": {"finalizers": ["example.com/leaving"]}}
        await placed.client.patch(MemberCluster, "cluster-3", MergePatch(body))
        await placed.client.delete(MemberCluster, "cluster-3")
        await placed.unpick("cluster-3")
        await placed.say(AVAILABLE, "cluster-3")
        await placed.rest(60)
        assert await placed.given() == given("0", "0", "0")
        await placed.client.patch(MemberCluster, "cluster-3", MergePatch({"metadata": {"finalizers": None}}))
        await placed.until_given(given("0", "0", "-"))

    play(act)


def test_a_cluster_picked_again_waits_for_its_old_binding_to_go() -> None:
    async def act(placed: Rolling) -> None:
        await placed_on(placed, *THREE, **PICK_3)
        await placed.client.delete(CLUSTER.binding, "crp-cluster-1-0")
        await placed.pick("cluster-1", suffix="1")
        await placed.rest(60)
        new = await placed.binding("crp-cluster-1-1")
        said = find_condition(new.status.conditions, ROLLOUT_STARTED)
        assert new.spec.state == "Scheduled"
        assert said is not None
        assert said.message == "cluster-1 waits: its earlier binding crp-cluster-1-0 has to be gone first"
        await placed.let_binding_go("cluster-1")
        await placed.until_given(given("0", "0", "0"))

    play(act)


def test_another_way_to_apply_goes_from_cluster_to_cluster_under_the_budget() -> None:
    def has(binding: Binding) -> bool:
        return binding.spec.apply_strategy is not None and binding.spec.apply_strategy.type == "ServerSideApply"

    async def act(placed: Rolling) -> None:
        await placed_on(placed, *THREE, **PICK_3)
        await placed.edit(strategy={"applyStrategy": {"type": "ServerSideApply"}})
        for number in range(3):
            await placed.rest(60)
            bindings = await placed.all()
            assert [name for name in THREE if has(bindings[name])] == list(THREE[: number + 1])
            said = find_condition(bindings[THREE[number]].status.conditions, ROLLOUT_STARTED)
            assert said is not None
            assert (said.status, said.observed_generation) == (TRUE, bindings[THREE[number]].metadata.generation)
            await placed.say(AVAILABLE, THREE[number])
        await placed.rest(60)
        assert await placed.given() == given("0", "0", "0")

    play(act)


def test_a_bad_release_does_not_reach_a_cluster_that_breaks_and_a_fix_goes_where_it_is() -> None:
    async def act(placed: Rolling) -> None:
        await placed_on(placed, *THREE, **PICK_3)
        await placed.snapshot(1)
        await placed.until_given(given("1", "0", "0"))
        await placed.say(NOT_AVAILABLE, *THREE)
        await placed.rest(600)
        assert await placed.given() == given("1", "0", "0")
        assert "crp-1-snapshot works nowhere yet" in await placed.waits_for("cluster-3")
        await placed.snapshot(2)
        await placed.until_given(given("2", "0", "0"))
        await placed.rest(600)
        assert await placed.given() == given("2", "0", "0")
        await placed.say(AVAILABLE, "cluster-1")
        await placed.until_given(given("2", "2", "2"))

    play(act)


def test_in_the_kubefleet_dialect_how_objects_are_applied_changes_everywhere_at_once() -> None:
    async def act(placed: Rolling) -> None:
        await placed_on(placed, *THREE, **PICK_3)
        config = {"type": "ServerSideApply", "serverSideApplyConfig": {"force": True}}
        await placed.edit(strategy={"applyStrategy": config})
        await placed.rest()
        for binding in (await placed.all()).values():
            assert binding.spec.apply_strategy is not None
            assert binding.spec.apply_strategy.server_side_apply_config is not None
            said = find_condition(binding.status.conditions, ROLLOUT_STARTED)
            assert said is not None
            assert (said.status, said.observed_generation) == (TRUE, binding.metadata.generation)
        await placed.say(IN_PROGRESS, *THREE)
        await placed.snapshot(1)  # all are being applied: that is no licence to update all (defect 1)
        await placed.rest(60)
        assert await placed.given() == given("0", "0", "0")
        await placed.say(AVAILABLE, *THREE)
        await placed.until_given(given("1", "0", "0"))
        await placed.edit(strategy={"applyStrategy": {"type": "ClientSideApply", "serverSideApplyConfig": None}})
        await placed.rest()
        strategies = [binding.spec.apply_strategy for binding in (await placed.all()).values()]
        assert all(found is not None and found.server_side_apply_config is None for found in strategies)

    play(act, dialect=Dialect.kubefleet)


def test_a_strategy_edited_midway_takes_effect_at_once() -> None:
    """The peer notices only with the next unrelated event (kubefleet.md §3.6)."""

    async def act(placed: Rolling) -> None:
        await placed_on(placed, *THREE, **PICK_3)
        await placed.snapshot(1)
        await placed.until_given(given("1", "0", "0"))
        await placed.say(NOT_AVAILABLE, "cluster-1")
        await placed.edit(strategy={"rollingUpdate": {"maxUnavailable": 2}})
        await placed.until_given(given("1", "1", "0"))

    play(act)


def test_a_binding_whose_start_was_not_noted_is_put_right() -> None:
    """As after a crash between the two writes."""

    async def act(placed: Rolling) -> None:
        await placed_on(placed, *THREE, **PICK_3)
        await placed.change("cluster-2", {"spec": {"schedulingPolicySnapshotName": "crp-1"}})
        await placed.rest()
        binding = (await placed.all())["cluster-2"]
        said = find_condition(binding.status.conditions, ROLLOUT_STARTED)
        assert said is not None
        assert (said.status, said.observed_generation) == (TRUE, binding.metadata.generation)
        applied = find_condition(binding.status.conditions, APPLIED)
        assert applied is not None  # what others say stays as it is
        assert applied.observed_generation == binding.metadata.generation - 1

    play(act)


def test_that_it_started_is_said_at_once_where_works_wait_for_it_and_else_a_moment_later() -> None:
    async def act(placed: Rolling) -> None:
        await placed_on(placed, *THREE, **PICK_3)
        held = [*(await placed.all())["cluster-1"].metadata.finalizers, WORK_CLEANUP]
        await placed.change("cluster-1", {"metadata": {"finalizers": held}})
        await placed.rest()
        await placed.edit(strategy={"rollingUpdate": {"maxUnavailable": 3}})
        await placed.snapshot(1)
        await until_so(lambda: _is_pointed(placed, "crp-1-snapshot"), 1.0)
        await asyncio.sleep(STARTED_AFTER / 2)
        assert [await _is_said(placed, name) for name in THREE] == [False, True, True]
        await asyncio.sleep(STARTED_AFTER)
        assert await _is_said(placed, "cluster-1")

    play(act)


async def _is_pointed(placed: Rolling, snapshot: str) -> bool:
    return all(one.spec.resource_snapshot_name == snapshot for one in (await placed.all()).values())


async def _is_said(placed: Rolling, cluster: str) -> bool:
    binding = (await placed.all())[cluster]
    return is_true(binding.status.conditions, ROLLOUT_STARTED, generation=binding.metadata.generation)


def test_writes_are_a_few_for_each_cluster_that_moves_and_none_at_rest() -> None:
    """Defect #8: the peer writes every binding in every round."""

    async def act(placed: Rolling) -> None:
        clusters = [f"cluster-{number:02}" for number in range(1, 31)]
        await placed_on(placed, *clusters, strategy={"rollingUpdate": {"maxUnavailable": 3}})
        await placed.rest(60)
        placed.writes.clear()
        await placed.rest(3600)
        assert placed.writes == []
        await placed.snapshot(1)
        await placed.rest(10)
        assert len(placed.writes) == 3 * 2 + 27  # where it points and that it started; and that the others wait
        placed.writes.clear()
        await placed.say(AVAILABLE, *clusters[:3])
        await placed.rest(1)
        assert len(placed.writes) == 3 + 3 * 2
        await placed.rest(60)
        assert len(placed.writes) == 3 + 3 * 2 + 24  # the others wait for others now, and say so once that stands

    play(act)


def test_what_is_not_rolled_from_here_is_left_alone() -> None:
    async def act(placed: Rolling) -> None:
        await placed.members("cluster-1")
        await placed.place(strategy={"type": "External"})
        await placed.snapshot(0)
        await placed.pick("cluster-1")
        await placed.rest(60)
        assert await placed.given() == given("")
        assert await placed.started("cluster-1") is None

    play(act)


def test_before_there_is_a_snapshot_nothing_is_said_and_then_everything_is_placed() -> None:
    async def act(placed: Rolling) -> None:
        await placed.members(*THREE)
        await placed.place()
        await placed.pick(*THREE)
        await placed.rest(60)
        assert await placed.started("cluster-1") is None
        await placed.snapshot(0)
        await placed.until_given(given("0", "0", "0"))

    play(act)


def test_in_the_kubefleet_dialect_a_budget_of_nothing_stays_nothing() -> None:
    async def act(placed: Rolling) -> None:
        await placed_on(placed, *THREE, strategy={"rollingUpdate": {"maxUnavailable": 0}})
        await placed.snapshot(1)
        await placed.rest(600)
        assert await placed.given() == given("0", "0", "0")
        assert "maxUnavailable is 0" in await placed.waits_for("cluster-1")

    play(act, dialect=Dialect.kubefleet)


def test_a_placement_that_is_deleted_moves_no_more() -> None:
    async def act(placed: Rolling) -> None:
        await placed_on(placed, *THREE, **PICK_3)
        body = {"metadata": {"finalizers": ["kubernetes-fleet.io/scheduler-cleanup"]}}
        await placed.client.patch(CLUSTER.placement, "crp", MergePatch(body))
        await placed.client.delete(CLUSTER.placement, "crp")
        await placed.snapshot(1)
        await placed.rest(60)
        assert await placed.given() == given("0", "0", "0")

    play(act)


def test_two_placements_do_not_hold_each_other_up() -> None:
    async def act(placed: Rolling) -> None:
        await placed_on(placed, *THREE, **PICK_3)
        other = Rolling(placed.client, CLUSTER)
        other.name = "other"
        await other.place(strategy={"rollingUpdate": {"maxUnavailable": 1}})
        await other.snapshot(0)
        await other.pick(*THREE)
        await placed.snapshot(1)
        await asyncio.sleep(3)
        assert (await placed.binding("crp-cluster-1-0")).spec.resource_snapshot_name == "crp-1-snapshot"
        assert (await placed.binding("other-cluster-3-0")).spec.resource_snapshot_name == "other-0-snapshot"
        with pytest.raises(NotFound):
            await placed.binding("other-cluster-4-0")

    play(act)

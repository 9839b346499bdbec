"""The scheduler, on a hub of its own."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from controllers.hub.scheduling import Hub, a_while, hub_of
from kedge.api.cluster import MemberCluster
from kedge.api.fleet import BINDING_CLEANUP, PREVIOUS_STATE
from kedge.api.placement_kinds import CLUSTER, PLACEMENT_KINDS, PlacementKinds
from kedge.kube.codec import untyped
from kedge.kube.patches import MergePatch
from kedge.simulate.clock import JumpingClock
from support.stage import LoopClock
from support.virtual import run

FOUR = ("cluster-1", "cluster-2", "cluster-3", "cluster-4")
PICK_N = {"placementType": "PickN"}


def requiring(**labels: str) -> dict[str, Any]:
    terms = {"clusterSelectorTerms": [{"labelSelector": {"matchLabels": labels}}]}
    return {"affinity": {"clusterAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


@pytest.mark.parametrize("kinds", PLACEMENT_KINDS, ids=lambda kinds: kinds.name)
def test_a_placement_gets_a_binding_for_each_cluster_that_is_picked(kinds: PlacementKinds) -> None:
    async def scenario() -> None:
        async with hub_of(kinds, FOUR) as hub, hub.scheduling():
            await hub.place(policy=PICK_N, number=3)
            await a_while()
            bindings = await hub.bindings()
            assert [each.spec.target_cluster for each in bindings] == ["cluster-2", "cluster-3", "cluster-4"]
            assert await hub.said() == ["cluster-4", "cluster-3", "cluster-2", "-cluster-1"]
            assert await hub.reason() == "SchedulingPolicyFulfilled"
            assert (await hub.placement()).metadata.finalizers == ("kubernetes-fleet.io/scheduler-cleanup",)
            one = await hub.client.get(untyped(kinds.binding.resource), bindings[0].metadata.name, hub.namespace)
            assert one["metadata"]["labels"] == {"kubernetes-fleet.io/parent-CRP": "crp"}
            assert one["metadata"]["finalizers"] == ["kubernetes-fleet.io/scheduler-crb-cleanup"]
            assert one["metadata"]["name"].startswith("crp-cluster-2-")
            assert len(one["metadata"]["name"]) == len("crp-cluster-2-") + 8
            assert one["spec"] == {
                "applyStrategy": {
                    "comparisonOption": "PartialComparison",
                    "type": "ClientSideApply",
                    "whenToApply": "Always",
                    "whenToTakeOver": "Always",
                },
                "clusterDecision": {
                    "clusterName": "cluster-2",
                    "clusterScore": {"affinityScore": 0, "priorityScore": 0},
                    "reason": 'Successfully scheduled resources for placement in "cluster-2" '
                    "(affinity score: 0, topology spread score: 0): picked by scheduling policy",
                    "selected": True,
                },
                "resourceSnapshotName": "",
                "schedulingPolicySnapshotName": "crp-0",
                "state": "Scheduled",
                "targetCluster": "cluster-2",
            }

    run(scenario())


def test_a_placement_without_a_policy_snapshot_waits_for_one() -> None:
    async def scenario() -> None:
        async with hub_of(members=FOUR) as hub, hub.scheduling():
            spec = {"resourceSelectors": [{"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}]}
            await hub.client.create(CLUSTER.placement, {"metadata": {"name": "crp"}, "spec": spec})
            await a_while()
            assert (await hub.placement()).metadata.finalizers == ()
            await hub.snapshot("crp", 0, None)
            await a_while()
            assert set(await hub.shown()) == set(FOUR)

    run(scenario())


def test_the_way_objects_are_written_is_handed_on_to_bindings() -> None:
    async def scenario() -> None:
        async with hub_of(members=("cluster-1",)) as hub, hub.scheduling():
            how = {"type": "ServerSideApply", "serverSideApplyConfig": {"force": True}, "allowCoOwnership": True}
            await hub.place(strategy={"type": "RollingUpdate", "applyStrategy": how})
            await a_while()
            [binding] = await hub.bindings()
            strategy = (await hub.placement()).spec.strategy
            assert strategy is not None
            assert binding.spec.apply_strategy == strategy.apply_strategy

    run(scenario())


def test_another_policy_moves_the_placement_and_says_so() -> None:
    """Seed 000, example 2: from west to east (traces 05 to 07)."""

    async def scenario() -> None:
        async with hub_of() as hub, hub.scheduling():
            await hub.join("cluster-1", "cluster-2", labels={"loc": "west"})
            await hub.join("cluster-3", "cluster-4", labels={"loc": "east"})
            await a_while()
            await hub.place(policy=PICK_N | requiring(loc="west"), number=2)
            await a_while()
            assert await hub.said() == ["cluster-2", "cluster-1", "-cluster-3", "-cluster-4"]
            await hub.bind("cluster-1", "cluster-2")
            await hub.hold("cluster-1", "cluster-2")
            await hub.snapshot("crp", 1, PICK_N | requiring(loc="east"), 2, generation=2)
            await a_while()
            west, east = ["cluster-1", "cluster-2"], ["cluster-3", "cluster-4"]
            assert await hub.shown() == dict.fromkeys(west, "Unscheduled") | dict.fromkeys(east, "Scheduled")
            assert await hub.said("crp-1") == ["cluster-4", "cluster-3", "-cluster-1", "-cluster-2"]
            assert (await hub.bindings())[0].metadata.annotations[PREVIOUS_STATE] == "Bound"
            await hub.bind("cluster-3", "cluster-4")
            await hub.evict("cluster-1")  # as a rollout does when its turn has come
            await a_while()
            [gone] = [each for each in await hub.bindings() if each.spec.target_cluster == "cluster-1"]
            assert gone.metadata.finalizers == ("kubernetes-fleet.io/work-cleanup",)
            assert await hub.said("crp-1") == ["cluster-3", "cluster-4"]

    run(scenario())


def test_a_policy_that_picks_the_same_clusters_keeps_their_bindings() -> None:
    async def scenario() -> None:
        async with hub_of(members=FOUR) as hub, hub.scheduling():
            await hub.place(policy=PICK_N, number=2)
            await a_while()
            await hub.bind("cluster-3", "cluster-4")
            before = {each.metadata.uid for each in await hub.bindings()}
            await hub.snapshot("crp", 1, PICK_N | {"tolerations": [{"key": "a", "operator": "Exists"}]}, 2)
            await a_while()
            after = await hub.bindings()
            assert {each.metadata.uid for each in after} == before
            assert {(each.spec.state, each.spec.scheduling_policy_snapshot_name) for each in after} == {
                ("Bound", "crp-1")
            }

    run(scenario())


def test_going_back_takes_up_what_was_given_up() -> None:
    async def scenario() -> None:
        async with hub_of() as hub, hub.scheduling():
            await hub.join("cluster-1", labels={"loc": "west"})
            await hub.join("cluster-2", labels={"loc": "east"})
            await hub.place(policy=PICK_N | requiring(loc="west"), number=1)
            await a_while()
            await hub.bind("cluster-1")
            [before] = await hub.bindings()
            await hub.snapshot("crp", 1, PICK_N | requiring(loc="east"), 1)
            await a_while()
            assert await hub.shown() == {"cluster-1": "Unscheduled", "cluster-2": "Scheduled"}
            await hub.snapshot("crp", 2, PICK_N | requiring(loc="west"), 1)
            await a_while()
            assert await hub.shown() == {"cluster-1": "Bound", "cluster-2": "Unscheduled"}
            [again, _] = await hub.bindings()
            assert again.metadata.uid == before.metadata.uid
            assert PREVIOUS_STATE not in again.metadata.annotations

    run(scenario())


def test_another_number_adds_and_takes_back() -> None:
    async def scenario() -> None:
        async with hub_of(members=FOUR) as hub, hub.scheduling():
            await hub.place(policy=PICK_N, number=1)
            await a_while()
            await hub.bind("cluster-4")
            await hub.annotate("crp-0", number="3", generation="2")
            await a_while()
            assert await hub.shown() == {"cluster-2": "Scheduled", "cluster-3": "Scheduled", "cluster-4": "Bound"}
            await hub.bind("cluster-3")
            await hub.annotate("crp-0", number="2", generation="3")
            await a_while()
            assert await hub.shown() == {"cluster-2": "Unscheduled", "cluster-3": "Bound", "cluster-4": "Bound"}
            status = (await hub.policy()).status
            assert status is not None
            assert status.observed_crp_generation == 3
            assert await hub.said() == ["cluster-3", "cluster-4"]

    run(scenario())


# Members come, change and go


def test_a_new_member_is_picked_by_who_wants_all_and_by_who_has_too_few() -> None:
    async def scenario() -> None:
        async with hub_of(members=("cluster-1",)) as hub, hub.scheduling():
            await hub.place("all")
            await hub.place("two", policy=PICK_N, number=2)
            await hub.place("one", policy=PICK_N, number=1)
            await hub.place("named", policy={"placementType": "PickFixed", "clusterNames": ["cluster-2"]})
            await a_while()
            assert await hub.reason("named-0") == "SchedulingPolicyUnfulfilled"
            await hub.join("cluster-2")
            await a_while()
            names = [each.metadata.name.rpartition("-")[0] for each in await hub.bindings()]
            assert names == [
                "all-cluster-1", "all-cluster-2", "named-cluster-2", "one-cluster-1", "two-cluster-1", "two-cluster-2",
            ]  # fmt: skip
            for name in ("all-0", "two-0", "one-0", "named-0"):
                assert await hub.reason(name) == "SchedulingPolicyFulfilled"

    run(scenario())


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"labels": {"env": "prod"}}},
        {"spec": {"taints": None}},
        {"status": {"properties": {"p": {"value": "5", "observationTime": "2030-01-01T00:00:00Z"}}}},
        {"status": {"resourceUsage": {"available": {"cpu": "5"}}}},
    ],
    ids=["labels", "taints", "properties", "usage"],
)
def test_a_member_that_comes_to_fit_is_picked(change: dict[str, Any]) -> None:
    def asking(name: str) -> dict[str, Any]:
        more = {"name": name, "operator": "Gt", "values": ["2"]}
        terms = {"clusterSelectorTerms": [{"propertySelector": {"matchExpressions": [more]}}]}
        return {"affinity": {"clusterAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}

    async def scenario() -> None:
        async with hub_of() as hub, hub.scheduling():
            spec: dict[str, Any] = {"taints": [{"key": "a", "effect": "NoSchedule"}]} if "spec" in change else {}
            await hub.join("cluster-1", **spec)
            wanted: dict[str, Any] = {}
            if "metadata" in change:
                wanted = requiring(env="prod")
            elif "status" in change:
                usage = "resourceUsage" in change["status"]
                wanted = asking("resources.kubernetes-fleet.io/available-cpu" if usage else "p")
            await hub.place(policy={"placementType": "PickAll", **wanted})
            await a_while()
            assert await hub.shown() == {}
            if "status" in change:
                await hub.beat("cluster-1", **change["status"])
            else:
                await hub.change_member("cluster-1", change)
            await a_while()
            assert await hub.shown() == {"cluster-1": "Scheduled"}

    run(scenario())


def test_a_member_that_was_silent_is_picked_when_it_is_heard_again() -> None:
    async def scenario() -> None:
        async with hub_of(members=("cluster-1", "cluster-2")) as hub, hub.scheduling():
            await a_while(400)
            await hub.beat("cluster-2")
            await hub.place()
            await a_while()
            assert await hub.shown() == {"cluster-2": "Scheduled"}
            await hub.beat("cluster-1")
            await a_while()
            assert set(await hub.shown()) == {"cluster-1", "cluster-2"}

    run(scenario())


def test_a_member_that_seemed_unhealthy_for_long_is_picked_once_the_clock_is_right_and_it_is_healthy() -> None:
    async def scenario() -> None:
        clock = JumpingClock(LoopClock(), asyncio.get_running_loop(), rng=Random(1))
        async with hub_of(members=("cluster-1",)) as hub, hub.scheduling(clock=clock):
            since = clock.now()
            await a_while(200)
            await hub.beat("cluster-1", unhealthy_since=since)
            clock.jump(200.0)
            await hub.place()
            await a_while()
            assert await hub.shown() == {}
            clock.jump(-200.0)
            await hub.beat("cluster-1")
            await a_while(400)
            assert await hub.shown() == {"cluster-1": "Scheduled"}

    run(scenario())


def test_a_member_that_leaves_is_given_up_and_another_picked() -> None:
    async def scenario() -> None:
        async with hub_of(members=FOUR) as hub, hub.scheduling():
            await hub.place(policy=PICK_N, number=3)
            await a_while()
            await hub.bind(*FOUR)
            await hub.client.delete(MemberCluster, "cluster-3")
            await a_while()
            assert await hub.shown() == {
                "cluster-1": "Scheduled", "cluster-2": "Bound", "cluster-3": "Unscheduled", "cluster-4": "Bound",
            }  # fmt: skip

    run(scenario())


def test_a_picked_cluster_that_falls_silent_before_anything_is_there_is_exchanged() -> None:
    async def scenario() -> None:
        async with hub_of(members=("cluster-1", "cluster-2")) as hub, hub.scheduling():
            await hub.place(policy=PICK_N, number=1)
            await a_while(240)
            assert await hub.shown() == {"cluster-2": "Scheduled"}
            await hub.beat("cluster-1")
            await a_while(120)
            assert await hub.shown() == {"cluster-1": "Scheduled", "cluster-2": "Unscheduled"}

    run(scenario())


def test_a_silent_cluster_that_has_the_resources_keeps_them() -> None:
    async def scenario() -> None:
        async with hub_of(members=("cluster-1", "cluster-2")) as hub, hub.scheduling():
            await hub.place(policy=PICK_N, number=1)
            await a_while()
            await hub.bind("cluster-2")
            await a_while(3600)
            await hub.beat("cluster-1")
            await a_while(3600)
            assert await hub.shown() == {"cluster-2": "Bound"}

    run(scenario())


def looks(hub: Hub) -> float:
    """How often a placement was scheduled."""
    found = hub.registry.get_sample_value(
        "scheduling_cycle_duration_milliseconds_count", {"is_failed": "false", "needs_requeue": "false"}
    )
    return found or 0.0


def test_heartbeats_and_usage_wake_nobody_who_does_not_ask_for_them() -> None:
    async def scenario() -> None:
        async with hub_of(members=FOUR) as hub, hub.scheduling():
            for n in range(5):
                await hub.place(f"crp{n}")
            await hub.place("few", policy=PICK_N, number=9)
            await a_while()
            await hub.bind(*FOUR)

            async def beats(times: int) -> None:
                for n in range(times):
                    for name in FOUR:
                        await hub.beat(name, resourceUsage={"available": {"cpu": str(n)}})
                    await a_while(15)

            await beats(25)  # until the last timer of when nothing was placed yet has passed
            before = looks(hub)
            assert before > 0
            await beats(25)
            assert looks(hub) == before
            assert hub.registry.get_sample_value("scheduling_active_workers") == 0

    run(scenario())


# Bindings that others take away


def test_an_evicted_binding_is_let_go_and_its_cluster_picked_again() -> None:
    async def scenario() -> None:
        async with hub_of(members=("cluster-1",)) as hub, hub.scheduling():
            await hub.place()
            await a_while()
            await hub.bind("cluster-1")
            await hub.hold("cluster-1")
            [before] = await hub.bindings()
            await hub.evict("cluster-1")
            await a_while()
            found = {each.metadata.name: each for each in await hub.bindings()}
            assert found[before.metadata.name].metadata.finalizers == ("kubernetes-fleet.io/work-cleanup",)
            [again] = [each for name, each in found.items() if name != before.metadata.name]
            assert (again.spec.state, again.spec.target_cluster) == ("Scheduled", "cluster-1")

    run(scenario())


def test_of_two_bindings_for_one_cluster_one_is_given_up() -> None:
    async def scenario() -> None:
        async with hub_of(members=("cluster-1",)) as hub, hub.scheduling():
            await hub.place()
            await a_while()
            await hub.bind("cluster-1")
            [one] = await hub.bindings()
            meta = {"name": "crp-cluster-1-late", "labels": dict(one.metadata.labels), "finalizers": [BINDING_CLEANUP]}
            decision = {"clusterName": "cluster-1", "selected": True, "reason": "before"}
            spec = {
                "state": "Scheduled", "resourceSnapshotName": "", "schedulingPolicySnapshotName": "crp-0",
                "targetCluster": "cluster-1", "clusterDecision": decision,
            }  # fmt: skip
            await hub.client.create(hub.kinds.binding, {"metadata": meta, "spec": spec})
            await a_while()
            states = {each.metadata.name: each.spec.state for each in await hub.bindings()}
            assert states == {one.metadata.name: "Bound", "crp-cluster-1-late": "Unscheduled"}

    run(scenario())


# Deletion


@pytest.mark.parametrize("kinds", PLACEMENT_KINDS, ids=lambda kinds: kinds.name)
def test_a_placement_that_is_deleted_takes_its_bindings_with_it(kinds: PlacementKinds) -> None:
    async def scenario() -> None:
        async with hub_of(kinds, FOUR) as hub, hub.scheduling():
            await hub.place()
            await hub.place("other")
            await a_while()
            await hub.client.delete(kinds.placement, "crp", hub.namespace)
            await a_while()
            assert await hub.is_gone()
            left = {each.metadata.labels["kubernetes-fleet.io/parent-CRP"] for each in await hub.bindings()}
            assert left == {"other"}

    run(scenario())


def test_bindings_that_works_still_hold_are_deleted_but_not_waited_for() -> None:
    async def scenario() -> None:
        async with hub_of(members=("cluster-1", "cluster-2")) as hub, hub.scheduling():
            await hub.place()
            await a_while()
            await hub.hold("cluster-1")
            await hub.client.delete(CLUSTER.placement, "crp")
            await a_while()
            assert await hub.is_gone()
            assert await hub.shown() == {"cluster-1": "leaving"}
            [left] = await hub.bindings()
            assert left.metadata.finalizers == ("kubernetes-fleet.io/work-cleanup",)

    run(scenario())


def test_what_a_placement_that_is_gone_left_behind_is_taken_away() -> None:
    async def scenario() -> None:
        async with hub_of(members=("cluster-1",)) as hub:
            async with hub.scheduling():
                await hub.place()
                await a_while()
            await hub.client.patch(CLUSTER.placement, "crp", MergePatch({"metadata": {"finalizers": None}}))
            await hub.client.delete(CLUSTER.placement, "crp")
            assert await hub.shown() == {"cluster-1": "Scheduled"}
            async with hub.scheduling(seed=2):
                await a_while()
                assert await hub.shown() == {}

    run(scenario())


# What is wrong is said


def test_a_policy_that_means_nothing_is_told_and_harms_nobody_else() -> None:
    async def scenario() -> None:
        async with hub_of(members=("cluster-1",)) as hub, hub.scheduling():
            wrong = {"matchExpressions": [{"key": "a", "operator": "Is", "values": ["b"]}]}
            terms = {"clusterSelectorTerms": [{"labelSelector": wrong}]}
            affinity = {"clusterAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
            await hub.place("bad", policy={"placementType": "PickAll", "affinity": affinity})
            await hub.place("good")
            await a_while()
            assert [each.metadata.name.partition("-")[0] for each in await hub.bindings()] == ["good"]
            status = (await hub.policy("bad-0")).status
            assert status is not None
            assert status.conditions[0].reason == "SchedulingPolicyUnfulfilled"
            assert "labelSelector: operator 'Is' is none of" in status.conditions[0].message

    run(scenario())


def test_at_rest_nothing_is_written() -> None:
    async def scenario() -> None:
        async with hub_of(members=FOUR) as hub:
            async with hub.scheduling():
                await hub.place(policy=PICK_N, number=3)
                await hub.place("all")
                await a_while()
            before = [each.metadata.resource_version for each in await hub.bindings()]
            said = (await hub.policy()).metadata.resource_version
            async with hub.scheduling(seed=2):
                await a_while()
            assert [each.metadata.resource_version for each in await hub.bindings()] == before
            assert (await hub.policy()).metadata.resource_version == said

    run(scenario())

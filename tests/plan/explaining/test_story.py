"""Stories: where a placement stands, told from what its objects say."""

from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.cluster import MemberCluster
from kedge.api.scheduling import PlacementPolicy
from kedge.api.snapshot import ClusterSchedulingPolicySnapshot
from kedge.api.wire import read_plain
from kedge.api.work import Work
from kedge.plan.explaining.phrases import explained, summary
from kedge.plan.explaining.story import Story, tell
from kedge.plan.state import State
from plan.explaining.objects import (
    ALL_WELL,
    DOWN,
    NOW,
    PREFIX,
    STEPS,
    STUCK,
    WHY,
    binding,
    condition,
    on,
    passed,
    placement,
    snapshot,
)

SNAPSHOTS = [snapshot(0), snapshot(1, latest=True)]
BOTH = [binding("cluster-1"), binding("cluster-2")]


def states(story: Story) -> dict[str, State]:
    return {place.cluster: place.state for place in story.places}


def test_when_every_condition_holds_it_is_available_everywhere() -> None:
    story = tell(ALL_WELL)
    assert (story.state, story.done, story.wanted, story.is_done) == (State.available, 2, 2, True)


def test_a_rollout_that_stands_still_says_what_it_waits_for() -> None:
    story = tell(STUCK)
    assert (story.state, story.why) == (State.waiting, WHY)
    assert states(story) == {"cluster-1": State.moving, "cluster-2": State.waiting}
    assert [place.why for place in story.places] == [
        "Deployment test-ns/web has 0 of 3 replicas",
        "1 of 1 may be unavailable, and cluster-1 is not available",
    ]


def test_a_placement_nobody_has_looked_at_says_so() -> None:
    assert tell(placement([], [])).why == "the hub has not looked at it yet"


def test_a_status_of_an_older_generation_is_not_believed() -> None:
    changed = placement(passed(*STEPS, prefix=PREFIX), [], generation=2)
    assert (tell(changed).state, tell(changed).is_done) == (State.moving, False)


def test_a_paused_rollout_is_paused_and_one_that_is_done_is_not() -> None:
    paused = {"annotations": {"kedge.dev/paused": "true"}}
    held = placement([condition(f"{PREFIX}RolloutStarted", "False", "RolloutNotStartedYet", "paused")], [], **paused)
    assert tell(held).state is State.paused
    done = placement(passed(*STEPS, prefix=PREFIX), [on("cluster-1", *passed(*STEPS))], **paused)
    assert tell(done).state is State.available


@pytest.mark.parametrize(
    ("bad", "state"),
    [
        (condition("Applied", "False", "NotAllWorkHaveBeenApplied"), State.failed),
        (condition("Applied", "False", "ApplyInProgress"), State.moving),
        (condition("Available", "Unknown", "ResourceAvailableUnknown"), State.unknown),
        (condition("WorkSynchronized", "False", "SyncWorkFailed"), State.failed),
        (condition("RolloutStarted", "Unknown", "RolloutStartedUnknown"), State.moving),
        (condition("Overridden", "False", "OverriddenFailed"), State.failed),
    ],
)
def test_a_cluster_is_where_its_first_broken_step_puts_it(bad: dict[str, Any], state: State) -> None:
    before = passed(*STEPS[: STEPS.index(bad["type"])])
    assert states(tell(placement([], [on("cluster-1", *before, bad)]))) == {"cluster-1": state}


def test_a_cluster_that_is_no_longer_picked_is_leaving_and_keeps_the_rollout_from_being_done() -> None:
    story = tell(ALL_WELL, [*BOTH, binding("cluster-3", "Unscheduled")], (), SNAPSHOTS, now=NOW)
    assert states(story)["cluster-3"] is State.leaving
    assert (story.is_done, story.why) == (False, "1 cluster still has to be cleared")


def test_clusters_whose_revision_was_deleted_are_known_to_have_it() -> None:
    story = tell(ALL_WELL, BOTH, (), [], now=NOW)
    assert summary(story) == "revision 1, available on 2 of 2 clusters"
    back = tell(ALL_WELL, BOTH, (), [snapshot(0)], now=NOW)
    assert {place.index for place in back.places} == {"1"}


def test_clusters_that_could_not_be_found_are_wanted_and_explained() -> None:
    missing = {"conditions": [condition("Scheduled", "False", "ScheduleFailed", "no such cluster")]}
    story = tell(placement([], [on("cluster-1", *passed(*STEPS)), missing]))
    assert (story.unpicked, story.wanted) == (("no such cluster",), 2)


def test_what_was_placed_is_told_object_by_object() -> None:
    work = read_plain(
        {
            "metadata": {
                "name": "crp-work",
                "generation": 1,
                "labels": {"kubernetes-fleet.io/parent-resource-binding": "crp-cluster-1"},
            },
            "status": {
                "conditions": [condition("Applied", "False")],
                "manifestConditions": [
                    {
                        "identifier": {"ordinal": 0, "kind": "Namespace", "name": "test-ns"},
                        "conditions": [condition("Applied"), condition("Available")],
                    },
                    {
                        "identifier": {"ordinal": 1, "kind": "Deployment", "name": "web", "namespace": "test-ns"},
                        "conditions": [condition("Applied"), condition("Available", "False", message="0 of 3")],
                    },
                    {
                        "identifier": {"ordinal": 2, "kind": "Queue", "name": "jobs"},
                        "conditions": [condition("Applied"), condition("Available", reason="NotTrackable")],
                    },
                    {
                        "identifier": {"ordinal": 3, "kind": "Job", "name": "seed"},
                        "conditions": [condition("Applied", "False", message="quota exceeded")],
                    },
                ],
            },
        },
        Work,
    )
    story = tell(ALL_WELL, [binding("cluster-1")], [work], SNAPSHOTS, now=NOW)
    told = [(thing.what, thing.state, thing.why) for thing in story.places[0].things]
    assert told == [
        ("Namespace test-ns", State.available, ""),
        ("Deployment test-ns/web", State.moving, "0 of 3"),
        ("Queue jobs", State.available, "cannot be tracked"),
        ("Job seed", State.failed, "quota exceeded"),
    ]


def test_a_cluster_that_waits_has_what_its_binding_says_and_may_well_be_up() -> None:
    story = tell(STUCK, [DOWN, binding("cluster-2", index=0)], (), SNAPSHOTS, now=NOW)
    waits = story.places[1]
    assert (waits.state, waits.index, waits.is_up) == (State.waiting, "0", True)
    assert (story.updated, story.up, story.done, story.wanted) == (1, 1, 0, 2)


def test_what_a_cluster_has_of_an_earlier_revision_is_not_known_from_the_placement_alone() -> None:
    assert tell(STUCK).places[1].index == ""


def test_a_revision_the_status_does_not_speak_of_yet_is_not_done() -> None:
    both = [binding(name, index=2) for name in ("cluster-1", "cluster-2")]
    story = tell(ALL_WELL, both, (), [snapshot(1), snapshot(2, latest=True)], now=NOW)
    assert (story.state, story.why) == (State.moving, "revision 2 is next, and the hub has not caught up yet")
    pinned = placement(passed(*STEPS, prefix=PREFIX), [], annotations={"kedge.dev/pinned-resource-index": "0"})
    assert not tell(pinned, BOTH, (), SNAPSHOTS, now=NOW).is_done
    kept = placement(passed(*STEPS, prefix=PREFIX), [], annotations={"kedge.dev/pinned-resource-index": "1"})
    assert tell(kept, BOTH, (), [snapshot(1), snapshot(2, latest=True)], now=NOW).is_done


@pytest.mark.parametrize(
    ("left", "why"), [(1, "1 cluster still has resources"), (2, "2 clusters still have resources")]
)
def test_a_placement_that_is_being_deleted_says_what_is_left(left: int, why: str) -> None:
    going: Any = {"deletionTimestamp": "2030-01-01T00:00:00Z"}
    gone = placement(passed(*STEPS, prefix=PREFIX), [], **going)
    story = tell(gone, [binding(f"cluster-{number}", **going) for number in range(left)], (), SNAPSHOTS, now=NOW)
    assert (story.state, story.why) == (State.leaving, f"it is being deleted: {why}")


def test_clusters_are_in_the_order_people_count_in() -> None:
    names = ["cluster-10", "cluster-9", "cluster-1"]
    told = tell(placement([], [on(name, *passed(*STEPS)) for name in names]))
    assert [place.cluster for place in told.places] == ["cluster-1", "cluster-9", "cluster-10"]


# On no cluster


SCHEDULED = passed("Scheduled", prefix=PREFIX)
NOBODY = placement(SCHEDULED, [])


def looked_at(*clusters: str) -> ClusterSchedulingPolicySnapshot:
    """The newest policy, which picked none of these."""
    decisions = [{"clusterName": name, "selected": False, "reason": "it lacks label env=prod"} for name in clusters]
    labels = {"kubernetes-fleet.io/policy-index": "0", "kubernetes-fleet.io/is-latest-snapshot": "true"}
    status = {"observedCRPGeneration": 1, "targetClusters": decisions}
    plain = {"metadata": {"name": "crp-0", "labels": labels}, "spec": {"policyHash": ""}, "status": status}
    return read_plain(plain, ClusterSchedulingPolicySnapshot)


def members(*names: str) -> dict[str, MemberCluster]:
    identity = {"kind": "User", "name": "agent", "apiGroup": "rbac.authorization.k8s.io"}
    return {
        name: read_plain({"metadata": {"name": name}, "spec": {"identity": identity}}, MemberCluster) for name in names
    }


def test_a_placement_on_no_cluster_is_not_done() -> None:
    story = tell(NOBODY)
    assert (story.state, story.is_done, summary(story)) == (
        State.waiting, False, "on no cluster: no cluster was picked",
    )  # fmt: skip


def test_a_placement_that_takes_all_and_finds_none_says_of_each_why() -> None:
    names = ("cluster-1", "cluster-2")
    story = tell(NOBODY, [], [], SNAPSHOTS, policies=[looked_at(*names)], members=members(*names), now=NOW)
    assert (story.is_done, story.wanted) == (False, 0)
    assert explained(story) == [
        "ClusterResourcePlacement crp: on no cluster: none of 2 members was picked",
        "no cluster: cluster-1 was not picked: it lacks label env=prod",
        "no cluster: cluster-2 was not picked: it lacks label env=prod",
    ]


def test_without_members_that_is_what_is_said() -> None:
    story = tell(NOBODY, [], [], SNAPSHOTS, policies=[looked_at()], members={}, now=NOW)
    assert (story.is_done, summary(story)) == (False, "on no cluster: the fleet has no members")


@pytest.mark.parametrize("policy", [{"placementType": "PickN", "numberOfClusters": 0}, {"placementType": "PickFixed"}])
def test_who_asks_for_no_cluster_has_what_they_want(policy: dict[str, Any]) -> None:
    asked = replace(NOBODY, spec=replace(NOBODY.spec, policy=read_plain(policy, PlacementPolicy)))
    assert tell(asked).is_done
    assert tell(asked, [], [], [], members={}, now=NOW).is_done

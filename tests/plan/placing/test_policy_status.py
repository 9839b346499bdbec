"""What a policy snapshot says of the clusters its policy picked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.fleet import PLACEMENT_GENERATION
from kedge.api.meta import ObjectMeta
from kedge.api.snapshot import PolicySnapshotStatus
from kedge.plan.placing.policy_status import observes_current_generation, policy_snapshot_status
from kedge.plan.placing.schedule import Schedule
from plan.placing.members_and_bindings import NOW, binding, fleet, labelled, member, place, policy, requiring

FOUR = fleet("cluster-1", "cluster-2", "cluster-3", "cluster-4")
EAST = [member(f"cluster-{n}", {"loc": "west" if n < 3 else "east"}) for n in range(1, 5)]


def said(made: Schedule, before: PolicySnapshotStatus | None = None, generation: str = "1") -> PolicySnapshotStatus:
    meta = ObjectMeta(name="crp-0", generation=1, annotations={PLACEMENT_GENERATION: generation})
    return policy_snapshot_status(meta, before, made, NOW)


def clusters(found: PolicySnapshotStatus) -> list[tuple[str, bool]]:
    return [(each.cluster_name, each.selected) for each in found.target_clusters]


def names(found: PolicySnapshotStatus) -> list[str]:
    return [each.cluster_name for each in found.target_clusters]


# As recorded: traces 02, 05, 08, 09, 10


@pytest.mark.parametrize(
    ("wanted", "members", "number", "reason", "expected"),
    [
        (policy("PickN"), FOUR, 3, "SchedulingPolicyFulfilled", "cluster-4 cluster-3 cluster-2 -cluster-1"),
        (
            policy("PickN", affinity=requiring(labelled(loc="west"))), EAST, 2, "SchedulingPolicyFulfilled",
            "cluster-2 cluster-1 -cluster-3 -cluster-4",
        ),
        (
            policy("PickN", affinity=requiring(labelled(loc="east"))), EAST, 4, "SchedulingPolicyUnfulfilled",
            "cluster-4 cluster-3 -cluster-1 -cluster-2",
        ),
        (
            policy("PickFixed", clusterNames=["cluster-1", "nowhere"]), FOUR, None, "SchedulingPolicyUnfulfilled",
            "cluster-1 -nowhere",
        ),
        (None, FOUR, None, "SchedulingPolicyFulfilled", "cluster-1 cluster-2 cluster-3 cluster-4"),
    ],
)  # fmt: skip
def test_decisions_come_in_kubefleets_order(
    wanted: Any, members: Any, number: int | None, reason: str, expected: str
) -> None:
    found = said(place(wanted, members, number=number), generation="2")
    assert " ".join(name if picked else f"-{name}" for name, picked in clusters(found)) == expected
    [condition] = found.conditions
    assert (condition.type, condition.reason, condition.observed_generation) == ("Scheduled", reason, 1)
    assert condition.status == ("True" if reason == "SchedulingPolicyFulfilled" else "False")
    assert found.observed_crp_generation == 2


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (2, "found all cluster needed as specified by the scheduling policy, found 2 cluster(s)"),
        (9, "could not find all clusters needed as specified by the scheduling policy, found 4 cluster(s) instead"),
    ],
)
def test_the_condition_says_how_many_were_found(number: int, message: str) -> None:
    assert said(place(policy("PickN"), FOUR, number=number)).conditions[0].message == message


def test_the_condition_says_what_is_wrong_with_an_invalid_policy() -> None:
    bad = policy(affinity=requiring({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}))
    [condition] = said(place(bad, FOUR)).conditions
    assert (condition.status, condition.reason) == ("False", "SchedulingPolicyUnfulfilled")
    assert "clusterSelectorTerms[0].labelSelector: operator 'Is' is none of In" in condition.message


# What is no news


def first() -> PolicySnapshotStatus:
    return said(place(policy("PickN"), FOUR, number=3))


def held(*more: Any, already_reported: bool = True) -> Schedule:
    decisions = {each.cluster_name: each for each in first().target_clusters}
    bindings = [binding(name) for name in ("cluster-2", "cluster-3", "cluster-4")]
    kept = [replace(b, spec=replace(b.spec, cluster_decision=decisions[b.spec.target_cluster])) for b in bindings]
    return place(policy("PickN"), FOUR, [*kept, *more], number=3, already_reported=already_reported)


def test_a_schedule_that_looked_for_no_cluster_changes_no_decision() -> None:
    assert said(held(), first()) == first()


def test_the_same_decisions_in_another_order_are_no_change() -> None:
    before = said(place(None, FOUR))
    meta = ObjectMeta(name="crp-0", generation=1, annotations={PLACEMENT_GENERATION: "1"})
    turned = PolicySnapshotStatus(
        observed_crp_generation=1, conditions=before.conditions, target_clusters=before.target_clusters[::-1]
    )
    assert policy_snapshot_status(meta, turned, place(None, FOUR), NOW + timedelta(hours=1)) == turned


def test_other_picked_clusters_are_a_change() -> None:
    found = said(place(policy("PickN"), FOUR, [binding("cluster-1")], number=1, already_reported=True), first())
    assert names(found) == ["cluster-1"]


# As recorded: traces 06 and 07


def test_while_an_unscheduled_cluster_is_cleared_only_picked_clusters_are_listed() -> None:
    found = said(held(binding("cluster-1", "Unscheduled", policy="crp-x", leaving=True)), first())
    assert names(found) == ["cluster-2", "cluster-3", "cluster-4"]


def test_a_released_or_evicted_binding_does_not_shorten_the_list() -> None:
    for gone in (binding("cluster-1", "Unscheduled", leaving=True, held=False), binding("cluster-1", leaving=True)):
        assert said(held(gone), first()) == first()


# Whatever was cut short is told in the end as if nothing had happened


def test_after_a_crash_before_the_first_status_all_decisions_are_written() -> None:
    assert said(held(already_reported=False)).target_clusters == first().target_clusters


def test_a_new_generation_of_the_placement_gets_all_decisions_again() -> None:
    found = said(held(already_reported=False), first(), generation="2")
    assert found.target_clusters == first().target_clusters
    assert found.observed_crp_generation == 2


@pytest.mark.parametrize("cut", range(4))
def test_a_crash_while_the_number_changes_ends_with_the_same_status(cut: int) -> None:
    five = fleet("a", "b", "c", "d", "e")
    whole = place(policy("PickN"), five, [binding("e")], number=3)
    decisions = {each.cluster_name: each for each in whole.create}

    def made_of(name: str) -> Any:
        found = binding(name, "Scheduled")
        return replace(found, spec=replace(found.spec, cluster_decision=decisions[name]))

    done = [made_of(name) for name in list(decisions)[:cut]]
    again = place(policy("PickN"), five, [binding("e"), *done], number=3)
    assert said(again).target_clusters == said(whole).target_clusters


def test_a_snapshot_observes_the_current_generation_once_its_status_says_so() -> None:
    meta = ObjectMeta(annotations={PLACEMENT_GENERATION: "2"})
    assert not observes_current_generation(meta, None)
    assert not observes_current_generation(meta, PolicySnapshotStatus(observed_crp_generation=1))
    assert observes_current_generation(meta, PolicySnapshotStatus(observed_crp_generation=2))


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    meta = ObjectMeta(name="crp-0", generation=1, annotations={PLACEMENT_GENERATION: "2"})
    later = policy_snapshot_status(meta, first(), held(), NOW + timedelta(hours=1))
    assert later.conditions[0].last_transition_time == NOW


@pytest.mark.parametrize("text", ["", "x", "-1"])
def test_a_generation_annotation_that_is_no_number_counts_as_none(text: str) -> None:
    assert said(place(None, FOUR), generation=text).observed_crp_generation == 0

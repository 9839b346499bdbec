"""What a policy snapshot says of the clusters its policy picked."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.fleet import PLACEMENT_GENERATION
from kedge.api.meta import ObjectMeta
from kedge.api.snapshot import PolicySnapshotStatus
from kedge.plan.placing.schedule import Schedule
from kedge.plan.placing.status import has_told, status
from plan.placing.members_and_bindings import NOW, binding, fleet, labelled, member, place, policy, requiring

FOUR = fleet("cluster-1", "cluster-2", "cluster-3", "cluster-4")
EAST = [member(f"cluster-{n}", {"loc": "west" if n < 3 else "east"}) for n in range(1, 5)]


def said(made: Schedule, before: PolicySnapshotStatus | None = None, generation: str = "1") -> PolicySnapshotStatus:
    meta = ObjectMeta(name="crp-0", generation=1, annotations={PLACEMENT_GENERATION: generation})
    return status(meta, before, made, NOW)


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
def test_decisions_come_in_the_order_of_the_peer(
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


def test_a_policy_that_means_nothing_is_told_in_the_condition() -> None:
    bad = policy(affinity=requiring({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}))
    [condition] = said(place(bad, FOUR)).conditions
    assert (condition.status, condition.reason) == ("False", "SchedulingPolicyUnfulfilled")
    assert "clusterSelectorTerms[0].labelSelector: operator 'Is' is none of In" in condition.message


# What is no news


def first() -> PolicySnapshotStatus:
    return said(place(policy("PickN"), FOUR, number=3))


def held(*more: Any, told: bool = True) -> Schedule:
    decisions = {each.cluster_name: each for each in first().target_clusters}
    bindings = [binding(name) for name in ("cluster-2", "cluster-3", "cluster-4")]
    kept = [replace(b, spec=replace(b.spec, cluster_decision=decisions[b.spec.target_cluster])) for b in bindings]
    return place(policy("PickN"), FOUR, [*kept, *more], number=3, told=told)


def test_a_look_that_looks_for_nothing_says_nothing_new() -> None:
    assert said(held(), first()) == first()


def test_the_same_in_another_order_is_no_news() -> None:
    before = said(place(None, FOUR))
    meta = ObjectMeta(name="crp-0", generation=1, annotations={PLACEMENT_GENERATION: "1"})
    turned = PolicySnapshotStatus(
        observed_crp_generation=1, conditions=before.conditions, target_clusters=before.target_clusters[::-1]
    )
    assert status(meta, turned, place(None, FOUR), NOW + timedelta(hours=1)) == turned


def test_other_clusters_that_are_picked_are_news() -> None:
    found = said(place(policy("PickN"), FOUR, [binding("cluster-1")], number=1, told=True), first())
    assert names(found) == ["cluster-1"]


# As recorded: traces 06 and 07


def test_once_a_cluster_that_was_given_up_is_cleared_only_what_is_picked_is_told() -> None:
    found = said(held(binding("cluster-1", "Unscheduled", policy="crp-x", leaving=True)), first())
    assert names(found) == ["cluster-2", "cluster-3", "cluster-4"]


def test_what_was_let_go_already_or_evicted_is_no_reason_to_tell_less() -> None:
    for gone in (binding("cluster-1", "Unscheduled", leaving=True, held=False), binding("cluster-1", leaving=True)):
        assert said(held(gone), first()) == first()


# Whatever was cut short is told in the end as if nothing had happened


def test_a_first_look_that_was_cut_short_before_it_could_tell_is_told_as_if_it_had_not() -> None:
    assert said(held(told=False)).target_clusters == first().target_clusters


def test_another_generation_of_the_placement_is_told_everything_again() -> None:
    found = said(held(told=False), first(), generation="2")
    assert found.target_clusters == first().target_clusters
    assert found.observed_crp_generation == 2


@pytest.mark.parametrize("cut", range(4))
def test_a_change_of_number_that_was_cut_short_ends_the_same(cut: int) -> None:
    five = fleet("a", "b", "c", "d", "e")
    whole = place(policy("PickN"), five, [binding("e")], number=3)
    decisions = {each.cluster_name: each for each in whole.create}

    def made_of(name: str) -> Any:
        found = binding(name, "Scheduled")
        return replace(found, spec=replace(found.spec, cluster_decision=decisions[name]))

    done = [made_of(name) for name in list(decisions)[:cut]]
    again = place(policy("PickN"), five, [binding("e"), *done], number=3)
    assert said(again).target_clusters == said(whole).target_clusters


def test_a_snapshot_has_told_once_it_speaks_of_the_generation_there_is() -> None:
    meta = ObjectMeta(annotations={PLACEMENT_GENERATION: "2"})
    assert not has_told(meta, None)
    assert not has_told(meta, PolicySnapshotStatus(observed_crp_generation=1))
    assert has_told(meta, PolicySnapshotStatus(observed_crp_generation=2))


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    meta = ObjectMeta(name="crp-0", generation=1, annotations={PLACEMENT_GENERATION: "2"})
    later = status(meta, first(), held(), NOW + timedelta(hours=1))
    assert later.conditions[0].last_transition_time == NOW


@pytest.mark.parametrize("text", ["", "x", "-1"])
def test_a_generation_that_is_no_number_counts_as_none(text: str) -> None:
    assert said(place(None, FOUR), generation=text).observed_crp_generation == 0

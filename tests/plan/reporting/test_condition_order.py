"""The steps of a placement, and what its status is made of."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, UNKNOWN
from kedge.api.fleet import IS_LATEST, PARENT_PLACEMENT, RESOURCE_HASH, RESOURCE_INDEX, SUBINDEX
from kedge.api.meta import ObjectMeta
from kedge.api.placement_status import ClusterPlacementStatus, PlacementStatus
from kedge.api.reasons import AVAILABLE, ROLLOUT_STARTED, SCHEDULED
from kedge.api.scheduling import PlacementPolicy, PlacementType
from kedge.api.snapshot import ClusterDecision
from kedge.plan.findings import Finding
from kedge.plan.placing.bindings import remaining_bindings
from kedge.plan.reporting.condition_order import CONDITION_STEPS
from kedge.plan.reporting.placement_status import is_complete, parts_of_revision, placement_status
from plan.reporting.test_placement_status import WELL, P, found, policy, seen
from plan.working.objects import LATER, NOON, binding, said


@pytest.mark.parametrize("length", [1, 1023, 1024, 1025, 3000])
def test_a_message_is_cut_at_the_limit(length: int) -> None:
    condition = Finding(SCHEDULED, TRUE, "Reason", "x" * length).condition(None, 1, NOON)
    assert condition.message == ("x" * length if length <= 1024 else "x" * 1023 + "…")


@pytest.mark.parametrize(
    ("since", "old", "wanted"),
    [
        (None, None, LATER),
        (None, TRUE, NOON),
        (None, FALSE, LATER),
        (NOON + timedelta(minutes=5), TRUE, NOON + timedelta(minutes=5)),
        (NOON + timedelta(minutes=5), None, NOON + timedelta(minutes=5)),
    ],
)
def test_a_condition_has_its_transition_time_in_whole_seconds(since: Any, old: str | None, wanted: Any) -> None:
    before = None if old is None else said(SCHEDULED, old)
    since = since and since + timedelta(microseconds=7)
    condition = Finding(SCHEDULED, TRUE, "Reason", "", since).condition(before, 3, LATER + timedelta(microseconds=7))
    assert (condition.last_transition_time, condition.observed_generation) == (wanted, 3)


def test_every_condition_that_becomes_true_has_an_event() -> None:
    placement_status(seen(binding(*WELL)), LATER)
    assert [step.event for step in CONDITION_STEPS] == [
        "PlacementRolloutStarted",
        "PlacementOverriddenSucceeded",
        "PlacementWorkSynchronized",
        "PlacementApplied",
        "PlacementAvailable",
    ]


@pytest.mark.parametrize(
    ("statuses", "complete"),
    [([TRUE] * 6, True), ([TRUE] * 5, False), ([], False), ([TRUE] * 5 + [FALSE], False), ([FALSE] * 6, False)],
)
def test_a_rollout_is_complete_once_every_condition_is_true(statuses: list[str], complete: bool) -> None:
    kinds = (SCHEDULED, *(step.type for step in CONDITION_STEPS))
    conditions = tuple(said(kind, status) for kind, status in zip(kinds, statuses, strict=False))
    assert is_complete(PlacementStatus(conditions=conditions)) is complete


def part(name: str, index: int, sub: str | None) -> ObjectMeta:
    labels = {PARENT_PLACEMENT: "crp", RESOURCE_INDEX: str(index), IS_LATEST: "false"}
    annotations = {RESOURCE_HASH: "x"} if sub is None else {SUBINDEX: sub}
    return ObjectMeta(name=name, labels=labels, annotations=annotations)


def test_the_parts_of_a_revision_come_in_order() -> None:
    known = [part("c", 1, "10"), part("b", 1, "2"), part("x", 1, "?"), part("a", 1, None), part("other", 2, None)]
    assert [one.name for one in parts_of_revision(known, "1")] == ["a", "x", "b", "c"]
    assert [one.name for one in parts_of_revision(known[::-1], "1")] == ["a", "x", "b", "c"]
    assert parts_of_revision(known, None) == parts_of_revision(known, "7") == []


def test_without_a_snapshot_no_cluster_has_started() -> None:
    status = placement_status(seen(binding(*WELL), snapshots=[]), LATER)
    assert status.observed_resource_index is None
    assert status.placement_statuses[0].conditions[-1].status == UNKNOWN


def test_a_warning_about_the_selectors_is_added_unless_they_have_a_problem() -> None:
    plain = found(placement_status(seen(binding(*WELL)), LATER), SCHEDULED).message
    assert (
        found(placement_status(seen(binding(*WELL), warning="It is odd"), LATER), SCHEDULED).message
        == f"{plain}. It is odd"
    )
    wrong = placement_status(seen(binding(*WELL), warning="It is odd", problem="It is wrong"), LATER)
    assert found(wrong, SCHEDULED).message == "It is wrong"


def test_each_missing_cluster_has_a_reason() -> None:
    picked = policy("a")
    assert picked.status is not None
    others = tuple(ClusterDecision(cluster_name=name, selected=False, reason=f"{name} is full") for name in "xyz")
    decided = replace(picked, status=replace(picked.status, target_clusters=(*picked.status.target_clusters, *others)))
    wanted = PlacementPolicy(placement_type=PlacementType.pick_n, number_of_clusters=3)
    base = seen(binding(*WELL), policies=[decided])
    placement = replace(base.placement, spec=replace(base.placement.spec, policy=wanted))
    first = placement_status(replace(base, placement=placement), NOON)
    told = [(one.cluster_name, one.conditions[-1].message) for one in first.placement_statuses[1:]]
    assert told == [("", "x was not picked: x is full"), ("", "y was not picked: y is full")]
    again = placement_status(replace(base, placement=replace(placement, status=first)), LATER)
    assert [one.conditions[0].last_transition_time for one in again.placement_statuses] == [NOON] * 3


def test_only_clusters_to_be_removed_are_listed_sorted_by_name() -> None:
    going = [binding(*WELL, cluster=name, state="Unscheduled") for name in ("c", "b")]
    twin = binding(*WELL, name="crp-a-9", state="Unscheduled")
    status = placement_status(seen(binding(*WELL), *going, twin, policies=[policy("a")]), LATER)
    assert found(status, ROLLOUT_STARTED).message == (
        "1 of 1 cluster has started. Still to be removed: b is to be removed; c is to be removed"
    )


def test_of_two_bindings_of_a_cluster_the_one_with_resources_counts() -> None:
    bound, other = binding(*WELL), binding(name="crp-a-1", state="Scheduled", resource_snapshot_name="")
    for pair in ((bound, other), (other, bound)):
        status = placement_status(seen(*pair, policies=[policy("a")]), LATER)
        assert status.placement_statuses[0].conditions[-1].type == AVAILABLE
        assert {one.metadata.name for one in remaining_bindings(pair)} == {"crp-a-0", "crp-a-1"}


def test_a_nameless_cluster_status_is_not_taken_for_that_of_a_picked_one() -> None:
    nameless = ClusterPlacementStatus(conditions=(said(SCHEDULED, FALSE),))
    base = seen(binding(*WELL))
    status = PlacementStatus(placement_statuses=(nameless,))
    again = placement_status(replace(base, placement=replace(base.placement, status=status)), LATER)
    assert found(again, SCHEDULED).type == f"{P}{SCHEDULED}"
    assert again.placement_statuses[0].conditions[0].last_transition_time == LATER

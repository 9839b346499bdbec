"""A status that a server can store: what is left out first, and what is said of each step."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.condition import FALSE, TRUE, UNKNOWN, Condition
from kedge.api.placement_status import (
    ClusterPlacementStatus,
    DiffedPlacement,
    DriftedPlacement,
    FailedPlacement,
    PlacementStatus,
)
from kedge.api.reasons import APPLIED, AVAILABLE, SCHEDULED
from kedge.api.snapshot import ClusterSchedulingPolicySnapshot
from kedge.plan.reporting.condition_order import CONDITION_STEPS
from kedge.plan.reporting.placement_conditions import scheduled_finding
from kedge.plan.reporting.placement_status import MAX_STATUS_BYTES, placement_status, shortened_to_fit
from plan.reporting.test_placement_status import WELL, policy, seen
from plan.working.objects import NOON, binding, said

DETAILS: dict[str, Any] = {
    "version": "v1",
    "kind": "ConfigMap",
    "observationTime": NOON,
    "firstDriftedObservedTime": NOON,
    "firstDiffedObservedTime": NOON,
    "targetClusterObservedGeneration": 1,
    "observedDrifts": [],
    "observedDiffs": [],
}
FAILED = tuple(
    FailedPlacement(version="v1", kind="ConfigMap", name=name, condition=said(APPLIED, FALSE)) for name in ("a", "b")
)
DRIFTED = tuple(msgspec.convert(DETAILS | {"name": name}, DriftedPlacement) for name in ("a", "b"))
DIFFED = tuple(msgspec.convert(DETAILS | {"name": name}, DiffedPlacement) for name in ("a", "b"))
CLUSTER = ClusterPlacementStatus(
    cluster_name="a",
    conditions=(said(SCHEDULED, TRUE, message="g" * 300), said(APPLIED, FALSE, message="b" * 300)),
    failed_placements=FAILED,
    drifted_placements=DRIFTED,
    diffed_placements=DIFFED,
)
WHOLE = PlacementStatus(placement_statuses=(CLUSTER,))


def size(status: PlacementStatus) -> int:
    return len(msgspec.json.encode(status))


def kept(largest: int) -> tuple[int, int, int]:
    """How many characters are left of good words and of bad ones, and how many failures."""
    [found] = shortened_to_fit(WHOLE, largest).placement_statuses
    good, bad = (len(one.message) for one in found.conditions)
    assert len(found.failed_placements) == len(found.drifted_placements) == len(found.diffed_placements)
    return good, bad, len(found.failed_placements)


def test_what_matters_least_is_left_out_first() -> None:
    room = size(WHOLE)
    assert kept(room) == (300, 300, 2)
    assert kept(room - 1) == (0, 300, 2)
    assert kept(room - 300) == (0, 300, 2)
    assert kept(room - 301) == (0, 300, 1)
    assert kept(100) == (0, 100, 0)
    assert MAX_STATUS_BYTES == 1_200_000


def test_drifts_and_differences_are_left_out_with_the_failures() -> None:
    [few] = shortened_to_fit(PlacementStatus(placement_statuses=(CLUSTER,)), 1).placement_statuses
    assert (few.failed_placements, few.drifted_placements, few.diffed_placements) == ((), (), ())
    assert few.conditions[1].message == "b" * 100


@pytest.mark.parametrize(("taken", "shown"), [(0, ()), (1, ("o",)), (2, ("o",))])
def test_overrides_are_shown_once_they_may_be_in_use(taken: int, shown: tuple[str, ...]) -> None:
    found = binding(*WELL[:taken], cluster_resource_override_snapshots=("o",))
    [status] = placement_status(seen(found), NOON).placement_statuses
    assert status.applicable_cluster_resource_overrides == shown


# What a cluster says before it has reported


@pytest.mark.parametrize(
    ("taken", "words"),
    [
        (0, "This cluster may have to wait for others: the rollout has not looked at it yet"),
        (1, "This cluster may get its objects any moment"),
        (2, "This cluster may get its Works any moment"),
        (3, "This cluster may be applying its objects: it has not reported yet"),
        (4, "This cluster may be starting its objects: it has not reported yet"),
    ],
)
def test_a_cluster_that_has_not_reported_yet_has_a_message(taken: int, words: str) -> None:
    status = placement_status(seen(binding(*WELL[:taken])), NOON)
    condition = status.placement_statuses[0].conditions[-1]
    assert (condition.type, condition.status, condition.message) == (CONDITION_STEPS[taken].type, UNKNOWN, words)


def test_a_picked_cluster_without_a_binding_has_not_started() -> None:
    status = placement_status(seen(policies=[policy("a")]), NOON)
    condition = status.placement_statuses[0].conditions[-1]
    assert (condition.type, condition.status) == (CONDITION_STEPS[0].type, UNKNOWN)
    assert status.placement_statuses[0].observed_resource_index is None


def failing(taken: int, *conditions: Condition) -> ClusterPlacementStatus:
    """A cluster that has taken so many steps, with objects that failed."""
    found = binding(*WELL[:taken], *conditions)
    found = msgspec.structs.replace(found, status=msgspec.structs.replace(found.status, failed_placements=FAILED))
    [status] = placement_status(seen(found), NOON).placement_statuses
    return status


def test_failures_are_shown_once_the_member_reports_one() -> None:
    assert failing(3, said(APPLIED, FALSE)).failed_placements == FAILED
    assert failing(4, said(AVAILABLE, FALSE)).failed_placements == FAILED
    assert failing(5).failed_placements == ()
    assert failing(3).failed_placements == ()


# Whether clusters were picked


def test_a_policy_status_of_an_older_generation_decides_nothing() -> None:
    found = policy("a")
    assert found.status is not None

    told = found.status

    def saying(*conditions: Condition, generation: int = 1) -> ClusterSchedulingPolicySnapshot:
        status = msgspec.structs.replace(told, conditions=conditions)
        meta = msgspec.structs.replace(found.metadata, generation=generation)
        return msgspec.structs.replace(found, status=status, metadata=meta)

    yes = said(SCHEDULED, reason="SchedulingPolicyFulfilled")
    assert scheduled_finding(found, 1, "").status == TRUE
    for undecided in (saying(), saying(said(SCHEDULED, UNKNOWN)), saying(yes, generation=2)):
        assert scheduled_finding(undecided, 1, "").status == UNKNOWN
    assert scheduled_finding(found, 2, "").status == UNKNOWN
    assert (
        scheduled_finding(None, 1, "", "it waits").message
        == "Clusters are picked once it is known what to place, and it waits"
    )
    assert scheduled_finding(found, 1, "", "it waits").status == TRUE
    assert scheduled_finding(None, 1, "").message == "Clusters are being picked"

"""A placement's status, and a binding's, as KubeFleet gave them in the recorded fleets: from the same objects."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from kedge.api.binding import BindingStatus, ClusterResourceBinding
from kedge.api.condition import Condition
from kedge.api.dialect import Dialect
from kedge.api.fleet import PARENT_BINDING
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.placement_status import ClusterPlacementStatus, PlacementStatus
from kedge.api.reasons import ROLLOUT_STARTED
from kedge.api.snapshot import ClusterResourceSnapshot, ClusterSchedulingPolicySnapshot
from kedge.api.work import Work
from kedge.plan.identifiers import identifiers_of
from kedge.plan.reporting.placement_status import PlacementFacts, parts_of_revision, placement_status
from kedge.plan.working.binding_status import binding_status, report_from_works
from kedge.plan.working.work_contents import compacted
from support.recorded import recorded

NOW = datetime(2026, 8, 1, 13, tzinfo=UTC)
AT_REST = ["02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "13", "14", "15", "16", "17", "18"]


def words(conditions: Iterable[Condition]) -> list[tuple[str, str, str, int | None]]:
    return [(one.type, one.status, one.reason, one.observed_generation) for one in conditions]


def cluster(status: ClusterPlacementStatus) -> object:
    failed = [(one.kind, one.name, one.namespace, one.condition.reason) for one in status.failed_placements]
    return status.cluster_name, status.observed_resource_index, words(status.conditions), failed


@pytest.mark.parametrize("trace", AT_REST)
def test_a_placement_says_what_it_said_in_the_recorded_fleet(trace: str) -> None:
    (placement,) = recorded(trace, ClusterResourcePlacement)
    snapshots = recorded(trace, ClusterResourceSnapshot)
    seen = PlacementFacts(
        placement=replace(placement, status=PlacementStatus()),
        prefix="ClusterResourcePlacement",
        policies=recorded(trace, ClusterSchedulingPolicySnapshot),
        snapshots=[one.metadata for one in snapshots],
        bindings=recorded(trace, ClusterResourceBinding),
        dialect=Dialect.kubefleet,
    )
    status = placement_status(seen, NOW)
    assert words(status.conditions) == words(placement.status.conditions)
    assert status.observed_resource_index == placement.status.observed_resource_index
    assert [cluster(one) for one in status.placement_statuses] == [
        cluster(one) for one in placement.status.placement_statuses
    ]
    by_name = {one.metadata.name: one for one in snapshots}
    parts = [by_name[one.name] for one in parts_of_revision(seen.snapshots, status.observed_resource_index)]
    objects = [found for part in parts for found in part.spec.selected_resources]
    assert identifiers_of(objects) == placement.status.selected_resources


@pytest.mark.parametrize("trace", AT_REST[:-1])  # in the last one, a binding has just moved
def test_a_binding_says_what_it_said_in_the_recorded_fleet(trace: str) -> None:
    works = recorded(trace, Work)
    for binding in recorded(trace, ClusterResourceBinding):
        own = [compacted(one) for one in works if one.metadata.labels.get(PARENT_BINDING) == binding.metadata.name]
        if not own or binding.metadata.deletion_timestamp is not None:
            continue
        others = tuple(one for one in binding.status.conditions if one.type == ROLLOUT_STARTED)
        bare = replace(binding, status=BindingStatus(conditions=others))
        status = binding_status(bare, report_from_works(own, ""), NOW)
        assert words(status.conditions) == words(binding.status.conditions)
        assert status.failed_placements == binding.status.failed_placements

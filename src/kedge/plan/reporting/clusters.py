"""Clusters: what a placement's status says of one cluster.

It says what the cluster's binding says of itself as it is now, step by step, up to the first that is not taken. A
binding that is not yet at the resources the status speaks of has not started with them, whatever it had before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, UNKNOWN, Condition
from kedge.api.dialect import Dialect
from kedge.api.placement_status import ClusterPlacementStatus
from kedge.api.reasons import (
    APPLIED,
    AVAILABLE,
    AVAILABLE_UNKNOWN,
    ROLLOUT_STARTED,
    SCHEDULE_FAILED,
    SCHEDULE_SUCCEEDED,
    SCHEDULED,
)
from kedge.api.snapshot import ClusterDecision
from kedge.api.twins import Binding
from kedge.plan.reporting.steps import STEPS, Said, Step

_REPORTED: Final = (APPLIED, AVAILABLE)  # what the member itself has told


class Around(Struct, frozen=True):
    """What the status of a cluster depends on beside its binding."""

    generation: int
    """Of the placement."""
    now: datetime
    dialect: Dialect
    snapshot: str | None
    """The resources the status speaks of; None if every cluster has its own, moved from outside."""
    indexes: Mapping[str, str]
    """Of snapshots, by name."""
    unreachable: Mapping[str, str]
    """What is said of the members that cannot be reached."""
    unwell: Mapping[str, str]
    """What the agents of members say is wrong with their clusters."""
    before: Mapping[str, ClusterPlacementStatus]
    """What was said of each cluster last."""
    turns: Mapping[str, str] = {}
    """When a staged update run will get to a cluster."""


def picked(decision: ClusterDecision, binding: Binding | None, around: Around) -> ClusterPlacementStatus:
    """What is said of a cluster that was picked."""
    name = decision.cluster_name
    scheduled = Said(SCHEDULED, TRUE, SCHEDULE_SUCCEEDED, decision.reason)
    steps = _unsure(_steps(binding, around), name, around)
    before = around.before.get(name, ClusterPlacementStatus()).conditions
    status = ClusterPlacementStatus(cluster_name=name, conditions=_conditions((scheduled, *steps), before, around))
    return status if binding is None else _with_details(status, binding, around)


def not_picked(decision: ClusterDecision, around: Around, before: ClusterPlacementStatus) -> ClusterPlacementStatus:
    """Why there is no further cluster; the cluster that could have been is not named (kubefleet.md §4.3)."""
    said = Said(SCHEDULED, FALSE, SCHEDULE_FAILED, why_not_picked(decision))
    return ClusterPlacementStatus(conditions=_conditions((said,), before.conditions, around))


def why_not_picked(decision: ClusterDecision) -> str:
    """Which cluster was not picked, and why."""
    return f"{decision.cluster_name} was not picked: {decision.reason}"


def _steps(binding: Binding | None, around: Around) -> list[Said]:
    if binding is None:
        return [_unknown(STEPS[0])]
    current = _current(binding)
    if around.snapshot is None and ROLLOUT_STARTED not in current:
        return [replace(_unknown(STEPS[0]), message=around.turns.get(binding.spec.target_cluster, _OUTSIDE))]
    if around.snapshot is None or binding.spec.resource_snapshot_name == around.snapshot:
        return _taken(current)
    waits = current.get(ROLLOUT_STARTED)
    return [_as_said(waits)] if waits is not None and waits.status == FALSE else [_unknown(STEPS[0])]


def _taken(current: Mapping[str, Condition]) -> list[Said]:
    """The steps it has taken, and the first it has not."""
    said: list[Said] = []
    for step in STEPS:
        found = current.get(step.type)
        said.append(_as_said(found) if found is not None else _unknown(step))
        if said[-1].status != TRUE:
            break
    return said


def _current(binding: Binding) -> dict[str, Condition]:
    """What a binding says of itself as it is now, and knows; by type, since there may be thousands to look at."""
    at = binding.metadata.generation
    return {
        one.type: one for one in binding.status.conditions if one.observed_generation == at and one.status != UNKNOWN
    }


def _as_said(found: Condition) -> Said:
    return Said(found.type, found.status, found.reason, found.message, found.last_transition_time)


def _unknown(step: Step) -> Said:
    return Said(step.type, UNKNOWN, step.reasons[UNKNOWN], f"This cluster may {_MAY[step.type]}")


_OUTSIDE: Final = "A staged update run has to bring this cluster its resources, and none has yet"
_MAY: Final = {
    STEPS[0].type: "have to wait for others: the rollout has not looked at it yet",
    STEPS[1].type: "get its objects any moment",
    STEPS[2].type: "get its Works any moment",
    STEPS[3].type: "be applying its objects: it has not reported yet",
    STEPS[4].type: "be starting its objects: it has not reported yet",
}


def _unsure(said: Sequence[Said], cluster: str, around: Around) -> list[Said]:
    """The same of a member that cannot be reached, or is not well: what it said last may no longer be so."""
    trouble = around.unreachable.get(cluster) or around.unwell.get(cluster)
    if not trouble:
        return list(said)
    shown = [
        replace(one, message=f"{trouble}. Last known: {one.message}")
        if one.type in _REPORTED or one is said[-1]
        else one
        for one in said
    ]
    if cluster in around.unreachable and around.dialect is Dialect.seed and shown[-1].type == AVAILABLE:
        shown[-1] = replace(shown[-1], status=UNKNOWN, reason=AVAILABLE_UNKNOWN, since=None)
    return shown


def _conditions(said: Sequence[Said], before: Sequence[Condition], around: Around) -> tuple[Condition, ...]:
    old = {one.type: one for one in before}
    return tuple(one.condition(old.get(one.type), around.generation, around.now) for one in said)


def _with_details(status: ClusterPlacementStatus, binding: Binding, around: Around) -> ClusterPlacementStatus:
    """With the index, the overrides and the objects that are the cause, as far as they are of these resources."""
    at = around.snapshot if around.snapshot is not None else binding.spec.resource_snapshot_name
    status = replace(status, observed_resource_index=around.indexes.get(at))
    if len(status.conditions) < 3:
        return status
    status = replace(
        status,
        applicable_resource_overrides=binding.spec.resource_override_snapshots,
        applicable_cluster_resource_overrides=binding.spec.cluster_resource_override_snapshots,
        drifted_placements=binding.status.drifted_placements,
    )
    current = _current(binding)
    if any(kind in current and current[kind].status == FALSE for kind in _REPORTED):
        return replace(
            status,
            failed_placements=binding.status.failed_placements,
            diffed_placements=binding.status.diffed_placements,
        )
    return status

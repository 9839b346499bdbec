"""Cluster status: what the status of a placement reports of one cluster.

It reports the conditions of the cluster's binding at its current generation, up to the first that is not True. A
binding that does not have the reported revision yet has not started with it, whatever it had before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, UNKNOWN, Condition
from kedge.api.dialect import Dialect
from kedge.api.placement_kinds import Binding
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
from kedge.plan.findings import Finding
from kedge.plan.reporting.condition_order import CONDITION_STEPS, ConditionStep

_REPORTED_BY_MEMBER: Final = (APPLIED, AVAILABLE)  # what the member itself reports


class StatusFacts(Struct, frozen=True):
    """What the status of a cluster depends on beside its binding."""

    generation: int
    """Of the placement."""
    now: datetime
    dialect: Dialect
    snapshot: str | None
    """The snapshot that the status is about; None if every cluster has its own, moved by staged runs."""
    indexes: Mapping[str, str]
    """The indexes of snapshots, by name."""
    unreachable: Mapping[str, str]
    """Why members cannot be reached, by name."""
    unhealthy: Mapping[str, str]
    """What agents report is wrong with their clusters, by name."""
    before: Mapping[str, ClusterPlacementStatus]
    """The status of each cluster before, by name."""
    run_turns: Mapping[str, str] = {}
    """In which stage a staged update run updates a cluster, by name."""


def picked_cluster_status(
    decision: ClusterDecision, binding: Binding | None, facts: StatusFacts
) -> ClusterPlacementStatus:
    """The status of a picked cluster."""
    name = decision.cluster_name
    scheduled = Finding(SCHEDULED, TRUE, SCHEDULE_SUCCEEDED, decision.reason)
    findings = _with_doubt(_findings(binding, facts), name, facts)
    before = facts.before.get(name, ClusterPlacementStatus()).conditions
    status = ClusterPlacementStatus(cluster_name=name, conditions=_conditions((scheduled, *findings), before, facts))
    return status if binding is None else _with_details(status, binding, facts)


def unpicked_cluster_status(
    decision: ClusterDecision, facts: StatusFacts, before: ClusterPlacementStatus
) -> ClusterPlacementStatus:
    """Why a wanted cluster is missing. The cluster that was not picked is not named (kubefleet.md §4.3)."""
    finding = Finding(SCHEDULED, FALSE, SCHEDULE_FAILED, why_not_picked(decision))
    return ClusterPlacementStatus(conditions=_conditions((finding,), before.conditions, facts))


def why_not_picked(decision: ClusterDecision) -> str:
    """Which cluster was not picked, and why."""
    return f"{decision.cluster_name} was not picked: {decision.reason}"


def _findings(binding: Binding | None, facts: StatusFacts) -> list[Finding]:
    if binding is None:
        return [_unknown(CONDITION_STEPS[0])]
    current = _current_conditions(binding)
    if facts.snapshot is None and ROLLOUT_STARTED not in current:
        message = facts.run_turns.get(binding.spec.target_cluster, _WAITS_FOR_RUN)
        return [replace(_unknown(CONDITION_STEPS[0]), message=message)]
    if facts.snapshot is None and current[ROLLOUT_STARTED].status == FALSE:
        # It waited in a rolling update, until staged runs were to move the placement.
        message = facts.run_turns.get(binding.spec.target_cluster, _KEEPS_RESOURCES)
        return [replace(_as_finding(current[ROLLOUT_STARTED]), message=message)]
    if facts.snapshot is None or binding.spec.resource_snapshot_name == facts.snapshot:
        return _up_to_first_not_true(current)
    waits = current.get(ROLLOUT_STARTED)
    return [_as_finding(waits)] if waits is not None and waits.status == FALSE else [_unknown(CONDITION_STEPS[0])]


def _up_to_first_not_true(current: Mapping[str, Condition]) -> list[Finding]:
    """The conditions in order, up to the first that is not True."""
    findings: list[Finding] = []
    for step in CONDITION_STEPS:
        found = current.get(step.type)
        findings.append(_as_finding(found) if found is not None else _unknown(step))
        if findings[-1].status != TRUE:
            break
    return findings


def _current_conditions(binding: Binding) -> dict[str, Condition]:
    """The known conditions of a binding at its current generation; by type, since many bindings are read."""
    at = binding.metadata.generation
    return {
        one.type: one for one in binding.status.conditions if one.observed_generation == at and one.status != UNKNOWN
    }


def _as_finding(found: Condition) -> Finding:
    return Finding(found.type, found.status, found.reason, found.message, found.last_transition_time)


def _unknown(step: ConditionStep) -> Finding:
    return Finding(step.type, UNKNOWN, step.reasons[UNKNOWN], f"This cluster may {_UNKNOWN_MESSAGES[step.type]}")


_WAITS_FOR_RUN: Final = "A staged update run has to bring this cluster its resources, and none has yet"
_KEEPS_RESOURCES: Final = "This cluster keeps its resources until a staged update run brings it others"
_UNKNOWN_MESSAGES: Final = {
    CONDITION_STEPS[0].type: "have to wait for others: the rollout has not looked at it yet",
    CONDITION_STEPS[1].type: "get its objects any moment",
    CONDITION_STEPS[2].type: "get its Works any moment",
    CONDITION_STEPS[3].type: "be applying its objects: it has not reported yet",
    CONDITION_STEPS[4].type: "be starting its objects: it has not reported yet",
}


def _with_doubt(findings: Sequence[Finding], cluster: str, facts: StatusFacts) -> list[Finding]:
    """With the trouble of a member that cannot be reached or is unhealthy: its last report may be out of date."""
    trouble = facts.unreachable.get(cluster) or facts.unhealthy.get(cluster)
    if not trouble:
        return list(findings)
    shown = [
        replace(one, message=f"{trouble}. Last known: {one.message}")
        if one.type in _REPORTED_BY_MEMBER or one is findings[-1]
        else one
        for one in findings
    ]
    if cluster in facts.unreachable and facts.dialect is Dialect.seed and shown[-1].type == AVAILABLE:
        shown[-1] = replace(shown[-1], status=UNKNOWN, reason=AVAILABLE_UNKNOWN, since=None)
    return shown


def _conditions(findings: Sequence[Finding], before: Sequence[Condition], facts: StatusFacts) -> tuple[Condition, ...]:
    old = {one.type: one for one in before}
    return tuple(one.condition(old.get(one.type), facts.generation, facts.now) for one in findings)


def _with_details(status: ClusterPlacementStatus, binding: Binding, facts: StatusFacts) -> ClusterPlacementStatus:
    """With the index, the overrides and the failed objects, as far as they are of this snapshot."""
    at = facts.snapshot if facts.snapshot is not None else binding.spec.resource_snapshot_name
    status = replace(status, observed_resource_index=facts.indexes.get(at))
    if len(status.conditions) < 3:
        return status
    status = replace(
        status,
        applicable_resource_overrides=binding.spec.resource_override_snapshots,
        applicable_cluster_resource_overrides=binding.spec.cluster_resource_override_snapshots,
        drifted_placements=binding.status.drifted_placements,
    )
    current = _current_conditions(binding)
    if any(kind in current and current[kind].status == FALSE for kind in _REPORTED_BY_MEMBER):
        return replace(
            status,
            failed_placements=binding.status.failed_placements,
            diffed_placements=binding.status.diffed_placements,
        )
    return status

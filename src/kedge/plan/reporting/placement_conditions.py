"""Placement conditions: the conditions of a placement as a whole, from those of each cluster.

A condition is True if it is True on every cluster. The message names the clusters on which it is not, and why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, UNKNOWN, Condition, find_condition
from kedge.api.placement_kinds import PolicySnapshot
from kedge.api.placement_status import ClusterPlacementStatus
from kedge.api.reasons import (
    CONTROLLED_OUTSIDE,
    INVALID_SELECTORS,
    OVERRIDDEN,
    OVERRIDDEN_SUCCEEDED,
    ROLLOUT_STARTED,
    SCHEDULE_PENDING,
    SCHEDULED,
)
from kedge.plan.findings import Finding
from kedge.plan.placing.policies import names_no_cluster
from kedge.plan.reporting.condition_order import CONDITION_STEPS, ConditionStep
from kedge.plan.text import first_few, listed

ClusterCondition: TypeAlias = tuple[ClusterPlacementStatus, Condition]
"""A cluster with one of its conditions."""
_MAX_NAMED: Final = 3
_SINGULAR: Final = {"have": "has", "need": "needs", "wait": "waits", "do": "does"}


def scheduled_finding(policy: PolicySnapshot | None, generation: int, problem: str, pending: str = "") -> Finding:
    """Whether clusters were picked for the current generation. `pending`: what of the selection is not known yet."""
    if problem:
        return Finding(SCHEDULED, FALSE, INVALID_SELECTORS, problem)
    if policy is None and pending:
        message = f"Clusters are picked once it is known what to place, and {pending}"
        return Finding(SCHEDULED, UNKNOWN, SCHEDULE_PENDING, message)
    found = _scheduler_condition(policy, generation)
    if found is None and policy is not None and names_no_cluster(policy.spec.policy):
        message = "spec.policy.clusterNames is empty: name the clusters that PickFixed is to take"
        return Finding(SCHEDULED, UNKNOWN, SCHEDULE_PENDING, message)
    if found is None:
        return Finding(SCHEDULED, UNKNOWN, SCHEDULE_PENDING, "Clusters are being picked")
    return Finding(SCHEDULED, found.status, found.reason, found.message)


def _scheduler_condition(policy: PolicySnapshot | None, generation: int) -> Condition | None:
    if policy is None or policy.status is None or policy.status.observed_crp_generation < generation:
        return None
    found = find_condition(policy.status.conditions, SCHEDULED)
    if found is None or found.status == UNKNOWN or (found.observed_generation or 0) < policy.metadata.generation:
        return None
    return found


def rollout_findings(clusters: Sequence[ClusterPlacementStatus], leaving: Iterable[str] = ()) -> list[Finding]:
    """The conditions in order, up to the first that is not True. `leaving`: texts about clusters to be removed.

    The conditions of a cluster begin with Scheduled and go on in this order. If one is True on every cluster, every
    cluster has the next.
    """
    findings: list[Finding] = []
    for number, step in enumerate(CONDITION_STEPS, start=1):
        findings.append(_step_finding(step, [(one, one.conditions[number]) for one in clusters]))
        if findings[-1].status != TRUE:
            break
    return [_with_removals(findings[0], leaving), *findings[1:]]


def external_finding(clusters: Sequence[ClusterPlacementStatus], run: str = "") -> Finding:
    """The finding while staged runs decide which revision a cluster has. `run`: the progress of one."""
    at = sorted({one.observed_resource_index for one in clusters if one.observed_resource_index})
    have = f"clusters have resources {', '.join(at)}" if at else "no cluster has resources yet"
    message = f"Staged update runs move this placement from cluster to cluster, and {have}"
    message += f": {run}" if run else ""
    return Finding(ROLLOUT_STARTED, UNKNOWN, CONTROLLED_OUTSIDE, message)


def _step_finding(step: ConditionStep, clusters: Sequence[ClusterCondition]) -> Finding:
    """One condition. Unknown comes before False: as long as a cluster has not reported, more may be wrong."""
    for status in (UNKNOWN, FALSE):
        if found := [one for one in clusters if one[1].status == status]:
            text = step.unknown if status == UNKNOWN else step.failed
            message = f"{_counted(len(found), len(clusters), text)}: {_grouped_reasons(found)}"
            return Finding(step.type, status, step.reasons[status], message)
    reason = step.reasons[TRUE]
    if step.type == OVERRIDDEN and any(_is_overridden(cluster) for cluster, _ in clusters):
        reason = OVERRIDDEN_SUCCEEDED
    return Finding(step.type, TRUE, reason, _counted(len(clusters), len(clusters), step.done))


def _counted(number: int, whole: int, text: str) -> str:
    """`2 of 3 clusters wait`, `1 of 3 clusters waits`, `1 of 1 cluster has its Works`."""
    verb, _, rest = text.partition(" ")
    if number == 1:
        text = " ".join(
            (_SINGULAR.get(verb, verb), *([rest.replace("they", "it").replace("their", "its")] if rest else ()))
        )
    return f"{number} of {whole} {'cluster' if whole == 1 else 'clusters'} {text}"


def _is_overridden(cluster: ClusterPlacementStatus) -> bool:
    return bool(cluster.applicable_resource_overrides or cluster.applicable_cluster_resource_overrides)


def _grouped_reasons(clusters: Sequence[ClusterCondition]) -> str:
    """The first few reasons, each with its clusters: those that wait often wait for the same."""
    by_reason: dict[str, list[str]] = {}
    for cluster, found in sorted(clusters, key=lambda one: one[0].cluster_name):
        by_reason.setdefault(_reason(cluster.cluster_name, found.message), []).append(cluster.cluster_name)
    reasons = list(by_reason.items())
    rest = sum(len(names) for _, names in reasons[_MAX_NAMED:])
    named = "; ".join(_why(names, reason) for reason, names in reasons[:_MAX_NAMED])
    return f"{named}; and {rest} more" if rest else named


def _reason(cluster: str, message: str) -> str:
    """The message of a cluster, without its name."""
    who, _, what = message.partition(" ")
    return what.removeprefix("waits").removeprefix(": ") if who == cluster else message


def _why(names: Sequence[str], reason: str) -> str:
    named = listed(names, most=_MAX_NAMED)
    return f"{named}: {reason}" if reason else named


def _with_removals(finding: Finding, leaving: Iterable[str]) -> Finding:
    removals = first_few(leaving, most=_MAX_NAMED)
    return replace(finding, message=f"{finding.message}. Still to be removed: {removals}") if removals else finding

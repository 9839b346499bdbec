"""Policy status: the status of a policy snapshot, which holds the decisions for the placement's clusters.

If the scheduler did not look for clusters, it knows nothing new about those that are not picked, and keeps what was
said of them. The exception is a cluster that was given up and is being cleared: then only picked clusters are listed,
as KubeFleet does (traces 06, 07). The same decisions in another order are no change.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from kedge.api.binding import BindingState
from kedge.api.condition import FALSE, TRUE, Condition, new_condition, set_condition
from kedge.api.fleet import PLACEMENT_GENERATION
from kedge.api.meta import ObjectMeta
from kedge.api.reasons import POLICY_FULFILLED, POLICY_UNFULFILLED, SCHEDULED
from kedge.api.snapshot import ClusterDecision, PolicySnapshotStatus
from kedge.plan.placing.schedule import Schedule


def observes_current_generation(meta: ObjectMeta, before: PolicySnapshotStatus | None) -> bool:
    """Whether the status is about the current generation of the placement."""
    return before is not None and before.observed_crp_generation == _number(meta.annotations.get(PLACEMENT_GENERATION))


def policy_snapshot_status(
    meta: ObjectMeta, before: PolicySnapshotStatus | None, schedule: Schedule, now: datetime
) -> PolicySnapshotStatus:
    """The status for this schedule; equal to the one before if nothing has changed."""
    generation = _number(meta.annotations.get(PLACEMENT_GENERATION))
    clusters = schedule.decisions
    if before is not None and _is_unchanged(before, schedule):
        clusters = before.target_clusters
    return PolicySnapshotStatus(
        observed_crp_generation=generation,
        conditions=set_condition(before.conditions if before else (), _scheduled_condition(meta, schedule, now)),
        target_clusters=clusters,
    )


def _is_unchanged(before: PolicySnapshotStatus, schedule: Schedule) -> bool:
    listed = _by_cluster(before.target_clusters)
    if listed == _by_cluster(schedule.decisions):
        return True
    if schedule.unselected is not None or any(each.spec.state == BindingState.unscheduled for each in schedule.release):
        return False
    picked = (decision for decision in before.target_clusters if decision.selected)
    return _by_cluster(picked) == _by_cluster(schedule.selected)


def _scheduled_condition(meta: ObjectMeta, schedule: Schedule, now: datetime) -> Condition:
    found = len(schedule.selected)
    if schedule.fulfilled:
        message = f"found all cluster needed as specified by the scheduling policy, found {found} cluster(s)"
    else:
        message = (
            "could not find all clusters needed as specified by the scheduling policy, "
            f"found {found} cluster(s) instead"
        )
    return new_condition(
        SCHEDULED,
        TRUE if schedule.fulfilled else FALSE,
        POLICY_FULFILLED if schedule.fulfilled else POLICY_UNFULFILLED,
        f"{message}: {schedule.problem}" if schedule.problem else message,
        now=now,
        generation=meta.generation,
    )


def _by_cluster(decisions: Iterable[ClusterDecision]) -> Mapping[str, ClusterDecision]:
    return {decision.cluster_name: decision for decision in decisions}


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdecimal() else 0

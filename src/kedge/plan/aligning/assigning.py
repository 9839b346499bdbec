"""Assigning: the clusters of one binding, by its placement, and what the binding says about that.

What runs stays where it is, unless the placement itself changed, its cluster is gone, or no longer meant. A cluster
that is not ready, or tainted, gets nothing new, and keeps what it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from kedge.api.condition import FALSE, TRUE, Condition, is_true, new_condition
from kedge.api.karmada.bindings import TargetCluster
from kedge.api.karmada.clusters import Cluster, Taint, TaintEffect
from kedge.api.karmada.keys import APPLIED_PLACEMENT, DEFAULT_SCHEDULER
from kedge.api.karmada.policies import Placement, Toleration
from kedge.plan.aligning.observed import AnyBinding, BadPlacement, read_placement
from kedge.plan.aligning.scheduling import CandidateCluster, NotScheduled, missing_clusters, schedule

SCHEDULED = "Scheduled"


class ScheduledReason(StrEnum):
    """Why a binding is scheduled or not, by Karmada's names."""

    success = "Success"
    error = "SchedulerError"
    no_cluster_fits = "NoClusterFit"
    suspended = "Suspended"


class Assignment(Struct, frozen=True):
    """What the scheduler decided."""

    reason: ScheduledReason
    message: str
    clusters: tuple[TargetCluster, ...] | None = None
    """Where it runs; None: where it runs already."""
    placement: str = ""
    """The placement that this is by, as it is remembered."""
    is_triggered: bool = False
    """Whether somebody asked to have it divided anew since it was scheduled last."""

    def condition(self, generation: int | None, now: datetime) -> Condition:
        is_scheduled = self.reason is ScheduledReason.success
        return new_condition(
            SCHEDULED,
            status=TRUE if is_scheduled else FALSE,
            reason=self.reason,
            message=self.message,
            generation=generation,
            now=now,
        )


def is_scheduled_here(binding: AnyBinding) -> bool:
    """Whether it is scheduled at all, and by us: one that was written by hand names its clusters itself."""
    spec = binding.spec
    return bool(spec.placement) and spec.scheduler_name in ("", DEFAULT_SCHEDULER)


def assigned(binding: AnyBinding, clusters: Iterable[Cluster]) -> Assignment:
    """The clusters of a binding. Pure: same binding and clusters, same assignment."""
    spec, clusters = binding.spec, tuple(clusters)
    if spec.suspension is not None and spec.suspension.scheduling:
        return Assignment(ScheduledReason.suspended, "Scheduling is suspended: it runs where it runs")
    try:
        placement = read_placement(spec)
    except BadPlacement as error:
        return Assignment(ScheduledReason.error, str(error))
    text = placement_text(spec.placement)
    now = {one.name: one.replicas for one in spec.clusters}
    candidates = _candidates(placement, clusters, now)
    is_triggered = _is_triggered(binding)
    is_kept = binding.metadata.annotations.get(APPLIED_PLACEMENT) == text and not is_triggered
    try:
        found = schedule(placement, spec.replicas, candidates, now if is_kept else None, uid=spec.resource.uid)
    except NotScheduled as error:
        return Assignment(ScheduledReason.error, str(error))
    missing = missing_clusters(placement, (one.metadata.name for one in clusters))
    if not found:
        problem = "No cluster is meant by the placement, ready and untainted"
        return Assignment(ScheduledReason.no_cluster_fits, f"{problem}. {missing}" if missing else problem)
    return Assignment(
        ScheduledReason.success,
        f"Binding has been scheduled successfully. {missing}".rstrip(),
        _without_empty(found),
        text,
        is_triggered=is_triggered,
    )


def _is_triggered(binding: AnyBinding) -> bool:
    asked, last = binding.spec.reschedule_triggered_at, binding.status.last_scheduled_time
    return asked is not None and (last is None or asked > last)


def placement_text(placement: Mapping[str, Any]) -> str:
    """A placement as a binding remembers it."""
    return msgspec.json.encode(placement, order="sorted").decode()


def _without_empty(found: tuple[TargetCluster, ...]) -> tuple[TargetCluster, ...]:
    """Of divided replicas, clusters that get none are left out, unless there are none at all."""
    return tuple(one for one in found if one.replicas) or found


def _candidates(placement: Placement, clusters: Iterable[Cluster], now: Mapping[str, int]) -> list[CandidateCluster]:
    return [
        CandidateCluster(one.metadata.name, one.metadata.labels)
        for one in clusters
        if one.metadata.deletion_timestamp is None
        and (one.metadata.name in now or _takes_more(one, placement.cluster_tolerations))
    ]


def _takes_more(cluster: Cluster, tolerations: Iterable[Toleration]) -> bool:
    """Whether something new may be scheduled to a cluster."""
    given = tuple(tolerations)
    away = [one for one in cluster.spec.taints if one.effect is not TaintEffect.prefer_no_schedule]
    is_ready = is_true(cluster.status.conditions, "Ready")
    return is_ready and all(any(tolerates(each, one) for each in given) for one in away)


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether a toleration tolerates a taint, as Kubernetes takes both. One without a key is for taints of any key."""
    if toleration.effect not in (None, taint.effect) or toleration.key not in ("", taint.key):
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value

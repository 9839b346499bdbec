"""Aggregating: what all clusters report of a resource, on its binding and on the resource itself.

Counts are added up. The resource's `observedGeneration` is its own generation only once every cluster has observed it,
so that who waits for a rollout waits for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kedge.api.condition import find_condition, is_true
from kedge.api.karmada.bindings import AggregatedStatusItem
from kedge.api.karmada.works import Work
from kedge.plan.aligning.interpreter import NotAligned, get_rolling_strategy, interpret_rolling_status, sequence_of
from kedge.plan.fields import Object, at, count, generation, whole

APPLIED: Final = "Applied"
_ADDED: Final = (
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "updatedReadyReplicas",
    "updatedAvailableReplicas",
)


def aggregated_items(works: Mapping[str, Work]) -> tuple[AggregatedStatusItem, ...]:
    """What each cluster reports, by name."""
    return tuple(_item(name, work) for name, work in sorted(works.items()))


def _item(name: str, work: Work) -> AggregatedStatusItem:
    statuses, applied = work.status.manifest_statuses, find_condition(work.status.conditions, APPLIED)
    is_applied = is_true(work.status.conditions, APPLIED)
    return AggregatedStatusItem(
        cluster_name=name,
        status=statuses[0].status if statuses else None,
        applied=is_applied,
        applied_message=applied.message if applied is not None and not is_applied else "",
        health=_health(work),
    )


def _health(work: Work) -> str:
    """Healthy if the status is of what was asked for last, and all pods it asks for are of it and available.

    A partition is respected: pods that are to stay old are no fault.
    """
    manifests, statuses = work.spec.workload.manifests, work.status.manifest_statuses
    if not manifests or not statuses or statuses[0].status is None:
        return "Unknown"
    status, desired = statuses[0].status, whole(manifests[0], "spec", "replicas")
    if desired is None:
        return "Healthy"
    found = interpret_rolling_status(status)
    is_current = found.generation == found.observed_generation and (found.alignment_seq or 0) >= sequence_of(
        manifests[0]
    )
    to_update = desired - _partition(manifests[0])
    is_done = (found.updated_replicas or 0) >= to_update and (found.available_replicas or 0) >= desired
    return "Healthy" if is_current and is_done else "Unhealthy"


def _partition(manifest: Object) -> int:
    """How many pods are to stay old."""
    try:
        return get_rolling_strategy(manifest).partition or 0
    except NotAligned:
        return 0


def template_status(template: Object, works: Mapping[str, Work], clusters: int) -> Mapping[str, Any] | None:
    """The status of a workload in all its clusters together; None if it has no pods to count."""
    if whole(template, "spec", "replicas") is None:
        return None
    reported = [status for work in works.values() if (status := _reported(work)) is not None]
    summed = {
        name: sum(count(one, name) for one in reported) for name in _ADDED if any(name in one for one in reported)
    }
    own = generation(template)
    observed = [_observed(one) for one in reported]
    if own is not None and len(reported) == clusters and all(one == own for one in observed):
        summed["observedGeneration"] = own
    else:
        before = at(template, "status", "observedGeneration")
        if isinstance(before, int):
            summed["observedGeneration"] = before
    return summed


def _reported(work: Work) -> Mapping[str, Any] | None:
    statuses = work.status.manifest_statuses
    return statuses[0].status if statuses else None


def _observed(status: Object) -> int | None:
    """The generation of the resource that a cluster's own controller has seen; None if it has not seen its last yet."""
    found = interpret_rolling_status(status)
    return found.resource_template_generation if found.generation == found.observed_generation else None

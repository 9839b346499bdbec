"""Aggregating: what each cluster reports of a resource, on its binding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kedge.api.condition import find_condition, is_true
from kedge.api.karmada.bindings import AggregatedStatusItem
from kedge.api.karmada.works import Work
from kedge.plan.aligning.interpreter import NotAligned, get_rolling_strategy, interpret_rolling_status, sequence_of
from kedge.plan.fields import Object, whole

APPLIED: Final = "Applied"


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

"""Aggregating: what each cluster reports of a resource, on its binding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kedge.api.condition import find_condition, is_true
from kedge.api.karmada.bindings import AggregatedStatusItem
from kedge.api.karmada.works import Work
from kedge.plan.aligning.health import health

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
        health=health(work),
    )

"""Evicting: clusters that are to be left when others have taken over, and until when they are kept.

What is copied to a cluster stays there as long as its task does. A workload that is aligned needs no task for that: its
pods go one by one, as others become available.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from kedge.api.karmada.bindings import BindingSpec, BindingStatus, GracefulEvictionTask

GRACE: Final = timedelta(minutes=10)
"""How long a cluster is kept for others that do not become healthy, unless its task says otherwise."""
HEALTHY: Final = "Healthy"


def remaining_tasks(spec: BindingSpec, status: BindingStatus, now: datetime) -> tuple[GracefulEvictionTask, ...]:
    """The tasks whose clusters are still kept."""
    healthy = {one.cluster_name for one in status.aggregated_status if one.applied and one.health == HEALTHY}
    is_taken_over = bool(spec.clusters) and all(one.name in healthy for one in spec.clusters)
    return tuple(
        one for one in spec.graceful_eviction_tasks if one.suppress_deletion or not (is_taken_over or _ends(one) <= now)
    )


def seconds_until_end(spec: BindingSpec, now: datetime) -> float | None:
    """When the next task ends by itself; None if none does."""
    tasks = [one for one in spec.graceful_eviction_tasks if not one.suppress_deletion and one.creation_timestamp]
    ends = [_ends(one) for one in tasks]
    return max(0.0, (min(ends) - now).total_seconds()) if ends else None


def _ends(task: GracefulEvictionTask) -> datetime:
    grace = GRACE if task.grace_period_seconds is None else timedelta(seconds=task.grace_period_seconds)
    begun = task.creation_timestamp
    return begun + grace if begun is not None else datetime.max.replace(tzinfo=UTC)

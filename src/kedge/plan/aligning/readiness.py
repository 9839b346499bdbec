"""Readiness: whether a cluster is heard from, by the Lease that its agent renews.

What counts is that the time in the Lease changes, and when the hub saw that, by its own monotonic clock: the clock of
a member may be hours off. A hub that starts cannot know when the time it finds was written: a cluster that was ready
stays so for the whole grace period, and one that was not has to be heard first.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from kedge.api.condition import TRUE, UNKNOWN, Condition, is_true, new_condition
from kedge.api.coordination import Lease
from kedge.api.karmada.clusters import Cluster
from kedge.api.times import MicroTime

READY: Final = "Ready"
HEARTBEAT: Final = 10.0
"""Seconds between two renewals of an agent."""
GRACE: Final = 40.0
"""Seconds without one after which a cluster is not ready."""
_UNHEARD: Final = "Its agent was not heard yet: is it running?"
_PUSHED: Final = (
    "spec.syncMode is Push, but nothing is pushed to clusters here: run its agent (`kedge member --api karmada`)"
)


class LastHeartbeat(Struct, frozen=True):
    """The last renewal of a Lease that the hub saw."""

    renewed: MicroTime
    seen_at: float
    """By the hub's monotonic clock."""
    is_found: bool = False
    """Whether it was there when the hub started, so that nobody knows when it came."""


def heard(
    before: LastHeartbeat | None, lease: Lease | None, monotonic: float, *, was_absent: bool = False
) -> LastHeartbeat | None:
    """The last heartbeat, given the one known before; None if there never was one.

    `was_absent`: whether this hub has looked before, and there was no Lease. One that comes then is a heartbeat.
    """
    renewed = lease.spec.renew_time if lease is not None else None
    if renewed is None or (before is not None and before.renewed == renewed):
        return before
    return LastHeartbeat(renewed, monotonic, is_found=before is None and not was_absent)


def seconds_left(last: LastHeartbeat | None, monotonic: float) -> float:
    """For how long a cluster still counts as heard."""
    return 0.0 if last is None else max(0.0, last.seen_at + GRACE - monotonic)


def ready_condition(cluster: Cluster, last: LastHeartbeat | None, monotonic: float, now: datetime) -> Condition:
    """Whether the cluster is ready."""
    was_ready = is_true(cluster.status.conditions, READY)
    is_heard = last is not None and seconds_left(last, monotonic) > 0 and (was_ready or not last.is_found)
    if is_heard:
        status, reason, message = TRUE, "ClusterReady", "cluster is healthy and ready to accept workloads"
    elif last is None:
        message = _PUSHED if cluster.spec.sync_mode == "Push" else _UNHEARD
        status, reason = UNKNOWN, "ClusterStatusUnknown"
    else:
        status, reason, message = UNKNOWN, "ClusterStatusUnknown", "Cluster stopped posting cluster status."
    generation = cluster.metadata.generation
    return new_condition(READY, status=status, reason=reason, message=message, generation=generation, now=now)

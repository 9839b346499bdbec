"""CloneSets of OpenKruise: all pods but the partition are updated; frozen by a pause, with all pods kept back.

Also how a CloneSet reads its partition: a number or a percentage of the replicas, rounded up, so that more pods stay
old rather than fewer; but a percentage below 100 always lets one of several pods go.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from kedge.api.kruise import MAX_UNAVAILABLE, RECREATE
from kedge.api.numbers import IntOrPercent
from kedge.plan.fields import Object, at, text
from kedge.plan.workloads import handler
from kedge.plan.workloads.handler import ON_DELETE, ROLLING, Limits, Patch, Replicas, Strategy

ALL: Final = "100%"


class CloneSets(Struct, frozen=True):
    """The handler of apps.kruise.io/CloneSet."""

    group: str = "apps.kruise.io"
    kind: str = "CloneSet"

    def replicas(self, obj: Object) -> Replicas:
        return handler.counted_replicas(obj)

    def template(self, obj: Object) -> Object:
        return handler.pod_template(obj)

    def strategy(self, obj: Object) -> Strategy:
        """A percentage as partition is given in pods of the present replicas."""
        given = at(obj, "spec", "updateStrategy")
        written = handler.number_or_percent(given, "partition")
        return Strategy(
            type=text(given, "type") or RECREATE,
            max_unavailable=handler.number_or_percent(given, "maxUnavailable"),
            max_surge=handler.number_or_percent(given, "maxSurge"),
            partition=None if written is None else partition_pods(written, handler.desired_replicas(obj)),
            paused=at(given, "paused") is True,
        )

    def limits(self, obj: Object) -> Limits:
        given, desired = self.strategy(obj), handler.desired_replicas(obj)
        return update_limits(given.max_unavailable, given.max_surge, desired, paused=given.paused)

    def with_strategy(self, strategy: Strategy) -> Patch:
        """A kind that only says that it rolls is one that recreates its pods."""
        given = {
            "type": RECREATE if strategy.type == ROLLING else strategy.type,
            "partition": strategy.partition,
            "maxUnavailable": strategy.max_unavailable,
            "maxSurge": strategy.max_surge,
            "paused": strategy.paused or None,
        }
        return {"spec": {"updateStrategy": given}}

    def freeze(self, obj: Object) -> Patch:
        """Paused, so that no pod is updated or rolled back; and all pods kept back.

        A pause alone is not enough: a pod that is evicted while it lasts, or added by a scale-up, would be created
        from the new template. A partition alone is not enough either: one that grows rolls updated pods back. With
        OnDelete there is nothing to do.
        """
        if self.strategy(obj).type == ON_DELETE:
            return {}
        return {"spec": {"updateStrategy": {"paused": True, "partition": ALL}}}

    def with_partition(self, partition: int) -> Patch:
        return {"spec": {"updateStrategy": {"partition": partition}}}

    def scale(self, replicas: int) -> Patch:
        return {"spec": {"replicas": replicas}}


def partition_pods(partition: IntOrPercent | None, replicas: int) -> int:
    """How many pods a partition keeps back, at most all."""
    kept = min(handler.resolved(partition, replicas, default=0, round_up=True), replicas)
    is_share = isinstance(partition, str) and partition.endswith("%")
    return replicas - 1 if is_share and partition != ALL and replicas > 1 and kept == replicas else kept


def update_limits(
    max_unavailable: IntOrPercent | None, max_surge: IntOrPercent | None, replicas: int, *, paused: bool
) -> Limits:
    """Surge is rounded up, and is none while paused; unavailability is rounded up if there is none, else down."""
    surge = 0 if paused else handler.resolved(max_surge, replicas, default=0, round_up=True)
    unavailable = handler.resolved(max_unavailable, replicas, default=MAX_UNAVAILABLE, round_up=surge == 0)
    return Limits(unavailable, surge)

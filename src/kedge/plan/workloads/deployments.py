"""Deployments: roll by surge and unavailability; frozen by a pause."""

from __future__ import annotations

from msgspec import Struct

from kedge.plan.fields import Object
from kedge.plan.workloads import handler
from kedge.plan.workloads.handler import RECREATE, Limits, Patch, Replicas, Strategy

_QUARTER = "25%"


class Deployments(Struct, frozen=True):
    """The handler of apps/Deployment."""

    group: str = "apps"
    kind: str = "Deployment"

    def replicas(self, obj: Object) -> Replicas:
        return handler.counted_replicas(obj)

    def template(self, obj: Object) -> Object:
        return handler.pod_template(obj)

    def strategy(self, obj: Object) -> Strategy:
        return handler.strategy_at(obj, "strategy")

    def limits(self, obj: Object) -> Limits:
        """Surge is rounded up, unavailability down; a Deployment that may do neither takes one pod down at a time."""
        given, desired = self.strategy(obj), handler.desired_replicas(obj)
        if given.type == RECREATE:
            return Limits(max_unavailable=desired)
        surge = handler.resolved(given.max_surge, desired, default=_QUARTER, round_up=True)
        unavailable = handler.resolved(given.max_unavailable, desired, default=_QUARTER, round_up=False)
        return Limits(min(unavailable if surge or unavailable else 1, desired), surge)

    def with_strategy(self, strategy: Strategy) -> Patch:
        rolling = handler.rolling_patch(strategy, maxUnavailable=strategy.max_unavailable, maxSurge=strategy.max_surge)
        return {"spec": {"strategy": rolling, "paused": strategy.paused or None}}

    def freeze(self, obj: Object) -> Patch:  # noqa: ARG002  # the same for all of them
        return {"spec": {"paused": True}}

    def with_partition(self, partition: int) -> None:  # noqa: ARG002  # it has none
        return None

    def scale(self, replicas: int) -> Patch:
        return {"spec": {"replicas": replicas}}

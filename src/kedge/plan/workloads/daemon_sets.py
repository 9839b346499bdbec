"""DaemonSets: one pod on every node that is to have one; frozen by OnDelete. They are not scaled."""

from __future__ import annotations

from msgspec import Struct

from kedge.plan.fields import Object, count
from kedge.plan.workloads import handler
from kedge.plan.workloads.handler import ON_DELETE, Limits, Patch, Replicas, Strategy


class DaemonSets(Struct, frozen=True):
    """The handler of apps/DaemonSet."""

    group: str = "apps"
    kind: str = "DaemonSet"

    def replicas(self, obj: Object) -> Replicas:
        """How many are desired is for the cluster to say: until it has, none are."""
        return handler.counted(
            obj,
            count(obj, "status", "desiredNumberScheduled"),
            updated=count(obj, "status", "updatedNumberScheduled"),
            ready=count(obj, "status", "numberReady"),
            available=count(obj, "status", "numberAvailable"),
        )

    def template(self, obj: Object) -> Object:
        return handler.pod_template(obj)

    def strategy(self, obj: Object) -> Strategy:
        return handler.strategy_at(obj, "updateStrategy")

    def limits(self, obj: Object) -> Limits:
        """Both are rounded up; a DaemonSet that may do neither takes one pod down at a time."""
        given, desired = self.strategy(obj), count(obj, "status", "desiredNumberScheduled")
        surge = handler.resolved(given.max_surge, desired, default=0, round_up=True)
        unavailable = handler.resolved(given.max_unavailable, desired, default=1, round_up=True)
        return Limits(unavailable if surge or unavailable else 1, surge)

    def with_strategy(self, strategy: Strategy) -> Patch:
        rolling = handler.rolling_patch(strategy, maxUnavailable=strategy.max_unavailable, maxSurge=strategy.max_surge)
        return {"spec": {"updateStrategy": rolling}}

    def freeze(self, obj: Object) -> Patch:  # noqa: ARG002  # the same for all of them
        return self.with_strategy(Strategy(type=ON_DELETE))

    def with_partition(self, partition: int) -> None:  # noqa: ARG002  # it has none
        return None

    def scale(self, replicas: int) -> None:  # noqa: ARG002  # its nodes say how many
        return None

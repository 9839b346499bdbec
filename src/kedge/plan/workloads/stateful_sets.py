"""StatefulSets: roll from the last pod to the partition; frozen by a partition that holds back all of them.

Also the order of their pods: by number, not by text, so that `db-2` comes before `db-10`.
"""

from __future__ import annotations

import re

from msgspec import Struct

from kedge.plan.fields import Object
from kedge.plan.workloads import handler
from kedge.plan.workloads.handler import ON_DELETE, ROLLING, Limits, Patch, Replicas, Strategy

_NUMBERED = re.compile(r"(.*)-([0-9]+)")


class StatefulSets(Struct, frozen=True):
    """The handler of apps/StatefulSet."""

    group: str = "apps"
    kind: str = "StatefulSet"

    def replicas(self, obj: Object) -> Replicas:
        return handler.counted_replicas(obj)

    def template(self, obj: Object) -> Object:
        return handler.pod_template(obj)

    def strategy(self, obj: Object) -> Strategy:
        return handler.strategy_at(obj, "updateStrategy")

    def limits(self, obj: Object) -> Limits:
        """Rounded down, and at least 1. A cluster without the feature MaxUnavailableStatefulSet always takes 1."""
        given, desired = self.strategy(obj), handler.desired_replicas(obj)
        return Limits(max(1, handler.resolved(given.max_unavailable, desired, default=1, round_up=False)))

    def with_strategy(self, strategy: Strategy) -> Patch:
        rolling = handler.rolling_patch(strategy, partition=strategy.partition, maxUnavailable=strategy.max_unavailable)
        return {"spec": {"updateStrategy": rolling}}

    def freeze(self, obj: Object) -> Patch:
        """With OnDelete there is nothing to do. Pods added by a later scale-up are of the new template."""
        given = self.strategy(obj)
        if given.type == ON_DELETE:
            return {}
        return self.with_partition(max(handler.desired_replicas(obj), given.partition or 0))

    def with_partition(self, partition: int) -> Patch:
        return {"spec": {"updateStrategy": {"type": ROLLING, "rollingUpdate": {"partition": partition}}}}

    def scale(self, replicas: int) -> Patch:
        return {"spec": {"replicas": replicas}}


def ordinal_of(pod: str, stateful_set: str) -> int | None:
    """Which pod of a set this is, by its name; None if it is none of it."""
    found = _NUMBERED.fullmatch(pod)
    return int(found[2]) if found and found[1] == stateful_set else None

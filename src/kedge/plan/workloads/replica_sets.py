"""ReplicaSets: a number of pods. They replace none by themselves, so there is nothing to freeze."""

from __future__ import annotations

from msgspec import Struct

from kedge.plan.fields import Object
from kedge.plan.workloads import handler
from kedge.plan.workloads.handler import ON_DELETE, Limits, Patch, Replicas, Strategy


class ReplicaSets(Struct, frozen=True):
    """The handler of apps/ReplicaSet."""

    group: str = "apps"
    kind: str = "ReplicaSet"

    def replicas(self, obj: Object) -> Replicas:
        """Updated are those with all labels of the template: the only trace of it that a ReplicaSet counts."""
        return handler.counted_replicas(obj, updated="fullyLabeledReplicas")

    def template(self, obj: Object) -> Object:
        return handler.pod_template(obj)

    def strategy(self, obj: Object) -> Strategy:  # noqa: ARG002  # the same for all of them
        return Strategy(type=ON_DELETE)

    def limits(self, obj: Object) -> Limits:  # noqa: ARG002  # the same for all of them
        return Limits(max_unavailable=0)

    def with_strategy(self, strategy: Strategy) -> None:  # noqa: ARG002  # it has none
        return None

    def freeze(self, obj: Object) -> Patch:  # noqa: ARG002  # the same for all of them
        return {}

    def with_partition(self, partition: int) -> None:  # noqa: ARG002  # it has none
        return None

    def scale(self, replicas: int) -> Patch:
        return {"spec": {"replicas": replicas}}

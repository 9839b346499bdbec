"""Jobs: pods that end. A pod of a Job has done its work once it succeeded, so that is when it counts as available.

A Job's template cannot be changed, so there is nothing to roll or to freeze. Suspending one is no freeze: it deletes
the pods that run.
"""

from __future__ import annotations

from msgspec import Struct

from kedge.plan.fields import Object, count, whole
from kedge.plan.workloads import handler
from kedge.plan.workloads.handler import ON_DELETE, Limits, Patch, Replicas, Strategy


class Jobs(Struct, frozen=True):
    """The handler of batch/Job."""

    group: str = "batch"
    kind: str = "Job"

    def replicas(self, obj: Object) -> Replicas:
        """A Job has no observedGeneration, and one template for life: what its status counts is always of it."""
        succeeded = count(obj, "status", "succeeded")
        return Replicas(
            _desired(obj),
            observed=True,
            updated=count(obj, "status", "active") + succeeded,
            ready=count(obj, "status", "ready") + succeeded,
            available=succeeded,
        )

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
        """How many run at once; how many are to succeed cannot be changed."""
        return {"spec": {"parallelism": replicas}}


def _desired(obj: Object) -> int:
    """How many pods are to succeed: without completions, as many as run at once."""
    completions, parallelism = whole(obj, "spec", "completions"), whole(obj, "spec", "parallelism")
    return completions if completions is not None else 1 if parallelism is None else parallelism

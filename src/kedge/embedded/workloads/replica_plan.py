"""Which pods a ReplicaSet makes, which it deletes, and what it says of itself. Pure: same observation, same plan.

Promises the counts of kube-controller-manager v1.36, and its order of deletion: the pods that would be missed least go
first. Among pods of about the same age (ages are compared by powers of two) the uid decides, so that scaling down does
not always hit the youngest.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.apps import ReplicaSet, ReplicaSetStatus
from kedge.api.condition import TRUE, Observed
from kedge.api.pods import Pod
from kedge.plan.workloads import pods

COST = "controller.kubernetes.io/pod-deletion-cost"
FAILURE = "ReplicaFailure"
AT_ONCE = 500  # pods made or deleted in one go
_PHASES = {"Pending": 0, "": 0, "Unknown": 1, "Running": 2}


class ReplicaPlan(Struct, frozen=True):
    """How many pods to make, or which to delete."""

    create: int
    delete: tuple[Pod, ...]


class Failure(Struct, frozen=True):
    """Why pods could not be made or deleted."""

    reason: str
    message: str


def plan(wanted: int, active: Sequence[Pod], related: Iterable[Pod], now: datetime) -> ReplicaPlan:
    """What brings the active pods to the wanted number. `related` are the pods of all revisions of the same owner."""
    surplus = min(len(active) - wanted, AT_ONCE)
    if surplus <= 0:
        return ReplicaPlan(min(-surplus, AT_ONCE), ())
    if surplus == len(active):
        return ReplicaPlan(0, tuple(active))
    return ReplicaPlan(0, tuple(by_regret(active, related, now)[:surplus]))


def by_regret(active: Iterable[Pod], related: Iterable[Pod], now: datetime) -> list[Pod]:
    """The pods in the order they are deleted."""
    beside = Counter(pod.spec.node_name for pod in related if pods.is_active(pod))

    def regret(pod: Pod) -> tuple[Any, ...]:
        return (
            bool(pod.spec.node_name),
            _PHASES.get(pod.status.phase, 2),
            pods.is_ready(pod),
            _cost(pod),
            -beside[pod.spec.node_name],
            _age(pods.ready_since(pod), now),
            -pods.restarts(pod),
            _age(pod.metadata.creation_timestamp, now),
            pod.metadata.uid,
        )

    return sorted(active, key=regret)


def status(
    seen: ReplicaSet, active: Sequence[Pod], terminating: int, now: datetime, failure: Failure | None = None
) -> ReplicaSetStatus:
    """What the ReplicaSet says of itself, having these pods."""
    labels = ((seen.spec.template.get("metadata") or {}).get("labels") or {}).items()
    return ReplicaSetStatus(
        replicas=len(active),
        fully_labeled_replicas=sum(labels <= pod.metadata.labels.items() for pod in active),
        ready_replicas=sum(map(pods.is_ready, active)),
        available_replicas=sum(pods.is_available(pod, seen.spec.min_ready_seconds, now) for pod in active),
        terminating_replicas=terminating,
        observed_generation=seen.metadata.generation,
        conditions=_conditions(seen.status.conditions, failure, now),
    )


def _conditions(old: tuple[Observed, ...], failure: Failure | None, now: datetime) -> tuple[Observed, ...]:
    others = tuple(condition for condition in old if condition.type != FAILURE)
    if failure is None:
        return others
    if len(others) < len(old):
        return old  # what failed first stays until nothing fails any more
    since = now.replace(microsecond=0)
    new = Observed(type=FAILURE, status=TRUE, reason=failure.reason, message=failure.message)
    return (*others, replace(new, last_transition_time=since))


def _cost(pod: Pod) -> int:
    annotations: Mapping[str, str] = pod.metadata.annotations
    try:
        return int(annotations.get(COST, "0"))
    except ValueError:
        return 0


def _age(since: datetime | None, now: datetime) -> int:
    """How old, in powers of two: younger is less. What has no time is youngest."""
    nanoseconds = 1000 * ((now - since) // timedelta(microseconds=1)) if since is not None else 0
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1

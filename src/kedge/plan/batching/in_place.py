"""In place: the pods of one workload that are of its present template, and those that are not. All old ones are a pool.

Two kinds of workloads are told apart. One that only counts (a CloneSet) keeps back as many pods as its partition says,
whichever they are. One that numbers its pods (a StatefulSet) keeps back those with the lowest numbers: a pod below the
partition that has the present template already, as on the way back to a revision, is not counted twice.

Only pods of the present template count as available: the ready pods of a workload may all be old ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from itertools import takewhile

from msgspec import Struct

from kedge.api.meta import controller_of
from kedge.api.pods import Pod
from kedge.plan.batching.moves import Workload
from kedge.plan.fields import Object, count, text, whole
from kedge.plan.moving.wait import Blocker
from kedge.plan.workloads import WorkloadHandler
from kedge.plan.workloads.handler import ON_DELETE
from kedge.plan.workloads.pods import becomes_available, is_active, is_available, is_ready, revision_of, why_not_ready
from kedge.plan.workloads.stateful_sets import ordinal_of


class InPlace(Struct, frozen=True):
    """A workload that is changed in place, counted."""

    replicas: int
    partition: int
    """How many pods are kept back; all of them while nothing is updated."""
    paused: bool = False
    updated: int = 0
    """How many pods have the present template."""
    ready: int = 0
    """How many of those are ready."""
    available: int = 0
    """How many of those are available."""
    all_available: int = 0
    """How many pods are available, old ones too."""
    updated_at: frozenset[int] | None = None
    """Which pods have the present template, or get it when they are created again; None if pods are not numbered."""
    unavailable_at: frozenset[int] = frozenset()
    """Which numbered pods are not available."""

    @property
    def asked(self) -> int:
        """How many pods of the present template are asked for."""
        if self.updated_at is None:
            return max(self.replicas - self.partition, self.updated)
        return self._asked_at(self.partition)

    @property
    def hold(self) -> int:
        """The partition with which no pod moves, and no pod that has moved would come back as an old one."""
        if self.updated_at is None:
            return max(0, self.replicas - self.updated)
        return max(self.outdated_at, default=-1) + 1

    @property
    def moves_by_itself(self) -> bool:
        """Whether the workload would update pods without being told to."""
        return not self.paused and self.partition < self.hold

    @property
    def is_updated(self) -> bool:
        """Whether no pod is an old one."""
        return not self.outdated_at if self.updated_at is not None else self.updated >= self.replicas

    @property
    def outdated_at(self) -> frozenset[int]:
        """Which numbered pods are old ones."""
        return frozenset(range(self.replicas)) - (self.updated_at or frozenset())

    @property
    def free(self) -> int:
        """How many old pods can be asked for next that are not available anyway."""
        if self.updated_at is None:
            old_and_well = self.all_available - self.available
            return max(0, self.replicas - self.asked - old_and_well)
        next_ones = sorted((at for at in self.outdated_at if at < self.partition), reverse=True)
        return len(list(takewhile(self.unavailable_at.__contains__, next_ones)))

    def partition_for(self, goal: int) -> int:
        """The partition with which so many pods have the present template, if the workload gets there."""
        goal = min(goal, self.replicas)
        return max(at for at in range(self.replicas + 1) if self._asked_at(at) >= goal)

    def _asked_at(self, partition: int) -> int:
        return self.replicas - partition + sum(at < partition for at in self.updated_at or ())


def count_pods(handler: WorkloadHandler, workload: Workload, now: datetime | None) -> InPlace:
    """The pods of a workload whose status is of its present generation."""
    obj = workload.obj or {}
    if numbers_pods(handler):
        return _count_numbered(handler, workload, now)
    found = handler.replicas(obj)
    return InPlace(
        found.desired,
        _partition(handler, obj, found.desired),
        handler.strategy(obj).paused,
        found.updated,
        _of_updated(obj, "updatedReadyReplicas", found.ready, found.updated),
        _of_updated(obj, "updatedAvailableReplicas", found.available, found.updated),
        found.available,
    )


def updates_by_itself(handler: WorkloadHandler, obj: Object) -> bool:
    """Whether a workload replaces pods now without being told to: nothing holds back all that are old."""
    found, strategy = handler.replicas(obj), handler.strategy(obj)
    return not strategy.paused and found.updated < strategy.updates(found.desired)


def outdated_pods(handler: WorkloadHandler, obj: Object) -> int:
    """How many pods are not of the present template, by a status that is of the present generation."""
    return max(0, count(obj, "status", "replicas") - handler.replicas(obj).updated)


def numbers_pods(handler: WorkloadHandler) -> bool:
    """Whether pods move in the order of their numbers."""
    return (handler.group, handler.kind) == ("apps", "StatefulSet")


def update_revision(workload: Workload) -> str:
    """The label of pods of the present template; empty while nobody says."""
    return text(workload.obj, "status", "updateRevision") or workload.update_revision


def old_revision(workload: Workload) -> str:
    """The revision that most pods are of, other than the present one; the present one if all are. Empty if unknown."""
    if current := text(workload.obj, "status", "currentRevision"):
        return current
    update = update_revision(workload)
    found = Counter(revision_of(pod.metadata) for pod in own_pods(workload))
    old = Counter({name: number for name, number in found.items() if name and name != update})
    return max(old, key=lambda name: old[name], default=update)


def own_pods(workload: Workload) -> tuple[Pod, ...]:
    """The pods that the workload controls. Others may have the same labels."""
    uid = text(workload.obj, "metadata", "uid")
    owners = ((pod, controller_of(pod.metadata)) for pod in workload.pods)
    return tuple(pod for pod, owner in owners if owner is not None and owner.uid == uid)


def first_ordinal(obj: Object) -> int:
    """The number of the first pod."""
    return count(obj, "spec", "ordinals", "start")


def is_pod_available(pod: Pod, obj: Object, now: datetime | None) -> bool:
    """Whether it is ready, and has been for as long as its workload asks for."""
    least = count(obj, "spec", "minReadySeconds")
    if not least:
        return is_active(pod) and is_ready(pod)
    return is_active(pod) and now is not None and is_available(pod, least, now)


def not_available(pods: Iterable[Pod], obj: Object, now: datetime | None) -> tuple[Blocker, ...]:
    """The pods that are not available, with what they say of themselves and when time alone makes them available."""
    found = sorted(
        (pod for pod in pods if not is_pod_available(pod, obj, now)),
        key=lambda pod: (len(pod.metadata.name), pod.metadata.name),
    )
    return tuple(_blocker(pod, count(obj, "spec", "minReadySeconds")) for pod in found)


def _blocker(pod: Pod, least: int) -> Blocker:
    why = why_not_ready(pod.metadata, pod.status)
    if why is None:
        return Blocker(pod.metadata.name, until=becomes_available(pod, least))
    return Blocker(pod.metadata.name, since=why.since, reported=why.reason)


def _partition(handler: WorkloadHandler, obj: Object, replicas: int) -> int:
    strategy = handler.strategy(obj)
    return replicas if strategy.type == ON_DELETE else min(strategy.partition or 0, replicas)


def _of_updated(obj: Object, field: str, among_all: int, updated: int) -> int:
    """What the status says of the updated pods; if it does not, how many there are at least: old ones may be well."""
    found = whole(obj, "status", field)
    if found is not None:
        return found
    outdated = max(0, count(obj, "status", "replicas") - updated)
    return max(0, among_all - outdated)


def _count_numbered(handler: WorkloadHandler, workload: Workload, now: datetime | None) -> InPlace:
    obj, update = workload.obj or {}, update_revision(workload)
    replicas = handler.replicas(obj).desired
    partition = _partition(handler, obj, replicas)
    pods = numbered_pods(workload, replicas)
    mine = {at: pod for at, pod in pods.items() if revision_of(pod.metadata) == update}
    well = {at for at, pod in pods.items() if is_pod_available(pod, obj, now)}
    current_is_update = text(obj, "status", "currentRevision") == update
    coming = {at for at in range(replicas) if at not in pods and (at >= partition or current_is_update)}
    return InPlace(
        replicas,
        partition,
        False,
        len(mine),
        sum(is_active(pod) and is_ready(pod) for pod in mine.values()),
        len(mine.keys() & well),
        len(well),
        frozenset(mine.keys() | coming),
        frozenset(range(replicas)) - well,
    )


def numbered_pods(workload: Workload, replicas: int) -> dict[int, Pod]:
    """The pods by their place in the set, counted from 0."""
    start = first_ordinal(workload.obj or {})
    found = ((ordinal_of(pod.metadata.name, workload.ref.name), pod) for pod in own_pods(workload))
    places = {ordinal - start: pod for ordinal, pod in found if ordinal is not None}
    return {at: pod for at, pod in places.items() if 0 <= at < replicas}

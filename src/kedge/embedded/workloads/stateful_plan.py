"""The decisions of a StatefulSet: which pods to make and to delete now, and the counts it reports.

Pure: same observation, same plan. As kube-controller-manager v1.36 decides with its gates as they come, so
`maxUnavailable` counts for nothing (the server drops the field): an update takes down one pod at a time.

Promises, for OrderedReady: pods are made from the lowest ordinal up, each when all below it are available; they go from
the highest down, one at a time; whatever is not available holds up everything after it. With Parallel, scaling waits
for nobody, but an update still goes one by one. A broken pod of an old revision is replaced with Parallel, once those
above it are well; with OrderedReady it is not, since the set waits for it first: somebody has to delete it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct


class OrdinalPod(Struct, frozen=True):
    """One pod of the set."""

    ordinal: int
    revision: str
    ready: bool = False  # running and ready
    available: bool = False  # ready for minReadySeconds
    terminating: bool = False
    ended: bool = False  # failed or succeeded
    pending: bool = False

    @property
    def unavailable(self) -> bool:
        return self.terminating or not self.available

    @property
    def is_well(self) -> bool:
        return self.ready and not self.unavailable


class Wanted(Struct, frozen=True):
    """What the set should be."""

    replicas: int
    current: str  # the revision of pods below the partition
    update: str
    start: int = 0
    partition: int = 0
    parallel: bool = False
    on_delete: bool = False

    @property
    def ordinals(self) -> range:
        return range(self.start, self.start + self.replicas)

    def revision_of(self, ordinal: int) -> str:
        """The revision of a pod made now."""
        kept = not self.on_delete and ordinal < self.start + self.partition
        return self.current if kept else self.update


class StatefulPlan(Struct, frozen=True):
    """What to do now; `waits_for` says what stands in the way of more."""

    create: tuple[OrdinalPod, ...] = ()
    delete: tuple[OrdinalPod, ...] = ()
    claims: tuple[int, ...] = ()  # ordinals of pending pods whose claims must be there
    waits_for: str = ""


class Counts(Struct, frozen=True):
    """The numbers of the status."""

    replicas: int = 0
    ready: int = 0
    available: int = 0
    current: int = 0
    updated: int = 0


def plan(wanted: Wanted, ordinal_pods: Iterable[OrdinalPod]) -> StatefulPlan:
    """Which pods to make and to delete now."""
    found = {pod.ordinal: pod for pod in ordinal_pods}
    made = [found.get(ordinal) or OrdinalPod(ordinal, wanted.revision_of(ordinal)) for ordinal in wanted.ordinals]
    missing = frozenset(wanted.ordinals) - found.keys()
    surplus = sorted((one for one in found.values() if one.ordinal not in wanted.ordinals), key=_from_the_top)
    if wanted.parallel:
        return _all_at_once(wanted, made, missing, surplus)
    return _one_by_one(wanted, made, missing, surplus)


def counts(ordinal_pods: Iterable[OrdinalPod], current: str, update: str) -> Counts:
    """What the status says of these pods."""
    there = tuple(ordinal_pods)
    staying = [pod for pod in there if not pod.terminating]
    return Counts(
        replicas=len(there),
        ready=sum(pod.ready for pod in there),
        available=sum(pod.ready and pod.available for pod in there),
        current=sum(pod.revision == current for pod in staying),
        updated=sum(pod.revision == update for pod in staying),
    )


def is_complete(wanted: Wanted, counted: Counts) -> bool:
    """Whether a rolling update has come to its end, so that the update revision becomes the current one."""
    return not wanted.on_delete and counted.updated == counted.ready == counted.replicas == wanted.replicas


def _one_by_one(
    wanted: Wanted, made: Sequence[OrdinalPod], missing: frozenset[int], surplus: Sequence[OrdinalPod]
) -> StatefulPlan:
    claims: tuple[int, ...] = ()
    for pod in made:
        if pod.ended:
            return StatefulPlan(
                delete=_unless_terminating(pod), claims=claims, waits_for=f"pod {pod.ordinal} to be gone"
            )
        if pod.ordinal in missing:
            return StatefulPlan(create=(pod,), claims=claims)
        claims += (pod.ordinal,) if pod.pending else ()
        if not pod.is_well:
            return StatefulPlan(claims=claims, waits_for=_what_of(pod))
    if surplus:
        return _next_to_go(surplus)
    return _step(wanted, made)


def _next_to_go(surplus: Sequence[OrdinalPod]) -> StatefulPlan:
    """The highest, once it is well; also if it is broken, provided that it is the lowest that is.

    Everything that stays is well by now, so the lowest broken pod of the set is one of the surplus.
    """
    top, broken = surplus[0], [pod for pod in surplus if pod.unavailable]
    if top.terminating or not (top.is_well or top in broken[-1:]):
        return StatefulPlan(waits_for=_what_of(top))
    return StatefulPlan(delete=(top,))


def _all_at_once(
    wanted: Wanted, made: Sequence[OrdinalPod], missing: frozenset[int], surplus: Sequence[OrdinalPod]
) -> StatefulPlan:
    ended = tuple(pod for pod in made if pod.ended and not pod.terminating)
    going = tuple(pod for pod in surplus if not pod.terminating)
    step = _step(wanted, made)
    also = tuple(pod for pod in step.delete if pod not in ended)
    create = tuple(pod for pod in made if pod.ordinal in missing)
    delete = (*ended, *going, *also)
    unwell = [pod for pod in (*made, *surplus) if not pod.is_well]
    idle_for = _what_of(unwell[0]) if unwell and not create and not delete else ""
    return StatefulPlan(
        create=create,
        delete=delete,
        claims=tuple(pod.ordinal for pod in made if pod.pending),
        waits_for=step.waits_for or idle_for,
    )


def _step(wanted: Wanted, made: Sequence[OrdinalPod]) -> StatefulPlan:
    """The next pod to take down for the update: from the top, and none while one above it is not available."""
    if wanted.on_delete:
        return StatefulPlan()
    for pod in reversed(made[wanted.partition :]):
        if pod.revision != wanted.update and not pod.terminating:
            return StatefulPlan(delete=(pod,))
        if pod.unavailable:
            return StatefulPlan(waits_for=_what_of(pod))
    return StatefulPlan()


def _unless_terminating(pod: OrdinalPod) -> tuple[OrdinalPod, ...]:
    return () if pod.terminating else (pod,)


def _what_of(pod: OrdinalPod) -> str:
    what = "be gone" if pod.terminating else "be available" if pod.ready else "be ready"
    return f"pod {pod.ordinal} to {what}"


def _from_the_top(pod: OrdinalPod) -> int:
    return -pod.ordinal

"""The decisions of a CloneSet: which pods to create, delete and update now, and the counts it reports.

Pure: same observation, same plan. As OpenKruise's controller decides. Pods of another revision than the update revision
are old, all others new. The partition says how many old ones there are to be.

Promises, of what a plan does itself: at least `replicas - max_unavailable` pods stay available; there are never more
than `replicas + max_surge` pods; never more than `replicas - partition` are updated. A pod that is not available is
replaced for nothing, since that takes nothing away. The number of pods comes first: a step that creates or deletes pods
updates none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct


class ClonePod(Struct, frozen=True):
    """One pod of the set. Pods that end or are on their way out are none."""

    name: str
    revision: str
    ready: bool = False
    available: bool = False  # ready for minReadySeconds
    stuck: bool = False  # cannot be brought to another revision: more than images differ, and it may not be recreated


class WantedClones(Struct, frozen=True):
    """What the set should be."""

    replicas: int
    current: str  # the revision of pods that are to stay old
    update: str
    partition: int = 0
    max_unavailable: int = 0
    max_surge: int = 0
    updates: bool = True
    """Whether pods are updated at all: not while it is paused, and not with OnDelete."""
    partition_rollback: bool = True
    """Whether updated pods go back to the current revision when the partition grows."""

    @property
    def to_update(self) -> int:
        """How many pods are to be of the update revision."""
        return self.replicas - self.partition


class ClonePlan(Struct, frozen=True):
    """What to do now: one of three things."""

    create_current: int = 0
    create_update: int = 0
    delete: tuple[ClonePod, ...] = ()
    update: tuple[ClonePod, ...] = ()
    target: str = ""  # the revision that `update` goes to


class CloneCounts(Struct, frozen=True):
    """The numbers of the status."""

    replicas: int = 0
    ready: int = 0
    available: int = 0
    updated: int = 0
    updated_ready: int = 0
    updated_available: int = 0


class _Move(Struct, frozen=True):
    """How many pods are to change their revision, to which, and how many more there may be meanwhile."""

    pods: int
    target: str
    surge: int


def plan(wanted: WantedClones, pods: Iterable[ClonePod]) -> ClonePlan:
    """What to do now. Of pods alike, the first is deleted or updated first."""
    there = sorted(pods, key=_is_available)
    move = _move(wanted, there)
    missing = wanted.replicas + move.surge - len(there)
    if missing > 0:
        return _create(wanted, there, move, missing)
    delete = _delete(wanted, there, move, -missing)
    return ClonePlan(delete=delete) if delete else _update(wanted, there, move)


def counts(pods: Iterable[ClonePod], update: str) -> CloneCounts:
    """What the status says of these pods."""
    there = tuple(pods)
    updated = [pod for pod in there if pod.revision == update]
    return CloneCounts(
        replicas=len(there),
        ready=sum(pod.ready for pod in there),
        available=sum(pod.available for pod in there),
        updated=len(updated),
        updated_ready=sum(pod.ready for pod in updated),
        updated_available=sum(pod.available for pod in updated),
    )


def is_complete(replicas: int, counted: CloneCounts) -> bool:
    """Whether all pods are updated, so that the update revision becomes the current one."""
    return counted.updated == counted.replicas == replicas


def _move(wanted: WantedClones, there: Sequence[ClonePod]) -> _Move:
    old = _count_old(wanted, there)
    old_surplus = old - wanted.partition
    new_surplus = len(there) - old - wanted.to_update
    if old_surplus > 0 > new_surplus:
        pods, target = min(old_surplus, -new_surplus), wanted.update
    elif old_surplus < 0 < new_surplus and wanted.partition_rollback and wanted.current != wanted.update:
        pods, target = min(-old_surplus, new_surplus), wanted.current
    else:
        pods, target = 0, wanted.update
    return _Move(pods, target, min(wanted.max_surge, pods) if wanted.updates else 0)


def _create(wanted: WantedClones, there: Sequence[ClonePod], move: _Move, missing: int) -> ClonePlan:
    """Pods of the current revision first, while there are too few that stay old."""
    too_few = _kept_old(wanted, move) - _count_old(wanted, there)
    current = max(0, min(missing, too_few))
    return ClonePlan(create_current=current, create_update=missing - current)


def _delete(wanted: WantedClones, there: Sequence[ClonePod], move: _Move, surplus: int) -> tuple[ClonePod, ...]:
    """Old pods beyond those that stay old, then new ones; available ones only within the budget."""
    old = [pod for pod in there if pod.revision != wanted.update]
    new = [pod for pod in there if pod.revision == wanted.update]
    from_old = max(0, min(surplus, len(old) - _kept_old(wanted, move)))
    chosen = sorted((*old[:from_old], *new[: surplus - from_old]), key=_is_available)
    return _within(chosen, _may_take_down(wanted, there))


def _update(wanted: WantedClones, there: Sequence[ClonePod], move: _Move) -> ClonePlan:
    if not wanted.updates or not move.pods:
        return ClonePlan()
    forward = move.target == wanted.update
    waiting = [pod for pod in there if (pod.revision != wanted.update) is forward and not pod.stuck][: move.pods]
    update = _within(waiting, _may_take_down(wanted, there))
    return ClonePlan(update=update, target=move.target) if update else ClonePlan()


def _count_old(wanted: WantedClones, there: Sequence[ClonePod]) -> int:
    return sum(pod.revision != wanted.update for pod in there)


def _kept_old(wanted: WantedClones, move: _Move) -> int:
    """How many old pods there are to be; on the way back, those that surge are old."""
    return wanted.partition + (move.surge if move.target != wanted.update else 0)


def _may_take_down(wanted: WantedClones, there: Sequence[ClonePod]) -> int:
    """How many available pods may become unavailable."""
    unavailable = sum(not pod.available for pod in there)
    return max(0, wanted.max_unavailable + len(there) - wanted.replicas - unavailable)


def _within(chosen: Sequence[ClonePod], budget: int) -> tuple[ClonePod, ...]:
    """Those that are not available, and as many others as the budget allows."""
    free = [pod for pod in chosen if not pod.available]
    return (*free, *[pod for pod in chosen if pod.available][:budget])


def _is_available(pod: ClonePod) -> bool:
    return pod.available

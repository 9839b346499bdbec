"""The decisions of a DaemonSet: on which nodes to make a pod, and which pods to delete now.

Pure: same observation, same plan. As kube-controller-manager v1.36 decides, except that nodes are taken in the order of
their names where it takes them in none. One reading of the pods gives one of two plans: first every node has the pods
it should have (`manage`); when nothing is left to do there, an update goes on (`roll`).

Promises that an update without surge never makes more than `max_unavailable` nodes go without an available pod beyond
those that are without one already, and that one with surge never has more than `max_surge` nodes wait for a new pod
beside an old one that is available.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from msgspec import Struct


class Daemon(Struct, frozen=True):
    """One pod of the set."""

    name: str
    node: str
    updated: bool
    ready: bool = False
    available: bool = False
    terminating: bool = False
    failed: bool = False
    succeeded: bool = False
    scheduled: bool = True  # has been bound to its node
    born: datetime | None = None


class Place(Struct, frozen=True):
    """One node: whether a pod should be started there, and whether one that is there may stay."""

    name: str
    should_run: bool
    may_stay: bool


class DaemonPlan(Struct, frozen=True):
    """Nodes that get a pod, and pods that go."""

    create: tuple[str, ...] = ()
    delete: tuple[Daemon, ...] = ()


class Counts(Struct, frozen=True):
    """The numbers of the status."""

    desired: int = 0
    current: int = 0
    misscheduled: int = 0
    ready: int = 0
    updated: int = 0
    available: int = 0

    @property
    def unavailable(self) -> int:
        return self.desired - self.available


def manage(places: Sequence[Place], daemons: Iterable[Daemon], *, surge: bool) -> DaemonPlan:
    """Give every node the pods it should have, whatever their revision."""
    on = by_node(daemons)
    plans = [_on_node(place, on.get(place.name, ()), surge=surge) for place in places]
    known = {place.name for place in places}
    lost = [one for node in sorted(on) if node not in known for one in on[node] if not one.scheduled]
    return DaemonPlan(
        create=tuple(node for plan in plans for node in plan.create),
        delete=(*(one for plan in plans for one in plan.delete), *(one for one in lost if not one.terminating)),
    )


def roll(places: Sequence[Place], daemons: Iterable[Daemon], *, max_unavailable: int, max_surge: int) -> DaemonPlan:
    """Replace pods of old revisions, within the budget. To be asked when `manage` has nothing left to do."""
    empty: dict[str, tuple[Daemon, ...]] = {place.name: () for place in places if place.should_run}
    on = {**empty, **by_node(daemons)}
    if max_surge == 0:
        return _replace(on, max_unavailable)
    return _surge(places, on, max_surge)


def counts(places: Iterable[Place], daemons: Iterable[Daemon]) -> Counts:
    """What the status says. Of several pods on one node the oldest counts."""
    on = by_node(daemons)
    found = [(place, oldest_first(on.get(place.name, ()))) for place in places]
    first = [there[0] for place, there in found if place.should_run and there]
    return Counts(
        desired=sum(place.should_run for place, _ in found),
        current=len(first),
        misscheduled=sum(bool(there) for place, there in found if not place.should_run),
        ready=sum(one.ready for one in first),
        updated=sum(one.updated for one in first),
        available=sum(one.ready and one.available for one in first),
    )


def by_node(daemons: Iterable[Daemon]) -> dict[str, tuple[Daemon, ...]]:
    """The pods of every node that has some. Those that ended and are on their way out are of no concern."""
    on: dict[str, tuple[Daemon, ...]] = {}
    for one in daemons:
        if not (one.terminating and (one.failed or one.succeeded)):
            on[one.node] = (*on.get(one.node, ()), one)
    return on


def oldest_first(daemons: Iterable[Daemon]) -> list[Daemon]:
    """Pods that have their node before those that wait for it, then by age."""
    return sorted(daemons, key=lambda one: (not one.scheduled, one.born.timestamp() if one.born else 0.0, one.name))


def _on_node(place: Place, there: Sequence[Daemon], *, surge: bool) -> DaemonPlan:
    if place.should_run and not there:
        return DaemonPlan(create=(place.name,))
    staying = [one for one in there if not one.terminating]
    if not place.may_stay:
        return DaemonPlan(delete=tuple(staying))
    ended = tuple(one for one in staying if one.failed or one.succeeded)
    running = oldest_first(one for one in staying if not (one.failed or one.succeeded))
    if not surge:
        return DaemonPlan(delete=(*ended, *running[1:]))
    if not running:
        return DaemonPlan(create=(place.name,) if place.should_run else (), delete=ended)
    return DaemonPlan(delete=(*ended, *_too_many(running)))


def _too_many(running: Sequence[Daemon]) -> list[Daemon]:
    """With surge there may be two, an old one and a new one, as long as the old one is ready and the new one not."""
    new = [one for one in running if one.updated]
    old = [one for one in running if not one.updated]
    surplus = [one for one in running if one in new[1:] or one in old[1:]]
    replaced = bool(new and old) and (not old[0].ready or new[0].available)
    return [*surplus, old[0]] if replaced else surplus


def _replace(on: dict[str, tuple[Daemon, ...]], max_unavailable: int) -> DaemonPlan:
    unavailable, broken, candidates = 0, [], []
    for node in sorted(on):
        pair = _new_and_old(on[node])
        if pair is None or (pair[0] is None) == (pair[1] is None):
            unavailable += 1  # `manage` has something to do here
        elif pair[0] is not None:
            unavailable += not pair[0].available
        elif pair[1] is not None and not pair[1].available:
            broken.append(pair[1])
            unavailable += 1
        elif pair[1] is not None:
            candidates.append(pair[1])
    return DaemonPlan(delete=(*broken, *candidates[: max(0, max_unavailable - unavailable)]))


def _surge(places: Iterable[Place], on: dict[str, tuple[Daemon, ...]], max_surge: int) -> DaemonPlan:
    runs = {place.name: place.should_run for place in places}
    surging, available = 0, 0
    gone: list[Daemon] = []
    leaving: list[Daemon] = []
    urgent: list[str] = []
    candidates: list[str] = []
    for node in sorted(on):
        pair = _new_and_old(on[node])
        if pair is None:
            surging += 1
            continue
        new, old = pair
        counted = old or new
        available += counted is not None and counted.available
        if old is None:
            continue
        if new is not None:
            surging += not new.available
            gone += [old] if new.available else []
        elif not runs.get(node, False):
            (leaving if old.available else gone).append(old)
        else:
            (candidates if old.available else urgent).append(node)
    spare = max(0, available - sum(runs.values()))
    return DaemonPlan(
        create=(*urgent, *candidates[: max(0, max_surge - surging)]),
        delete=(*gone, *leaving[:spare]),
    )


def _new_and_old(there: Iterable[Daemon]) -> tuple[Daemon | None, Daemon | None] | None:
    """The new and the old pod of a node; None if there are two of a kind."""
    staying = [one for one in there if not one.terminating]
    new = [one for one in staying if one.updated]
    old = [one for one in staying if not one.updated]
    if len(new) > 1 or len(old) > 1:
        return None
    return next(iter(new), None), next(iter(old), None)

"""How large each ReplicaSet of a Deployment is to be next. Pure arithmetic, as kube-controller-manager v1.36 does it.

One step at a time: what a step changes must show in the ReplicaSets' statuses before the next one is planned. Promises
that a rolling step never asks for more pods than desired + surge in all, and never takes away an available pod if that
would leave fewer than desired - unavailable; and that some step is possible whenever all pods are available.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from kedge.api.apps import Rolling, UpdateStrategy
from kedge.api.numbers import resolve
from kedge.plan.moving.budget import Budget

DEFAULT = "25%"


class Share(Struct, frozen=True):
    """One ReplicaSet, in numbers."""

    name: str
    created: datetime
    replicas: int
    available: int = 0
    most_before: int | None = None  # the Deployment's `most` when it was last sized

    @property
    def sure(self) -> int:
        """How many of its pods are available and wanted: a status may still count those that are to go."""
        return min(self.available, self.replicas)


Sizes = Mapping[str, int]
"""The ReplicaSets to size, by name."""


def budget_of(strategy: UpdateStrategy, desired: int) -> Budget:
    """What a strategy allows for so many replicas. A budget of nothing at all would stand still: it lets one go."""
    if strategy.type != "RollingUpdate":
        return Budget(desired, 0)
    given = strategy.rolling_update or Rolling()
    surge = resolve(_or_default(given.max_surge), desired, round_up=True)
    unavailable = resolve(_or_default(given.max_unavailable), desired, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Budget(desired, min(unavailable, desired), surge)


def _or_default(value: int | str | None) -> int | str:
    return DEFAULT if value is None else value


def rolling(new: Share, olds: Sequence[Share], budget: Budget) -> Sizes:
    """The next step of a rolling update: the new ReplicaSet grows first, then the old ones shrink."""
    size = size_of_new(new, olds, budget)
    if size != new.replicas:
        return {new.name: size}
    return shrink(new, olds, budget)


def size_of_new(new: Share, olds: Iterable[Share], budget: Budget) -> int:
    """How large the new ReplicaSet may be beside the old ones."""
    if new.replicas >= budget.desired:
        return budget.desired
    room = budget.may_add(new.replicas + sum(old.replicas for old in olds))
    return new.replicas + min(room, budget.desired - new.replicas)


def shrink(new: Share, olds: Sequence[Share], budget: Budget) -> Sizes:
    """What the old ReplicaSets can give up: first what is of no use anyway, then what the new pods make up for."""
    total = new.replicas + sum(old.replicas for old in olds)
    spare = budget.may_take_down(total - (new.replicas - new.sure))
    sizes = {old.name: old.replicas for old in olds}
    oldest_first = sorted(olds, key=_age)
    for old in oldest_first:
        gone = min(spare, old.replicas - old.sure)
        sizes[old.name] -= gone
        spare -= gone
    left = budget.may_take_down(new.sure + sum(old.sure for old in olds))
    for old in oldest_first:
        gone = min(left, sizes[old.name])
        sizes[old.name] -= gone
        left -= gone
    return {old.name: sizes[old.name] for old in olds if sizes[old.name] != old.replicas}


def emptied(olds: Iterable[Share]) -> Sizes:
    """Every old ReplicaSet, down to nothing."""
    return {old.name: 0 for old in olds if old.replicas}


def rescaled(new: Share | None, olds: Sequence[Share], budget: Budget, *, saturated: bool, rolling: bool) -> Sizes:
    """After a change of the desired number, or while paused: every ReplicaSet keeps its part of the whole.

    Where one alone has pods, or none has, that one (the newest) gets them all. `saturated`: the new one has all it
    needs, so that whatever old ones have is too much.
    """
    one = _active_or_latest(new, olds)
    if one is not None:
        return {} if one.replicas == budget.desired else {one.name: budget.desired}
    if saturated:
        return emptied(olds)
    return _in_proportion([*olds, *([new] if new else [])], budget) if rolling else {}


def _active_or_latest(new: Share | None, olds: Sequence[Share]) -> Share | None:
    everyone = [*olds, *([new] if new else [])]
    active = [share for share in everyone if share.replicas]
    if len(active) == 1:
        return active[0]
    return None if active or not everyone else new or max(olds, key=_age)


def _in_proportion(shares: Sequence[Share], budget: Budget) -> Sizes:
    """A size for everyone who has pods, also where it stays: it is a size for another number now."""
    active = [share for share in shares if share.replicas]
    if not active:
        return {}
    to_add = (budget.most if budget.desired else 0) - sum(share.replicas for share in active)
    largest_first = _by_size(active, newest_first=to_add > 0)
    sizes: dict[str, int] = {}
    added = 0
    for share in largest_first:
        part = _part(share, budget, to_add, to_add - added)
        sizes[share.name] = share.replicas + part
        added += part
    # What rounding leaves over goes to, or comes from, the largest.
    sizes[largest_first[0].name] = max(0, sizes[largest_first[0].name] + to_add - added)
    return sizes


def _part(share: Share, budget: Budget, to_add: int, left: int) -> int:
    """How many of the replicas to add (or, if less than none, to take away) are this one's."""
    fair = -share.replicas if budget.desired == 0 else _grown(share, budget.most) - share.replicas
    return 0 if to_add == 0 else min(fair, left) if to_add > 0 else max(fair, left)


def _grown(share: Share, most: int) -> int:
    if not share.most_before:
        return share.replicas
    return (2 * share.replicas * most + share.most_before) // (2 * share.most_before)  # halves are rounded up


def _by_size(shares: Iterable[Share], *, newest_first: bool) -> list[Share]:
    by_age = sorted(shares, key=_age, reverse=newest_first)
    return sorted(by_age, key=lambda share: -share.replicas)


def _age(share: Share) -> tuple[datetime, str]:
    return share.created, share.name

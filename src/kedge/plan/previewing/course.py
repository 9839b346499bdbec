"""Course: what would become of a placement, cluster by cluster and in order; all times in seconds from now.

Clusters move in waves: a wave is all that moves before one of those that moved has proven itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

from msgspec import Struct, to_builtins

from kedge.plan.text import natural


class What(StrEnum):
    """What a move does to a cluster."""

    added = "added"
    changed = "changed"
    removed = "removed"


class Move(Struct, frozen=True):
    """One cluster that gets resources, or loses them."""

    cluster: str
    what: What
    at: float
    revision: str = ""
    """The resources it gets, by their number."""
    done: float | None = None
    """When it is proven to work, or cleared; None if it never is."""


class Stay(Struct, frozen=True):
    """A cluster that is not where it should be in the end, and why."""

    cluster: str
    why: str
    moved: bool = False
    """Whether it was given what it is to have, and does not work with it."""


class Wave(Struct, frozen=True):
    """Clusters that move together."""

    clusters: tuple[str, ...]
    begins: float
    ends: float | None = None
    """When all of them are proven; None if that never happens."""


class Wait(Struct, frozen=True):
    """A task before or after a stage."""

    what: str
    begins: float | None = None
    ends: float | None = None


class Stage(Struct, frozen=True):
    """One stage of a staged run."""

    name: str
    clusters: tuple[str, ...]
    begins: float | None = None
    ends: float | None = None
    waits: tuple[Wait, ...] = ()


class Course(Struct, frozen=True):
    """What becomes of one placement."""

    kind: str
    namespace: str | None
    name: str
    revision: str
    """The resources it comes to, by their number."""
    is_done: bool
    """Whether every cluster gets there."""
    ends: float | None
    """When the last one does; None if not all do."""
    moves: tuple[Move, ...] = ()
    stays: tuple[Stay, ...] = ()
    unpicked: tuple[str, ...] = ()
    """Why further clusters were not picked."""
    stages: tuple[Stage, ...] = ()
    why: str = ""
    """What it waits for in the end, if it is not done."""

    @property
    def path(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def title(self) -> str:
        return f"{self.kind} {self.path}"

    @property
    def waves(self) -> tuple[Wave, ...]:
        return waves(self.moves)

    @property
    def last_move(self) -> float:
        """When the last thing happens that does."""
        return max((move.done or move.at for move in self.moves), default=0.0)

    def told(self) -> dict[str, Any]:
        """As programs read it."""
        return {**to_builtins(self), "waves": to_builtins(self.waves)}


def waves(moves: Iterable[Move]) -> tuple[Wave, ...]:
    """The moves in the order they begin, cut wherever one begins after an earlier one of its wave was proven."""
    found: list[list[Move]] = []
    for move in sorted(moves, key=lambda move: (move.at, natural(move.cluster))):
        proven = min((one.done for one in found[-1] if one.done is not None), default=None) if found else None
        if not found or (proven is not None and move.at >= proven):
            found.append([])
        found[-1].append(move)
    return tuple(_wave(one) for one in found)


def _wave(moves: Sequence[Move]) -> Wave:
    ends = [move.done for move in moves]
    known = [end for end in ends if end is not None]
    names = tuple(sorted((move.cluster for move in moves), key=natural))
    return Wave(names, moves[0].at, max(known) if len(known) == len(ends) else None)

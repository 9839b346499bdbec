"""Unit: one thing that moves from the revision it holds to the revision it is to hold, and the proof of what it holds.

Revisions are opaque strings: the kernel only compares them.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct


class Proof(StrEnum):
    """What is known of the revision a unit holds. The order is how much it tells of why a rollout stands still."""

    failed = "failed"
    """Its own status says that it does not work."""
    unknown = "unknown"
    """It is not heard from."""
    gone = "gone"
    """There is nothing any more that could hold a revision."""
    untracked = "untracked"
    """It cannot be observed whether it works. After some time it counts as proven."""
    pending = "pending"
    """Its status does not speak of the revision it was given last yet."""
    leaving = "leaving"
    """It is being removed already."""
    nothing = "nothing"
    """It was never given a revision."""
    proven = "proven"
    """Its own status, at the generation that was written last, says that it works."""


RANK: Final = {proof: rank for rank, proof in enumerate(Proof)}
_DOES_NOT_WORK: Final = (Proof.failed, Proof.gone, Proof.nothing)


class Unit(Struct, frozen=True, gc=False):
    """One unit."""

    key: str
    held: str
    """The revision it holds; empty if it holds nothing."""
    wanted: str
    """The revision it is to hold; empty if it is to be removed."""
    proof: Proof
    since: datetime | None = None
    """Since when that is known of it."""
    proven_at: datetime | None = None
    """When time alone will have proven it, if that is what it takes."""
    place: str = ""
    """What it shares with other units, such as a second binding of a cluster; its own key if that is empty."""

    @property
    def counted_as(self) -> str:
        """Units with the same value of this count once."""
        return self.place or self.key

    @property
    def holds(self) -> bool:
        return bool(self.held)

    @property
    def is_wanted(self) -> bool:
        return bool(self.wanted)

    @property
    def is_proven(self) -> bool:
        return self.proof is Proof.proven

    @property
    def is_moving(self) -> bool:
        """Whether it is not where it is to be, and somebody has to move it."""
        return self.held != self.wanted and self.proof is not Proof.leaving

    @property
    def adds(self) -> bool:
        return self.is_moving and not self.held

    @property
    def changes(self) -> bool:
        return self.is_moving and self.holds and self.is_wanted

    @property
    def leaves(self) -> bool:
        return self.is_moving and not self.wanted

    @property
    def needs_no_budget(self) -> bool:
        """Whether nobody loses anything if it is changed or removed: it is known not to work."""
        return self.proof in _DOES_NOT_WORK

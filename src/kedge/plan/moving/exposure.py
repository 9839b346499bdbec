"""Exposure: how many units may hold a revision that no unit has proven yet.

A unit that does not work needs no budget, so that a fix reaches it at any time. Without a limit a bad revision would
reach every unit that breaks for a reason of its own in the same way. What counts as proof is what is proven now, not
what once was. Units that held nothing before are added without regard to the limit; they count once they hold. A unit
that an earlier request may still move counts as if it held already what it is to hold.
"""

from __future__ import annotations

from collections.abc import Collection, Set

from msgspec import Struct

from kedge.plan.moving.unit import Proof, Unit

_COUNTS_NO_MORE = (Proof.gone, Proof.leaving)


class Exposure(Struct, frozen=True):
    """The limit."""

    limit: int

    def has_room(self, others: int) -> bool:
        """Whether one more unit may hold a revision that so many others hold, and none has proven."""
        return others < self.limit


class Holders:
    """The units that hold one revision, while units are moved to it."""

    def __init__(self, revision: str, units: Collection[Unit], in_doubt: Set[str] = frozenset()) -> None:
        """`in_doubt`: the keys of units that an earlier request may still move."""
        found = [unit for unit in units if unit.held == revision]
        self._is_proven = any(unit.is_proven for unit in found)
        doubtful = [unit for unit in units if unit.key in in_doubt and unit.wanted == revision]
        counting = () if self._is_proven else (*found, *doubtful)
        self._unproven = {unit.counted_as: unit for unit in counting if unit.proof not in _COUNTS_NO_MORE}

    def admit(self, unit: Unit, exposure: Exposure) -> bool:
        """Whether a unit may be moved to the revision."""
        return self._is_proven or exposure.has_room(len(self._unproven.keys() - {unit.counted_as}))

    def add(self, unit: Unit) -> None:
        self._unproven[unit.counted_as] = unit

    @property
    def unproven(self) -> tuple[Unit, ...]:
        """In the order of their places. Only asked for while nobody has proven the revision."""
        return tuple(unit for _, unit in sorted(self._unproven.items()))

"""Allowance: a second budget beside that of units, in which every unit has a price of its own.

What units hold of it is charged when they are moved, and given back when the scope sees them proven.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Allowance(Struct, frozen=True):
    """How much may be held at once, who holds it, and what it costs to move."""

    limit: int
    held: Mapping[str, int] = {}
    """What is held, by place; places that hold nothing may be left out."""
    prices: Mapping[str, int] = {}
    """What a move costs beside what its place holds already, by the unit's key; one that is left out costs nothing."""

    @property
    def spent(self) -> int:
        return sum(self.held.values())

    def admits(self, key: str) -> bool:
        """Whether a unit may be moved. One that costs nothing always may."""
        price = self.prices.get(key, 0)
        return price == 0 or self.spent + price <= self.limit

    def charged(self, key: str, place: str) -> Allowance:
        """With what moving a unit costs."""
        price = self.prices.get(key, 0)
        return Allowance(self.limit, {**self.held, place: self.held.get(place, 0) + price}, self.prices)

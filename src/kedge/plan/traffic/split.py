"""Split: how one rule of a route divides traffic between two Services, in weights.

A weight is a part of the sum of all weights of its rule. Where other backends share the rule, the two keep the sum they
have, so that the others keep their share. Where they are alone, their weights are percentages from the first change on.
"""

from __future__ import annotations

from msgspec import Struct

WHOLE = 100


class Pair(Struct, frozen=True):
    """The two Services: of the old revision and of the new one."""

    source: str
    target: str


class Unreadable(Struct, frozen=True):
    """Why a route does not tell how it divides the traffic of the two."""

    reason: str


class Split(Struct, frozen=True):
    """One rule that has both."""

    rule: int
    """Where it is in the route."""
    key: str
    """What it is recognized by if rules were added or removed before it."""
    source: int | None
    target: int | None
    """As written; None: not set."""
    default: int
    """What a weight that is not set counts as."""
    keeps_sum: bool
    """Whether the weights of the two must keep their sum."""

    @property
    def weights(self) -> tuple[int, int]:
        """The weights that count."""
        return self._or_default(self.source), self._or_default(self.target)

    @property
    def total(self) -> int:
        return sum(self.weights)

    @property
    def percent(self) -> int:
        """The target's share of the traffic of the two, rounded up; 0 if neither gets any."""
        return -(-self.weights[1] * WHOLE // self.total) if self.total else 0

    def shares(self, percent: int) -> tuple[int, int]:
        """The weights that give the target this share, or the next smaller one that they can express. Never 0 and 0."""
        total = self.total if self.keeps_sum and self.total else WHOLE
        target = total * percent // WHOLE
        return total - target, target

    def gives(self, percent: int) -> bool:
        """Whether the target has this share already."""
        if self.keeps_sum or not self.total:
            return self.weights == self.shares(percent)
        return self.weights[1] * WHOLE == self.total * percent

    def _or_default(self, weight: int | None) -> int:
        return self.default if weight is None else weight


class Splits(Struct, frozen=True):
    """All rules of a route that have both; at least one."""

    found: tuple[Split, ...]
    notes: tuple[str, ...] = ()
    """Which rules are left alone because they have only one of the two, in sentences."""

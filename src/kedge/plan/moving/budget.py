"""Budget: how many units may be unavailable, and how many extra there may be, out of a desired number.

Integers only: percentages, defaults and what a budget of nothing means are for the scope to say.
"""

from __future__ import annotations

from msgspec import Struct


class Budget(Struct, frozen=True):
    """What may be spent at once."""

    desired: int
    max_unavailable: int
    max_surge: int = 0

    @property
    def must_stay_available(self) -> int:
        return max(0, self.desired - self.max_unavailable)

    @property
    def most(self) -> int:
        """How many units may hold something at once."""
        return self.desired + self.max_surge

    def is_kept_by(self, available: int) -> bool:
        """Whether so many available units are enough."""
        return available >= self.must_stay_available

    def may_take_down(self, available: int) -> int:
        """How many of so many available units may be taken down now."""
        return max(0, available - self.must_stay_available)

    def may_add(self, holding: int) -> int:
        """How many units may be added while so many hold something."""
        return max(0, self.most - holding)

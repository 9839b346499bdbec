"""Limit: a number that the pods of all members keep to, as users change it while older decisions are in effect still.

What was decided before a limit was changed, and is in effect still, goes by the limits of then: the loosest since the
oldest such decision counts, until there are no such decisions and the pods have been within the new limits once.
The template and the binding are read one by one: the strategy may be of one moment and the replicas of another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from simulate.align_facts import Limits

EVER = float("inf")


class Decided(NamedTuple):
    """When each part of what is asked of a member was decided: by what was read then."""

    floor: float
    ceiling: float
    partition: float


AT_FIRST = Decided(0.0, 0.0, 0.0)


class Limit:
    """A number that pods keep to, and the older ones that still count."""

    def __init__(
        self,
        limits: Sequence[Limits],
        decided: Callable[[int], float],
        about: int,
        given: Callable[[Limits], int],
        now: Callable[[], int],
    ) -> None:
        """`limits`: all there ever were, and those to come. `decided`: when the oldest decision was made that members
        may yet act on, for a part of what is asked; `about` is which part. `given`: the number, by the limits; `now`:
        what keeps to it, of the pods as they are."""
        self._limits = limits
        self._decided = decided
        self._about = about
        self._given = given
        self._now = now
        self._oldest = 0  # the oldest limits that still count
        self._first = 0  # the oldest that are about the same thing
        self._is_bound = True

    @property
    def loosest(self) -> float:
        if not self._is_bound:
            return EVER
        counting = self.counting
        return max(self._given(replace(one, replicas=other.replicas)) for one in counting for other in counting)

    @property
    def counting(self) -> Sequence[Limits]:
        """The limits that count."""
        return self._limits[self._oldest :]

    @property
    def unavailable(self) -> int:
        """The largest of maxUnavailable that counts."""
        return max(limits.unavailable for limits in self.counting)

    def begin(self, index: int, *, is_fresh: bool) -> None:
        """From these limits on it is about something else, of which there is nothing yet if it is fresh."""
        self._oldest = self._first = index
        self._is_bound = is_fresh

    def back_to(self, decided: Decided) -> None:
        """Something is asked only now that was decided then."""
        limits, moment = self._limits, decided[self._about]
        index = max((at for at, one in enumerate(limits) if one.at <= moment), default=0)
        self._oldest = max(self._first, min(self._oldest, index))

    def go_on(self) -> None:
        limits = self._limits
        while self._oldest < len(limits) - 1 or (not self._is_bound and limits):
            last = len(limits) - 1
            following = min(self._oldest + 1, last) if self._is_bound else self._oldest
            is_over = self._decided(self._about) >= limits[following].at
            newer = limits[following:] if self._is_bound else limits[self._oldest :]
            if not is_over or self._now() > max(map(self._given, newer)):
                return
            if not self._is_bound:
                self._is_bound = True
            else:
                self._oldest = following

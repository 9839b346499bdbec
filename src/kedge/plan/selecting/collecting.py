"""Collecting: when changes that come one after another are all there, so that they become one revision.

Nobody says which change is the last of a `kubectl apply`. One alone is taken for the last soon. Where one followed
another, the next is waited for longer, as their pace has it: over a slow line they come slowly. Changes that do not end
are a revision all the same, after a while.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

LONGEST: Final = 20  # so many times as long as one change waits, changes that do not end are collected
PACES: Final = 4  # so many times the pause between the last two, the next may take


class Coming(Struct, frozen=True):
    """Changes that are no revision yet: when the first came and the last, and how long after the one before it."""

    since: float
    last: float
    pause: float = 0.0

    @classmethod
    def first(cls, now: float, before: float) -> Coming:
        """A change that came now, after one that was the last of a revision then."""
        return cls(now, now, now - before)

    def next(self, now: float) -> Coming:
        """And another that came now."""
        return Coming(self.since, now, now - self.last)

    def ends(self, quiet: float) -> float:
        """When they are a revision, if no other comes; `quiet` is how many seconds one alone waits."""
        longest = LONGEST * quiet
        wait = max(quiet, PACES * self.pause) if self.pause <= longest else quiet
        return min(self.last + wait, self.since + longest)

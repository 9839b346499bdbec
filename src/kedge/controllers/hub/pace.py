"""Pace: how often something large is looked at, and when it has stood still long enough to be worth telling.

Whoever waits for a cluster that moves should not have to wait for words about the others. All of this only puts off;
what is remembered may be lost at any time.
"""

from __future__ import annotations

import asyncio
from typing import Final

from kedge.kube.queue import Key

PER_CLUSTER: Final = 0.0002  # seconds of rest after a look, for each cluster: a look costs about a tenth of that
AT_ONCE: Final = 50  # so many clusters are looked at without rest
STANDS_AFTER: Final = 2.0  # seconds: nobody reads what is true for less
FEW: Final = 3  # so many sentences are said sooner
FEW_STAND_AFTER: Final = 0.5  # seconds
UNSAID: Final = 5  # so many times that, what never stands still is said all the same
HUSH: Final = 0.1  # of the time many sentences stand: for so long after a move nothing is said that nobody acts on
LONGEST_HUSH: Final = 0.5  # of the same, where moves follow one another


class Pace:
    """Of the objects of one controller."""

    def __init__(self, *, stands_after: float = STANDS_AFTER) -> None:
        """What is said in many places is worth telling once it has stood so many seconds."""
        self._stands_after = stands_after
        self._next_look: dict[Key, float] = {}
        self._standing: dict[Key, tuple[int, float, float]] = {}  # what, since when, and since when it is not said
        self._moved: dict[Key, tuple[float, float]] = {}  # first, since something was said, and last

    def rest(self, key: Key, size: int) -> float:
        """How many seconds to wait before looking at so many clusters again; 0 to look now, which is noted."""
        now = asyncio.get_running_loop().time()
        left = self._next_look.get(key, now) - now
        if left > 0:
            return left
        if size > AT_ONCE:
            self._next_look[key] = now + size * PER_CLUSTER
        return 0.0

    def moved(self, key: Key) -> None:
        """Something moves now."""
        now = asyncio.get_running_loop().time()
        first, _ = self._moved.get(key, (now, now))
        self._moved[key] = (first, now)

    def hush(self, key: Key) -> float:
        """How many seconds longer to say nothing; 0 if long enough."""
        if key not in self._moved:
            return 0.0
        first, last = self._moved[key]
        until = min(last + HUSH * self._stands_after, first + LONGEST_HUSH * self._stands_after)
        left = until - asyncio.get_running_loop().time()
        if left <= 0:
            del self._moved[key]
        return max(0.0, left)

    def unsettled(self, key: Key, said: tuple[str, ...]) -> float:
        """In how many seconds sentences that differ from what was said will have stood long enough; 0 if they have."""
        now = asyncio.get_running_loop().time()
        if not said:
            self.said(key)
            return 0.0
        what, stands_after = hash(said), self._stands_after
        if len(said) <= FEW:
            stands_after = min(stands_after, FEW_STAND_AFTER)
        before, since, unsaid = self._standing.get(key, (what, now, now))
        if before != what:
            since = now
        self._standing[key] = (what, since, unsaid)
        return max(0.0, min(since + stands_after, unsaid + UNSAID * stands_after) - now)

    def said(self, key: Key) -> None:
        """All that there was to say is said."""
        self._standing.pop(key, None)

    def forget(self, key: Key) -> None:
        self._next_look.pop(key, None)
        self._standing.pop(key, None)
        self._moved.pop(key, None)

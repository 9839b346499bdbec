"""Pace: how often something large is looked at, and when it has stood still long enough to be worth telling.

Both only put off; what is remembered may be lost at any time. Small things are never put off.
"""

from __future__ import annotations

import asyncio
from typing import Final

from kedge.kube.queue import Key

PER_CLUSTER: Final = 0.0002  # seconds of rest after a look, for each cluster: a look costs about a tenth of that
AT_ONCE: Final = 50  # so many clusters are looked at without rest
STANDS_AFTER: Final = 2.0
FEW: Final = 10  # so many sentences are written at once, true for however short a time


class Pace:
    """Of the objects of one controller."""

    def __init__(self, *, stands_after: float = STANDS_AFTER) -> None:
        """What is said in many places is worth telling once it has stood so many seconds."""
        self._stands_after = stands_after
        self._next_look: dict[Key, float] = {}
        self._standing: dict[Key, tuple[int, float]] = {}

    def rest(self, key: Key, size: int) -> float:
        """How many seconds to wait before looking at so many clusters again; 0 to look now, which is noted."""
        now = asyncio.get_running_loop().time()
        left = self._next_look.get(key, now) - now
        if left > 0:
            return left
        if size > AT_ONCE:
            self._next_look[key] = now + size * PER_CLUSTER
        return 0.0

    def unsettled(self, key: Key, said: object, number: int) -> float:
        """In how many seconds that which is said in so many places will have stood long enough; 0 if it has."""
        now = asyncio.get_running_loop().time()
        if number <= FEW:
            return 0.0
        what = hash(said)
        before, since = self._standing.get(key, (what, now))
        if before != what or key not in self._standing:
            self._standing[key] = (what, now)
            return self._stands_after
        return max(0.0, since + self._stands_after - now)

    def forget(self, key: Key) -> None:
        self._next_look.pop(key, None)
        self._standing.pop(key, None)

"""Spacing: how close after one another the statuses of a placement are written.

A placement on many clusters changes with each of them. Its status is large, and nobody reads it a hundred times a
second; so changes are gathered for a moment, in which the clusters that wait for one another go on, and after a write
there is a rest that grows with the clusters, and is longer while the placement as a whole stands as it stood. The last
change is always written. What is remembered here may be lost at any time.
"""

from __future__ import annotations

import asyncio
from typing import Final

from kedge.controllers.putting_off import PuttingOff
from kedge.kube.queue import Key

GATHER: Final = 0.2  # seconds before a write
REST: Final = 0.3  # seconds after one
COUNT: Final = 1.0  # seconds after one, if there is no more to tell than that more clusters have come further
PER_CLUSTER: Final = 0.003
PATIENCE: Final = 1.0  # seconds in which what is only not known yet is not worth telling


class Spacing:
    """Of the placements of one controller."""

    def __init__(self, rest: float = REST) -> None:
        self._rest = rest
        self._gathering = PuttingOff(min(GATHER, rest))
        self._next: dict[Key, float] = {}
        self._count: dict[Key, float] = {}
        self._unknown: dict[Key, tuple[int, float]] = {}

    def rest(self, key: Key) -> float:
        """In how many seconds to look what there is to write; 0 if now."""
        left = self._next.get(key, 0.0) - asyncio.get_running_loop().time()
        return max(left, self._gathering.left(key))

    def looked(self, key: Key) -> None:
        """What changes from now on is gathered anew."""
        self._gathering.told(key)

    def count(self, key: Key) -> float:
        """In how many seconds to write how far clusters have come, if that is all there is; 0 if now."""
        return max(0.0, self._count.get(key, 0.0) - asyncio.get_running_loop().time())

    def wrote(self, key: Key, clusters: int) -> None:
        now = asyncio.get_running_loop().time()
        self._next[key] = now + self._rest + PER_CLUSTER * clusters
        self._count[key] = now + COUNT

    def patience(self, key: Key, generation: int) -> float:
        """How many seconds longer to wait for what is not known yet of this generation; 0 if long enough."""
        now = asyncio.get_running_loop().time()
        of, since = self._unknown.get(key, (generation, now))
        if of != generation:
            since = now
        self._unknown[key] = (generation, since)
        return max(0.0, since + PATIENCE - now)

    def known(self, key: Key) -> None:
        """Nothing is waited for any more."""
        self._unknown.pop(key, None)

    def forget(self, key: Key) -> None:
        self._gathering.told(key)
        self._next.pop(key, None)
        self._count.pop(key, None)
        self._unknown.pop(key, None)

"""Status delays: how close after one another the statuses of a placement are written.

A placement on many clusters changes with each of them. Its status is large, and nobody reads it a hundred times a
second. So changes are gathered for a moment, in which the clusters that wait for one another go on. After a write there
is a rest that grows with the clusters, and is longer while only the numbers change. The last change is always written.
"""

from __future__ import annotations

from typing import Final

from kedge.controllers.throttle import Throttle
from kedge.kube.queue import Key

GATHER: Final = 0.2  # seconds before a write
REST: Final = 0.3  # seconds after one
REST_PER_CLUSTER: Final = 0.003
COUNTS_AFTER: Final = 1.0  # seconds after one, if nothing but numbers of clusters changed
UNSCHEDULED_AFTER: Final = 1.0  # seconds until it is written that clusters are still being picked


class StatusDelays:
    """Of the placements of one controller."""

    def __init__(self, rest: float = REST) -> None:
        self._changes = Throttle(min(GATHER, rest))
        self._writes = Throttle(rest)
        self._counts = Throttle(COUNTS_AFTER)
        self._unscheduled = Throttle(UNSCHEDULED_AFTER)

    def before_look(self, key: Key) -> float:
        """Seconds until it is time to look what there is to write; 0 if now."""
        return max(self._writes.remaining(key), self._changes.wait(key))

    def looked(self, key: Key) -> None:
        """What changes from now on is gathered anew."""
        self._changes.reset(key)

    def before_counts(self, key: Key) -> float:
        """Seconds until changed numbers of clusters are written, if there is nothing else; 0 if now."""
        return self._counts.remaining(key)

    def wrote(self, key: Key, clusters: int) -> None:
        self._writes.restart(key, self._writes.seconds + REST_PER_CLUSTER * clusters)
        self._counts.restart(key)

    def before_unscheduled(self, key: Key, generation: int) -> float:
        """Seconds until it is written that the clusters of this generation are not picked yet; 0 if now."""
        return self._unscheduled.wait(key, generation)

    def scheduled(self, key: Key) -> None:
        """The clusters are picked."""
        self._unscheduled.reset(key)

    def forget(self, key: Key) -> None:
        for throttle in (self._changes, self._writes, self._counts, self._unscheduled):
            throttle.reset(key)

"""Partitions: the times in which nothing gets through a link, as a function of the seed alone."""

from __future__ import annotations

from random import Random

from kedge.simulate.faults import Faults


class Partitions:
    """Draws one partition after the other, as time comes to them."""

    def __init__(self, faults: Faults, rng: Random, now: float) -> None:
        self._rate = faults.partitions / 3600
        self._seconds = faults.partition_seconds
        self._rng = rng
        self._start = self._end = now
        if self._rate > 0:
            self._draw()

    def left(self, now: float) -> float:
        """How many seconds the partition of this moment still lasts; 0 if there is none."""
        while self._rate > 0 and self._end <= now:
            self._draw()
        return self._end - now if self._start <= now else 0.0

    def _draw(self) -> None:
        self._start = self._end + self._rng.expovariate(self._rate)
        self._end = self._start + self._rng.uniform(*self._seconds)

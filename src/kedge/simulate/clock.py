"""Clocks that follow the loop's time: a correct one, and one that jumps as clocks of machines do.

The time a clock shows depends on the loop's time and the seed alone, not on how often it was read.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from random import Random

from msgspec import Struct

from kedge.kube.clock import Clock

START = datetime(2030, 1, 1, tzinfo=UTC)


class LoopClock:
    """Shows `start` when the loop's time is 0."""

    def __init__(self, loop: asyncio.AbstractEventLoop, start: datetime = START) -> None:
        self._time = loop.time
        self._start = start

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._time())


class Jumps(Struct, frozen=True):
    """How often a clock is put right or wrong, and how far off it may be then."""

    per_hour: float = 0.0
    most: float = 3600.0  # seconds, either way


class JumpingClock:
    """A clock that is off: by what `jump` says, and by jumps drawn from `rng`."""

    def __init__(
        self, true: Clock, loop: asyncio.AbstractEventLoop, *, rng: Random, jumps: Jumps | None = None
    ) -> None:
        self.off = 0.0  # seconds
        self._true = true
        self._time = loop.time
        self._rng = rng
        self._jumps = jumps or Jumps()
        self._next = self._draw_next(loop.time())

    def now(self) -> datetime:
        while self._next is not None and self._next <= self._time():
            self.off = self._rng.uniform(-self._jumps.most, self._jumps.most)
            self._next = self._draw_next(self._next)
        return self._true.now() + timedelta(seconds=self.off)

    def jump(self, seconds: float) -> None:
        """Move it, forwards or backwards."""
        self.now()
        self.off += seconds

    def end_faults(self) -> None:
        """No more jumps; it is as far off as it is."""
        self.now()
        self._next = None

    def _draw_next(self, after: float) -> float | None:
        rate = self._jumps.per_hour / 3600
        return after + self._rng.expovariate(rate) if rate > 0 else None

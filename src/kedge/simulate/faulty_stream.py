"""Faulty stream: a watch as it arrives over a link with faults.

Lines come in order and complete, or not at all. A line that lags delays all lines behind it. A stream that falls silent
ends for its reader after the silence that the reader allows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from random import Random

from kedge.kube.transport import ConnectionFailed, Stream
from kedge.simulate.faults import Faults, gone


class FaultyStream:
    """One watch. `held` returns how many seconds nothing gets through from now on.

    `hear` is called with every line, and `hit` with every fault.
    """

    def __init__(
        self,
        stream: Stream,
        *,
        first: list[bytes],
        silence: float,
        faults: Faults,
        resumes: bool,
        rng: Random,
        held: Callable[[], float],
        hear: Callable[[bytes | None], None],
        hit: Callable[[str], object],
    ) -> None:
        """`first` comes before the stream's own lines; `resumes`: it resumes from a version, which may be forgotten."""
        self._loop = asyncio.get_running_loop()
        self._stream = stream
        self._first = first
        self._silence = silence
        self._faults = faults
        self._rng = rng
        self._held = held
        self._hear = hear
        self._hit = hit
        self._fate = faults.for_watch(rng)
        if self._fate == "gone" and not resumes:
            self._fate = ""
        well = rng.uniform(*faults.watch_seconds)
        self._trouble_at = self._loop.time() + well if self._fate else None
        self._lost = ""
        self._limit: asyncio.Timeout | None = None

    @property
    def status(self) -> int:
        return self._stream.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._stream.headers

    async def read(self) -> bytes:
        return b"".join([line + b"\n" async for line in self.lines()])

    async def lines(self) -> AsyncIterator[bytes]:
        if self._fate == "gone":
            self._hit("gone")
            self._hear(gone())
            yield gone()
            return
        source = self._all() if self._first else self._stream.lines()
        while (line := await self._next(source)) is not None:
            await self._hold()
            self._hear(line)
            yield line
        self._hear(None)

    def cut(self, why: str) -> None:
        """Lose the connection."""
        self._lost = self._lost or why
        if self._limit is not None and not self._limit.expired():
            self._limit.reschedule(self._loop.time())

    def end_faults(self) -> None:
        """Nothing goes wrong any more; what has gone wrong already stays so."""
        self._faults = Faults()
        if self._fate and (self._trouble_at is None or self._trouble_at > self._loop.time()):
            self._fate, self._trouble_at = "", None

    async def _all(self) -> AsyncIterator[bytes]:
        for line in self._first:
            yield line
        async for line in self._stream.lines():
            yield line

    async def _next(self, source: AsyncIterator[bytes]) -> bytes | None:
        """The next line; None at the end."""
        self._check()
        try:
            async with asyncio.timeout_at(self._trouble_at) as self._limit:
                return await anext(source, None)
        except TimeoutError:
            await self._trouble()
            return None
        finally:
            self._limit = None

    async def _trouble(self) -> None:
        """The time for it has come, or the connection was cut. Returns if that is an end in good order."""
        self._check()
        if self._fate:
            self._hit(self._fate)
        if self._fate == "ended":
            return
        if self._fate == "silent":
            await self._wait(self._silence)
            raise ConnectionFailed(f"nothing came for {self._silence:g} s", sent=True)
        raise ConnectionFailed("connection reset", sent=True)

    async def _hold(self) -> None:
        """Have the line wait, if it lags or nothing gets through."""
        lags = self._faults.lagging > 0 and self._rng.random() < self._faults.lagging
        seconds = max(self._rng.uniform(*self._faults.lag_seconds) if lags else 0.0, self._held())
        if seconds <= 0:
            return
        self._hit("lagging" if lags else "partitions")
        await self._wait(min(seconds, self._silence))
        if seconds >= self._silence:
            raise ConnectionFailed(f"nothing came for {self._silence:g} s", sent=True)

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds) as self._limit:
                await self._loop.create_future()
        except TimeoutError:
            self._check()
        finally:
            self._limit = None

    def _check(self) -> None:
        if self._lost:
            raise ConnectionFailed(self._lost, sent=True)

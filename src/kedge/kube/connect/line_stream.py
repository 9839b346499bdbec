"""Line stream: the body of an answer that keeps coming, as lines.

The connection adds what has arrived; the reader takes all complete lines at once. When too many lines wait, the
connection stops reading, so a slow reader slows the server down and does not fill memory. A line may be of any length.
Silence counts only while the reader waits. One timer checks it, however many lines come.
"""

from __future__ import annotations

import asyncio

from kedge.kube.connect.failures import FAILURES, BrokenConnection, explain
from kedge.kube.transport import ConnectionFailed

FULL = 2**20
"""Bytes of complete lines that may wait."""


class LineStream:
    """Lines on their way from one connection to one reader."""

    def __init__(self, silence: float) -> None:
        """`silence` is how many seconds nothing at all may come."""
        self._silence = silence
        self._loop = asyncio.get_running_loop()
        self._flow: asyncio.ReadTransport | None = None
        self._lines: list[bytes] = []
        self._begun: list[bytes] = []
        self._size = 0
        self._stopped = False
        self._ended = False
        self._failure: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    # For the connection

    def begin(self, flow: asyncio.ReadTransport) -> None:
        """Set the transport that the lines come from."""
        self._flow = flow

    def take(self, part: bytes) -> None:
        """Add bytes that have arrived."""
        lines = part.split(b"\n")
        begun = lines.pop()
        if lines:
            if self._begun:
                lines[0] = b"".join((*self._begun, lines[0]))
                self._begun = []
            self._lines += lines
            self._size += len(part)
            if self._size > FULL and not self._stopped:
                self._stop()
            self._wake()
        elif self._waiter is not None:
            self._since = self._loop.time()
        if begun:
            self._begun.append(begun)

    def end(self) -> None:
        """The body has ended."""
        self._ended = True
        self._wake()

    def fail(self, failure: Exception) -> None:
        """The body has failed."""
        self._failure = failure
        self.end()

    # For the reader

    async def some(self) -> list[bytes]:
        """The lines that have arrived, at least one; empty at the end, if the last line was complete."""
        found = await self._next()
        if not found and self._begun:
            raise ConnectionFailed("the stream ended in the middle of a line", sent=True)
        return found

    async def read(self) -> bytes:
        """The whole body."""
        lines: list[bytes] = []
        while found := await self._next():
            lines += found
        return b"\n".join((*lines, b"".join(self._begun)))

    def close(self) -> None:
        """Nobody reads any more."""
        if self._timer is not None:
            self._timer.cancel()

    async def _next(self) -> list[bytes]:
        if not self._lines and not self._ended:
            await self._wait()
        found, self._lines, self._size = self._lines, [], 0
        if self._stopped:
            self._go_on()
        if not found and self._failure is not None:
            raise self._told(self._failure) from self._failure
        return found

    async def _wait(self) -> None:
        self._since = self._loop.time()
        if self._timer is None:
            self._timer = self._loop.call_at(self._since + self._silence, self._look)
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _look(self) -> None:
        """Fail if the reader has waited too long. Sets its own next timer."""
        self._timer = None
        if self._waiter is None:
            return
        due = self._since + self._silence
        if self._loop.time() < due:
            self._timer = self._loop.call_at(due, self._look)
        else:
            self.fail(BrokenConnection(f"silent for {self._silence:g} s"))

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _stop(self) -> None:
        if self._flow is not None and not self._flow.is_closing():
            self._stopped = True
            self._flow.pause_reading()

    def _go_on(self) -> None:
        self._stopped = False
        if self._flow is not None and not self._flow.is_closing():
            self._flow.resume_reading()

    def _told(self, failure: Exception) -> ConnectionFailed:
        why = explain(failure, timeout=self._silence) if isinstance(failure, FAILURES) else str(failure)
        return ConnectionFailed(why, sent=True)

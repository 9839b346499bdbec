"""Feed: the lines of one watch, on their way to one reader.

Promises: in order, each a while after it was pushed and never within the write that caused it; bookmarks each minute
and shortly before the end, if they were asked for; an end in good order when the time is up. A reader that falls more
than `room` lines behind is cut off, as kube-apiserver does: it gets the lines under way, and then the end.

Time is the event loop's. On a loop that picks the next callback at random the order still holds: lines wait in a queue,
and a timer only says that the first of them may go.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator

from kedge.embedded.watching import Watch
from kedge.kube.transport import ConnectionFailed

BOOKMARK_EVERY = 60.0
BOOKMARK_BEFORE_END = 2.0


class Feed:
    """One reader's end of a watch, opened by making it."""

    def __init__(self, watch: Watch, *, delay: Callable[[], float], room: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._watch = watch
        self._delay = delay
        self._room = room
        self._under_way: deque[tuple[float, bytes | None]] = deque()  # when it is due; None is the end
        self._arrived: deque[bytes | None] = deque()
        self._lost = ""
        self._ending = False
        self._reader: asyncio.Future[None] | None = None
        self._arrival: asyncio.TimerHandle | None = None
        self._last_due = 0.0
        self._end = self._loop.time() + watch.seconds
        self._timers = [self._loop.call_at(self._end, self.finish)]
        self._first: Iterator[bytes] = watch.open(self)
        if not watch.is_open:
            self.finish()
        elif watch.bookmarks:
            self._plan_bookmark()

    async def next(self) -> bytes | None:
        """The next line; None at the end. Raises `ConnectionFailed` when the connection is lost."""
        while True:
            if self._lost:
                raise ConnectionFailed(self._lost, sent=True)
            if (line := next(self._first, None)) is not None:
                return line
            if self._arrived:
                return self._take()
            self._reader = self._loop.create_future()
            await self._reader

    @property
    def is_ready(self) -> bool:
        """Whether a line has arrived already. A first line not yet read does not count."""
        return bool(self._arrived)

    def push(self, line: bytes) -> None:
        """Send a line on its way."""
        if self._ending:
            return
        if len(self._under_way) + len(self._arrived) >= self._room:
            self.finish()
            return
        self._send(line)

    def finish(self) -> None:
        """End in good order, after what is under way."""
        if not self._ending:
            self._ending = True
            self._let_go()
            self._send(None)

    def cut(self, why: str) -> None:
        """Lose the connection, and what is under way."""
        self._ending = True
        self._let_go()
        self._lost = self._lost or why
        self._under_way.clear()
        self._arrived.clear()
        if self._arrival is not None:
            self._arrival.cancel()
        self._wake()

    def close(self) -> None:
        """The reader has gone."""
        self.cut("closed")

    def _take(self) -> bytes | None:
        line = self._arrived.popleft()
        if line is None:
            self._arrived.append(None)  # the end stays the end, however often it is read
        return line

    def _send(self, line: bytes | None) -> None:
        self._last_due = max(self._last_due, self._loop.time() + self._delay())
        self._under_way.append((self._last_due, line))
        if self._arrival is None:
            self._arrival = self._loop.call_at(self._last_due, self._arrive)

    def _arrive(self) -> None:
        """Hand over what is due, and come back for the rest."""
        due = max(self._loop.time(), self._under_way[0][0])  # the timer may be a rounding error early
        while self._under_way and self._under_way[0][0] <= due:
            self._arrived.append(self._under_way.popleft()[1])
        self._arrival = self._loop.call_at(self._under_way[0][0], self._arrive) if self._under_way else None
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
        self._reader = None

    def _plan_bookmark(self) -> None:
        now = self._loop.time()
        shortly_before = self._end - BOOKMARK_BEFORE_END
        at = now + BOOKMARK_EVERY
        if now < shortly_before:
            at = min(at, shortly_before)
        self._timers.append(self._loop.call_at(at, self._bookmark))

    def _bookmark(self) -> None:
        self.push(self._watch.bookmark())
        if not self._ending:
            del self._timers[1:]
            self._plan_bookmark()

    def _let_go(self) -> None:
        """Hear no more of the watch, and of time."""
        self._watch.close()
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()

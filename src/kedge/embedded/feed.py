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
_END = b"the end"


class Feed:
    """One reader's end of a watch, opened by making it. Read what is `here`, `wait`, and so on until it `ended`."""

    def __init__(self, watch: Watch, *, delay: Callable[[], float], room: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._watch = watch
        self._delay = delay
        self._room = room
        self._under_way: deque[tuple[float, bytes]] = deque()  # when it is due, and the line; _END is the end
        self._arrived: deque[bytes] = deque()
        self._over = False  # nothing will arrive any more
        self._lost = ""  # why the connection is
        self._reader: asyncio.Future[None] | None = None
        self._arrival: asyncio.TimerHandle | None = None
        self._end_at = self._loop.time() + watch.seconds
        self._end = self._loop.call_at(self._end_at, self.finish)
        self._next_bookmark: asyncio.TimerHandle | None = None
        self._first: Iterator[bytes] = watch.open(self)
        if not watch.is_open:
            self._over = True
        elif watch.bookmarks:
            self._plan_bookmark()

    def here(self) -> Iterator[bytes]:
        """The lines that have come and were not read yet. Raises `ConnectionFailed` once the connection is lost."""
        while True:
            if self._lost:
                raise ConnectionFailed(self._lost, sent=True)
            line = next(self._first, None) or (self._arrived.popleft() if self._arrived else None)
            if line is None:
                return
            yield line

    @property
    def ended(self) -> bool:
        """Whether that was all, once what is here was read."""
        return self._over

    async def wait(self) -> None:
        """Until a line has come, or the end, or the connection is lost."""
        while not (self._arrived or self._over or self._lost):
            self._reader = self._loop.create_future()
            await self._reader

    def push(self, line: bytes) -> None:
        """Send a line on its way, if the reader keeps up."""
        if len(self._under_way) + len(self._arrived) < self._room:
            self._send(line)
        else:
            self.finish()

    def finish(self) -> None:
        """End in good order, after what is under way."""
        self._let_go()
        self._send(_END)

    def cut(self, why: str) -> None:
        """Lose the connection, and what is under way."""
        self._let_go()
        self._lost = self._lost or why
        self._under_way.clear()
        if self._arrival is not None:
            self._arrival.cancel()
        self._wake()

    def _send(self, line: bytes) -> None:
        due = self._loop.time() + self._delay()
        self._under_way.append((due, line))
        if self._arrival is None:
            self._arrival = self._loop.call_at(due, self._arrive)

    def _arrive(self) -> None:
        """Hand over what is due, and come back for the rest. What is due behind one that is not waits for it."""
        due = max(self._loop.time(), self._under_way[0][0])  # the timer may be a rounding error early
        while self._under_way and self._under_way[0][0] <= due:
            self._take(self._under_way.popleft()[1])
        self._arrival = self._loop.call_at(self._under_way[0][0], self._arrive) if self._under_way else None
        self._wake()

    def _take(self, line: bytes) -> None:
        if line is _END:
            self._over = True
        else:
            self._arrived.append(line)

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _plan_bookmark(self) -> None:
        now = self._loop.time()
        shortly_before = self._end_at - BOOKMARK_BEFORE_END
        at = now + BOOKMARK_EVERY
        if now < shortly_before:
            at = min(at, shortly_before)
        self._next_bookmark = self._loop.call_at(at, self._bookmark)

    def _bookmark(self) -> None:
        self._plan_bookmark()
        self.push(self._watch.bookmark())

    def _let_go(self) -> None:
        """Hear no more of the watch, and of time."""
        self._watch.close()
        self._end.cancel()
        if self._next_bookmark is not None:
            self._next_bookmark.cancel()

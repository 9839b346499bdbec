"""Feed: the lines of one watch, on their way to one reader.

Promises: in order, each a while after it was pushed and never within the write that caused it; bookmarks each minute
and shortly before the end, if they were asked for; an end in good order when the time is up. A reader that falls more
than `room` lines behind is cut off, as kube-apiserver does: it gets the lines under way, and then the end.

Bookmarks and the end come of time alone. They wait for what is under way before them, but for nothing else.

Time is the event loop's. On a loop that picks the next callback at random the order still holds: lines wait in a queue,
and a timer only says that the first of them may go.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator

from kedge.embedded.watching import Watch
from kedge.kube.transport import ConnectionFailed

BOOKMARK_EVERY = 60.0  # or sooner: what shares its `Minutes` with others does not wait for a minute of its own
BOOKMARK_BEFORE_END = 2.0
_END = b"the end"


class Minutes:
    """When the bookmarks of some feeds are due: one timer for all of them, so that many at rest cost little."""

    def __init__(self) -> None:
        self._feeds: dict[Feed, None] = {}
        self._next: asyncio.TimerHandle | None = None

    def tell(self, feed: Feed) -> None:
        """Have this feed send a bookmark each minute, the first within one."""
        self._feeds[feed] = None
        if self._next is None:
            self._begin()

    def forget(self, feed: Feed) -> None:
        """Tell this feed no more."""
        self._feeds.pop(feed, None)
        if not self._feeds and self._next is not None:
            self._next.cancel()
            self._next = None

    def _begin(self) -> None:
        self._next = asyncio.get_running_loop().call_later(BOOKMARK_EVERY, self._pass)

    def _pass(self) -> None:
        self._begin()
        for feed in tuple(self._feeds):
            feed.bookmark()


class Feed:
    """One reader's end of a watch, opened by making it. Read what is `here`, `wait`, and so on until it `ended`."""

    def __init__(self, watch: Watch, *, delay: Callable[[], float], room: int, minutes: Minutes | None = None) -> None:
        """`delay` is drawn for each line; feeds with the same `minutes` send their bookmarks at the same moments."""
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
        self._minutes = minutes or Minutes()
        self._first: Iterator[bytes] = watch.open(self)
        self._over = not watch.is_open
        self._end_at = self._loop.time() + watch.seconds
        self._end = self._plan_end()
        if watch.bookmarks and not self._over:
            self._minutes.tell(self)

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

    def bookmark(self) -> None:
        """Say how far the server has got, to a reader that keeps up."""
        if self._under_way or self._arrived:
            self.push(self._watch.bookmark())
        else:
            self._take_now(self._watch.bookmark())

    def finish(self) -> None:
        """End in good order, after what is under way."""
        self._let_go()
        if self._under_way:
            self._send(_END)
        else:
            self._take_now(_END)

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

    def _take_now(self, line: bytes) -> None:
        self._take(line)
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def _plan_end(self) -> asyncio.TimerHandle:
        shortly_before = self._end_at - BOOKMARK_BEFORE_END
        if self._watch.bookmarks and self._loop.time() < shortly_before:
            return self._loop.call_at(shortly_before, self._near_the_end)
        return self._loop.call_at(self._end_at, self.finish)

    def _near_the_end(self) -> None:
        self._end = self._loop.call_at(self._end_at, self.finish)
        self.bookmark()

    def _let_go(self) -> None:
        """Hear no more of the watch, and of time."""
        self._watch.close()
        self._end.cancel()
        self._minutes.forget(self)

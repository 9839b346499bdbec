"""Watch stream: the lines of one watch, on their way to one reader.

Promises: in order, each with a delay after it was pushed and never within the write that caused it; bookmarks each
minute and shortly before the end, if requested; a regular end when the timeout is over. A reader that falls more than
`room` lines behind is disconnected, as in kube-apiserver: it gets the lines under way, and then the end.

Bookmarks and the end depend on time alone. They wait only for lines that are under way before them.

Time is the event loop's. The order also holds on a loop that picks the next callback at random: lines wait in a queue,
and a timer only says that the first of them is due.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator

from kedge.embedded.watch import Watch
from kedge.kube.transport import ConnectionFailed

BOOKMARK_EVERY = 60.0  # or sooner: streams with a common `BookmarkTimer` share its minutes
BOOKMARK_BEFORE_END = 2.0
_END = b"the end"


class BookmarkTimer:
    """Sends the bookmarks of many streams by one timer, so that idle streams cost little."""

    def __init__(self) -> None:
        self._streams: dict[WatchStream, None] = {}
        self._next: asyncio.TimerHandle | None = None

    def add(self, stream: WatchStream) -> None:
        """Have this stream send a bookmark each minute."""
        self._streams[stream] = None
        if self._next is None:
            self._schedule()

    def remove(self, stream: WatchStream) -> None:
        """Stop the bookmarks of this stream."""
        self._streams.pop(stream, None)
        if not self._streams and self._next is not None:
            self._next.cancel()
            self._next = None

    def _schedule(self) -> None:
        self._next = asyncio.get_running_loop().call_later(BOOKMARK_EVERY, self._send_all)

    def _send_all(self) -> None:
        self._schedule()
        for stream in tuple(self._streams):
            stream.bookmark()


class WatchStream:
    """The reader's end of a watch, which it opens. Read `arrived_lines`, `wait`, and so on until `ended`."""

    def __init__(
        self, watch: Watch, *, delay: Callable[[], float], room: int, bookmarks: BookmarkTimer | None = None
    ) -> None:
        """`delay` is drawn for each line; streams with the same timer send their bookmarks together."""
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
        self._bookmarks = bookmarks or BookmarkTimer()
        self._first: Iterator[bytes] = watch.open(self)
        self._over = not watch.is_open
        self._end_at = self._loop.time() + watch.seconds
        self._end = self._schedule_end()
        if watch.bookmarks and not self._over:
            self._bookmarks.add(self)

    def arrived_lines(self) -> Iterator[bytes]:
        """The lines that arrived and were not read yet. Raises `ConnectionFailed` once the connection is lost."""
        while True:
            if self._lost:
                raise ConnectionFailed(self._lost, sent=True)
            line = next(self._first, None) or (self._arrived.popleft() if self._arrived else None)
            if line is None:
                return
            yield line

    @property
    def ended(self) -> bool:
        """Whether nothing will arrive any more."""
        return self._over

    async def wait(self) -> None:
        """Wait until a line arrives, the watch ends, or the connection is lost."""
        while not (self._arrived or self._over or self._lost):
            self._reader = self._loop.create_future()
            await self._reader

    def push(self, line: bytes) -> None:
        """Send a line, if the reader keeps up; otherwise end."""
        if len(self._under_way) + len(self._arrived) < self._room:
            self._send(line)
        else:
            self.finish()

    def bookmark(self) -> None:
        """Send a bookmark."""
        if self._under_way or self._arrived:
            self.push(self._watch.bookmark())
        else:
            self._take_now(self._watch.bookmark())

    def finish(self) -> None:
        """End regularly, after the lines under way."""
        self._release()
        if self._under_way:
            self._send(_END)
        else:
            self._take_now(_END)

    def cut(self, why: str) -> None:
        """Lose the connection and the lines under way."""
        self._release()
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
        """Move due lines to the reader, in order, and set the timer for the rest."""
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

    def _schedule_end(self) -> asyncio.TimerHandle:
        shortly_before = self._end_at - BOOKMARK_BEFORE_END
        if self._watch.bookmarks and self._loop.time() < shortly_before:
            return self._loop.call_at(shortly_before, self._last_bookmark)
        return self._loop.call_at(self._end_at, self.finish)

    def _last_bookmark(self) -> None:
        self._end = self._loop.call_at(self._end_at, self.finish)
        self.bookmark()

    def _release(self) -> None:
        """Close the watch and cancel the timers."""
        self._watch.close()
        self._end.cancel()
        self._bookmarks.remove(self)

"""In-process transport: straight into an embedded server, with no socket between.

    client = Client(InProcessTransport(server, rng=Random(seed)))

Carries bytes, as a socket would, so nothing is shared by accident; and like one it takes its time: a request crosses
at least one turn of the event loop each way, and a watch event comes a random while after the write that caused it.
All of it is loop time and drawn from `rng`, so a simulation runs it in virtual time, the same way for the same seed.

The network can fail: `disconnect` cuts everything under way and refuses what comes, until `connect`; a server that is
stopped does the same to all its transports.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import TypeAlias

from msgspec import Struct

from kedge.embedded.request_info import IN_PROCESS, Caller
from kedge.embedded.server import Server
from kedge.embedded.watch_stream import BOOKMARK_EVERY, BookmarkTimer, WatchStream
from kedge.kube.transport import JSON, BufferedStream, ConnectionFailed, Request, Response, Stream

SecondsRange: TypeAlias = tuple[float, float]  # from, to; evenly distributed

_LINES_PER_TURN = 64


class InProcessTransport:
    """A transport to one embedded server.

    `delay` is how long a watch event is under way, `latency` how long a request and its answer are, each.
    A watch that falls more than `room` events behind is cut off. `caller` is who asks.
    """

    def __init__(
        self,
        server: Server,
        *,
        rng: Random,
        delay: SecondsRange = (0.001, 0.01),
        latency: SecondsRange = (0.0, 0.0),
        room: int = 1000,
        caller: Caller = IN_PROCESS,
    ) -> None:
        self.server = server
        self._rng = rng
        self._delay = delay
        self._latency = latency
        self._room = room
        self._caller = caller
        self._down = ""  # the reason while disconnected
        self._closed = False
        self._cuts = 0
        self._streams: dict[WatchStream, None] = {}
        self._bookmarks = BookmarkTimer()

    async def send(self, request: Request, *, timeout: float) -> Response:
        trip = self._set_out(timeout)
        await self._cross(trip)
        response = (
            await self._answer(request, trip) if self.server.has_webhooks else self.server.handle(request, self._caller)
        )
        await self._cross(trip)
        return response

    async def _answer(self, request: Request, trip: _RoundTrip) -> Response:
        """The answer of a server that may have to ask webhooks, which takes time."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(trip.seconds_left):
                return await self.server.respond(request, self._caller)
        except TimeoutError:
            raise ConnectionFailed("no answer in time", sent=True) from None
        finally:
            trip.seconds_left -= loop.time() - began

    @asynccontextmanager
    async def stream(self, request: Request, *, timeout: float, silence: float) -> AsyncIterator[Stream]:
        trip = self._set_out(timeout)
        await self._cross(trip)
        found = self.server.watch(request, self._caller)
        if isinstance(found, Response):
            await self._cross(trip)
            yield BufferedStream(found)
            return
        # With bookmarks in time there is no silence, so no timer is needed.
        heard_of = found.bookmarks and BOOKMARK_EVERY + self._delay[1] < silence
        stream = WatchStream(found, delay=self._delays(), room=self._room, bookmarks=self._bookmarks)
        self._streams[stream] = None
        try:
            await self._cross(trip)
            yield _WatchResponse(stream, None if heard_of else silence)
        finally:
            del self._streams[stream]
            stream.cut("the stream was left")

    def _delays(self) -> Callable[[], float]:
        """The delays of one watch, from a random generator of its own: watches do not influence each other."""
        seed = self._rng.getrandbits(64)
        rng: Random | None = None

        def delay() -> float:
            nonlocal rng
            rng = rng or Random(seed)  # made when first needed: most watches end without an event
            return rng.uniform(*self._delay)

        return delay

    def disconnect(self, why: str = "disconnected") -> None:
        """Break all requests and watches, and refuse new ones, until `connect`."""
        self._down = why
        self._cuts += 1
        for stream in tuple(self._streams):
            stream.cut(why)

    def connect(self) -> None:
        """Let requests through again."""
        if not self._closed:
            self._down = ""

    async def close(self) -> None:
        """Break all requests and watches, for good."""
        self._closed = True
        self.disconnect("the transport is closed")

    def _set_out(self, timeout: float) -> _RoundTrip:
        if why := self._trouble():
            raise ConnectionFailed(why, sent=False)
        return _RoundTrip(self._era(), timeout)

    async def _cross(self, trip: _RoundTrip) -> None:
        """Wait for one way of a request. If the connection breaks, the request may have arrived."""
        if self._latency[1] > 0:
            await self._take_time(trip)
        else:
            await asyncio.sleep(0)
        lost = "connection lost" if trip.era != self._era() else ""
        late = "no answer in time" if trip.seconds_left < 0 else ""
        if why := self._trouble() or lost or late:
            raise ConnectionFailed(why, sent=True)

    async def _take_time(self, trip: _RoundTrip) -> None:
        takes = self._rng.uniform(*self._latency)
        await asyncio.sleep(min(takes, trip.seconds_left))
        trip.seconds_left -= takes

    def _trouble(self) -> str:
        """Why requests fail now; empty if they do not."""
        return self._down or ("" if self.server.running else "the server is stopped")

    def _era(self) -> int:
        """A number that grows whenever all connections break."""
        return self._cuts + self.server.starts


class _RoundTrip(Struct):
    """A request under way: it fails if the connection breaks or its time is up."""

    era: int
    seconds_left: float


class _WatchResponse:
    """The response to a watch."""

    status = 200
    headers: Mapping[str, str] = {"content-type": JSON}

    def __init__(self, stream: WatchStream, silence: float | None) -> None:
        """`silence` is how long nothing may arrive; None for no limit."""
        self._stream = stream
        self._silence = silence

    async def read(self) -> bytes:
        return b"".join([line + b"\n" async for line in self.lines()])

    async def lines(self) -> AsyncIterator[bytes]:
        turns = itertools.cycle(range(_LINES_PER_TURN))
        while True:
            for line in self._stream.arrived_lines():
                yield line
                if next(turns) == 0:
                    await asyncio.sleep(0)  # a long list must not block other tasks
            if self._stream.ended:
                return
            await (self._stream.wait() if self._silence is None else self._wait(self._silence))

    async def _wait(self, silence: float) -> None:
        try:
            async with asyncio.timeout(silence):
                await self._stream.wait()
        except TimeoutError:
            raise ConnectionFailed(f"nothing came for {silence:g} s", sent=True) from None

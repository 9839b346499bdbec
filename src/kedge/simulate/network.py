"""Network: the link of one process to one server, with its faults and partitions.

    link = Link("web → hub", InProcessTransport(...), faults=ROUGH, rng=seeded.random_for("web", "hub"))

A link is a transport around another. Its faults are drawn from `rng`, request by request. It promises what a transport
does, and also:

* a request that the link itself answers with an error was not carried out; after a 500 nobody knows. A request with a
  refused connection was not sent;
* after `cut` no request reaches the server until `mend`; a link that was cut for good stays cut. Requests in flight may
  still arrive, but their answers do not;
* after `end_faults` there are no more faults. Requests that are late by then still arrive.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random

from kedge.kube.transport import BufferedStream, ConnectionFailed, Request, Response, Stream, Transport
from kedge.simulate import stale_reads
from kedge.simulate.faults import NONE, Faults, answer, writes
from kedge.simulate.faulty_stream import FaultyStream
from kedge.simulate.process_tasks import context_for
from kedge.simulate.trace import Trace


class Link:
    """A transport that fails as networks and servers do."""

    def __init__(
        self,
        name: str,
        inner: Transport,
        *,
        rng: Random,
        faults: Faults = NONE,
        trace: Trace | None = None,
        newest: Callable[[], int] | None = None,
        hit: Callable[[str, str, Request], object] | None = None,
    ) -> None:
        """`newest` gives the server's newest resourceVersion, without which no read is stale.

        `hit` is told of every fault: the link's name, the fault's, and the request.
        """
        self.name = name
        self.faults = faults
        self._inner = inner
        self._rng = rng
        loop = asyncio.get_running_loop()
        self._time = loop.time
        self._trace = trace or Trace(loop, kept=0)
        self._newest = newest
        self._hit = hit or _nobody
        self._partitions = Partitions(faults, Random(rng.getrandbits(64)), self._time())
        self._streams: dict[FaultyStream, None] = {}
        self._under_way: dict[asyncio.Task[None], None] = {}
        self._down = ""  # why, while it is
        self._for_good = False
        self._cuts = 0

    # A transport

    async def send(self, request: Request, *, timeout: float) -> Response:
        number = self._trace.asked(self.name, request)
        try:
            response = await self._carry(number, request, timeout)
        except ConnectionFailed as error:
            self._trace.failed(self.name, number, error)
            raise
        self._trace.answered(self.name, number, response)
        return response

    @asynccontextmanager
    async def stream(self, request: Request, *, timeout: float, silence: float) -> AsyncIterator[Stream]:
        number = self._trace.asked(self.name, request)
        try:
            async with self._opened(number, request, timeout, silence) as stream:
                self._trace.opened(self.name, number, stream.status)
                yield stream
        except ConnectionFailed as error:
            self._trace.failed(self.name, number, error)
            raise

    async def close(self) -> None:
        self.cut("the transport is closed", for_good=True)
        if not self._under_way:  # what is late arrives all the same
            await self._inner.close()

    # Trouble

    def cut(self, why: str = "connection refused", *, for_good: bool = False) -> None:
        """Cut everything under way, and refuse what comes."""
        self._down, self._for_good = why, self._for_good or for_good
        self._cuts += 1
        for stream in tuple(self._streams):
            stream.cut(why)

    def mend(self) -> None:
        """Let requests through again."""
        if not self._for_good:
            self._down = ""

    def end_faults(self) -> None:
        """Nothing goes wrong from now on."""
        self.faults = NONE
        self._partitions = Partitions(NONE, self._rng, self._time())
        for stream in self._streams:
            stream.end_faults()

    async def _carry(self, number: int, request: Request, timeout: float) -> Response:
        """Take a request there and its answer back, as well as that goes."""
        self._check(self._cuts, sent=False)
        if self.faults is NONE:
            return await self._deliver(number, request, timeout)
        fault = self._fault(request)
        if fault in ("refused", "lost_request", "late", "slow"):
            timeout = await self._go_wrong(fault, number, request, timeout)
        timeout = await self._pass_partition(request, timeout)
        if (refusal := answer(fault, request)) is not None:
            await asyncio.sleep(0)
            if fault == "server_error" and self._rng.random() < 0.5:
                await self._deliver(number, request, timeout)
            return refusal
        response = await self._deliver(number, request, timeout)
        if fault == "lost_response":
            raise ConnectionFailed("connection reset before the answer came", sent=True)
        return response

    def _fault(self, request: Request) -> str:
        """What goes wrong with this request; empty if nothing does."""
        fault = self.faults.for_request(request, self._rng)
        if fault:
            self._hit(self.name, fault, request)
        return fault

    async def _go_wrong(self, fault: str, number: int, request: Request, timeout: float) -> float:
        """The faults that come before a request arrives; gives the time left if it does."""
        if fault == "refused":
            raise ConnectionFailed("connection refused", sent=False)
        if fault == "slow":
            return await self._spend(self._rng.uniform(*self.faults.slow_seconds), timeout)
        if fault == "late" and writes(request):
            self._deliver_late(number, request, timeout)
            await asyncio.sleep(timeout)
            raise ConnectionFailed("no answer in time", sent=True)
        await asyncio.sleep(self._rng.uniform(0.0, timeout))
        raise ConnectionFailed("connection reset", sent=True)

    async def _pass_partition(self, request: Request, timeout: float) -> float:
        seconds = self._partitions.left(self._time())
        if seconds <= 0:
            return timeout
        self._hit(self.name, "partitions", request)
        return await self._spend(seconds, timeout)

    async def _spend(self, seconds: float, timeout: float) -> float:
        """Wait so long; gives the time left, if there is."""
        cuts = self._cuts
        await asyncio.sleep(min(seconds, timeout))
        self._check(cuts, sent=True)
        if seconds >= timeout:
            raise ConnectionFailed("no answer in time", sent=True)
        return timeout - seconds

    async def _deliver(self, number: int, request: Request, timeout: float) -> Response:
        cuts = self._cuts
        self._check(cuts, sent=False)
        old = self._stale(request)
        response = None if old is None else await self._at(old, request, timeout)
        if response is None:
            with self._trace.carrying(self.name, number):
                response = await self._inner.send(request, timeout=timeout)
        self._check(cuts, sent=True)
        return response

    def _deliver_late(self, number: int, request: Request, timeout: float) -> None:
        """Have the request arrive after its client has given up; the network does not belong to any process."""
        after = timeout + self._rng.uniform(*self.faults.late_seconds)

        async def arrive() -> None:
            await asyncio.sleep(after)
            self._trace.remark(self.name, f"#{number} arrives only now: {request}")
            # Nobody waits for the answer.
            with suppress(ConnectionFailed), self._trace.carrying(self.name, number):
                await self._inner.send(request, timeout=timeout)

        task = asyncio.get_running_loop().create_task(arrive(), name="a late request", context=context_for(None))
        self._under_way[task] = None
        task.add_done_callback(self._under_way.pop)

    def _check(self, cuts: int, *, sent: bool) -> None:
        if self._down or cuts != self._cuts:
            raise ConnectionFailed(self._down or "connection lost", sent=sent)

    # Stale reads

    def _stale(self, request: Request) -> stale_reads.OldVersion | None:
        if self._newest is None or self.faults.stale <= 0 or "resourceVersion" not in dict(request.query):
            return None
        old = stale_reads.choose_version(request, self._newest(), self.faults.stale_versions, self._rng)
        if old is None or self._rng.random() >= self.faults.stale:
            return None
        self._hit(self.name, "stale", request)
        return old

    async def _at(self, old: stale_reads.OldVersion, request: Request, timeout: float) -> Response | None:
        """The answer as of then; None if the server does not remember, or had no such object."""
        found = await self._inner.send(old.list, timeout=timeout)
        if found.status != 200:
            return None
        return found if request.path == old.list.path else stale_reads.as_object(found)

    # Watches

    @asynccontextmanager
    async def _opened(self, number: int, request: Request, timeout: float, silence: float) -> AsyncIterator[Stream]:
        self._check(self._cuts, sent=False)
        fault = self._fault(request)
        if fault in ("refused", "lost_request", "late", "lost_response", "slow"):
            timeout = await self._go_wrong(_of_watch(fault), number, request, timeout)
        timeout = await self._pass_partition(request, timeout)
        if (refusal := answer(fault, request)) is not None:
            await asyncio.sleep(0)
            yield BufferedStream(refusal)
            return
        request, first = await self._begin(request, timeout)
        async with self._inner.stream(request, timeout=timeout, silence=silence) as stream:
            self._check(self._cuts, sent=True)
            if stream.status != 200:
                yield stream
                return
            faulty = self._faulty(number, request, stream, first, silence)
            self._streams[faulty] = None
            try:
                yield faulty
            finally:
                del self._streams[faulty]

    async def _begin(self, request: Request, timeout: float) -> tuple[Request, list[bytes]]:
        """What to watch, and what comes first: of a replica that lags, how things were."""
        old = self._stale(request)
        found = None if old is None else await self._at(old, request, timeout)
        if old is None or found is None:
            return request, []
        query = {**dict(request.query), "resourceVersion": str(old.version)}
        asked = Request("GET", request.path, tuple(query.items()), accept=request.accept)
        return asked, stale_reads.as_events(found)

    def _faulty(
        self, number: int, request: Request, stream: Stream, first: list[bytes], silence: float
    ) -> FaultyStream:
        def hear(line: bytes | None) -> None:
            if line is None:
                self._trace.ended(self.name, number)
            else:
                self._trace.line(self.name, number, line)

        return FaultyStream(
            stream,
            first=first,
            silence=silence,
            faults=self.faults,
            resumes=dict(request.query).get("resourceVersion", "0") != "0" and not first,
            rng=Random(self._rng.getrandbits(64)),
            held=lambda: self._partitions.left(self._time()),
            hear=hear,
            hit=lambda fault: self._hit(self.name, fault, request),
        )


class Partitions:
    """The times in which nothing gets through a link. They depend on the seed alone."""

    def __init__(self, faults: Faults, rng: Random, now: float) -> None:
        self._rate = faults.partitions / 3600
        self._seconds = faults.partition_seconds
        self._rng = rng
        self._start = self._end = now
        if self._rate > 0:
            self._draw()

    def left(self, now: float) -> float:
        """How many seconds the current partition still lasts; 0 if there is none."""
        while self._rate > 0 and self._end <= now:
            self._draw()
        return self._end - now if self._start <= now else 0.0

    def _draw(self) -> None:
        self._start = self._end + self._rng.expovariate(self._rate)
        self._end = self._start + self._rng.uniform(*self._seconds)


def _of_watch(fault: str) -> str:
    """To open a watch changes nothing, so it is all the same where it was lost."""
    return fault if fault in ("refused", "slow") else "lost_request"


def _nobody(_link: str, _fault: str, _request: Request) -> None:
    return None

"""Requests: what one costs, in process and over HTTPS.

In process, the server's own share is the time spent in `Server.handle`; the whole is server, transport, client and
decoding together. Over HTTPS the client is a process of its own, and the server's CPU time is what its processes took:
reading from sockets, TLS and HTTP are in it; so is what a server does of its own accord meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.request_info import IN_PROCESS, Caller
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.limits import Limiter
from kedge.kube.transport import Request, Response, Stream
from kedgebench.embedded.asked import Asked, Span
from kedgebench.embedded.operations import AT_ONCE, TITLES, Operations, together

WARM_UP = 16
SOUND_OUT = 24


class Timed:
    """The in-process transport, and how long the server itself took."""

    def __init__(self, inner: InProcessTransport) -> None:
        self.server = 0.0
        self._inner = inner
        answer = inner.server.handle

        def handle(request: Request, caller: Caller = IN_PROCESS) -> Response:
            begun = time.process_time()
            response = answer(request, caller)
            self.server += time.process_time() - begun
            return response

        inner.server.handle = handle  # type: ignore[method-assign]

    async def send(self, request: Request, *, timeout: float) -> Response:
        return await self._inner.send(request, timeout=timeout)

    @asynccontextmanager
    async def stream(self, request: Request, *, timeout: float, silence: float) -> AsyncIterator[Stream]:
        async with self._inner.stream(request, timeout=timeout, silence=silence) as stream:
            yield stream

    async def close(self) -> None:
        await self._inner.close()


async def inside(rounds: int, seconds: float, objects: int) -> list[dict[str, Any]]:
    """Task: every operation in process, one at a time."""
    cluster = EmbeddedCluster("bench", clock=SystemClock(), rng=Random(1))
    cluster.start()
    timed = Timed(cluster.transport())
    operations = Operations(Client(timed, limiter=Limiter(rate=0)), objects)
    await operations.prepare()
    found = []
    for name in TITLES:
        work = operations.by_name(name)
        await _times(work, WARM_UP)
        for _ in range(rounds):
            count = await _how_many(work, seconds, time.process_time)
            server, begun = timed.server, time.process_time()
            await _times(work, count)
            whole = time.process_time() - begun
            found.append({"name": name, "server": (timed.server - server) / count, "whole": whole / count})
    cluster.stop()
    return found


async def outside(servers: dict[str, Any], rounds: int, seconds: float, objects: int) -> list[dict[str, Any]]:
    """Task: every operation over HTTPS, to each of the servers in turns."""
    asked = [Asked(name, given["kubeconfig"], given["pids"], objects) for name, given in servers.items()]
    for server in asked:
        await server.operations.prepare()
    found = []
    for name in TITLES:
        for turn in range(rounds):
            for server in asked:
                figures = await _round(server, name, seconds, warm=turn > 0)
                found.append({"name": name, "of": server.name, **figures})
    await _close(asked)
    return found


async def _round(server: Asked, name: str, seconds: float, *, warm: bool) -> dict[str, Any]:
    work = server.operations.by_name(name)
    at_once = 1 if name == "list" else AT_ONCE
    if not warm:
        await _times(work, WARM_UP, at_once)
    count = await _how_many(work, seconds, server.cpu, at_once)
    span = Span(server)
    await _times(work, count, at_once)
    return span.end(count)


async def _how_many(
    work: Callable[[], Awaitable[object]], seconds: float, cpu: Callable[[], float], at_once: int = 1
) -> int:
    """How often to do it so that it takes about so many seconds of CPU time."""
    begun = cpu()
    await _times(work, SOUND_OUT, at_once)
    each = max((cpu() - begun) / SOUND_OUT, 1e-4)
    return max(SOUND_OUT, min(5000, round(seconds / each)))


async def _times(work: Callable[[], Awaitable[object]], count: int, at_once: int = 1) -> None:
    await together(lambda _number: work(), range(count), at_once)


async def _close(asked: Sequence[Asked]) -> None:
    for server in asked:
        await server.operations.client.close()

"""Fan-out: what it costs to tell many watchers of one write.

The figure is what a write costs more with N watchers than with none, per watcher: telling, queueing and, in process,
the watcher that reads the line. Lines are read and thrown away, so that decoding is nobody's cost here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from kedge.api.core import ConfigMap
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.inprocess import InProcessTransport
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.limits import Limiter
from kedge.kube.transport import Request, Transport
from kedgebench.embedded.asked import Asked
from kedgebench.embedded.operations import SHOP, Operations

WARM_UP = 3
SILENCE = 120.0
QUERY = (("watch", "true"), ("timeoutSeconds", "600"))


class Watchers:
    """So many watchers of one collection, each with its own stream; they count the lines they read."""

    def __init__(self, transport: Transport, count: int) -> None:
        self.count = count
        self._transport = transport
        self._lines = 0
        self._wanted = 0
        self._all_here = asyncio.Event()

    @asynccontextmanager
    async def open(self, resource_version: str) -> AsyncIterator[None]:
        """Have them watch, from this version on."""
        opened = asyncio.Semaphore(0)
        tasks = [asyncio.create_task(self._watch(resource_version, opened)) for _ in range(self.count)]
        for _ in tasks:
            await opened.acquire()
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def told(self, writes: int) -> None:
        """Until each of them has read so many lines more than last time."""
        self._wanted += writes * self.count
        while self._lines < self._wanted:
            self._all_here.clear()
            await self._all_here.wait()

    async def _watch(self, resource_version: str, opened: asyncio.Semaphore) -> None:
        path, query = ConfigMap.resource.path(SHOP), (*QUERY, ("resourceVersion", resource_version))
        async with self._transport.stream(Request("GET", path, query), timeout=60, silence=SILENCE) as stream:
            opened.release()
            async for _ in stream.lines():
                self._lines += 1
                if self._lines >= self._wanted:
                    self._all_here.set()


async def inside(rounds: int, watchers: list[int], events: int, most_writes: int) -> list[dict[str, Any]]:
    """Task: in process, where the server, the transport and the watchers are one process."""
    cluster = EmbeddedCluster("bench", clock=SystemClock(), rng=Random(1))
    cluster.start()
    transport = InProcessTransport(cluster.server, rng=Random(1), delay=(0.0, 0.0))
    operations = Operations(Client(transport, limiter=Limiter(rate=0)), 1)
    await operations.prepare()
    found = await _measured(operations, transport, time.process_time, rounds, watchers, events, most_writes)
    cluster.stop()
    return [{"of": "in process", **figures} for figures in found]


async def outside(
    servers: dict[str, Any], rounds: int, watchers: list[int], events: int, most_writes: int
) -> list[dict[str, Any]]:
    """Task: over HTTPS, where only the server's processes count."""
    found = []
    for name, given in servers.items():
        asked = Asked(name, given["kubeconfig"], given["pids"], 1)
        operations = asked.operations
        await operations.prepare()
        measured = await _measured(
            operations, operations.client.transport, asked.cpu, rounds, watchers, events, most_writes
        )
        found += [{"of": name, **figures} for figures in measured]
        await operations.client.close()
    return found


async def _measured(
    operations: Operations,
    transport: Transport,
    cpu: Callable[[], float],
    rounds: int,
    watchers: list[int],
    events: int,
    most_writes: int,
) -> list[dict[str, Any]]:
    """Seconds of CPU time for a write with nobody watching, and per watcher more with some, round by round."""
    found = []
    for _ in range(rounds):
        alone = await _per_write(operations, transport, cpu, 0, most_writes)
        found.append({"watchers": 0, "write": alone})
        for count in watchers:
            cost = await _per_write(operations, transport, cpu, count, min(most_writes, max(10, events // count)))
            found.append({"watchers": count, "write": cost, "each": (cost - alone) / count})
    return found


async def _per_write(
    operations: Operations, transport: Transport, cpu: Callable[[], float], watchers: int, writes: int
) -> float:
    watching = Watchers(transport, watchers)
    page = await operations.client.list(ConfigMap, SHOP)
    async with watching.open(page.resource_version):
        await _write(operations, watching, WARM_UP)
        begun = cpu()
        await _write(operations, watching, writes)
        return (cpu() - begun) / writes


async def _write(operations: Operations, watching: Watchers, writes: int) -> None:
    for _ in range(writes):
        await operations.touch()
        await watching.told(1)

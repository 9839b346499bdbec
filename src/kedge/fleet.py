"""Fleet: a hub and members in one process, each with its own API, and workloads that come up on the members.

    async with Fleet(members=4, clock=SystemClock(), rng=Random(1)) as fleet:
        client = Client(fleet.hub.transport())

Nothing here opens a socket. The members' workloads are simulated by controllers of ours (`embedded.workloads`), which
reach each member as any client does. The hub runs none: what is placed from it does not run on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from random import Random
from types import TracebackType
from typing import Self

from kedge.embedded.cluster import EmbeddedCluster, child
from kedge.embedded.workloads.everything import Workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.clock import Clock
from kedge.kube.manager import Manager

NODES = 2  # of each member


class Fleet:
    """A hub and `members` clusters, named `cluster-1` and on; each has `nodes` nodes."""

    def __init__(self, *, members: int, clock: Clock, rng: Random, nodes: int = NODES, authority: str = "") -> None:
        names = ["hub", *(f"cluster-{number}" for number in range(1, members + 1))]
        clusters = [EmbeddedCluster(name, clock=clock, rng=child(rng), authority=authority) for name in names]
        self.hub, self.members = clusters[0], tuple(clusters[1:])
        self._nodes = nodes
        self._manager = Manager(component="kube-controller-manager", clock=clock, rng=child(rng), grace=1.0)
        self._stack = AsyncExitStack()

    @property
    def clusters(self) -> tuple[EmbeddedCluster, ...]:
        """All of them, the hub first."""
        return (self.hub, *self.members)

    async def __aenter__(self) -> Self:
        await self._stack.__aenter__()
        for cluster in self.clusters:
            cluster.start()
            self._stack.callback(cluster.stop)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    async def run_workloads(self, progress: Callable[[str], None] = lambda _name: None) -> None:
        """Let workloads come up on the members; returns once every member has its nodes, saying which has."""
        manager = await self._stack.enter_async_context(self._manager)
        workloads = Workloads(manager)
        running = asyncio.create_task(manager.run(signals=False), name="simulated workloads")
        self._stack.push_async_callback(self._end, manager, running)
        for member in self.members:
            cluster = await manager.connect(member.name, member.transport())
            workloads.join(cluster)
            await make_nodes(cluster.client, self._nodes, manager.clock)
            progress(member.name)

    async def _end(self, manager: Manager, running: asyncio.Task[None]) -> None:
        manager.stop()
        await running

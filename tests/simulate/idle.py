"""Idle: a whole fleet with nothing to do, and what must be true of it however long that lasts.

PYTHONPATH=tests python -m kedge.simulate simulate.idle:day --seed 1
"""

from __future__ import annotations

import asyncio
from typing import Any

from kedge.api.core import ConfigMap, Namespace
from kedge.embedded.options import is_watch
from kedge.embedded.request_info import IN_PROCESS, Caller
from kedge.embedded.server import Server
from kedge.embedded.watch import Watch
from kedge.fleet import Fleet
from kedge.kube.cache import Cache
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.manager import Manager
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.transport import Request, Response
from kedge.simulate.process import Main, Process
from kedge.simulate.simulation import Simulation

MEMBERS = 20
DAY = 24 * 3600.0


async def day(simulation: Simulation) -> None:
    """A hub, twenty members, their workload controllers, and an agent for each: idle for 24 hours."""
    await at_rest(simulation, DAY)


async def two_hours(simulation: Simulation) -> None:
    """The same, for those in a hurry."""
    await at_rest(simulation, 2 * 3600.0)


async def at_rest(simulation: Simulation, seconds: float) -> None:
    async with Fleet(members=MEMBERS, clock=simulation.clock, rng=simulation.rng("fleet")) as fleet:
        asked = [Asked(cluster.server) for cluster in fleet.clusters]
        servers = {cluster.name: simulation.add_server(cluster.name, cluster.server) for cluster in fleet.clusters}
        await fleet.run_workloads()
        seen = list(fleet._manager.clusters.values())
        simulation.start("hub", agent(seen, "hub"))
        for member in fleet.members:
            simulation.start(member.name, agent(seen, "hub", member.name))
        await simulation.rest(quiet=60.0)
        assert len(seen) == MEMBERS + 1 + 2 * MEMBERS, "everybody is there before the time is taken"
        for one in asked:
            one.begin()
        writes = simulation.writes
        await asyncio.sleep(seconds)
        assert simulation.writes == writes, "nobody writes where there is nothing to do"
        assert [str(one) for there in asked for one in there.more_than_needed] == [], "nobody lists anew"
        assert [line for cluster in seen for line in cluster.problems()] == [], "everybody is connected"
        caches = [(servers[cluster.name], cache) for cluster in seen for cache in cluster._caches.values()]
        assert len(caches) > 10 * MEMBERS, "those of the workload controllers too"
        for server, cache in caches:
            assert shown(cache) == stored(server, cache), "what caches show is what there is"


class Asked:
    """What is asked of a server from a moment on, beside what everybody needs."""

    def __init__(self, server: Server) -> None:
        self.more_than_needed: list[Request] = []
        handle, watch = server.handle, server.watch

        def handled(request: Request, caller: Caller = IN_PROCESS) -> Response:
            self._hear(request)
            return handle(request, caller)

        def watched(request: Request, caller: Caller = IN_PROCESS) -> Watch | Response:
            self._hear(request)
            return watch(request, caller)

        server.handle, server.watch = handled, watched  # type: ignore[method-assign]  # nobody else listens here

    def begin(self) -> None:
        """Forget what was asked until now."""
        self.more_than_needed.clear()

    def _hear(self, request: Request) -> None:
        """A question whether the server is there, and a watch that goes on where another ended, are needed."""
        goes_on = is_watch(request) and dict(request.query).get("resourceVersion", "0") != "0"
        if request.path != "/version" and not goes_on:
            self.more_than_needed.append(request)


def shown(cache: Cache[Any]) -> list[tuple[str, str, str]]:
    metas = [cache.codec.meta(found) for found in cache.all()]
    return sorted((meta.namespace or "", meta.name, meta.resource_version) for meta in metas)


def stored(server: Server, cache: Cache[Any]) -> list[tuple[str, str, str]]:
    """What the server has of the kind that a cache of everything shows."""
    kind = next(kind for kind in server.registry.kinds() if kind.resource == cache.codec.resource)
    versions = server.store.all(kind).at(server.store.number).within("")
    return sorted((version.namespace, version.name, str(version.number)) for version in versions)


def agent(seen: list[Cluster], *servers: str) -> Main:
    """A process that follows these servers, and has nothing to do there."""

    async def main(process: Process) -> None:
        async with Manager(clock=process.clock, rng=process.rng("manager")) as manager:
            for server in servers:
                cluster = await manager.connect(server, process.link(server))
                sources = [cluster.watch(cluster.cache(kind)) for kind in (ConfigMap, Namespace)]
                manager.add_controller(Controller(f"looker at {server}", _looks, sources))
                seen.append(cluster)
            await manager.run(signals=False)

    return main


async def _looks(_key: Key) -> Outcome:
    return Outcome.done

"""Many runs: a hub of its own on which a hundred staged runs move at the same time, each over members of its own.

What a run takes alone is compared with what it takes when all of them run, while the one over the first members stands
still, because one of these never becomes ready.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import AsyncExitStack
from statistics import median
from typing import Any

from kedge.api.apps import Deployment
from kedge.api.cluster import MemberCluster
from kedge.api.core import Namespace
from kedge.api.fleet import member_namespace
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.staged import ClusterStagedUpdateRun, ClusterStagedUpdateStrategy
from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedgebench.fleet import release, stages
from kedgebench.fleet.hub_server import HEARTBEAT, HubServer, shop
from kedgebench.fleet.standing import HubProcess, hub_process, teller

READY_AFTER = 5.0  # seconds: else a hundred runs are a race for the two cores, and nothing else


class Runs:
    """When each run was made, and when it had succeeded."""

    def __init__(self, server: HubServer) -> None:
        self._server = server
        self._made: dict[str, float] = {}
        self.took: dict[str, float] = {}
        server.cluster.server.store.subscribe(self._see)

    def _see(self, kind: Kind, change: Change) -> None:
        if kind.resource.kind != "ClusterStagedUpdateRun":
            return
        name, now = change.version.name, time.perf_counter()
        made = self._made.setdefault(name, now)
        said = change.version.decode().get("status", {}).get("conditions", ())
        if any(one["type"] == "Succeeded" and one["status"] == "True" for one in said):
            self.took.setdefault(name, now - made)

    async def move(self, number: int, placements: Iterable[int], *, but: str = "") -> list[float]:
        """Release and run these, all at once; gives what each took, once all have succeeded but that one."""
        chosen = [*placements]
        for one in chosen:
            await self._server.release(number, one)
        for one in chosen:
            await self._server.make(ClusterStagedUpdateRun, stages.run(_name(number, one), shop(one)))
        waited = [name for one in chosen if (name := _name(number, one)) != but]
        await self._server.until(lambda: all(name in self.took for name in waited))
        return [self.took[name] for name in waited]


def _name(number: int, placement: int) -> str:
    return f"release-{number}-{shop(placement)}"


async def measure(members: int, runs: int) -> dict[str, Any]:
    """Task: what runs take alone, and together."""
    say, each = teller(), members // runs
    names = [f"cluster-{number}" for number in range(members)]
    async with AsyncExitStack() as stack:
        server = HubServer()
        server.cluster.start()
        stack.callback(server.cluster.stop)
        seen = Runs(server)
        await server.install()
        await server.make(ClusterStagedUpdateStrategy, stages.strategy())
        for number in range(runs):
            await _placed(server, number, names[number * each : (number + 1) * each])
        file = await stack.enter_async_context(server.open_door())
        pretended = await stack.enter_async_context(server.served(ready_after=READY_AFTER))
        process = await stack.enter_async_context(hub_process(file))
        await process.idle()
        say(f"{members} members have joined")
        await seen.move(1, range(runs))
        await process.idle()
        say("every placement is there")
        alone = await seen.move(2, [runs - 1])
        say(f"alone: {alone}")
        pretended.stuck.add(member_namespace(names[0]))
        together = await _together(seen, process, runs)
        return {"members": members, "runs": runs, "waves": stages.waves(each), "alone": alone, **together}


async def _placed(server: HubServer, number: int, names: list[str]) -> None:
    for name, labels in stages.labelled(names).items():
        await server.make(MemberCluster, release.member(name, HEARTBEAT, labels))
    await server.make(Namespace, release.namespace(shop(number)))
    await server.make(Deployment, release.deployment(1, where=shop(number)))
    await server.make(ClusterResourcePlacement, release.external(shop(number), shop(number), clusters=names))


async def _together(seen: Runs, process: HubProcess, runs: int) -> dict[str, Any]:
    cpu, begun = process.cpu, time.perf_counter()
    took = await seen.move(3, range(runs), but=_name(3, 0))
    return {
        "median": median(took),
        "longest": max(took),
        "cpu": process.cpu - cpu,
        "seconds": time.perf_counter() - begun,
        "peak": process.peak,
        "stuck_ended": float(_name(3, 0) in seen.took),
    }

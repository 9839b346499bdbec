"""Life: a whole fleet in virtual time, from its start over an idle while to releases on every member.

What each stretch of it took: CPU time, steps and turns of the loop, requests and watches that reached a server, writes,
and virtual seconds; and the memory after it. The workload controllers of all members run in the same process.
A small fleet lives and goes first, so that what is done once in a process (schemas, compiled rules) is in no figure.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any

import msgspec

from kedge.api.apps import Deployment
from kedge.embedded.kind import Kind
from kedge.embedded.request_info import IN_PROCESS, Caller
from kedge.embedded.server import Server
from kedge.embedded.store import Change
from kedge.embedded.watch import Watch
from kedge.fleet import Fleet
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request, Response
from kedge.simulate.run import run
from kedge.simulate.simulation import Simulation
from kedgebench.memory import resident

NAME = "web"
REPLICAS = 3
BETWEEN = 30.0  # virtual seconds from one release to the next


class Life:
    """A scenario: so many members, so long idle, so many releases. `stretches` is what it came to."""

    def __init__(self, members: int, idle: float, releases: int) -> None:
        self.members = members
        self.idle = idle
        self.releases = releases
        self.stretches: dict[str, dict[str, float]] = {}
        self._requests = 0
        self._watches = 0
        self._rolled_out: dict[str, str] = {}  # by member: the image that all its pods run, available

    async def __call__(self, simulation: Simulation) -> None:
        stretch = _Stretch(self, simulation)
        async with Fleet(members=self.members, clock=simulation.clock, rng=simulation.rng("fleet")) as fleet:
            for cluster in fleet.clusters:
                simulation.add_server(cluster.name, cluster.server)
                self._count(cluster.server)
                cluster.server.store.subscribe(partial(self._see, cluster.name))
            await fleet.run_workloads()
            await simulation.rest(quiet=30.0)
            stretch.ends("start")
            await asyncio.sleep(self.idle)
            stretch.ends("idle")
            if self.releases:
                await self._release(simulation, fleet, 1)
                stretch.ends("rollout")
            for number in range(1, self.releases):
                await self._release(simulation, fleet, number + 1)
            stretch.ends("busy")

    async def _release(self, simulation: Simulation, fleet: Fleet, number: int) -> None:
        """Have every member run another image, and wait until all of them do."""
        image = f"{NAME}:{number}"
        for member in fleet.members:
            client = simulation.client(member.name)
            if number == 1:
                await client.create(Deployment, _deployment(image))
            else:
                await client.patch(Deployment, NAME, MergePatch(_template(image)), "default")
        await simulation.until(
            f"every member runs {image}",
            lambda: all(self._rolled_out.get(member.name) == image for member in fleet.members),
        )
        await asyncio.sleep(BETWEEN)

    def _count(self, server: Server) -> None:
        answer, watch = server.handle, server.watch

        def handle(request: Request, caller: Caller = IN_PROCESS) -> Response:
            self._requests += 1
            return answer(request, caller)

        def watched(request: Request, caller: Caller = IN_PROCESS) -> Watch | Response:
            self._watches += 1
            return watch(request, caller)

        server.handle = handle  # type: ignore[method-assign]
        server.watch = watched  # type: ignore[method-assign]

    def _see(self, member: str, kind: Kind, change: Change) -> None:
        if kind.resource.plural != "deployments" or change.version.name != NAME:
            return
        found = msgspec.json.decode(change.version.body)
        status, image = found.get("status", {}), found["spec"]["template"]["spec"]["containers"][0]["image"]
        counts = [status.get(field) for field in ("replicas", "updatedReplicas", "availableReplicas")]
        done = counts == [REPLICAS] * 3 and status.get("observedGeneration") == found["metadata"]["generation"]
        self._rolled_out[member] = image if done else ""

    @property
    def asked(self) -> tuple[int, int]:
        return self._requests, self._watches


class _Stretch:
    """From the end of the last stretch, or the making of this, to the next `ends`."""

    def __init__(self, life: Life, simulation: Simulation) -> None:
        self._life = life
        self._simulation = simulation
        self._begin()

    def ends(self, name: str) -> None:
        took = [now - then for now, then in zip(self._so_far(), self._then, strict=True)]
        names = ("cpu", "virtual", "steps", "turns", "writes", "requests", "watches")
        self._life.stretches[name] = {**dict(zip(names, took, strict=True)), "resident": resident()}
        self._begin()

    def _begin(self) -> None:
        self._then = self._so_far()

    def _so_far(self) -> tuple[float, ...]:
        loop, simulation = self._simulation.loop, self._simulation
        return (time.process_time(), loop.time(), loop.steps, loop.turns, simulation.writes, *self._life.asked)


life: Life  # the one that runs: a scenario is found by its name


def measure(members: int, idle: float, releases: int) -> dict[str, Any]:
    """Task: one life."""
    _live(Life(1, 60.0, 2))
    lived = _live(Life(members, idle, releases))
    return {"members": members, "stretches": lived.stretches}


def _live(one: Life) -> Life:
    global life  # noqa: PLW0603
    life = one
    run(f"{__name__}:life", seed=1)
    return one


def _template(image: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": NAME, "image": image}]}}}}


def _deployment(image: str) -> dict[str, Any]:
    selected = {"app": NAME}
    template = {"metadata": {"labels": selected}, **_template(image)["spec"]["template"]}
    spec = {"replicas": REPLICAS, "selector": {"matchLabels": selected}, "template": template}
    return {"metadata": {"name": NAME, "namespace": "default"}, "spec": spec}

"""Whole fleets from seeds: a hub and members that have bad days, while what they place is changed under them.

PYTHONPATH=tests python -m kedge.simulate simulate.rolling:rolling --seed 1 --faults rough
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import Deployment
from kedge.api.cluster import MemberCluster
from kedge.api.core import Namespace
from kedge.api.crds import crds
from kedge.api.fleet import PAUSED
from kedge.api.placement import ClusterResourcePlacement
from kedge.embedded.workloads.everything import Workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.errors import Conflict, NotFound
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.plan.telling.story import tell
from kedge.roles import HubOptions, MemberOptions, add_hub, add_member
from kedge.simulate.process import Process
from kedge.simulate.world import Simulation
from simulate.promises import Promises

NAMESPACE, NAME, APP = "test-ns", "crp", "web"
BAD = "app:bad"


async def rolling(simulation: Simulation) -> None:
    """Bad days for everybody and edits midway; then calm, and everything arrives."""
    fleet = FleetInTrouble(simulation)
    await fleet.open()
    trouble = [fleet.bad_days(process) for process in simulation.processes.values()]
    await asyncio.gather(fleet.edits(), *trouble)
    await fleet.settle()


async def quiet(simulation: Simulation) -> None:
    """One good release and one bad one that is mended, with nobody disturbing."""
    fleet = FleetInTrouble(simulation, members=5)
    await fleet.open()
    await fleet.settle()
    for image in ("app:2", BAD, "app:3"):
        await fleet.release(image)
        await asyncio.sleep(60)
    await fleet.settle()


class FleetInTrouble:
    """A hub, members, their agents, a user, and what must always hold."""

    def __init__(self, simulation: Simulation, members: int = 0) -> None:
        self.simulation = simulation
        self.rng = simulation.rng("fleet")
        self.members = [f"cluster-{number}" for number in range(1, (members or self.rng.randint(5, 6)) + 1)]
        simulation.cluster("hub")
        self.hub = simulation.client("hub")
        self.clusters = {name: simulation.cluster(name) for name in self.members}
        self.budget = {"maxUnavailable": self.rng.choice([1, 1, 2, "30%"]), "maxSurge": self.rng.choice([1, 2, "25%"])}
        self.image = "app:1"
        self.promises = Promises(simulation, self.members, self.budget)

    async def open(self) -> None:
        """Everything is installed, everybody joins, and the first resources are placed."""
        self.simulation.loop.create_task(self._workloads(), name="workloads")
        for where in ("hub", *self.members):
            client = self.simulation.client(where)
            for definition in crds():
                await client.create(CustomResourceDefinition, definition)
        self.simulation.start("hub", self._hub)
        for name in self.members:
            await self._join(name)
            self.simulation.start(name, self._agent)
        await self.hub.create(Namespace, {"metadata": {"name": NAMESPACE}})
        await self.hub.create(Deployment, deployment(self.image))
        await self.hub.create(ClusterResourcePlacement, self._placement(min(4, len(self.members) - 1)))

    async def _workloads(self) -> None:
        """The members' own controllers, which are none of ours and have no bad days."""
        rng = self.simulation.rng("workloads")
        async with Manager(component="kube-controller-manager", clock=self.simulation.clock, rng=rng) as manager:
            workloads = Workloads(manager)
            for name, cluster in self.clusters.items():
                there = await manager.connect(name, cluster.transport())
                workloads.join(there)
                await make_nodes(there.client, 1, self.simulation.clock)
            await manager.run(signals=False)

    async def _hub(self, process: Process) -> None:
        async with Manager(component="kedge-hub", clock=process.clock, rng=process.rng("manager")) as manager:
            add_hub(manager, await manager.connect("hub", process.link("hub")), HubOptions(collect=0.2))
            await manager.run(signals=False)

    async def _agent(self, process: Process) -> None:
        async with Manager(component="kedge-member", clock=process.clock, rng=process.rng("manager")) as manager:
            hub = await manager.connect("hub", process.link("hub"))
            member = await manager.connect(process.name, process.link(process.name))
            add_member(manager, process.name, hub, member, MemberOptions())
            await manager.run(signals=False)

    async def _join(self, name: str) -> None:
        identity = {"kind": "ServiceAccount", "name": name, "namespace": "fleet-system"}
        spec = {"identity": identity, "heartbeatPeriodSeconds": 600}
        await self.hub.create(MemberCluster, {"metadata": {"name": name, "labels": {"env": "prod"}}, "spec": spec})

    def _placement(self, number: int) -> dict[str, Any]:
        policy = {"placementType": "PickN", "numberOfClusters": number}
        selector = {"group": "", "version": "v1", "kind": "Namespace", "name": NAMESPACE}
        strategy = {"rollingUpdate": {**self.budget, "unavailablePeriodSeconds": 2}}
        return {
            "metadata": {"name": NAME},
            "spec": {"resourceSelectors": [selector], "policy": policy, "strategy": strategy},
        }

    # What users do

    async def edits(self, number: int = 8) -> None:
        """Edits now and then, of anything a user may edit."""
        for count in range(number):
            await asyncio.sleep(self.rng.uniform(5.0, 60.0))
            edit = self.rng.choice([self._good, self._good, self._bad, self._scale, self._drift, self._pause])
            with suppress(NotFound, Conflict):
                await edit(count)

    async def release(self, image: str) -> None:
        self.image = image
        await self.hub.patch(Deployment, APP, MergePatch(template(image)), NAMESPACE)

    async def _good(self, count: int) -> None:
        await self.release(f"app:{count + 2}")

    async def _bad(self, _: int) -> None:
        await self.release(BAD)

    async def _scale(self, _: int) -> None:
        number = self.rng.randint(2, len(self.members))
        await self._change({"spec": {"policy": {"numberOfClusters": number}}})

    async def _drift(self, _: int) -> None:
        """Somebody deletes what was placed."""
        client = self.simulation.client(self.rng.choice(self.members))
        await client.delete(Deployment, APP, NAMESPACE)

    async def _pause(self, _: int) -> None:
        await self._change({"metadata": {"annotations": {PAUSED: self.rng.choice(["true", None])}}})

    async def _change(self, body: dict[str, Any]) -> None:
        await self.hub.patch(ClusterResourcePlacement, NAME, MergePatch(body))

    # Trouble, and its end

    async def bad_days(self, process: Process) -> None:
        """Crash and stand still now and then."""
        rng = self.simulation.rng("bad days", process.name)
        for _ in range(3):
            await asyncio.sleep(rng.uniform(0.0, 100.0))
            if rng.random() < 0.3:
                process.suspend()
                await asyncio.sleep(rng.uniform(0.0, 30.0))
                process.resume()
            elif rng.random() < 0.5:
                process.crash_after_write(rng.randint(1, 10))
            else:
                process.crash()
                await asyncio.sleep(rng.uniform(0.0, 10.0))
                if not process.alive:
                    process.start()

    async def settle(self) -> None:
        """Nothing goes wrong any more, and a good release is wanted: it must arrive everywhere."""
        self.simulation.calm()
        await self._change({"metadata": {"annotations": {PAUSED: None}}})
        await self.release("app:final")
        await self.simulation.until("the fleet arrives", lambda: self.promises.arrived(self.image), within=3600)
        await self._until_told()
        await self.simulation.rest(quiet=20.0)
        self.simulation.at_end("the fleet is where it should be", lambda: self.promises.unlike(self.image))

    async def _until_told(self) -> None:
        """The placement says so too, and nothing is left to be cleared."""
        for _ in range(600):
            story = tell(await self.hub.get(ClusterResourcePlacement, NAME))
            if story.is_done:
                return
            await asyncio.sleep(1.0)
        raise AssertionError(f"it arrived, but does not say so: {story}")


def deployment(image: str) -> dict[str, Any]:
    meta = {"name": APP, "namespace": NAMESPACE, "labels": {"app": APP}}
    return {
        "metadata": meta,
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": APP}}, **template(image)["spec"]},
    }


def template(image: str) -> dict[str, Any]:
    pod = {"metadata": {"labels": {"app": APP}}, "spec": {"containers": [{"name": "app", "image": image}]}}
    return {"spec": {"template": pod}}

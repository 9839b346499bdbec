"""Whole fleets from seeds: a hub and members that have bad days, while what they place is changed under them.

    PYTHONPATH=tests python -m kedge.simulate simulate.rolling:rolling --seed 1

What goes wrong is drawn from the seed as well, unless `--faults` says it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import Any

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import Deployment
from kedge.api.cluster import MemberCluster
from kedge.api.core import ConfigMap, Namespace
from kedge.api.crds import crds
from kedge.api.fleet import PAUSED, PINNED
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.resource import Resource
from kedge.api.work import AppliedWork
from kedge.embedded.workloads.everything import Workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.codec import untyped
from kedge.kube.errors import Conflict, NotFound
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.roles import HubOptions, MemberOptions, add_hub, add_member
from kedge.simulate.faults import NONE
from kedge.simulate.process import Process
from kedge.simulate.world import Simulation
from simulate.ending import Ending, end_state
from simulate.promises import BAD, Promises, has_joined
from simulate.weather import weather

NAMESPACE, NAME, APP = "test-ns", "crp", "web"
POD_TEMPLATES = untyped(Resource("", "v1", "PodTemplate", "podtemplates"))
ON_HUB = tuple(one for one in crds() if one["metadata"]["name"] != str(AppliedWork.resource))
ON_MEMBER = tuple(one for one in crds() if one["metadata"]["name"] == str(AppliedWork.resource))
Edit = Callable[[int], Awaitable[None]]


async def rolling(simulation: Simulation) -> None:
    """Bad days for everybody and edits midway; then calm, and everything arrives."""
    if simulation.faults == NONE:
        simulation.faults = weather(simulation.rng("weather"))
    fleet = FleetInTrouble(simulation)
    await fleet.open()
    trouble = [fleet.bad_days(process) for process in simulation.processes.values()]
    await asyncio.gather(fleet.edits(), *trouble)
    await fleet.settle()


async def quiet(simulation: Simulation) -> None:
    """One good release and one bad one that is mended, with nobody disturbing."""
    fleet = FleetInTrouble(simulation, quiet=True)
    await fleet.open()
    await fleet.arrive()
    for image in ("app:2", BAD, "app:3"):
        await fleet.release(image)
        await asyncio.sleep(60)
    await fleet.settle()


async def hub_crashing(simulation: Simulation) -> None:
    """The same, and the hub crashes after its nth write, n being the seed. It must end as if it had not."""
    await _crashing(simulation, "hub")


async def agent_crashing(simulation: Simulation) -> None:
    """The same, and an agent crashes after its nth write, n being the seed."""
    await _crashing(simulation, "cluster-1")


async def _crashing(simulation: Simulation, who: str) -> None:
    fleet = FleetInTrouble(simulation, quiet=True)
    await fleet.join()
    process = simulation.processes[who]
    process.crash_after_write(simulation.seed)
    began = process.writes
    await fleet.place()
    await fleet.arrive()
    for image in ("app:2", BAD, "app:3"):
        await fleet.release(image)
        await asyncio.sleep(60)
    await fleet.arrive()
    simulation.counts["writes", who] += process.writes - began
    for line in end_state(simulation):
        simulation.counts["end", line] += 1


class FleetInTrouble:
    """A hub, members, their agents, a user, and what must always hold."""

    def __init__(self, simulation: Simulation, *, quiet: bool = False) -> None:
        """A `quiet` one is the same whatever the seed."""
        self.simulation = simulation
        self.rng = rng = Random(7) if quiet else simulation.rng("fleet")
        self.members = [f"cluster-{number}" for number in range(1, (5 if quiet else rng.randint(5, 7)) + 1)]
        self.gone: list[str] = []  # members that left
        self.kind = "PickAll" if quiet else rng.choice(["PickN", "PickN", "PickAll", "PickFixed"])
        self.only_releases = quiet or rng.random() < 0.35
        self.heartbeat = 20 if not quiet and rng.random() < 0.3 else 60
        self.image = "app:1"
        simulation.cluster("hub")
        self.hub = simulation.client("hub")
        self.clusters = {name: simulation.cluster(name) for name in self.members}
        self.promises = Promises(
            simulation, only_releases=self.only_releases, true_clocks=simulation.faults.clock_jumps == 0
        )
        self.ending = Ending(simulation, self.promises, NAMESPACE, NAME)

    async def open(self) -> None:
        """Everything is installed, everybody joins, and the first resources are placed meanwhile."""
        await self.install()
        await self.place()

    async def join(self) -> None:
        """Everything is installed, and everybody has joined."""
        await self.install()
        await self.simulation.until("everybody joins", self._have_joined)

    def _have_joined(self) -> bool:
        return sum(map(has_joined, self.promises.members.all().values())) == len(self.members)

    async def install(self) -> None:
        self.simulation.loop.create_task(self._workloads(), name="workloads")
        for definition in ON_HUB:
            await self.hub.create(CustomResourceDefinition, definition)
        self.simulation.start("hub", self._hub)
        for name in self.members:
            for definition in ON_MEMBER:
                await self.simulation.client(name).create(CustomResourceDefinition, definition)
            self.promises.follow_agent(name)
            await self._join(name)
            self.simulation.start(name, self._agent)

    async def place(self) -> None:
        """The first resources are placed."""
        await self.hub.create(Namespace, {"metadata": {"name": NAMESPACE}})
        await self.hub.create(Deployment, deployment(self.image))
        if self.rng.random() < 0.3:
            await self.hub.create(POD_TEMPLATES, pod_template())  # nothing tells when one is available
        await self.hub.create(ClusterResourcePlacement, self._placement())

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
            hub = await manager.connect("hub", process.link("hub"), limiter=Limiter(rate=0))
            add_hub(manager, hub, HubOptions(collect=0.2))
            await manager.run(signals=False)

    async def _agent(self, process: Process) -> None:
        async with Manager(component="kedge-member", clock=process.clock, rng=process.rng("manager")) as manager:
            hub = await manager.connect("hub", process.link("hub"), limiter=Limiter(rate=0))
            member = await manager.connect(process.name, process.link(process.name), limiter=Limiter(rate=0))
            add_member(manager, process.name, hub, member, MemberOptions())
            await manager.run(signals=False)

    async def _join(self, name: str) -> None:
        identity = {"kind": "ServiceAccount", "name": name, "namespace": "fleet-system"}
        spec = {"identity": identity, "heartbeatPeriodSeconds": self.heartbeat}
        await self.hub.create(MemberCluster, {"metadata": {"name": name, "labels": {"env": "prod"}}, "spec": spec})

    # What is placed

    def _placement(self) -> dict[str, Any]:
        selector = {"group": "", "version": "v1", "kind": "Namespace", "name": NAMESPACE}
        spec = {"resourceSelectors": [selector], "policy": self._policy(), "strategy": self._strategy()}
        return {"metadata": {"name": NAME}, "spec": spec}

    def _policy(self) -> dict[str, Any]:
        wanted = self.rng.sample(self.members, self.rng.randint(3, len(self.members)))
        if self.kind == "PickFixed":
            return {"placementType": self.kind, "clusterNames": sorted(wanted)}
        prod = {"labelSelector": {"matchLabels": {"env": "prod"}}}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"clusterSelectorTerms": [prod]}}
        number = {"numberOfClusters": min(len(wanted), len(self.members) - 1)} if self.kind == "PickN" else {}
        return {"placementType": self.kind, "affinity": {"clusterAffinity": required}, **number}

    def _strategy(self) -> dict[str, Any]:
        unavailable, surge = self.rng.choice([1, 1, 2, "30%", 0]), self.rng.choice([1, 2, "25%", 0])
        return {
            "type": "RollingUpdate",
            "rollingUpdate": {
                "maxUnavailable": unavailable,
                "maxSurge": surge,
                "unavailablePeriodSeconds": self.rng.choice([2, 5, 20]),
            },
        }

    # What users do

    async def edits(self, number: int = 8) -> None:
        """Edits now and then, of anything a user may edit."""
        releases: list[Edit] = [self._good, self._good, self._bad, self._pause, self._pin, self._content]
        others: list[Edit] = [
            *(self._scale, self._scale, self._drift, self._restrategize, self._taint, self._label),
            *(self._leave, self._redo),
        ]
        for count in range(number):
            await asyncio.sleep(self.rng.choice([self.rng.uniform(0.0, 2.0), self.rng.uniform(5.0, 60.0)]))
            with suppress(NotFound, Conflict):
                await self.rng.choice(releases if self.only_releases else releases + others)(count)

    async def release(self, image: str) -> None:
        self.image = image
        await self.hub.patch(Deployment, APP, MergePatch(template(image)), NAMESPACE)

    async def _good(self, count: int) -> None:
        await self.release(f"app:{count + 2}")

    async def _bad(self, _: int) -> None:
        await self.release(BAD)

    async def _content(self, count: int) -> None:
        """Something more in the namespace, or something less, or something else."""
        name = f"extra-{self.rng.randint(1, 2)}"
        body = {"metadata": {"name": name, "namespace": NAMESPACE}, "data": {"count": str(count)}}
        try:
            if self.rng.random() < 0.5:
                await self.hub.delete(ConfigMap, name, NAMESPACE)
            else:
                await self.hub.patch(ConfigMap, name, MergePatch({"data": body["data"]}), NAMESPACE)
        except NotFound:
            await self.hub.create(ConfigMap, body)

    async def _scale(self, _: int) -> None:
        policy = self._policy()
        if self.kind == "PickFixed":
            await self._change({"spec": {"policy": policy}})
        elif self.kind == "PickN":
            await self._change({"spec": {"policy": {"numberOfClusters": self.rng.randint(2, len(self.members))}}})

    async def _redo(self, count: int) -> None:
        """Release and scale in one breath."""
        await self.release(self.rng.choice([f"app:{count + 2}", BAD]))
        await self._scale(count)

    async def _restrategize(self, _: int) -> None:
        await self._change({"spec": {"strategy": self._strategy()}})

    async def _drift(self, count: int) -> None:
        """Somebody deletes or changes what was placed."""
        client = self.simulation.client(self.rng.choice(self.members))
        if self.rng.random() < 0.5:
            await client.delete(Deployment, APP, NAMESPACE)
        else:
            await client.patch(Deployment, APP, MergePatch(template(f"app:drift-{count}")), NAMESPACE)

    async def _taint(self, _: int) -> None:
        taints = self.rng.choice([[], [{"key": "sick", "effect": "NoSchedule"}]])
        await self._member(self.rng.choice(self.members), {"spec": {"taints": taints}})

    async def _label(self, _: int) -> None:
        env = self.rng.choice(["prod", "dev"])
        await self._member(self.rng.choice(self.members), {"metadata": {"labels": {"env": env}}})

    async def _leave(self, _: int) -> None:
        """A member leaves; nobody asks for it any more."""
        if len(self.members) <= 4:
            return
        name = self.members.pop(self.rng.randrange(len(self.members)))
        self.gone.append(name)
        await self.hub.delete(MemberCluster, name)
        await self._fit()

    async def _fit(self) -> None:
        """Ask for no more than there is."""
        policy = (await self.hub.get(ClusterResourcePlacement, NAME)).spec.policy
        assert policy is not None, "every placement here has one"
        if self.kind == "PickFixed":
            names = [name for name in policy.cluster_names if name in self.members] or self.members[:2]
            await self._change({"spec": {"policy": {"clusterNames": names}}})
        elif self.kind == "PickN":
            number = min(policy.number_of_clusters or 1, len(self.members))
            await self._change({"spec": {"policy": {"numberOfClusters": number}}})

    async def _pause(self, _: int) -> None:
        await self._annotate(PAUSED, self.rng.choice(["true", None]))

    async def _pin(self, _: int) -> None:
        placement = await self.hub.get(ClusterResourcePlacement, NAME)
        newest = int(placement.status.observed_resource_index or 0)
        await self._annotate(PINNED, self.rng.choice([None, str(max(0, newest - 1)), str(newest)]))

    async def _annotate(self, name: str, value: str | None) -> None:
        await self._change({"metadata": {"annotations": {name: value}}})

    async def _change(self, body: dict[str, Any]) -> None:
        await self.hub.patch(ClusterResourcePlacement, NAME, MergePatch(body))

    async def _member(self, name: str, body: dict[str, Any]) -> None:
        await self.hub.patch(MemberCluster, name, MergePatch(body))

    # Trouble, and its end

    async def bad_days(self, process: Process) -> None:
        """Crash and stand still now and then; where heartbeats are short, so long that others notice."""
        rng = self.simulation.rng("bad days", process.name)
        longest = 150.0 if self.heartbeat < 60 else 30.0
        for _ in range(3):
            await asyncio.sleep(rng.uniform(0.0, 100.0))
            if rng.random() < 0.3:
                process.suspend()
                await asyncio.sleep(rng.uniform(0.0, longest))
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
        for process in self.simulation.processes.values():
            process.crash_no_more()
            process.clock.jump(-process.clock.off)
        await self._set_right()
        if self.rng.random() < 0.4:
            await self.release(BAD)
            await self.ending.stuck_and_says_so()
        await self.release("app:final")
        await self.arrive()

    async def arrive(self) -> None:
        await self.ending.arrived(self.image, self.members, self.gone)

    async def _set_right(self) -> None:
        """All members are as they were, and nothing holds the placement up."""
        for name in self.members:
            await self._member(name, {"metadata": {"labels": {"env": "prod"}}, "spec": {"taints": []}})
        await self._fit()
        for annotation in (PAUSED, PINNED):
            await self._annotate(annotation, None)


def deployment(image: str) -> dict[str, Any]:
    meta = {"name": APP, "namespace": NAMESPACE, "labels": {"app": APP}}
    return {
        "metadata": meta,
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": APP}}, **template(image)["spec"]},
    }


def template(image: str) -> dict[str, Any]:
    pod = {"metadata": {"labels": {"app": APP}}, "spec": {"containers": [{"name": "app", "image": image}]}}
    return {"spec": {"template": pod}}


def pod_template() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PodTemplate",
        "metadata": {"name": "shape", "namespace": NAMESPACE},
        **template("app:1")["spec"],
    }

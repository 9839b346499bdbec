"""Fleets: a hub, members with their agents and workloads, all from nothing: what every scenario begins with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from typing import Any

from msgspec import Struct

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import Deployment
from kedge.api.cluster import MemberCluster
from kedge.api.core import ConfigMap, Namespace
from kedge.api.crds import crds
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.resource import Resource
from kedge.api.work import AppliedWork
from kedge.embedded.workloads.deployments import Deployments
from kedge.embedded.workloads.everything import Parts, Workloads
from kedge.embedded.workloads.kubelet import Kubelet
from kedge.embedded.workloads.nodes import Nodes, make_nodes
from kedge.embedded.workloads.replicas import ReplicaSets
from kedge.embedded.workloads.scheduler import Scheduler
from kedge.kube.codec import untyped
from kedge.kube.crash import Crashed
from kedge.kube.errors import NotFound
from kedge.kube.events import EventKey, Recorder
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.simulate.process import Main, Process
from kedge.simulate.simulation import Simulation
from simulate.bad_days import bad_day
from simulate.fleet_processes import LEASES, agent_of, contending_hub, hub
from simulate.more_placements import MorePlacements
from simulate.settings import SKEW, Setting

NAMESPACE, NAME, APP = "test-ns", "crp", "web"
POD_TEMPLATES = untyped(Resource("", "v1", "PodTemplate", "podtemplates"))
ON_HUB = tuple(one for one in crds() if one["metadata"]["name"] != str(AppliedWork.resource))
ON_MEMBER = tuple(one for one in crds() if one["metadata"]["name"] == str(AppliedWork.resource))
PROD = {"env": "prod"}
NODES = 2  # of each member
PARTS: Parts = (  # what a Deployment needs to run
    ("deployment", Deployments),
    ("replicaset", ReplicaSets),
    ("scheduler", Scheduler),
    ("kubelet", Kubelet),
    ("node", Nodes),
)


class Shape(Struct, frozen=True):
    """How large the application is, and how long its pods take to become ready."""

    replicas: int = 1
    ready_after: str = "200ms"


class Unheard(Recorder):
    """Tells nobody: nothing here reads the events of a member's own controllers, and they are a sixth of all writes."""

    def _add(self, key: EventKey) -> None:
        self.dropped += 1


class Fleet:
    """A hub, members, their agents, and one application that is placed."""

    def __init__(
        self,
        simulation: Simulation,
        members: int,
        *,
        heartbeat: int = 60,
        labels: Mapping[str, Mapping[str, str]] = {},
        shape: Shape = Shape(),  # noqa: B008  # frozen
        setting: Setting = Setting.plain,
    ) -> None:
        """`labels` are what members have beside `env=prod`."""
        self.simulation = simulation
        self.setting = setting
        self._rng = simulation.rng("setting of the fleet")
        simulation.counts["setting", setting] += 1
        self.members = [f"cluster-{number}" for number in range(1, members + 1)]
        self.gone: list[str] = []  # members that left
        self.labels = {name: {**PROD, **labels.get(name, {})} for name in self.members}
        self.image = "app:1"
        self._heartbeat = heartbeat
        self._shape = shape
        simulation.cluster("hub")
        self.hub = simulation.client("hub")
        self._others = MorePlacements(simulation)
        self._clusters = {name: simulation.cluster(name) for name in self.members}

    # Beginning

    async def install(self, follow: Callable[[str], object]) -> None:
        """Everything is installed, and everybody begins to join; `follow` is told of each member before that."""
        self.simulation.loop.create_task(self._workloads(), name="workloads")
        for definition in ON_HUB:
            await self.hub.create(CustomResourceDefinition, definition)
        await self._start_hubs()
        for name in self.members:
            for definition in ON_MEMBER:
                await self.simulation.client(name).create(CustomResourceDefinition, definition)
            follow(name)
            await self._join(name)
            self._start(name, agent_of(name))
        if self.setting is Setting.two_agents:
            name = self._rng.choice(self.members)
            self._start(f"{name}-2", agent_of(name))

    async def place(self, rng: Random, placement: Callable[[], Mapping[str, Any]]) -> None:
        """The first resources are placed, sometimes with one of which nothing tells when it is available."""
        await self.hub.create(Namespace, {"metadata": {"name": NAMESPACE}})
        await self.hub.create(Deployment, deployment(self.image, self._shape))
        if rng.random() < 0.3:
            await self.hub.create(POD_TEMPLATES, pod_template())
        await self.hub.create(ClusterResourcePlacement, placement())
        if self.setting is Setting.more_placements:
            await self._others.place()

    async def _start_hubs(self) -> None:
        if self.setting is not Setting.two_hubs:
            self._start("hub", hub)
            return
        await self.hub.create(Namespace, {"metadata": {"name": LEASES}})
        for name in ("hub", "hub-2"):
            self._start(name, contending_hub)

    def _start(self, name: str, main: Main) -> None:
        process = self.simulation.start(name, main, exits_on=(Crashed,))
        if self.setting is Setting.skewed_clocks:
            process.clock.jump(self._rng.uniform(-SKEW, SKEW))

    async def _workloads(self) -> None:
        """The members' own controllers, which are none of ours and have no bad days."""
        rng = self.simulation.rng("workloads")
        async with Manager(component="kube-controller-manager", clock=self.simulation.clock, rng=rng) as manager:
            workloads = Workloads(manager, PARTS)
            for name, cluster in self._clusters.items():
                there = await manager.connect(name, cluster.transport())
                there.events = Unheard(there.client, "kube-controller-manager", clock=self.simulation.clock, rng=rng)
                workloads.join(there)
                await make_nodes(there.client, NODES, self.simulation.clock)
            await manager.run(signals=False)

    async def _join(self, name: str) -> None:
        identity = {"kind": "ServiceAccount", "name": name, "namespace": "fleet-system"}
        spec = {"identity": identity, "heartbeatPeriodSeconds": self._heartbeat}
        await self.hub.create(MemberCluster, {"metadata": {"name": name, "labels": self.labels[name]}, "spec": spec})

    # What users do

    async def release(self, image: str) -> None:
        self.image = image
        await self.hub.patch(Deployment, APP, MergePatch(template(image)), NAMESPACE)

    async def content(self, rng: Random, count: int) -> None:
        """Something more in the namespace, or something less, or something else."""
        name = f"extra-{rng.randint(1, 2)}"
        body = {"metadata": {"name": name, "namespace": NAMESPACE}, "data": {"count": str(count)}}
        try:
            if rng.random() < 0.5:
                await self.hub.delete(ConfigMap, name, NAMESPACE)
            else:
                await self.hub.patch(ConfigMap, name, MergePatch({"data": body["data"]}), NAMESPACE)
        except NotFound:
            await self.hub.create(ConfigMap, body)

    async def drift(self, rng: Random, count: int) -> None:
        """Somebody deletes or changes what was placed."""
        client = self.simulation.client(rng.choice(self.members))
        if rng.random() < 0.5:
            await client.delete(Deployment, APP, NAMESPACE)
        else:
            await client.patch(Deployment, APP, MergePatch(template(f"app:drift-{count}")), NAMESPACE)

    async def change(self, body: Mapping[str, Any]) -> None:
        """Edit the placement."""
        await self.hub.patch(ClusterResourcePlacement, NAME, MergePatch(body))

    async def change_member(self, name: str, body: Mapping[str, Any]) -> None:
        await self.hub.patch(MemberCluster, name, MergePatch(body))

    # Trouble, and its end

    async def bad_days(self, process: Process, days: int = 3, apart: float = 100.0) -> None:
        """Crash and stand still now and then; where heartbeats are short, so long that others notice."""
        rng = self.simulation.rng("bad days", process.name)
        longest = 150.0 if self._heartbeat < 60 else 30.0
        for _ in range(days):
            await asyncio.sleep(rng.uniform(0.0, apart))
            await bad_day(process, rng, longest=longest)

    async def end_faults(self) -> None:
        """Nothing goes wrong any more, and all members are as they were."""
        self.simulation.end_faults()
        for process in self.simulation.processes.values():
            process.crash_no_more()
            process.clock.jump(-process.clock.off)
        for name in self.members:
            await self.change_member(name, {"metadata": {"labels": self.labels[name]}, "spec": {"taints": []}})
        for name in self.gone:
            with suppress(NotFound):  # unless the hub was restored to when it had not left
                await self.hub.delete(MemberCluster, name)

    async def others_arrive(self) -> None:
        """What other placements place is where it should be, too."""
        if self.setting is Setting.more_placements:
            await self._others.arrive(self.members)


class Picks:
    """Which clusters a placement is to be on, as its users say."""

    def __init__(self, fleet: Fleet, rng: Random, kind: str) -> None:
        self._fleet = fleet
        self._rng = rng
        self.kind = kind

    def policy(self) -> dict[str, Any]:
        members = self._fleet.members
        wanted = self._rng.sample(members, self._rng.randint(3, len(members)))
        if self.kind == "PickFixed":
            return {"placementType": self.kind, "clusterNames": sorted(wanted)}
        prod = {"labelSelector": {"matchLabels": PROD}}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"clusterSelectorTerms": [prod]}}
        number = {"numberOfClusters": min(len(wanted), len(members) - 1)} if self.kind == "PickN" else {}
        return {"placementType": self.kind, "affinity": {"clusterAffinity": required}, **number}

    async def scale(self) -> None:
        policy = self.policy()
        if self.kind == "PickFixed":
            await self._fleet.change({"spec": {"policy": policy}})
        elif self.kind == "PickN":
            await self._ask_for(self._rng.randint(2, len(self._fleet.members)))

    async def taint(self) -> None:
        taints = self._rng.choice([[], [{"key": "sick", "effect": "NoSchedule"}]])
        await self._fleet.change_member(self._rng.choice(self._fleet.members), {"spec": {"taints": taints}})

    async def label(self) -> None:
        env = self._rng.choice(["prod", "dev"])
        await self._fleet.change_member(self._rng.choice(self._fleet.members), {"metadata": {"labels": {"env": env}}})

    async def leave(self) -> None:
        """A member leaves; nobody asks for it any more."""
        members = self._fleet.members
        if len(members) <= 4:
            return
        name = members.pop(self._rng.randrange(len(members)))
        self._fleet.gone.append(name)
        await self._fleet.hub.delete(MemberCluster, name)
        await self.fit()

    async def fit(self) -> None:
        """Ask for no more than there is."""
        members = self._fleet.members
        policy = (await self._fleet.hub.get(ClusterResourcePlacement, NAME)).spec.policy
        assert policy is not None, "every placement here has one"
        if self.kind == "PickFixed":
            names = [name for name in policy.cluster_names if name in members] or members[:2]
            await self._fleet.change({"spec": {"policy": {"clusterNames": names}}})
        elif self.kind == "PickN":
            await self._ask_for(min(policy.number_of_clusters or 1, len(members)))

    async def _ask_for(self, number: int) -> None:
        await self._fleet.change({"spec": {"policy": {"numberOfClusters": number}}})


def placement_of(policy: Mapping[str, Any], strategy: Mapping[str, Any]) -> dict[str, Any]:
    """A placement of everything in the namespace."""
    selector = {"group": "", "version": "v1", "kind": "Namespace", "name": NAMESPACE}
    spec = {"resourceSelectors": [selector], "policy": policy, "strategy": strategy}
    return {"metadata": {"name": NAME}, "spec": spec}


def deployment(image: str, shape: Shape) -> dict[str, Any]:
    meta = {"name": APP, "namespace": NAMESPACE, "labels": {"app": APP}}
    pod = template(image)["spec"]["template"]
    pod["metadata"]["annotations"] = {"kedge.dev/ready-after": shape.ready_after}
    selector = {"matchLabels": {"app": APP}}
    return {"metadata": meta, "spec": {"replicas": shape.replicas, "selector": selector, "template": pod}}


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

"""A member joins, is given something, and leaves; in bad weather, and with crashes. What was placed on it stays.

PYTHONPATH=tests python -m kedge.simulate simulate.membership:leaving --seed 1 --faults rough
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.cluster import MemberCluster
from kedge.api.condition import is_true
from kedge.api.core import ConfigMap, Namespace
from kedge.api.crds import crds
from kedge.api.fleet import member_namespace
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.resource import Resource
from kedge.api.work import AppliedWork
from kedge.embedded.kind import Kind
from kedge.embedded.server import Server
from kedge.embedded.store import Change
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.roles import HubOptions, MemberOptions, add_hub, add_member
from kedge.simulate.process import Process
from kedge.simulate.simulation import Simulation

NAME = "cluster-1"
CRDS = untyped(CustomResourceDefinition.resource)
DEFINITIONS = crds()
IDENTITY = {"kind": "ServiceAccount", "name": "agent", "namespace": "fleet-system"}
SELECTOR = {"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}


async def hub(process: Process) -> None:
    """A hub, as a process."""
    async with Manager(component="kedge-hub", clock=process.clock, rng=process.rng("manager")) as manager:
        cluster = await manager.connect("hub", process.link("hub"), limiter=Limiter(rate=0))
        add_hub(manager, cluster, HubOptions(collect=0.0))
        await manager.run(signals=False)


async def agent(process: Process) -> None:
    """The member's agent, as a process."""
    async with Manager(component="kedge-member", clock=process.clock, rng=process.rng("manager")) as manager:
        to_hub = await manager.connect("hub", process.link("hub"), limiter=Limiter(rate=0))
        member = await manager.connect(NAME, process.link(NAME), limiter=Limiter(rate=0))
        add_member(manager, NAME, to_hub, member, MemberOptions())
        await manager.run(signals=False)


class Play:
    """A hub, a member, and what must hold of them."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.on_hub = simulation.cluster("hub").server
        self.on_member = simulation.cluster(NAME).server
        self.user = simulation.client("hub")
        self.is_leaving = False
        simulation.always("what was placed on a member that leaves stays", self.stays)

    def stays(self, server: str, kind: Kind, change: Change) -> str:
        if not self.is_leaving or server != NAME or kind.resource not in (ConfigMap.resource, Namespace.resource):
            return ""
        meta = msgspec.json.decode(change.version.body)["metadata"]
        is_ours = "shop" in (meta["name"], meta.get("namespace")) and meta["name"] != "kube-root-ca.crt"
        return (
            f"{meta['name']} is deleted"
            if is_ours and ("deletionTimestamp" in meta or change.type == "DELETED")
            else ""
        )

    async def install(self) -> None:
        for client in (self.user, self.simulation.client(NAME)):
            await self._install(client)
        await self.user.create(Namespace, {"metadata": {"name": "shop"}})
        await self.user.create(ConfigMap, {"metadata": {"name": "prices", "namespace": "shop"}, "data": {"tea": "2"}})

    async def _install(self, client: Client) -> None:
        for definition in DEFINITIONS:
            await client.create(CRDS, definition)

    async def join(self) -> None:
        spec = {"identity": IDENTITY, "heartbeatPeriodSeconds": 60}
        await self.user.create(MemberCluster, {"metadata": {"name": NAME}, "spec": spec})

    async def place(self) -> None:
        spec = {"resourceSelectors": [SELECTOR], "policy": {"placementType": "PickAll"}}
        await self.user.create(ClusterResourcePlacement, {"metadata": {"name": "shop"}, "spec": spec})

    async def leave(self) -> None:
        self.is_leaving = True
        await self.user.delete(MemberCluster, NAME)

    def has_joined(self) -> bool:
        found = found_in(self.on_hub, MemberCluster.resource, NAME)
        return found is not None and is_true(
            msgspec.convert(found, MemberCluster, strict=False).status.conditions, "Joined"
        )

    def is_placed(self) -> bool:
        return found_in(self.on_member, ConfigMap.resource, "shop/prices") is not None

    def is_gone(self) -> bool:
        room = found_in(self.on_hub, Namespace.resource, member_namespace(NAME))
        return found_in(self.on_hub, MemberCluster.resource, NAME) is None and room is None

    def left_behind(self) -> str:
        """What is wrong once the member has left."""
        if not self.is_placed():
            return "what was placed is gone"
        if found_in(self.on_member, AppliedWork.resource, "shop-work") is not None:
            return "an AppliedWork still owns what was placed"
        return ""


def found_in(server: Server, resource: Resource, key: str) -> Any:
    for kind in server.registry.kinds():
        if kind.resource == resource:
            for version in server.store.all(kind).at(server.store.number).within(""):
                if version.key == key or version.key.lstrip("/") == key:
                    return msgspec.json.decode(version.body)
    return None


async def leaving(simulation: Simulation) -> None:
    """A member joins, is given something, and leaves, in whatever weather."""
    play = Play(simulation)
    await play.install()
    simulation.start("hub", hub)
    simulation.start("agent", agent)
    await play.join()
    await play.place()
    await simulation.until("it is placed", play.is_placed, within=7200)
    await asyncio.sleep(simulation.rng("pause").uniform(0, 100))
    await play.leave()
    await asyncio.sleep(simulation.rng("pause", 2).uniform(0, 600))
    simulation.end_faults()
    await simulation.until("the member is gone", play.is_gone, within=7200)
    # Whose clock jumps takes an agent for one that does not answer; it then leaves without having let go.
    simulation.at_end("what was placed stays", lambda: "" if play.is_placed() else "it is gone")


async def hub_crashing(simulation: Simulation) -> None:
    """The same in good weather; the hub crashes after its nth write, n being the seed."""
    await _crashing(simulation, "hub")


async def agent_crashing(simulation: Simulation) -> None:
    """The same in good weather; the agent crashes after its nth write, n being the seed."""
    await _crashing(simulation, "agent")


async def _crashing(simulation: Simulation, who: str) -> None:
    play = Play(simulation)
    await play.install()
    processes = {"hub": simulation.start("hub", hub), "agent": simulation.start("agent", agent)}
    processes[who].crash_after_write(simulation.seed)
    await play.join()
    await simulation.until("it has joined", play.has_joined)
    await play.place()
    await simulation.until("it is placed", play.is_placed)
    await asyncio.sleep(5)
    await play.leave()
    await simulation.until("the member is gone", play.is_gone)
    simulation.at_end("what was placed stays, and belongs to nobody", play.left_behind)

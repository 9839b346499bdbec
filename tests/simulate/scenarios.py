"""Scenarios: the tutorial's controller and others on simulated servers. Run by name, from a seed.

PYTHONPATH=tests python -m kedge.simulate simulate.scenarios:stamping --seed 1 --faults rough
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import msgspec

from kedge.api.apps import Deployment
from kedge.api.core import ConfigMap, Namespace
from kedge.embedded.kind import Kind
from kedge.embedded.server import Server
from kedge.embedded.store import Change
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.client import Client
from kedge.kube.crash import Crashed
from kedge.kube.errors import AlreadyExists, NotFound
from kedge.kube.fencing import FencedTransport
from kedge.kube.lease import Election
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.simulate.process import Process
from kedge.simulate.simulation import Simulation
from support.tutorial import CHECKSUM, Stamper, checksum

SHOP = "shop"


async def stamper(process: Process) -> None:
    """The tutorial's controller, as a process."""
    async with Manager(component="stamper", clock=process.clock, rng=process.rng("manager")) as manager:
        tutorial = Stamper(await manager.connect("hub", process.link("hub")))
        manager.add_controller(tutorial.controller)
        await manager.run(signals=False)


class Shop:
    """ConfigMaps on a hub, those who change them, and what must hold of their stamps."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.server = simulation.server("hub")
        self.user = simulation.client("hub")
        self.seen: dict[str, set[str]] = {}  # by uid: every checksum that was ever true of it
        simulation.always("every stamp was true of its data once", self.was_true)
        simulation.at_end("every stamp is true", self.wrong_stamps)

    def was_true(self, server: str, kind: Kind, change: Change) -> str:
        if kind.resource != ConfigMap.resource or not change.version.key.startswith(f"{SHOP}/"):
            return ""
        found = msgspec.json.decode(change.version.body, type=ConfigMap)
        known = self.seen.setdefault(found.metadata.uid, set())
        known.add(checksum(found))
        stamp = found.metadata.annotations.get(CHECKSUM)
        return "" if stamp is None or stamp in known else f"{change.version.key} carries {stamp}"

    def maps(self) -> list[ConfigMap]:
        kind = next(kind for kind in self.server.registry.kinds() if kind.resource == ConfigMap.resource)
        versions = self.server.store.all(kind).at(self.server.store.number).within(f"{SHOP}/")
        return [msgspec.json.decode(version.body, type=ConfigMap) for version in versions]

    def wrong_stamps(self) -> str:
        wrong = [one.metadata.name for one in self.maps() if one.metadata.annotations.get(CHECKSUM) != checksum(one)]
        return f"not of {', '.join(wrong)}" if wrong else ""

    async def open(self) -> None:
        await self.user.create(Namespace, {"metadata": {"name": SHOP}})

    async def put(self, name: str, value: str) -> None:
        meta = {"name": name, "namespace": SHOP, "labels": {"stamp": "yes"}}
        try:
            await self.user.create(ConfigMap, {"metadata": meta, "data": {"value": value}})
        except AlreadyExists:
            await self.user.patch(ConfigMap, name, MergePatch({"data": {"value": value}}), SHOP)

    async def remove(self, name: str) -> None:
        with suppress(NotFound):
            await self.user.delete(ConfigMap, name, SHOP)

    async def trade(self, changes: int = 30, seconds: float = 10.0) -> None:
        """Make, change and delete, now and then."""
        rng = self.simulation.rng("trade")
        for number in range(changes):
            name = f"map-{rng.randrange(8)}"
            if rng.random() < 0.2:
                await self.remove(name)
            else:
                await self.put(name, f"value {number}")
            await asyncio.sleep(rng.uniform(0.0, seconds))

    async def settled(self) -> None:
        self.simulation.end_faults()
        await self.simulation.until("every stamp is true", lambda: not self.wrong_stamps(), within=600)
        await self.simulation.rest()


async def stamping(simulation: Simulation) -> None:
    """One stamper, a busy shop, whatever goes wrong; then calm."""
    shop = Shop(simulation)
    await shop.open()
    simulation.start("stamper", stamper)
    await shop.trade()
    await shop.settled()


async def crashing(simulation: Simulation) -> None:
    """The same, and the stamper crashes, is restarted and stands still now and then."""
    shop = Shop(simulation)
    await shop.open()
    process = simulation.start("stamper", stamper)
    simulation.loop.create_task(_bad_days(simulation, process), name="bad days")
    await shop.trade()
    await shop.settled()


async def _bad_days(simulation: Simulation, process: Process) -> None:
    rng = simulation.rng("bad days", process.name)
    for _ in range(10):
        await asyncio.sleep(rng.uniform(0.0, 30.0))
        if rng.random() < 0.5:
            process.suspend()
            await asyncio.sleep(rng.uniform(0.0, 30.0))
            process.resume()
        else:
            process.crash()
            await asyncio.sleep(rng.uniform(0.0, 10.0))
            if not process.alive:  # it may have been started again by itself
                process.start()


async def electing(simulation: Simulation) -> None:
    """Three stampers of which one may act; each crashes and stands still now and then."""
    shop, elections = Shop(simulation), dict[str, Election]()

    def leaders(*_: object) -> str:
        found = [name for name, election in elections.items() if election.is_leading()]
        return f"{', '.join(found)} do" if len(found) > 1 else ""

    async def contender(process: Process) -> None:
        hub = Client(process.link("hub"), rng=process.rng("lease client"))
        identity = f"{process.name}-{process.starts}"
        election = Election(hub, "stamper", SHOP, identity, clock=process.clock, rng=process.rng("lease"))
        elections[process.name] = election
        manager = Manager(component="stamper", clock=process.clock, rng=process.rng("manager"), leader=election)
        async with manager:
            tutorial = Stamper(await manager.connect("hub", FencedTransport(process.link("hub"), election)))
            manager.add_controller(tutorial.controller)
            await manager.run(signals=False)

    await shop.open()
    simulation.always("at most one leads", leaders)
    for name in ("one", "two", "three"):
        process = simulation.start(name, contender, exits_on=(Crashed,))
        simulation.loop.create_task(_bad_days(simulation, process), name=f"bad days of {name}")
    await shop.trade()
    simulation.end_faults()
    await simulation.until("every stamp is true", lambda: not shop.wrong_stamps(), within=600)
    await simulation.until("somebody leads", lambda: any(one.is_leading() for one in elections.values()), within=600)


async def deploying(simulation: Simulation) -> None:
    """A member whose workload controllers have bad days, while Deployments on it are made, changed and deleted."""
    member = simulation.cluster("member")
    user = simulation.client("member")

    async def controllers(process: Process) -> None:
        async with Manager(component="kcm", clock=process.clock, rng=process.rng("manager")) as manager:
            cluster = await manager.connect("member", process.link("member"))
            add_workloads(manager, cluster)
            await manager.run(signals=False)

    await make_nodes(user, 2, simulation.clock)
    process = simulation.start("controllers", controllers)
    simulation.loop.create_task(_bad_days(simulation, process), name="bad days")
    rng, wanted = simulation.rng("deployments"), dict[str, int]()
    for number in range(12):
        name, replicas = f"web-{rng.randrange(3)}", rng.randrange(4)
        if name in wanted and rng.random() < 0.2:
            del wanted[name]
            await user.delete(Deployment, name, "default")
        else:
            wanted[name] = replicas
            await user.apply(Deployment, _deployment(name, replicas, f"web:{number % 3}"), manager="user", force=True)
        await asyncio.sleep(rng.uniform(0.0, 20.0))
    simulation.end_faults()
    await simulation.until("every Deployment is complete", lambda: not _unlike(member.server, wanted), within=1800)
    await simulation.rest()
    simulation.at_end("pods are as wanted", lambda: _unlike(member.server, wanted))


def _deployment(name: str, replicas: int, image: str) -> dict[str, Any]:
    labels = {"app": name}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec}


def _unlike(server: Server, wanted: dict[str, int]) -> str:
    """Which Deployments do not have the ready pods that are wanted, and no others."""
    pods = [pod for pod in _all(server, "pods") if pod["metadata"]["namespace"] == "default"]
    counts = {name: sum(pod["metadata"]["labels"]["app"] == name for pod in pods) for name in wanted}
    there = {one["metadata"]["name"]: one for one in _all(server, "deployments")}
    behind = [name for name, one in there.items() if _is_behind(one)]
    if counts == wanted and len(pods) == sum(wanted.values()) and sorted(there) == sorted(wanted) and not behind:
        return ""
    return f"wanted {wanted}, found {counts} of {len(pods)} pods, behind {behind}"


def _is_behind(deployment: dict[str, Any]) -> bool:
    status, replicas = deployment.get("status", {}), deployment["spec"]["replicas"]
    if status.get("observedGeneration") != deployment["metadata"]["generation"]:
        return True
    return any(status.get(count, 0) != replicas for count in ("replicas", "updatedReplicas", "availableReplicas"))


def _all(server: Server, plural: str) -> list[dict[str, Any]]:
    kind = next(kind for kind in server.registry.kinds() if kind.resource.plural == plural)
    return [version.decode() for version in server.store.all(kind).at(server.store.number).within("")]


async def never_right(simulation: Simulation) -> None:
    """Fails: somebody writes a stamp that never was true."""
    shop = Shop(simulation)
    await shop.open()
    simulation.start("stamper", stamper)
    await shop.put("web", "first")
    await asyncio.sleep(5.0)
    patch = MergePatch({"metadata": {"annotations": {CHECKSUM: "forged"}}})
    await shop.user.patch(ConfigMap, "web", patch, SHOP)
    await asyncio.sleep(5.0)

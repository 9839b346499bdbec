"""Staging: a staged run over real members, beside plain rollouts on one of them; and one over embedded members."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import uvloop

from controlplane import Missing, find
from kedge.api.apps import Deployment
from kedge.api.core import ConfigMap, Namespace
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.reasons import SUCCEEDED
from kedge.api.staged import ClusterStagedUpdateRun, ClusterStagedUpdateStrategy
from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.fleet import Fleet
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.codec import untyped
from kedge.kube.limits import Limiter
from kedge.kube.memory import freeze_heap
from kedge.kube.patches import MergePatch
from kedgebench.fleet import release, stages
from kedgebench.fleet.real import HUB, RealFleet, real_fleet
from kedgebench.fleet.release import SHOP, WEB, Body

HEARTBEAT = 600  # seconds, so that heartbeats are in no figure
TAIL = 1.5  # seconds in which the last statuses are written
PATIENCE = 600.0
_KINDS = {
    kind.resource.kind: untyped(kind.resource)
    for kind in (
        *(Deployment, ConfigMap, Namespace),
        *(ClusterResourcePlacement, ClusterStagedUpdateStrategy, ClusterStagedUpdateRun),
    )
}
_PLACED: Mapping[str, Callable[[int], Body]] = {"Deployment": release.deployment, "ConfigMap": release.config_map}


# Real members


async def measure(members: int, rounds: int) -> dict[str, Any]:
    """Task: from the run on the hub until every member runs what it moves, and until it says so."""
    binaries = find()
    if isinstance(binaries, Missing):
        return {"missing": binaries.reason}
    names = stages.labelled([f"cluster-{number}" for number in range(1, members + 1)])
    first = [release.external(WEB), stages.strategy(), stages.run("release-1")]
    async with real_fleet(binaries, names, first) as fleet:
        found = await fleet.in_turns(rounds, lambda: _update(fleet))
    return {**found, "waves": stages.waves(members)}


async def _update(fleet: RealFleet) -> dict[str, Any]:
    fleet.number += 1
    before, name, witness = fleet.cpu(), f"release-{fleet.number}", fleet.witness
    await fleet.set_image(HUB, SHOP)
    await fleet.apply(stages.run(name))
    await fleet.arrived()
    await witness.until(lambda: name in witness.succeeded)
    found = fleet.since(witness.asked[name])
    await asyncio.sleep(2.0)  # for the last statuses
    spent = {role: seconds - before[role] for role, seconds in fleet.cpu().items()}
    return {**found, "said": witness.succeeded[name] - witness.asked[name], "cpu": spent}


# Embedded members


def embedded(members: int, what: str) -> dict[str, Any]:
    """Task: the same in one process, by the clock, of a `ConfigMap`, which nobody has to wait for, or a `Deployment`.

    A small fleet goes first, so that all is compiled.
    """
    uvloop.run(_embedded(10, what))
    return uvloop.run(_embedded(members, what))


async def _embedded(members: int, what: str) -> dict[str, Any]:
    async with Fleet(members=members, clock=SystemClock(), rng=Random(1), nodes=1) as fleet:
        await fleet.run_workloads()
        labels = stages.labelled([member.name for member in fleet.members])
        await fleet.run_roles(labels=labels, heartbeat=HEARTBEAT)
        freeze_heap()  # as `kedge up` does
        ended, client = Ended(fleet), Client(fleet.hub.transport(), limiter=Limiter(rate=0))
        placed = [release.namespace(), _PLACED[what](1), release.external(WEB), stages.strategy()]
        for body in (*placed, stages.run("release-1")):
            await client.create(_KINDS[body["kind"]], body)
        await ended.well("release-1")
        await asyncio.sleep(TAIL)
        await client.patch(_KINDS[what], WEB, MergePatch(_PLACED[what](2)), SHOP, manager="user")
        cpu, begun = time.process_time(), time.perf_counter()
        await client.create(_KINDS["ClusterStagedUpdateRun"], stages.run("release-2"))
        await ended.well("release-2")
        found = {"took": time.perf_counter() - begun, "cpu": time.process_time() - cpu, "waves": stages.waves(members)}
        await client.close()
    return found


class Ended:
    """Sees in the hub's store that runs have succeeded."""

    def __init__(self, fleet: Fleet) -> None:
        self._names: set[str] = set()
        self._news = asyncio.Event()
        fleet.hub.server.store.subscribe(self._see)

    def _see(self, kind: Kind, change: Change) -> None:
        if kind.resource.kind != "ClusterStagedUpdateRun":
            return
        conditions = change.version.decode().get("status", {}).get("conditions", ())
        if any(one["type"] == SUCCEEDED and one["status"] == "True" for one in conditions):
            self._names.add(change.version.name)
            self._news.set()

    async def well(self, name: str) -> None:
        async with asyncio.timeout(PATIENCE):
            while name not in self._names:
                self._news.clear()
                await self._news.wait()

"""Placing: a fleet of embedded members in one process, that gets a first placement and then a release.

Seconds from the user's write until all Works are made, until every member runs it (by the members' own Deployments),
until every Work says so, and until the placement does; and the CPU time of it, as a whole or by role.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from functools import partial
from random import Random
from typing import Any

import uvloop

from kedge.api.apps import Deployment
from kedge.api.core import Namespace
from kedge.api.placement import ClusterResourcePlacement
from kedge.embedded.kind import Kind
from kedge.embedded.store import Change
from kedge.fleet import Fleet
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.codec import untyped
from kedge.kube.limits import Limiter
from kedge.kube.memory import freeze_heap
from kedge.kube.patches import MergePatch
from kedge.roles import MemberOptions
from kedge.simulate.clock import LoopClock
from kedge.simulate.loop import run
from kedgebench.fleet import release
from kedgebench.fleet.release import REPLICAS, SHOP, WEB
from kedgebench.fleet.shares import AGENTS, HUB, SERVERS, WORKLOADS, Shares, belongs_to
from kedgebench.memory import resident

HEARTBEAT = 600  # seconds, so that heartbeats are in no figure
TAIL = 1.5  # seconds in which the last statuses are written
PATIENCE = 1200.0
_DEPLOYMENTS = untyped(Deployment.resource)
_PLACEMENTS = untyped(ClusterResourcePlacement.resource)
_NAMESPACES = untyped(Namespace.resource)


class Watched:
    """A fleet, seen in the stores of its servers: when how many of them had what."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._number = 0
        self._begun = 0.0
        self._made: set[str] = set()
        self._running: set[str] = set()
        self._told: set[str] = set()
        self._reached: dict[str, float] = {}
        self._done = asyncio.Event()
        self.writes: Counter[str] = Counter()
        self.largest = 0
        fleet.hub.server.store.subscribe(self._on_the_hub)
        for member in fleet.members:
            member.server.store.subscribe(partial(self._on_a_member, member.name))

    def begin(self, number: int) -> None:
        """From now on, this release is waited for."""
        self._number, self._begun = number, asyncio.get_running_loop().time()
        self._running, self._told, self._reached = set(), set(), {}
        self.writes.clear()
        self._done.clear()

    async def done(self) -> dict[str, float]:
        """When what was reached, in seconds; once all of it was."""
        async with asyncio.timeout(PATIENCE):
            await self._done.wait()
        return dict(self._reached)

    def _on_a_member(self, name: str, kind: Kind, change: Change) -> None:
        is_it = kind.resource.plural == "deployments" and change.version.name == WEB
        if is_it and release.runs(change.version.decode(), self._number):
            self._running.add(name)
            self._mark("members", len(self._running))

    def _on_the_hub(self, kind: Kind, change: Change) -> None:
        plural = kind.resource.plural
        self.writes[plural] += 1
        if plural == "works":
            self._see_work(change)
        elif plural == "clusterresourceplacements":
            self._see_placement(change.version.decode(), len(change.version.body))

    def _see_work(self, change: Change) -> None:
        work = change.version.decode()
        where, manifests = work["metadata"]["namespace"], work["spec"]["workload"]["manifests"]
        images = [one["spec"]["template"]["spec"]["containers"] for one in manifests if one["kind"] == "Deployment"]
        if not any(one[0]["image"] == release.image(self._number) for one in images):
            return
        self._made.add(f"{self._number} {where}")
        self._mark("works", len([one for one in self._made if one.startswith(f"{self._number} ")]))
        if release.is_available(work):
            self._told.add(where)
            self._mark("told", len(self._told))

    def _see_placement(self, found: dict[str, Any], size: int) -> None:
        self.largest = max(self.largest, size)
        statuses = found.get("status", {}).get("placementStatuses", ())
        revisions = {one.get("observedResourceIndex") for one in statuses}
        if release.is_available(found) and revisions == {str(self._number - 1)}:
            self._mark("placement", len(statuses))
            self._done.set()

    def _mark(self, what: str, count: int) -> None:
        if count == len(self._fleet.members):
            self._reached.setdefault(what, asyncio.get_running_loop().time() - self._begun)


class _Weighed(Fleet):
    """A fleet whose roles' CPU times can be told apart."""

    async def _run_agents(self, options: MemberOptions) -> None:
        with belongs_to(AGENTS):
            await super()._run_agents(options)


async def _measured(members: int, shares: Shares | None = None) -> dict[str, Any]:
    clock = SystemClock() if shares is None else LoopClock(asyncio.get_running_loop())
    async with _Weighed(members=members, clock=clock, rng=Random(1), nodes=1) as fleet:
        if shares is not None:
            for cluster in fleet.clusters:
                shares.take_out(cluster.server)
        with belongs_to(WORKLOADS):
            await fleet.run_workloads()
        begun = asyncio.get_running_loop().time()
        with belongs_to(HUB):
            await fleet.run_roles(heartbeat=HEARTBEAT)
        joined = asyncio.get_running_loop().time() - begun
        freeze_heap()  # as `kedge up` does
        await asyncio.sleep(TAIL)
        watched = Watched(fleet)
        client = Client(fleet.hub.transport(), limiter=Limiter(rate=0))
        await client.create(_NAMESPACES, release.namespace())
        replicas = REPLICAS if shares is None else 1  # what pods cost is nothing a fleet can help
        await client.create(_DEPLOYMENTS, release.deployment(1, replicas=replicas))
        await asyncio.sleep(TAIL)
        found: dict[str, Any] = {"members": members, "joined": joined}
        found["first"] = await _stretch(watched, shares, 1, lambda: client.create(_PLACEMENTS, release.placement(WEB)))
        patch = MergePatch({"spec": {"template": release.deployment(2)["spec"]["template"]}})
        found["update"] = await _stretch(
            watched, shares, 2, lambda: client.patch(_DEPLOYMENTS, WEB, patch, SHOP, manager="user")
        )
        found["resident"] = resident()
        await client.close()
    return found


async def _stretch(watched: Watched, shares: Shares | None, number: int, write: Any) -> dict[str, Any]:
    """One change by a user, from its write to the last status that it causes."""
    before, asked = (shares.so_far(), Counter(shares.requests)) if shares is not None else ({}, Counter())
    cpu = time.process_time()
    watched.begin(number)
    await write()
    reached = await watched.done()
    await asyncio.sleep(TAIL)
    found = {
        "reached": reached,
        "cpu": time.process_time() - cpu,
        "writes": dict(watched.writes),
        "largest": watched.largest,
    }
    if shares is not None:
        found["shares"] = {role: seconds - before.get(role, 0.0) for role, seconds in shares.so_far().items()}
        requests = Counter(shares.requests)
        requests.subtract(asked)
        found["requests"] = {" ".join(key): count for key, count in requests.most_common() if count}
    return found


def whole(members: int) -> dict[str, Any]:
    """Task: by the clock, as `kedge up` would run it. A small fleet goes first, so that all is compiled."""
    uvloop.run(_measured(2))
    return uvloop.run(_measured(members))


def by_role(members: int) -> dict[str, Any]:
    """Task: by whose CPU time it took; in virtual time, so that a slow machine does the same as a fast one."""
    run(_measured(2, Shares()))
    shares = Shares()
    with shares.timing(), belongs_to(SERVERS):
        return run(_measured(members, shares))

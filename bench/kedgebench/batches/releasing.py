"""Releasing: releases in batches by hand, by Kedge and by Argo Rollouts, in turns on one control plane.

By hand, each batch raises the new Deployment, waits until a watch sees its pods ready, lowers the old one, and waits
until the watch sees those pods gone: the time that a release takes if nobody decides anything. A release takes from
before it is asked for until all pods run the new image and are ready, and no other pods are there. All are judged by
the same kind of watch.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from statistics import median
from typing import Any, Protocol

from controlplane import ControlPlane, Missing, find
from controlplane.cluster import Cluster
from kedge.api.apps import Deployment
from kedge.api.oam.rollout_status import RollingState
from kedge.api.oam.rollouts import RolloutTrait
from kedge.kube.client import Client
from kedgebench.batches import argo, operator, workloads
from kedgebench.batches.argo_build import is_built
from kedgebench.batches.recorder import Recorder
from kedgebench.batches.sizes import Sizes
from kedgebench.machine import load as machine_load
from kedgebench.pod_watch import watched
from kedgebench.program import Program
from kedgebench.waiting import until_so

NO_AUDIT = ("--audit-log-path=",)
PAUSE = 1.0  # seconds between releases, for the last statuses
BY_HAND, KEDGE, ARGO = "by hand", "kedge", "argo"


class Contender(Protocol):
    """Whoever can release."""

    async def release(self) -> dict[str, Any]:
        """One release: what it took."""
        ...


class Place:
    """A namespace of pods that are ready, and who watches it."""

    def __init__(self, client: Client, namespace: str, recorder: Recorder, sizes: Sizes) -> None:
        self.client = client
        self.namespace = namespace
        self.recorder = recorder
        self.sizes = sizes
        self.number = 1

    @property
    def name(self) -> str:
        """Of the present revision."""
        return f"web-{self.number}"

    async def until_settled(self) -> float:
        """Until all pods are of the present revision, and ready."""
        return await self.recorder.until(
            partial(self.recorder.is_settled, workloads.image(self.number), self.sizes.pods)
        )

    async def next_revision(self) -> str:
        """Create the Deployment of the next revision, still empty; gives the name of the one before it."""
        before, self.number = self.name, self.number + 1
        await workloads.deployment(self.client, self.namespace, self.name, self.number, 0)
        await asyncio.sleep(PAUSE)
        return before


class ByHand:
    """Moves pods from Deployment to Deployment, batch by batch."""

    def __init__(self, place: Place) -> None:
        self._place = place

    async def release(self) -> dict[str, Any]:
        place, sizes = self._place, self._place.sizes
        before = await place.next_revision()
        begun, steps = time.perf_counter(), range(sizes.at_once, sizes.pods + 1, sizes.at_once)
        waves = [await self._wave(before, moved) for moved in steps]
        took = await place.until_settled() - begun
        await place.client.delete(Deployment, before, place.namespace)
        return {"took": took, "waves": waves}

    async def _wave(self, before: str, moved: int) -> float:
        place, recorder, pods = self._place, self._place.recorder, self._place.sizes.pods
        begun = time.perf_counter()
        await workloads.scale(place.client, place.namespace, place.name, moved)
        await recorder.until(lambda: recorder.ready(workloads.image(place.number)) == moved)
        await workloads.scale(place.client, place.namespace, before, pods - moved)
        return await recorder.until(lambda: recorder.count == pods) - begun


class ByProgram:
    """Asks a program for a release, and watches it."""

    def __init__(self, place: Place, process: Program) -> None:
        self._place = place
        self._process = process

    async def measured(
        self, ask: Callable[[], Awaitable[None]], has_succeeded: Callable[[], Awaitable[bool]]
    ) -> dict[str, Any]:
        recorder = self._place.recorder
        recorder.take_decision_time()
        cpu, begun = self._process.cpu, time.perf_counter()
        await ask()
        took = await self._place.until_settled() - begun
        told = await until_so(has_succeeded, every=0.02) - begun
        decided = recorder.take_decision_time()
        await asyncio.sleep(PAUSE)
        return {
            "took": took,
            "told": told,
            "decided": decided,
            "cpu": self._process.cpu - cpu,
            "resident": self._process.resident,
            "load": machine_load(),
        }


class ByKedge:
    """A RolloutTrait for each release."""

    def __init__(self, place: Place, process: Program) -> None:
        self._place = place
        self._program = ByProgram(place, process)

    async def release(self) -> dict[str, Any]:
        place = self._place
        before = await place.next_revision()
        name, batches = place.name, place.sizes.batches
        found = await self._program.measured(
            lambda: workloads.rollout(place.client, place.namespace, name, before, name, batches),
            partial(self._has_succeeded, name),
        )
        await place.client.delete(Deployment, before, place.namespace)
        return found

    async def _has_succeeded(self, name: str) -> bool:
        found = await self._place.client.get(RolloutTrait, name, self._place.namespace)
        return found.status.rolling_state is RollingState.succeeded


class ByArgo:
    """One Rollout, with a new image for each release."""

    NAME = "web"

    def __init__(self, place: Place, process: Program) -> None:
        self._place = place
        self._program = ByProgram(place, process)

    async def release(self) -> dict[str, Any]:
        place = self._place
        place.number += 1
        ask = partial(workloads.argo_release, place.client, place.namespace, self.NAME, place.number)
        return await self._program.measured(ask, self.has_succeeded)

    async def has_succeeded(self) -> bool:
        place = self._place
        return (await place.client.get(workloads.ArgoRollout, self.NAME, place.namespace)).has_succeeded


async def measure(pods: int, batches: int, releases: int) -> dict[str, Any]:
    """Task: what releases take, by whom."""
    binaries = find()
    if isinstance(binaries, Missing):
        return {"missing": binaries.reason}
    sizes = Sizes(pods=pods, batches=batches, releases=releases)
    async with ControlPlane(binaries) as plane:
        cluster = await plane.start("batches", controllers=True, nodes=1, apiserver_flags=NO_AUDIT)
        return await _measured(cluster, sizes)


async def _measured(cluster: Cluster, sizes: Sizes) -> dict[str, Any]:
    async with AsyncExitStack() as stack:
        ours = await stack.enter_async_context(_place(cluster, sizes))
        places, contenders = [ours], await _our_contenders(stack, cluster, ours)
        if is_built():
            theirs = await stack.enter_async_context(_place(cluster, sizes))
            places.append(theirs)
            contenders[ARGO] = await _argo(stack, cluster, theirs)
        found = await _in_turns(contenders, sizes.releases)
    waves = [wave for one in found[BY_HAND] for wave in one["waves"]]
    wrong = {name: place.recorder.wrong[:5] for name, place in zip((KEDGE, ARGO), places, strict=False)}
    return {"releases": found, "wave": median(waves), "wrong": wrong}


async def _our_contenders(stack: AsyncExitStack, cluster: Cluster, place: Place) -> dict[str, Contender]:
    await operator.install_crds(cluster)
    await workloads.deployment(place.client, place.namespace, place.name, 1, place.sizes.pods)
    await place.until_settled()
    process = await stack.enter_async_context(operator.operator(cluster, place.namespace))
    await process.until_ready()
    place.recorder.judges = True
    return {BY_HAND: ByHand(place), KEDGE: ByKedge(place, process)}


async def _argo(stack: AsyncExitStack, cluster: Cluster, place: Place) -> Contender:
    await argo.install_crds(cluster)
    process = await stack.enter_async_context(argo.controller(cluster, place.namespace))
    await process.until_ready()
    await workloads.argo_rollout(place.client, place.namespace, ByArgo.NAME, place.sizes.pods, place.sizes.batches)
    await place.until_settled()
    found = ByArgo(place, process)
    await until_so(found.has_succeeded, every=0.1)
    place.recorder.judges = True
    return found


async def _in_turns(contenders: dict[str, Contender], releases: int) -> dict[str, list[dict[str, Any]]]:
    """The first turn of each is to warm up."""
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in contenders}
    for turn in range(releases + 1):
        for name, contender in contenders.items():
            measured = await contender.release()
            found[name] += [measured] if turn else []
            await asyncio.sleep(PAUSE)
    return found


@asynccontextmanager
async def _place(cluster: Cluster, sizes: Sizes) -> AsyncIterator[Place]:
    namespace = await cluster.fresh_namespace("batches")
    recorder = Recorder(floor=sizes.pods, ceiling=sizes.pods + sizes.at_once)
    async with watched(recorder, cluster.kubeconfig, namespace) as client:
        yield Place(client, namespace, recorder, sizes)

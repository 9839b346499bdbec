"""Releasing: releases of one group, in turns with waves by hand.

A wave by hand deletes as many pods of one zone as may be unavailable, and ends when they are ready again: the time that
a wave takes if nobody decides anything. A release takes from before the first StatefulSet has the new image until all
pods run it and are ready. Both are judged by the same watch of the pods.
"""

from __future__ import annotations

import asyncio
import math
import time
from functools import partial
from itertools import cycle, islice
from statistics import median
from typing import Any

from controlplane import ControlPlane, Missing, find
from controlplane.cluster import Cluster
from kedge.api.pods import Pod
from kedge.kube.client import Client
from kedgebench.machine import load as machine_load
from kedgebench.pod_watch import watched
from kedgebench.program import Program
from kedgebench.zones import groups
from kedgebench.zones.operator import install_crds, operator
from kedgebench.zones.recorder import Recorder
from kedgebench.zones.sizes import ZONES

GROUP = "ingester"
NO_AUDIT = ("--audit-log-path=",)
PAUSE = 0.5  # seconds between waves, for the last statuses


class Group:
    """A group whose pods are ready, who watches it, and the operator."""

    def __init__(self, client: Client, namespace: str, recorder: Recorder, process: Program) -> None:
        self._client = client
        self._namespace = namespace
        self._recorder = recorder
        self._process = process
        self._zones = groups.zones_of(GROUP)
        self._number = 1
        self._turns = cycle(self._zones)

    async def waves(self, count: int, at_once: int) -> list[float]:
        """Seconds that waves by hand take, in one zone after another."""
        found = []
        for zone in islice(self._turns, count):
            found.append(await self._wave(zone, at_once))
            await asyncio.sleep(PAUSE)
        self._recorder.take_decision_time()
        return found

    async def _wave(self, zone: str, at_once: int) -> float:
        names = self._recorder.ready_names(zone)[:at_once]
        begun = time.perf_counter()
        await asyncio.gather(*(self._client.delete(Pod, name, self._namespace) for name in names))
        await self._recorder.until(lambda: not self._recorder.is_ready())
        return await self._recorder.until(self._recorder.is_ready) - begun

    async def release(self) -> dict[str, Any]:
        """A release, from the first change to the last pod."""
        self._number += 1
        cpu, begun = self._process.cpu, time.perf_counter()
        await groups.release(self._client, self._zones, self._namespace, self._number)
        took = await self._recorder.until(partial(self._recorder.is_ready, groups.image(self._number))) - begun
        await groups.until_current(self._client, self._namespace, self._zones)
        await asyncio.sleep(PAUSE)
        decided = self._recorder.take_decision_time()
        return {"took": took, "decided": decided, "cpu": self._process.cpu - cpu, "load": machine_load()}


async def measure(pods: int, at_once: int, releases: int, waves: int) -> dict[str, Any]:
    """Task: what releases take, and what their waves would take alone."""
    binaries = find()
    if isinstance(binaries, Missing):
        return {"missing": binaries.reason}
    async with ControlPlane(binaries) as plane:
        cluster = await plane.start("zones", controllers=True, nodes=1, apiserver_flags=NO_AUDIT)
        await install_crds(cluster)
        found = await _measured(cluster, pods, at_once, releases, waves)
    return {**found, "waves": ZONES * math.ceil(pods / at_once)}


async def _measured(cluster: Cluster, pods: int, at_once: int, releases: int, waves: int) -> dict[str, Any]:
    namespace = await cluster.fresh_namespace("zones")
    recorder = Recorder([groups.zones_of(GROUP)], pods, at_once)
    async with watched(recorder, cluster.kubeconfig, namespace) as client:
        await groups.create(client, GROUP, namespace, pods, at_once)
        await recorder.until(recorder.is_ready)
        recorder.judges = True
        async with operator(cluster, namespace) as process:
            await process.until_ready()
            group = Group(client, namespace, recorder, process)
            await group.waves(1, at_once)  # to warm up
            plain, taken = await group.waves(waves, at_once), []
            for _ in range(releases):
                taken.append(await group.release())
                plain += await group.waves(waves, at_once)
    return {"plain": plain, "median": median(plain), "releases": taken, "wrong": recorder.wrong[:5]}

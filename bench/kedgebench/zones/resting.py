"""Resting: one operator of many groups, with webhooks and a certificate of its own, that has nothing to do.

What it asks for is in the API server's audit log. Afterwards all groups are released at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from functools import partial
from typing import Any

from controlplane import ControlPlane, Missing, find
from controlplane.cluster import Cluster
from kedge.kube.client import Client
from kedgebench.at_rest import rested
from kedgebench.pod_watch import watched
from kedgebench.program import Program
from kedgebench.zones import groups
from kedgebench.zones.operator import USER, install_crds, operator
from kedgebench.zones.recorder import Recorder

AT_ONCE = 1
WEBHOOKS = ("-server-tls.enabled=true", "-server-tls.port=0")


async def measure(count: int, pods: int, settle: float, idle: float) -> dict[str, Any]:
    """Task: memory, CPU and requests of an operator with nothing to do, and then with all its groups to release."""
    binaries = find()
    if isinstance(binaries, Missing):
        return {"missing": binaries.reason}
    async with ControlPlane(binaries) as plane:
        cluster = await plane.start("zones", controllers=True, nodes=2)
        await install_crds(cluster)
        return await _measured(cluster, count, pods, settle, idle)


async def _measured(cluster: Cluster, count: int, pods: int, settle: float, idle: float) -> dict[str, Any]:
    namespace = await cluster.fresh_namespace("zones")
    names = [f"group-{number}" for number in range(1, count + 1)]
    recorder = Recorder([groups.zones_of(name) for name in names], pods, AT_ONCE)
    async with watched(recorder, cluster.kubeconfig, namespace) as client:
        for name in names:
            await groups.create(client, name, namespace, pods, AT_ONCE)
        await recorder.until(recorder.is_ready)
        recorder.judges = True
        begun = time.perf_counter()
        async with operator(cluster, namespace, *WEBHOOKS) as process:
            started = await process.until_ready() - begun
            await asyncio.sleep(settle)
            resting = await rested(cluster, process, USER, idle)
            released = await _released(client, namespace, names, recorder, process)
    sizes = {"groups": count, "pods": count * len(groups.zones_of("")) * pods}
    return {**sizes, "started": started, **resting, **released, "wrong": recorder.wrong[:5]}


async def _released(
    client: Client, namespace: str, names: Iterable[str], recorder: Recorder, process: Program
) -> dict[str, Any]:
    cpu, begun = process.cpu, time.perf_counter()
    zones = [zone for name in names for zone in groups.zones_of(name)]
    await groups.release(client, zones, namespace, 2)
    took = await recorder.until(partial(recorder.is_ready, groups.image(2))) - begun
    await groups.until_current(client, namespace, zones)
    return {"took": took, "cpu": process.cpu - cpu, "busy": process.resident, "peak": process.peak}

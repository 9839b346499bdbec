"""Resting: one operator of many rollouts, all of which have succeeded.

What it asks for is in the API server's audit log. The rollouts are made at once before: that is measured as well.
"""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any

from controlplane import ControlPlane, Missing, find
from controlplane.cluster import Cluster
from kedge.api.oam.rollout_status import RollingState
from kedge.api.oam.rollouts import RolloutTrait
from kedge.kube.client import Client
from kedgebench.at_rest import rested
from kedgebench.batches import workloads
from kedgebench.batches.operator import USER, install_crds, operator
from kedgebench.batches.recorder import Recorder
from kedgebench.pod_watch import watched
from kedgebench.program import Program
from kedgebench.waiting import until_so


async def measure(count: int, pods: int, settle: float, idle: float) -> dict[str, Any]:
    """Task: memory, CPU and requests of an operator with many rollouts, first all under way and then all done."""
    binaries = find()
    if isinstance(binaries, Missing):
        return {"missing": binaries.reason}
    async with ControlPlane(binaries) as plane:
        cluster = await plane.start("batches", controllers=True, nodes=2)
        await install_crds(cluster)
        return await _measured(cluster, count, pods, settle, idle)


async def _measured(cluster: Cluster, count: int, pods: int, settle: float, idle: float) -> dict[str, Any]:
    namespace = await cluster.fresh_namespace("batches")
    recorder = Recorder(floor=count * pods, ceiling=count * (pods + 1))
    names = [f"web-{number}" for number in range(1, count + 1)]
    async with watched(recorder, cluster.kubeconfig, namespace) as client:
        for name in names:
            await workloads.deployment(client, namespace, f"{name}-old", 1, pods)
            await workloads.deployment(client, namespace, f"{name}-new", 2, 0)
        await recorder.until(lambda: recorder.is_settled(workloads.image(1), count * pods))
        recorder.judges = True
        begun = time.perf_counter()
        async with operator(cluster, namespace) as process:
            started = await process.until_ready() - begun
            moved = await _moved(client, namespace, names, pods, process)
            await asyncio.sleep(settle)
            resting = await rested(cluster, process, USER, idle)
    return {
        "rollouts": count,
        "pods": count * pods,
        "started": started,
        **moved,
        **resting,
        "wrong": recorder.wrong[:5],
    }


async def _moved(client: Client, namespace: str, names: list[str], pods: int, process: Program) -> dict[str, Any]:
    """All rollouts at once, pod by pod."""
    cpu, begun = process.cpu, time.perf_counter()
    for name in names:
        await workloads.rollout(client, namespace, name, f"{name}-old", f"{name}-new", pods)
    took = await until_so(partial(_have_succeeded, client, namespace), every=0.2) - begun
    return {"took": took, "cpu": process.cpu - cpu, "busy": process.resident}


async def _have_succeeded(client: Client, namespace: str) -> bool:
    found = (await client.list(RolloutTrait, namespace)).items
    return all(one.status.rolling_state is RollingState.succeeded for one in found)

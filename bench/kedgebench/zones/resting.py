"""Resting: one operator of many groups, with webhooks and a certificate of its own, that has nothing to do.

What it asks for is in the API server's audit log. Afterwards all groups are released at once.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from controlplane import ControlPlane, Missing, find
from controlplane.audit import is_write
from controlplane.cluster import Cluster
from kedge.kube.client import Client
from kedgebench.zones import groups
from kedgebench.zones.operator import USER, OperatorProcess, install_crds, operator
from kedgebench.zones.recorder import Recorder, recorded

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
    async with recorded(recorder, cluster.kubeconfig, namespace) as client:
        for name in names:
            await groups.create(client, name, namespace, pods, AT_ONCE)
        await recorder.until(recorder.is_ready)
        recorder.judges = True
        begun = time.perf_counter()
        async with operator(cluster, namespace, *WEBHOOKS) as process:
            started = await process.until_ready() - begun
            await asyncio.sleep(settle)
            rested = await _rested(cluster, process, idle)
            released = await _released(client, namespace, names, recorder, process)
        asked = _asked_by_operator(cluster)
    sizes = {"groups": count, "pods": count * len(groups.zones_of("")) * pods}
    refused = sorted({one["requestURI"] for one in asked if one["responseStatus"]["code"] in (401, 403)})
    return {**sizes, "started": started, **rested, **released, "refused": refused, "wrong": recorder.wrong[:5]}


async def _rested(cluster: Cluster, process: OperatorProcess, idle: float) -> dict[str, Any]:
    before, cpu = len(_asked_by_operator(cluster)), process.cpu
    await asyncio.sleep(idle)
    asked = _asked_by_operator(cluster)[before:]
    return {
        "resident": process.resident,
        "start_peak": process.peak,
        "idle_cpu": (process.cpu - cpu) * 60.0 / idle,
        "requests": _by_verb(asked),
        "writes": sum(map(is_write, asked)),
    }


async def _released(
    client: Client, namespace: str, names: Iterable[str], recorder: Recorder, process: OperatorProcess
) -> dict[str, Any]:
    cpu, begun = process.cpu, time.perf_counter()
    zones = [zone for name in names for zone in groups.zones_of(name)]
    await groups.release(client, zones, namespace, 2)
    took = await recorder.until(partial(recorder.is_ready, groups.image(2))) - begun
    await groups.until_current(client, namespace, zones)
    return {"took": took, "cpu": process.cpu - cpu, "busy": process.resident, "peak": process.peak}


def _asked_by_operator(cluster: Cluster) -> list[dict[str, Any]]:
    return [event for event in cluster.audit_events() if event["user"].get("username") == USER]


def _by_verb(events: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    return dict(Counter(f"{event['verb']} {_asked_for(event)}" for event in events))


def _asked_for(event: Mapping[str, Any]) -> str:
    return str(event.get("objectRef", {}).get("resource") or event["requestURI"])

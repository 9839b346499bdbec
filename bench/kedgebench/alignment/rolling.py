"""Rolling: a Deployment that is divided over real members, in turns with one of the same size on one of them.

Both are judged by watches of the pods: from before the new image is written until all pods run it and are ready, and
whether ever too few were ready or too many there. The hub's controller and the members' agents run in this process, as
the roles would run them; so does whoever watches.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from statistics import median
from typing import Any

import yaml
from msgspec.structs import replace

from controlplane import Binaries, ControlPlane, Missing, find
from controlplane.cluster import Cluster as RealCluster
from kedge.api.apps import Deployment
from kedge.api.core import Namespace
from kedge.api.crds import karmada_crds
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.clusters import Cluster as Member
from kedge.api.karmada.works import Work
from kedge.api.pods import Pod
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.cluster import Cluster
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.plan.aligning.names import work_namespace
from kedge.roles import add_karmada_hub, add_karmada_member
from kedgebench.alignment import workload
from kedgebench.alignment.workload import ALIGNED, NAME, PLAIN
from kedgebench.alignment.writes import Writes
from kedgebench.batches.recorder import Recorder
from kedgebench.fleet.real import HUB, KEEPS_HOUSE, NO_AUDIT
from kedgebench.machine import load as machine_load
from kedgebench.pod_watch import watched

DEFINITIONS = karmada_crds()
PAUSE = 2.0  # seconds between releases, for the last statuses
READY = {"type": "Ready", "status": "True", "reason": "ClusterReady", "message": ""}


class OfCluster:
    """Tells a recorder of the pods of one cluster: two clusters may have pods of the same name."""

    def __init__(self, recorder: Recorder, cluster: str) -> None:
        self._recorder = recorder
        self._cluster = cluster

    def see(self, pod: Pod, *, is_gone: bool) -> None:
        meta = replace(pod.metadata, name=f"{self._cluster}/{pod.metadata.name}")
        self._recorder.see(replace(pod, metadata=meta), is_gone=is_gone)


class Turns:
    """Releases of both, one after the other."""

    def __init__(self, hub: Client, alone: Client, aligned: Recorder, plain: Recorder, pods: int) -> None:
        self._aligned = hub, ALIGNED, aligned
        self._plain = alone, PLAIN, plain
        self._pods = pods
        self._number = 1

    async def first(self) -> None:
        for _, _, recorder in (self._aligned, self._plain):
            await recorder.until(lambda recorder=recorder: recorder.is_settled(workload.image(1), self._pods))
            recorder.judges = True
        await asyncio.sleep(PAUSE)

    async def aligned(self) -> float:
        return await self._release(*self._aligned)

    async def plain(self) -> float:
        return await self._release(*self._plain)

    async def _release(self, client: Client, namespace: str, recorder: Recorder) -> float:
        """Seconds from before the write to the last pod."""
        self._number += 1
        image, begun = workload.image(self._number), time.perf_counter()
        await client.patch(Deployment, NAME, MergePatch(workload.release(self._number)), namespace)
        took = await recorder.until(lambda: recorder.is_settled(image, self._pods)) - begun
        await asyncio.sleep(PAUSE)
        return took


async def measure(members: int, pods: int, max_unavailable: str, rounds: int) -> dict[str, Any]:
    """Task: what releases of both take, in turns."""
    binaries = find()
    if isinstance(binaries, Missing):
        return {"missing": binaries.reason}
    names = [f"cluster-{number:02}" for number in range(1, members + 1)]
    floor = pods - _number_of(max_unavailable, pods)
    aligned, plain, writes = Recorder(floor, pods), Recorder(floor, pods), Writes()
    async with _fleet(binaries, names, aligned, plain, writes) as (hub, clients):
        await hub.create(Deployment, workload.deployment(ALIGNED, pods, max_unavailable))
        await hub.create(ResourceBinding, workload.binding(ALIGNED, dict.fromkeys(names, pods // members)))
        await clients[names[0]].create(Deployment, workload.deployment(PLAIN, pods, max_unavailable))
        turns = Turns(hub, clients[names[0]], aligned, plain, pods)
        await turns.first()
        alone, divided, loads = [await turns.plain()], [], []
        before = writes.total
        for _ in range(rounds):
            divided.append(await turns.aligned())
            alone.append(await turns.plain())
            loads.append(machine_load())
    return {
        "plain": alone,
        "aligned": divided,
        "overhead": [took / median(alone) for took in divided],
        "loads": loads,
        "wrong": aligned.wrong[:5],
        "plain_wrong": plain.wrong[:5],
        "most_pending": writes.most_pending,
        "writes": (writes.total - before) / rounds / members,
    }


def _number_of(percent: str, pods: int) -> int:
    return math.floor(int(percent.removesuffix("%")) * pods / 100)


# The fleet


@asynccontextmanager
async def _fleet(
    binaries: Binaries, names: list[str], aligned: Recorder, plain: Recorder, writes: Writes
) -> AsyncIterator[tuple[Client, Mapping[str, Client]]]:
    async with AsyncExitStack() as stack:
        plane = await stack.enter_async_context(ControlPlane(binaries))
        await plane.start(HUB, only=KEEPS_HOUSE, apiserver_flags=NO_AUDIT)
        await plane.start_many(names, controllers=True, nodes=2, apiserver_flags=NO_AUDIT)
        clusters = plane.clusters
        hub = await stack.enter_async_context(_client(clusters[HUB]))
        await _prepared(clusters[HUB], hub, names)
        clients = {}
        for name in names:
            client = await stack.enter_async_context(
                watched(OfCluster(aligned, name), clusters[name].kubeconfig, ALIGNED)
            )
            for namespace in (ALIGNED, PLAIN):
                await client.create(Namespace, {"metadata": {"name": namespace}})
            clients[name] = client
        await stack.enter_async_context(watched(plain, clusters[names[0]].kubeconfig, PLAIN))
        await stack.enter_async_context(_roles(clusters, names, writes))
        yield hub, clients


async def _prepared(cluster: RealCluster, hub: Client, names: list[str]) -> None:
    await cluster.kubectl("apply", "--server-side", "-f", "-", input=yaml.safe_dump_all(map(dict, DEFINITIONS)))
    await cluster.kubectl("wait", "crd", "--all", "--for=condition=Established", "--timeout=60s")
    await hub.create(Namespace, {"metadata": {"name": ALIGNED}})
    now = f"{SystemClock().now():%Y-%m-%dT%H:%M:%SZ}"
    ready = MergePatch({"status": {"conditions": [{**READY, "lastTransitionTime": now}]}})
    for name in names:
        await hub.create(Namespace, {"metadata": {"name": work_namespace(name)}})
        await hub.create(Member, {"metadata": {"name": name}, "spec": {}})
        await hub.patch(Member, name, ready, subresource="status")


@asynccontextmanager
async def _client(cluster: RealCluster) -> AsyncIterator[Client]:
    client = Client(HttpsTransport(load([cluster.kubeconfig])), limiter=Limiter(rate=0), timeout=120.0)
    try:
        yield client
    finally:
        await client.close()


@asynccontextmanager
async def _roles(clusters: Mapping[str, RealCluster], names: list[str], writes: Writes) -> AsyncIterator[None]:
    """The controller of the hub and the agent of each member, each with connections of its own."""
    async with AsyncExitStack() as stack:
        managers = [await stack.enter_async_context(Manager(component="hub", grace=1.0))]
        hub = await _connected(managers[0], clusters[HUB])
        add_karmada_hub(managers[0], hub)
        hub.cache(Work).on_change(writes.see)
        for name in names:
            manager = await stack.enter_async_context(Manager(component="member", grace=1.0))
            on_hub, on_member = await _connected(manager, clusters[HUB]), await _connected(manager, clusters[name])
            add_karmada_member(manager, name, on_hub, on_member)
            managers.append(manager)
        running = [asyncio.create_task(one.run(signals=False)) for one in managers]
        try:
            yield
        finally:
            for one in managers:
                one.stop()
            await asyncio.gather(*running)


async def _connected(manager: Manager, cluster: RealCluster) -> Cluster:
    transport = HttpsTransport(load([cluster.kubeconfig]))
    return await manager.connect(cluster.name, transport, limiter=Limiter(rate=0))

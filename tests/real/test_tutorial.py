"""The tutorial's controller loses nothing: 1,000 objects, 20 writers, an API server that is killed three times."""

import asyncio
import hashlib
import json
import random
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from controlplane.cluster import Cluster
from controlplane.plane import ControlPlane
from kedge.api.core import ConfigMap
from kedge.kube.client import Client
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.errors import KubeError
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request, Response, Stream, Transport
from support.tutorial import CHECKSUM, Stamper

pytestmark = pytest.mark.core

OBJECTS = 1_000
WRITERS = 20
OUTAGES = (30.0, 0.0, 0.0)


class Counting:
    """A transport that counts how often it was asked to open a stream."""

    def __init__(self, inner: Transport) -> None:
        self.streams = 0
        self._inner = inner

    async def send(self, request: Request, *, timeout: float) -> Response:
        return await self._inner.send(request, timeout=timeout)

    def stream(self, request: Request, *, timeout: float, silence: float) -> AbstractAsyncContextManager[Stream]:
        self.streams += 1
        return self._inner.stream(request, timeout=timeout, silence=silence)

    async def close(self) -> None:
        await self._inner.close()


async def transport_to(cluster: Cluster) -> HttpsTransport:
    return HttpsTransport(await asyncio.to_thread(load, [cluster.kubeconfig]))


async def make_objects(client: Client, namespace: str) -> None:
    gate = asyncio.Semaphore(50)

    async def make(number: int) -> None:
        meta = {"name": f"map-{number}", "namespace": namespace, "labels": {"stamp": "yes"}}
        async with gate:
            await client.create(ConfigMap, {"metadata": meta, "data": {"value": "0"}})

    await asyncio.gather(*(make(number) for number in range(OBJECTS)))


@asynccontextmanager
async def writers(client: Client, namespace: str, rng: random.Random) -> AsyncIterator[list[int]]:
    """Twenty who change objects all the time, and shrug when they cannot."""
    written = [0]

    async def write() -> None:
        while True:
            name = f"map-{rng.randrange(OBJECTS)}"
            try:
                await client.patch(ConfigMap, name, MergePatch({"data": {"value": str(rng.random())}}), namespace)
                written[0] += 1
            except KubeError:
                await asyncio.sleep(0.2)
            await asyncio.sleep(0.02)

    tasks = [asyncio.create_task(write()) for _ in range(WRITERS)]
    try:
        yield written
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def unstamped(cluster: Cluster, namespace: str) -> list[str]:
    """The objects whose last version was not reconciled, by a list and a checksum that are not ours."""
    answer = await cluster.request("GET", f"/api/v1/namespaces/{namespace}/configmaps?labelSelector=stamp%3Dyes")
    items = answer.json()["items"]
    assert len(items) == OBJECTS
    return [item["metadata"]["name"] for item in items if not _is_stamped(item)]


def _is_stamped(item: dict[str, dict[str, dict[str, str]]]) -> bool:
    text = json.dumps(item["data"], sort_keys=True, separators=(",", ":"))
    wanted = hashlib.sha256(text.encode()).hexdigest()[:16]
    return item["metadata"].get("annotations", {}).get(CHECKSUM) == wanted


@pytest.mark.timeout(400)
async def test_the_last_version_of_every_object_is_reconciled_whatever_happens(own_plane: ControlPlane) -> None:
    cluster = await own_plane.start("tutorial")
    namespace = await cluster.fresh_namespace()
    acting = Client(await transport_to(cluster), limiter=Limiter(rate=0))
    await make_objects(acting, namespace)
    counting = Counting(await transport_to(cluster))
    async with Manager(component="stamper") as manager:
        hub = await manager.connect("hub", counting, limiter=Limiter(rate=0))
        stamper = Stamper(hub)
        manager.add_controller(stamper.controller)
        running = asyncio.create_task(manager.run(signals=False))
        await stamper.maps.synced()
        async with writers(acting, namespace, random.Random(1)) as written:
            for outage in OUTAGES:
                await asyncio.sleep(2)
                await cluster.kill_apiserver()
                before = counting.streams
                await asyncio.sleep(outage)
                assert counting.streams - before <= 10
                await cluster.restart_apiserver()
            await asyncio.sleep(2)
        assert written[0] > OBJECTS / 2
        async with asyncio.timeout(120):
            while await unstamped(cluster, namespace):
                await asyncio.sleep(0.5)
        manager.stop()
        await running
    await acting.close()

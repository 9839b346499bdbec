"""Kedge, as its controllers use it: typed client, cache with a handler, queue with a worker."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

from msgspec import field

from kedge.api import apps
from kedge.api.apps import DeploymentStatus, UpdateStrategy
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector
from kedge.kube.cache import Cache
from kedge.kube.client import Client
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from kedge.kube.metrics import Metrics
from kedge.kube.queue import LOW, NORMAL, Key, Queue
from kedge.kube.store import Change, key_of
from kedge.kube.transport import Request, Response, Stream, Transport
from kedgebench.rivals import Held, Saw

NO_WAITING = 1_000_000
"""The limiter works as ever, but never says wait."""


class Container(Value, frozen=True, gc=False):
    """Which program a pod runs."""

    name: str
    image: str = ""


class TemplateSpec(Value, frozen=True, gc=False):
    """What the pods run."""

    containers: tuple[Container, ...] | None = None


class Template(Value, frozen=True, gc=False):
    """What the pods look like, as far as a rollout decides on it."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: TemplateSpec = TemplateSpec()


class DeploymentSpec(Value, frozen=True, gc=False):
    """What a Deployment should be, as far as a rollout decides on it."""

    replicas: int | None = None
    selector: LabelSelector | None = None
    template: Template = Template()
    strategy: UpdateStrategy = UpdateStrategy()
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None
    progress_deadline_seconds: int | None = None
    paused: bool = False


class Deployment(Value, frozen=True, gc=False):
    """A Deployment with what a controller keeps of it: a cache of many objects holds no more than is read."""

    resource: ClassVar[Resource] = apps.Deployment.resource
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class Kedge:
    def __init__(self, kubeconfig: str, namespace: str) -> None:
        self._client = Client(
            HttpsTransport(load([Path(kubeconfig)])),
            limiter=Limiter(rate=NO_WAITING, burst=NO_WAITING),
            on_answer=Metrics().answered,
        )
        self._namespace = namespace

    async def get(self, name: str) -> Deployment:
        return await self._client.get(Deployment, name, self._namespace)

    async def list(self) -> Sequence[Deployment]:
        return (await self._client.list(Deployment, self._namespace)).items

    async def watch(self, saw: Saw) -> None:
        """Decode, keep, tell the handler, queue the key, and have a worker take it and look the object up."""
        cache = Cache(self._client, Deployment, self._namespace)
        queue = Queue(rng=random.Random(1))
        last = asyncio.Event()

        def changed(change: Change[Deployment]) -> None:
            meta = change.object.metadata
            priority = LOW if change.initial else NORMAL
            queue.add(Key("bench", meta.namespace, meta.name), priority=priority)
            if not change.initial and saw(meta.name):
                last.set()

        async def work() -> None:
            while (key := await queue.get()) is not None:
                cache.get(key.name, key.namespace)
                queue.forget(key)
                queue.done(key)

        cache.on_change(changed)
        tasks = [asyncio.create_task(cache.run()), asyncio.create_task(work())]
        await last.wait()
        await _end(tasks)

    async def hold(self, namespace: str, copies: int) -> Held:
        clients = [Client(Renamed(self._client.transport, copy)) for copy in range(1, copies + 1)]
        caches = [Cache(client, Deployment, namespace) for client in clients]
        running = [asyncio.create_task(cache.run()) for cache in caches]
        for cache in caches:
            await cache.synced()

        def objects() -> object:
            return [{key_of(found.metadata): found for found in cache.all()} for cache in caches]

        return Held((caches, running), sum(len(cache) for cache in caches), objects)


class Renamed:
    """The same objects under other names in every copy: a cache shares strings, and may not share those of a copy."""

    def __init__(self, transport: Transport, copy: int) -> None:
        self._transport = transport
        self._digits = b"-%02d" % copy

    async def send(self, request: Request, *, timeout: float) -> Response:
        return await self._transport.send(request, timeout=timeout)

    @asynccontextmanager
    async def stream(self, request: Request, *, timeout: float, silence: float) -> AsyncIterator[Stream]:
        async with self._transport.stream(request, timeout=timeout, silence=silence) as stream:
            yield RenamedStream(stream, self._digits)

    async def close(self) -> None:
        await self._transport.close()


class RenamedStream:
    def __init__(self, stream: Stream, digits: bytes) -> None:
        self._stream = stream
        self._digits = digits
        self.status = stream.status
        self.headers: Mapping[str, str] = stream.headers

    async def read(self) -> bytes:
        return await self._stream.read()

    async def lines(self) -> AsyncIterator[bytes]:
        async for line in self._stream.lines():
            yield line.replace(b"-00", self._digits)  # the first two of the five digits in a name


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

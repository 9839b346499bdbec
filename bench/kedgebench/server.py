"""Server: the Deployments in the API server, and what changes them while contenders watch.

Writes through Kedge's own client, in the benchmark's main process: nobody's CPU time is measured there.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from controlplane import ControlPlane, Missing, find
from kedge.api.apps import Deployment
from kedge.api.resource import Resource
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request
from kedgebench import sample
from kedgebench.marks import END, START

AT_ONCE = 16
_NAMESPACES = untyped(Resource("", "v1", "Namespace", "namespaces", namespaced=False))


class Unavailable(Exception):
    """There is no control plane to measure against; says why."""


@dataclass(frozen=True)
class Place:
    """Where the objects are: `namespace` holds all of them, `small` a few to warm up with."""

    kubeconfig: Path
    namespace: str = "shop"
    small: str = "small"


class Server:
    """A bare API server with Deployments in it."""

    def __init__(self, client: Client, place: Place) -> None:
        self._client = client
        self.place = place
        self._turn = 0
        self._numbers: Iterator[int] = iter(())

    async def fill(self, objects: int, few: int, told: Callable[[int], None]) -> None:
        """Make the Deployments, as several managers would."""
        self._numbers = itertools.cycle(range(objects))
        for namespace, count in ((self.place.small, few), (self.place.namespace, objects)):
            await self._client.create(_NAMESPACES, {"metadata": {"name": namespace}})
            await _some_at_once(partial(self._make, namespace), range(count), told, every=max(1, count // 10))
        for mark in (START, END):
            await self._client.apply(Deployment, self._mark(mark), manager="helm")

    async def bytes_per_object(self) -> int:
        """How large one object is on the wire."""
        return len(await self._read(Deployment.resource.path(self.place.namespace, sample.name(0))))

    async def version(self) -> str:
        """The API server's own version."""
        return str(msgspec.json.decode(await self._read("/version"))["gitVersion"])

    async def mark(self, name: str) -> None:
        """Change one of the two objects that frame what is measured."""
        self._turn += 1
        patch = MergePatch({"metadata": {"annotations": {"kedgebench/turn": str(self._turn)}}})
        await self._client.patch(Deployment, name, patch, self.place.namespace)

    async def change(self, count: int, *, rate: float | None = None) -> None:
        """Change that many statuses: so many a second, or as fast as the server takes them."""
        numbers = [next(self._numbers) for _ in range(count)]
        if rate is None:
            await _some_at_once(self._touch, numbers)
        else:
            await _at_rate(self._touch, numbers, rate)

    async def _read(self, path: str) -> bytes:
        return (await self._client.transport.send(Request("GET", path), timeout=10)).body

    async def _make(self, namespace: str, number: int) -> None:
        for manager, body in sample.applied(number).items():
            placed = {**body, "metadata": {**body["metadata"], "namespace": namespace}}
            await self._client.apply(Deployment, placed, manager=manager, force=True)
        await self._patch_status(namespace, number, sample.status(number))

    async def _touch(self, number: int) -> None:
        self._turn += 1
        await self._patch_status(self.place.namespace, number, sample.status(number, self._turn))

    async def _patch_status(self, namespace: str, number: int, body: sample.Body) -> None:
        await self._client.patch(
            Deployment,
            sample.name(number),
            MergePatch(body),
            namespace,
            manager=sample.CONTROLLER,
            subresource="status",
        )

    def _mark(self, name: str) -> sample.Body:
        body = sample.applied(0)["helm"]
        return {**body, "metadata": {"name": name, "namespace": self.place.namespace}}


@asynccontextmanager
async def start() -> AsyncIterator[Server]:
    """An API server of our own, empty."""
    binaries = find()
    if isinstance(binaries, Missing):
        raise Unavailable(f"{binaries.reason}: run `make kube` first")
    async with ControlPlane(binaries) as plane:
        cluster = await plane.start("bench")
        client = Client(HttpsTransport(load([cluster.kubeconfig])), limiter=Limiter(rate=0), timeout=120.0)
        try:
            yield Server(client, Place(cluster.kubeconfig))
        finally:
            await client.close()


async def _some_at_once(
    work: Callable[[int], Awaitable[None]],
    numbers: Iterable[int],
    told: Callable[[int], None] | None = None,
    every: int = 1,
) -> None:
    left = iter(numbers)

    async def worker() -> None:
        for number in left:
            await work(number)
            if told is not None and number % every == 0:
                told(number)

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(worker())


async def _at_rate(work: Callable[[int], Awaitable[None]], numbers: Sequence[int], rate: float) -> None:
    """Evenly over time; slower where the server does not keep up, never more than `AT_ONCE` under way."""
    loop = asyncio.get_running_loop()
    begun = loop.time()

    async def in_time(turn: int) -> None:
        await asyncio.sleep(max(0.0, begun + turn / rate - loop.time()))
        await work(numbers[turn])

    await _some_at_once(in_time, range(len(numbers)))

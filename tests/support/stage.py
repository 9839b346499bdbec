"""A stage: an API with controllers behind it, on which a test plays kubelet; a real one and an embedded one.

A test that runs the same scenario on both and compares what it saw at rest holds our controllers to Kubernetes' own.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, TypeVar

from controlplane.cluster import Cluster as RealCluster
from kedge.api.core import Event
from kedge.api.resource import Resource
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.kind import Kind
from kedge.embedded.workloads.everything import Parts, add_workloads
from kedge.kube.client import Client
from kedge.kube.clock import Clock, SystemClock
from kedge.kube.codec import Untyped, untyped
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch

T = TypeVar("T")
R = TypeVar("R")
AT_ONCE = 8
PODS = untyped(Resource("", "v1", "Pod", "pods"))
ACCOUNTS = untyped(Resource("", "v1", "ServiceAccount", "serviceaccounts"))
EVENTS = untyped(Event.resource)
NAMESPACES = untyped(Resource("", "v1", "Namespace", "namespaces", namespaced=False))
START = datetime(2030, 1, 1, tzinfo=UTC)


class LoopClock:
    """Follows the time of the loop, virtual or not."""

    def now(self) -> datetime:
        return START + timedelta(seconds=asyncio.get_running_loop().time())


class Stage:
    """One namespace of an API, and how long to look before believing that nothing moves any more."""

    def __init__(self, client: Client, namespace: str, clock: Clock, *, pause: float, looks: int) -> None:
        self.client = client
        self.namespace = namespace
        self.clock = clock
        self._pause = pause
        self._looks = looks

    async def at_rest(self, look: Callable[[], Awaitable[T | None]], within: float = 180.0, *, patience: int = 1) -> T:
        """What `look` sees once it sees the same several times in a row; None counts as still moving.

        `patience` multiplies how often, for a look that cannot tell by itself whether what it sees is old.
        """
        last, same = None, 0
        try:
            async with asyncio.timeout(within):
                while same < self._looks * patience:
                    found = await look()
                    same = same + 1 if found is not None and found == last else 0
                    last = found
                    await asyncio.sleep(self._pause)
        except TimeoutError:
            raise AssertionError(f"it never came to rest; the last that was seen: {last}") from None
        assert last is not None
        return last

    async def all(self, kind: Any) -> list[Untyped]:
        """Every object of a kind in the namespace, by name."""
        page = await self.client.list(kind, self.namespace)
        return sorted(page.items, key=lambda one: str(one["metadata"]["name"]))

    async def say_of_pod(self, name: str, phase: str, *, ready: bool, **status: Any) -> None:
        """What a kubelet would say of a pod."""
        now = self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": now}
        body = {"status": {"phase": phase, "conditions": [condition], **status}}
        await self.client.patch(PODS, name, MergePatch(body), self.namespace, subresource="status")

    async def events_of(self, kind: str, masks: Mapping[str, str]) -> list[str]:
        """What was told of the objects of a kind, with these patterns replaced."""
        told = [one for one in await self.all(EVENTS) if one["involvedObject"]["kind"] == kind]
        return sorted(masked(f"{one['type']} {one['reason']}: {one['message']} x{one['count']}", masks) for one in told)


def masked(text: str, masks: Mapping[str, str]) -> str:
    for pattern, word in masks.items():
        text = re.sub(pattern, word, text)
    return text


async def each(rows: Mapping[str, R], play: Callable[[R], Coroutine[Any, Any, T]]) -> dict[str, T | BaseException]:
    """What comes of playing each row, several at a time: a row that fails does not spoil the others."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(row: R) -> T:
        async with gate:
            return await play(row)

    found = await asyncio.gather(*(one(row) for row in rows.values()), return_exceptions=True)
    return dict(zip(rows, found, strict=True))


class Letters:
    """Revisions in short: a letter each, in the order in which they are met."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, revision: str) -> str:
        return self._known.setdefault(revision, "abcdefghij"[len(self._known)]) if revision else "-"

    @property
    def masks(self) -> dict[str, str]:
        return {name: f"<{letter}>" for name, letter in self._known.items()}


def is_ready(pod: Untyped) -> bool:
    status = pod.get("status", {})
    conditions = status.get("conditions", ())
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
    return status.get("phase") == "Running" and ready


@asynccontextmanager
async def real_stage(cluster: RealCluster) -> AsyncIterator[Stage]:
    """A namespace of its own on a real control plane."""
    namespace = await cluster.fresh_namespace("states")
    client = Client(HttpsTransport(await asyncio.to_thread(load, [cluster.kubeconfig])), limiter=Limiter(rate=0))
    stage = Stage(client, namespace, SystemClock(), pause=0.05, looks=8)
    try:
        await stage.at_rest(lambda: _takes_pods(stage))
        yield stage
    finally:
        await client.close()


async def _takes_pods(stage: Stage) -> bool | None:
    """Whether the namespace has its service account: before, pods are refused."""
    return any(one["metadata"]["name"] == "default" for one in await stage.all(ACCOUNTS)) or None


@asynccontextmanager
async def embedded_stage(
    parts: Parts, seed: int = 1, *, delay: tuple[float, float] = (0.001, 0.01), kinds: Sequence[Kind] = ()
) -> AsyncIterator[Stage]:
    """An embedded API with these controllers, whose watches are so late, and kinds; meant for virtual time."""
    clock = LoopClock()
    cluster = EmbeddedCluster("here", clock=clock, rng=Random(seed))
    for kind in kinds:
        cluster.server.registry.add(kind)
    cluster.start()
    client = Client(cluster.transport(), limiter=Limiter(rate=0))
    await client.create(NAMESPACES, {"metadata": {"name": "states"}})
    stage = Stage(client, "states", clock, pause=0.3, looks=5)
    await stage.at_rest(lambda: _takes_pods(stage))
    async with Manager(clock=clock, rng=Random(seed)) as manager:
        transport = InProcessTransport(cluster.server, rng=Random(seed), delay=delay)
        connected = await manager.connect("here", transport, limiter=Limiter(rate=0))
        add_workloads(manager, connected, parts)
        running = asyncio.create_task(manager.run(signals=False))
        yield stage
        manager.stop()
        await running
    await client.close()
    cluster.stop()

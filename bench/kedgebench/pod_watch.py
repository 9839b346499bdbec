"""Pod watch: the pods of a namespace as the server tells of them, for whoever judges a rollout by its pods alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

from kedge.api.pods import Pod
from kedge.kube.client import Client
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter


class PodWatcher(Protocol):
    """Whoever wants to know."""

    def see(self, pod: Pod, *, is_gone: bool) -> None:
        """A pod as it is now."""
        ...


def is_ready(pod: Pod) -> bool:
    """A pod that is terminating is not."""
    ready = any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)
    return ready and pod.metadata.deletion_timestamp is None


def image_of(pod: Pod) -> str:
    return str((pod.spec.containers or ())[0].image)


def unhindered(kubeconfig: Path) -> Client:
    """A client that nothing slows down."""
    return Client(HttpsTransport(load([kubeconfig])), limiter=Limiter(rate=0), timeout=120.0)


@asynccontextmanager
async def watched(watcher: PodWatcher, kubeconfig: Path, namespace: str) -> AsyncIterator[Client]:
    """With the watcher told of every pod; gives a client that nothing slows down."""
    client = unhindered(kubeconfig)
    following = asyncio.create_task(_follow(watcher, client, namespace))
    try:
        yield client
    finally:
        following.cancel()
        with suppress(asyncio.CancelledError):
            await following
        await client.close()


async def _follow(watcher: PodWatcher, client: Client, namespace: str) -> None:
    while True:
        async with client.watch(Pod, namespace, initial_events=True) as events:
            async for event in events:
                pod = getattr(event, "object", None)  # a bookmark has none
                if isinstance(pod, Pod):
                    watcher.see(pod, is_gone=getattr(event, "type", "") == "DELETED")

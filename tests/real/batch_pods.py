"""Batch pods: watches the pods of a rollout in batches itself, and judges every moment by floor and ceiling."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from kedge.api.pods import Pod
from kedge.kube.client import Client


class PodRecorder:
    """The pods of one namespace with the label app=web. It knows nothing of the operator."""

    def __init__(self, floor: int, ceiling: int) -> None:
        self.floor = floor
        self.ceiling = ceiling
        self.judges = False
        self.wrong: list[str] = []
        self.fewest, self.most = 10**6, 0
        self.seen = 0
        self._pods: dict[str, tuple[str, bool]] = {}  # by name: the image, and whether it is ready

    async def follow(self, client: Client, namespace: str) -> None:
        """Watch until cancelled."""
        while True:
            async with client.watch(Pod, namespace, labels={"app": "web"}, initial_events=True) as events:
                async for event in events:
                    pod = getattr(event, "object", None)  # a bookmark has none
                    if isinstance(pod, Pod):
                        self._see(pod, is_gone=getattr(event, "type", "") == "DELETED")

    def ready(self, image: str = "") -> int:
        return sum(ready for found, ready in self._pods.values() if image in ("", found))

    def _see(self, pod: Pod, *, is_gone: bool) -> None:
        self.seen += 1
        name = pod.metadata.name
        if is_gone or pod.metadata.deletion_timestamp is not None:
            self._pods.pop(name, None)
        else:
            ready = any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)
            self._pods[name] = ((pod.spec.containers or ())[0].image, ready)
        if self.judges:
            self._judge()

    def _judge(self) -> None:
        ready, there = self.ready(), len(self._pods)
        self.fewest, self.most = min(self.fewest, ready), max(self.most, there)
        if ready < self.floor:
            self.wrong.append(f"{ready} pods are ready: fewer than {self.floor}")
        if there > self.ceiling:
            self.wrong.append(f"{there} pods are there: more than {self.ceiling}")


@asynccontextmanager
async def recorded(client: Client, namespace: str, recorder: PodRecorder) -> AsyncIterator[None]:
    """Watch for a while."""
    task = asyncio.create_task(recorder.follow(client, namespace))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

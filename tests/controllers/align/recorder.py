"""Recorder: who sees every event of every pod of all members, and counts them all at each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from kedge.api.pods import Pod
from kedge.kube.client import Client
from kedge.plan.workloads import pods

MANY = 10**9


class PodRecorder:
    """The pods of all members together. What is counted is what is not being deleted, as Kubernetes counts."""

    def __init__(self) -> None:
        self._pods: dict[tuple[str, str], Pod] = {}
        self.forget()

    def forget(self) -> None:
        """Count from now on."""
        self.fewest, self.most = MANY, 0
        self.most_of: dict[str, int] = {}

    @property
    def active(self) -> list[Pod]:
        return [pod for pod in self._pods.values() if pods.is_active(pod)]

    def ready_images(self) -> list[str]:
        """The images of all pods that are ready, in order."""
        return sorted(image_of(pod) for pod in self.active if pods.is_ready(pod))

    @asynccontextmanager
    async def following(self, members: Mapping[str, Client], namespace: str) -> AsyncIterator[None]:
        """Follow the pods of these members while the context lasts."""
        tasks = [asyncio.create_task(self._follow(name, one, namespace)) for name, one in members.items()]
        try:
            yield
            for task in tasks:
                assert not task.done(), f"a watch of pods ended: {task}"
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, cluster: str, client: Client, namespace: str) -> None:
        async with client.watch(Pod, namespace, initial_events=True) as events:
            async for event in events:
                self._take(cluster, event)

    def _take(self, cluster: str, event: Any) -> None:
        pod = getattr(event, "object", None)  # a bookmark has none
        if not isinstance(pod, Pod):
            return
        if event.type == "DELETED":
            self._pods.pop((cluster, pod.metadata.name), None)
        else:
            self._pods[cluster, pod.metadata.name] = pod
        self._count()

    def _count(self) -> None:
        active = self.active
        self.fewest = min(self.fewest, sum(map(pods.is_ready, active)))
        if len(active) > self.most:
            self.most = len(active)
            self.at_most = sorted(
                f"{cluster} {name} {image_of(pod)} {pod.metadata.creation_timestamp}"
                for (cluster, name), pod in self._pods.items()
                if pods.is_active(pod)
            )
        for image in {image_of(pod) for pod in active}:
            number = sum(image_of(pod) == image for pod in active)
            self.most_of[image] = max(self.most_of.get(image, 0), number)


def image_of(pod: Pod) -> str:
    return str((pod.spec.containers or ())[0].image)

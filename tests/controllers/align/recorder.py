"""Recorder: who sees every event of every pod of all members, and counts them all at each.

A Deployment counts the pods that its ReplicaSets are asked for: the controller of the new one may create a pod before
that of the old one has deleted another, in any single cluster. So `most_kept` leaves out pods that their ReplicaSet is
to delete. The pods and ReplicaSets of a cluster are taken in the order of its server, whichever watch is late.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from itertools import accumulate
from typing import Any, NamedTuple

from kedge.api.apps import ReplicaSet
from kedge.api.pods import Pod
from kedge.kube.client import Client
from kedge.plan.workloads import pods

MANY = 10**9


class Seen(NamedTuple):
    """An event, and when it arrived."""

    at: float
    cluster: str
    is_gone: bool
    obj: Pod | ReplicaSet


class PodRecorder:
    """The pods of all members together. What is counted is what is not being deleted, as Kubernetes counts."""

    def __init__(self) -> None:
        self._pods: dict[tuple[str, str], Pod] = {}
        self._history: list[Seen] = []
        self.forget()

    def forget(self) -> None:
        """Count from now on."""
        self.fewest, self.most = MANY, 0
        self.most_of: dict[str, int] = {}
        self._since = self._history[-1].at if self._history else 0.0

    @property
    def active(self) -> list[Pod]:
        return [pod for pod in self._pods.values() if pods.is_active(pod)]

    def ready_images(self) -> list[str]:
        """The images of all pods that are ready, in order."""
        return sorted(image_of(pod) for pod in self.active if pods.is_ready(pod))

    def ready_by_cluster(self) -> dict[str, int]:
        """How many pods are ready in each cluster."""
        found = self._pods.items()
        return dict(Counter(where for (where, _), pod in found if pods.is_active(pod) and pods.is_ready(pod)))

    @asynccontextmanager
    async def following(self, members: Mapping[str, Client], namespace: str) -> AsyncIterator[None]:
        """Follow the pods of these members while the context lasts."""
        follows = [
            self._follow(name, one, kind, namespace) for name, one in members.items() for kind in (Pod, ReplicaSet)
        ]
        tasks = [asyncio.create_task(each) for each in follows]
        try:
            yield
            for task in tasks:
                assert not task.done(), f"a watch of pods ended: {task}"
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, cluster: str, client: Client, kind: type[Pod | ReplicaSet], namespace: str) -> None:
        async with client.watch(kind, namespace, initial_events=True) as events:
            async for event in events:
                self._take(cluster, event)

    def _take(self, cluster: str, event: Any) -> None:
        found = getattr(event, "object", None)  # a bookmark has none
        if not isinstance(found, Pod | ReplicaSet):
            return
        self._history.append(Seen(asyncio.get_running_loop().time(), cluster, event.type == "DELETED", found))
        if isinstance(found, Pod):
            self._take_pod(cluster, found, event)

    def _take_pod(self, cluster: str, pod: Pod, event: Any) -> None:
        if event.type == "DELETED":
            self._pods.pop((cluster, pod.metadata.name), None)
        else:
            self._pods[cluster, pod.metadata.name] = pod
        self._count()

    def _count(self) -> None:
        active = self.active
        self.fewest = min(self.fewest, sum(map(pods.is_ready, active)))
        self.most = max(self.most, len(active))
        for image in {image_of(pod) for pod in active}:
            number = sum(image_of(pod) == image for pod in active)
            self.most_of[image] = max(self.most_of.get(image, 0), number)

    def most_kept(self) -> int:
        """The most pods there were at a time, but for those that their ReplicaSet was to delete."""
        found, most = Kept(), 0
        for seen in in_order(self._history):
            found.take(seen)
            most = max(most, found.count()) if seen.at > self._since else most
        return most


class Kept:
    """The pods and ReplicaSets of all members at a moment."""

    def __init__(self) -> None:
        self._owners: dict[tuple[str, str], str] = {}
        self._asked: dict[str, int] = {}

    def take(self, seen: Seen) -> None:
        meta = seen.obj.metadata
        if isinstance(seen.obj, ReplicaSet):
            self._asked[meta.uid] = 0 if seen.is_gone else (seen.obj.spec.replicas or 0)
        elif seen.is_gone or not pods.is_active(seen.obj):
            self._owners.pop((seen.cluster, meta.name), None)
        else:
            self._owners[seen.cluster, meta.name] = next((one.uid for one in meta.owner_references), "")

    def count(self) -> int:
        counts = Counter(self._owners.values())
        return sum(min(number, self._asked.get(owner, number)) for owner, number in counts.items())


def in_order(history: Iterable[Seen]) -> list[Seen]:
    """Each cluster's events as its server made them; those of several clusters as they arrived."""
    by_cluster: dict[str, list[Seen]] = {}
    for seen in history:
        by_cluster.setdefault(seen.cluster, []).append(seen)
    ordered = [sorted(each, key=lambda seen: int(seen.obj.metadata.resource_version)) for each in by_cluster.values()]
    late = [
        seen._replace(at=at)
        for each in ordered
        for seen, at in zip(each, accumulate((seen.at for seen in each), max), strict=True)
    ]
    return sorted(late, key=lambda seen: seen.at)


def image_of(pod: Pod) -> str:
    return str((pod.spec.containers or ())[0].image)

"""Watching: what really happens to objects, from raw watches of an API, independent of what Kedge says of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec import Struct

from fleet.bed import Bed
from kedge.kube.codec import Bookmark, Codec, Untyped


class Happening(Struct, frozen=True):
    """One event of a watch: when it came, from where, and the object as it is then."""

    at: float
    where: str
    type: str
    obj: Untyped

    @property
    def is_removal(self) -> bool:
        """Whether the object goes now, or is told to."""
        return self.type == "DELETED" or "deletionTimestamp" in self.obj["metadata"]

    @property
    def member(self) -> str:
        """Where it happened; of a Work or a binding on the hub, whom it is for."""
        if self.where != "hub":
            return self.where
        namespace = self.obj["metadata"].get("namespace", "")
        return str(namespace.removeprefix("fleet-member-") or self.obj["spec"]["targetCluster"])

    @property
    def revision(self) -> int:
        """The store's count of writes then. Clusters on one etcd count together: their happenings have one order."""
        return int(self.obj["metadata"]["resourceVersion"])


def image(happening: Happening) -> str:
    """Of a Deployment."""
    return str(happening.obj["spec"]["template"]["spec"]["containers"][0]["image"])


def is_available(happening: Happening) -> bool:
    """Whether all replicas of a Deployment are, of the newest template."""
    obj, wanted = happening.obj, happening.obj["spec"]["replicas"]
    status = obj.get("status", {})
    counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")]
    return counts == [wanted] * 3 and status.get("observedGeneration") == obj["metadata"]["generation"]


@asynccontextmanager
async def watched(bed: Bed, kind: Codec[Untyped], *places: str) -> AsyncIterator[list[Happening]]:
    """Everything that happens to objects of a kind in these places, from now on, in the order it was seen."""
    seen: list[Happening] = []
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        ready = [asyncio.Event() for _ in places]
        following = [
            tasks.create_task(_follow(bed, kind, place, seen, event))
            for place, event in zip(places, ready, strict=True)
        ]
        for event in ready:
            await event.wait()
        yield seen
        for task in following:
            task.cancel()


async def _follow(bed: Bed, kind: Codec[Untyped], place: str, seen: list[Happening], ready: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    async with bed.clients[place].watch(kind, initial_events=True, seconds=3600.0, silence=3600.0) as events:
        async for event in events:
            if isinstance(event, Bookmark):
                ready.set()
            else:
                assert isinstance(event.object, dict)
                seen.append(Happening(loop.time(), place, event.type, event.object))

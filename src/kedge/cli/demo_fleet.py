"""DemoFleet: a fleet in this process, its user, and a narrator who prints what is observed. The demos share it.

What is printed about clusters was observed on the clusters themselves. What is printed about placements and runs is
what their objects say.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from msgspec import Struct
from rich.console import Console

from kedge.api.apps import Deployment
from kedge.api.core import Namespace
from kedge.cli.demo_stage import Narrator
from kedge.fleet import Fleet
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.codec import Bookmark, Untyped, untyped
from kedge.kube.limits import Limiter
from kedge.kube.patches import MergePatch
from kedge.plan.text import natural

DEPLOYMENTS = untyped(Deployment.resource)
NAMESPACE, APP = "test-ns", "web"
SELECTOR: Final[Mapping[str, str]] = {"group": "", "kind": "Namespace", "version": "v1", "name": NAMESPACE}


class DemoFleet:
    """A fleet, and what is observed of a Deployment on it."""

    def __init__(self, out: Console, *, members: int, clock: Clock, rng: random.Random) -> None:
        narrator = Narrator(out)
        self.out, self.clock = out, clock
        self.heading, self.say = narrator.heading, narrator.say
        self.command, self.note = narrator.command, narrator.note
        self._begin = narrator.begin
        self.seen = Timeline(self.say)
        self._fleet = Fleet(members=members, clock=clock, rng=rng)
        self.hub = Client(self._fleet.hub.transport(), limiter=Limiter(rate=0))

    @property
    def members(self) -> list[str]:
        return sorted((member.name for member in self._fleet.members), key=natural)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The fleet runs while the context is open."""
        self._begin(f"a hub and {len(self.members)} clusters")
        try:
            async with self._fleet:
                yield
        finally:
            await self.hub.close()

    # Acting

    async def join(self, labels: Mapping[str, Mapping[str, str]]) -> None:
        """Run workloads on the members, and join them with these labels."""
        await self._fleet.run_workloads()
        await self._fleet.run_roles(labels=labels, progress=lambda name: self.say(f"  {name} has joined"))

    async def create_app(self, image: str) -> None:
        """Create the Deployment that will be placed, on the hub."""
        self.seen.restart()
        await self.hub.create(Namespace, {"metadata": {"name": NAMESPACE}})
        await self.hub.create(DEPLOYMENTS, _deployment(image), NAMESPACE)

    async def set_image(self, image: str) -> None:
        self.seen.restart()
        change = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}
        await self.hub.patch(DEPLOYMENTS, APP, MergePatch(change), NAMESPACE)

    # Watching

    @asynccontextmanager
    async def watching(self, *kinds: Any) -> AsyncIterator[None]:
        """Watches the Deployment on every member, and objects of these kinds on the hub, while the context is open."""
        clients = {member.name: Client(member.transport(), limiter=Limiter(rate=0)) for member in self._fleet.members}
        watching = [self.seen.follow(name, client, APP, NAMESPACE) for name, client in clients.items()]
        tasks = [asyncio.create_task(one) for one in (*watching, *map(self._follow, kinds))]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for client in clients.values():
                await client.close()

    async def _follow(self, kind: Any) -> None:
        while True:  # a watch ends after its time
            async with self.hub.watch(kind, initial_events=True, seconds=3600) as events:
                async for _ in events:
                    self.seen.notify()


class SeenDeployment(Struct, frozen=True):
    """A Deployment as it was observed on a member."""

    image: str
    is_available: bool
    since: float
    """When it was first seen with this image, in seconds of the loop."""


class Timeline:
    """Prints what changes on the members, and remembers which member had which image.

    Watches the members themselves, as any client could. What the hub reports about them plays no part.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._print_line = say
        self._seen: dict[str, SeenDeployment] = {}
        self._started = 0.0
        self._changed = asyncio.Event()
        self.updates: list[tuple[str, str]] = []
        """Which member was seen with which image, in order."""
        self.updated_at: dict[tuple[str, str], float] = {}
        """When a member was first seen with an image, in seconds of the loop."""
        self.available_at: dict[tuple[str, str], float] = {}
        """When it was first seen available with it."""
        self.most_unavailable = 0
        """The most members that were unavailable at once since `restart`."""

    def restart(self) -> None:
        """Measure time and unavailability from now on."""
        self._started = asyncio.get_running_loop().time()
        self.most_unavailable = 0

    def with_image(self, image: str) -> list[str]:
        """The members that ever had this image."""
        return sorted({member for member, given in self.updates if given == image}, key=natural)

    def are_available(self, image: str, number: int) -> bool:
        """Whether this many members have the image now, and all of them are available."""
        return [found.is_available for found in self._seen.values() if found.image == image] == [True] * number

    async def follow(self, member: str, client: Client, name: str, namespace: str) -> None:
        """Watch a Deployment on a member, until cancelled."""
        while True:  # a watch ends after its time, and a demo may take longer
            watching = client.watch(
                DEPLOYMENTS, namespace, fields={"metadata.name": name}, initial_events=True, seconds=3600
            )
            async with watching as events:
                async for event in events:
                    if not isinstance(event, Bookmark) and isinstance(event.object, dict):
                        self._observe(member, event.object)

    def notify(self) -> None:
        """Wake whoever waits in `until`: something else has changed."""
        self._changed.set()

    async def until(self, holds: Callable[[], Awaitable[bool]], within: float) -> bool:
        """Wait until the condition holds, checking it after every change. False if time is up first."""
        try:
            async with asyncio.timeout(within):
                while not await holds():
                    await self._changed.wait()
                    self._changed.clear()
        except TimeoutError:
            return False
        return True

    def _observe(self, member: str, deployment: Untyped) -> None:
        before, now = self._seen.get(member), asyncio.get_running_loop().time()
        image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
        is_new = before is None or before.image != image
        found = SeenDeployment(image, _is_available(deployment), now if before is None or is_new else before.since)
        self._seen[member] = found
        self.most_unavailable = max(self.most_unavailable, _count_unavailable(self._seen.values()))
        if is_new:
            self.updates.append((member, image))
            self.updated_at.setdefault((member, image), now)
            self._print(f"{member} gets {image}")
        if found.is_available and (is_new or (before is not None and not before.is_available)):
            self.available_at.setdefault((member, image), now)
            again = "available" if _is_first(self.updates, member) else "available again"
            self._print(f"{member} is {again} after {now - found.since:.1f} s, with {_replicas(deployment)}")
        self.notify()

    def _print(self, what: str) -> None:
        self._print_line(f"{_shown(asyncio.get_running_loop().time() - self._started)}  {what}")


def _shown(seconds: float) -> str:
    """A time, padded so that all lines align."""
    if seconds < 600:
        return f"{seconds:6.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}h{minutes % 60:02}m{rest:02}s"


def _is_available(deployment: Untyped) -> bool:
    """Whether all replicas are available with the newest template, and no old ones are left."""
    wanted, status = deployment["spec"].get("replicas", 1), deployment.get("status", {})
    counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")]
    return counts == [wanted] * 3 and status.get("observedGeneration") == deployment["metadata"]["generation"]


def _count_unavailable(found: Iterable[SeenDeployment]) -> int:
    return sum(not found.is_available for found in found)


def _is_first(updates: list[tuple[str, str]], member: str) -> bool:
    return sum(name == member for name, _ in updates) == 1


def _replicas(deployment: Untyped) -> str:
    wanted = deployment["spec"].get("replicas", 1)
    return f"{deployment['status']['availableReplicas']} of {wanted} replicas"


def _deployment(image: str) -> dict[str, object]:
    labels = {"app": APP}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": image}]}}
    return {
        "metadata": {"name": APP, "labels": labels},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": template},
    }

"""Timeline: what happens to one Deployment on every member, told as it is seen there.

It watches the members themselves, as anyone could; what the hub says of them plays no part.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from msgspec import Struct

from kedge.api.apps import Deployment
from kedge.kube.client import Client
from kedge.kube.codec import Bookmark, Untyped, untyped
from kedge.plan.text import natural

DEPLOYMENTS = untyped(Deployment.resource)


class Sight(Struct, frozen=True):
    """A Deployment as it was seen on a member."""

    image: str
    is_available: bool
    since: float
    """When it was first seen with this image, in seconds of the loop."""


class Timeline:
    """Tells what changes, and remembers who had which image."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._sights: dict[str, Sight] = {}
        self._started = 0.0
        self._stirred = asyncio.Event()
        self.gave: list[tuple[str, str]] = []
        """Which member was seen with which image, in order."""
        self.given_at: dict[tuple[str, str], float] = {}
        """When a member was first seen with an image, in seconds of the loop."""
        self.available_at: dict[tuple[str, str], float] = {}
        """When it was first seen available with it."""
        self.most_moving = 0
        """How many members were not available at once, at worst, since the last beginning."""

    def begin(self) -> None:
        """Count time, and what is not available, from now on."""
        self._started = asyncio.get_running_loop().time()
        self.most_moving = 0

    def with_image(self, image: str) -> list[str]:
        """The members that ever had it."""
        return sorted({member for member, given in self.gave if given == image}, key=natural)

    def are_available(self, image: str, number: int) -> bool:
        """Whether so many members have this image now, all of them available."""
        return [sight.is_available for sight in self._sights.values() if sight.image == image] == [True] * number

    async def follow(self, member: str, client: Client, name: str, namespace: str) -> None:
        """Watch a Deployment on a member, until cancelled."""
        while True:  # a watch ends after its time, and a demo may take longer
            watching = client.watch(
                DEPLOYMENTS, namespace, fields={"metadata.name": name}, initial_events=True, seconds=3600
            )
            async with watching as events:
                async for event in events:
                    if not isinstance(event, Bookmark) and isinstance(event.object, dict):
                        self._saw(member, event.object)

    def stir(self) -> None:
        """Something else has changed that somebody may be waiting for."""
        self._stirred.set()

    async def until(self, holds: Callable[[], Awaitable[bool]], within: float) -> bool:
        """Wait until it holds; look whenever something changed. False if time is up first."""
        try:
            async with asyncio.timeout(within):
                while not await holds():
                    await self._stirred.wait()
                    self._stirred.clear()
        except TimeoutError:
            return False
        return True

    def _saw(self, member: str, deployment: Untyped) -> None:
        before, now = self._sights.get(member), asyncio.get_running_loop().time()
        image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
        is_new = before is None or before.image != image
        sight = Sight(image, _is_available(deployment), now if before is None or is_new else before.since)
        self._sights[member] = sight
        self.most_moving = max(self.most_moving, _moving(self._sights.values()))
        if is_new:
            self.gave.append((member, image))
            self.given_at.setdefault((member, image), now)
            self._tell(f"{member} gets {image}")
        if sight.is_available and (is_new or (before is not None and not before.is_available)):
            self.available_at.setdefault((member, image), now)
            again = "available" if _is_first(self.gave, member) else "available again"
            self._tell(f"{member} is {again} after {now - sight.since:.1f} s, with {_replicas(deployment)}")
        self.stir()

    def _tell(self, what: str) -> None:
        self._say(f"{_shown(asyncio.get_running_loop().time() - self._started)}  {what}")


def _shown(seconds: float) -> str:
    """A time, as long as all others."""
    if seconds < 600:
        return f"{seconds:6.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}h{minutes % 60:02}m{rest:02}s"


def _is_available(deployment: Untyped) -> bool:
    """Whether all its replicas are, with the newest template, and no others are left."""
    wanted, status = deployment["spec"].get("replicas", 1), deployment.get("status", {})
    counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")]
    return counts == [wanted] * 3 and status.get("observedGeneration") == deployment["metadata"]["generation"]


def _moving(sights: Iterable[Sight]) -> int:
    return sum(not sight.is_available for sight in sights)


def _is_first(gave: list[tuple[str, str]], member: str) -> bool:
    return sum(name == member for name, _ in gave) == 1


def _replicas(deployment: Untyped) -> str:
    wanted = deployment["spec"].get("replicas", 1)
    return f"{deployment['status']['availableReplicas']} of {wanted} replicas"

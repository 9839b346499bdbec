"""Show: a fleet in this process, a user of it, and somebody who watches and tells; what demos have in common.

What is told of clusters was seen on the clusters; what is told of placements and runs is what these say of themselves.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import click
from rich.console import Console, RenderableType
from rich.text import Text

from kedge import __version__
from kedge.api.core import Namespace
from kedge.cli.showing import draw
from kedge.cli.timeline import DEPLOYMENTS, Timeline
from kedge.fleet import Fleet
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.limits import Limiter
from kedge.kube.patches import MergePatch
from kedge.plan.text import natural

SPACE, APP = "test-ns", "web"
SELECTOR: Final[Mapping[str, str]] = {"group": "", "kind": "Namespace", "version": "v1", "name": SPACE}
PATIENCE: Final = 60.0
"""Seconds in which everything has to come true."""
STANDSTILL: Final = 3.0
"""Seconds in which what should not happen could."""


class NotAsTold(click.ClickException):
    """Something did not go as the demo says it does."""

    def __init__(self, what: str) -> None:
        super().__init__(f"this did not go as it should: {what}")


class Show:
    """A fleet, and what is to be seen of a Deployment on it."""

    def __init__(self, out: Console, *, members: int, clock: Clock, rng: random.Random) -> None:
        self.out = out
        self.clock = clock
        self.seen = Timeline(self.say)
        self._fleet = Fleet(members=members, clock=clock, rng=rng)
        self.hub = Client(self._fleet.hub.transport(), limiter=Limiter(rate=0))
        self._chapters = 0

    @property
    def members(self) -> list[str]:
        return sorted((member.name for member in self._fleet.members), key=natural)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """The fleet is up meanwhile."""
        self.out.print(
            f"Kedge {__version__}: a hub and {len(self.members)} clusters in this process; no Kubernetes needed."
        )
        try:
            async with self._fleet:
                yield
        finally:
            await self.hub.close()

    # Doing

    async def join(self, labels: Mapping[str, Mapping[str, str]]) -> None:
        """Have workloads run on the members, and the members join with these labels."""
        await self._fleet.run_workloads()
        await self._fleet.run_roles(labels=labels, progress=lambda name: self.say(f"  {name} has joined"))

    async def make_app(self, image: str) -> None:
        """The Deployment to be placed, on the hub."""
        self.seen.begin()
        await self.hub.create(Namespace, {"metadata": {"name": SPACE}})
        await self.hub.create(DEPLOYMENTS, _deployment(image), SPACE)

    async def set_image(self, image: str) -> None:
        self.seen.begin()
        change = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}
        await self.hub.patch(DEPLOYMENTS, APP, MergePatch(change), SPACE)

    # Seeing

    @asynccontextmanager
    async def watching(self, *kinds: Any) -> AsyncIterator[None]:
        """The Deployment is watched on every member meanwhile, and objects of these kinds on the hub."""
        clients = {member.name: Client(member.transport(), limiter=Limiter(rate=0)) for member in self._fleet.members}
        watching = [self.seen.follow(name, client, APP, SPACE) for name, client in clients.items()]
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
                    self.seen.stir()

    # Telling

    def chapter(self, what: str) -> None:
        self._chapters += 1
        self.out.print(Text(f"\n{self._chapters}. {what}", "bold"))

    def say(self, what: str) -> None:
        draw(Text(what), self.out, indent=3)

    def typed(self, command: str, answer: RenderableType | None = None) -> None:
        """A command that somebody types, or could, and what it prints."""
        self.out.print(Text(f"\n   $ {command}", "dim"), soft_wrap=True)
        if answer is not None:
            draw(answer, self.out, indent=3)

    def aside(self, what: str) -> None:
        self.out.print(Text(f"\n   {what}", "dim"))


def _deployment(image: str) -> dict[str, object]:
    labels = {"app": APP}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": image}]}}
    return {
        "metadata": {"name": APP, "labels": labels},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": template},
    }

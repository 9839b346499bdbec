"""`kedge demo`: a good release moves over three clusters, and a bad one stops at the first.

A hub and four members run in this process, with the roles that run on real clusters. What is told of clusters was seen
on the clusters; what is told of the placement is what its objects say; and what does not come true ends in an error.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import click
from rich.console import Console
from rich.text import Text

from kedge import __version__
from kedge.api.core import Namespace
from kedge.api.placement import ClusterResourcePlacement
from kedge.cli.asking import Found, Which
from kedge.cli.quiet import quiet
from kedge.cli.showing import can_draw, console, draw, tree
from kedge.cli.timeline import DEPLOYMENTS, Timeline
from kedge.fleet import Fleet
from kedge.kube.client import Client
from kedge.kube.clock import Clock, SystemClock
from kedge.kube.limits import Limiter
from kedge.kube.patches import MergePatch
from kedge.plan.telling.state import State
from kedge.plan.telling.story import Story
from kedge.plan.telling.words import listed

MEMBERS: Final = 4
NAME: Final = "crp"
SPACE, APP = "test-ns", "web"
SPEC: Final[Mapping[str, Any]] = {  # example 1 of the page on safe rollouts, to the letter
    "resourceSelectors": [{"group": "", "kind": "Namespace", "version": "v1", "name": SPACE}],
    "policy": {
        "placementType": "PickN",
        "numberOfClusters": 3,
        "affinity": {
            "clusterAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "clusterSelectorTerms": [{"labelSelector": {"matchLabels": {"env": "prod"}}}]
                }
            }
        },
    },
    "strategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}},
}
PATIENCE: Final = 60.0
"""Seconds in which everything has to come true."""
STANDSTILL: Final = 3.0
"""Seconds in which what should not happen could."""


class NotAsTold(click.ClickException):
    """Something did not go as the demo says it does."""

    def __init__(self, what: str) -> None:
        super().__init__(f"this did not go as it should: {what}")


def run(*, then_fix: bool) -> None:
    """Show it, and fail if anything does not go as told."""
    with quiet(logging.ERROR):  # the trouble is part of the show, and told there
        asyncio.run(Demo(console(), clock=SystemClock(), rng=random.Random(), then_fix=then_fix).tell())


class Demo:
    """A fleet, a user of it, and somebody who watches."""

    def __init__(
        self,
        out: Console,
        *,
        clock: Clock,
        rng: random.Random,
        then_fix: bool,
        members: int = MEMBERS,
        spec: Mapping[str, Any] = SPEC,
    ) -> None:
        self._out = out
        self._then_fix = then_fix
        self._spec = spec
        self._fleet = Fleet(members=members, clock=clock, rng=rng)
        self._hub = Client(self._fleet.hub.transport(), limiter=Limiter(rate=0))
        self._seen = Timeline(self._say)
        self._chapters = 0

    async def tell(self) -> None:
        self._out.print(
            f"Kedge {__version__}: a hub and {len(self._fleet.members)} clusters in this process; no Kubernetes needed."
        )
        try:
            async with self._fleet:
                await self._join()
                async with self._watching():
                    await self._place()
                    await self._release_well()
                    await self._release_badly()
                    await (self._fix() if self._then_fix else self._hint())
        finally:
            await self._hub.close()

    # The chapters

    async def _join(self) -> None:
        self._chapter(f"{len(self._fleet.members)} clusters join the fleet, each with the label env=prod.")
        await self._fleet.run_workloads()
        labels = {member.name: {"env": "prod"} for member in self._fleet.members}
        await self._fleet.run_roles(labels=labels, progress=lambda name: self._say(f"  {name} has joined"))

    async def _place(self) -> None:
        self._chapter("A Deployment of 3 replicas is to run on 3 of them, and at most 1 may be unavailable at a time.")
        self._seen.begin()
        await self._hub.create(Namespace, {"metadata": {"name": SPACE}})
        await self._hub.create(DEPLOYMENTS, _deployment("app:1"), SPACE)
        await self._hub.create(ClusterResourcePlacement, {"metadata": {"name": NAME}, "spec": self._spec})
        await self._expect_everywhere("app:1", revision="0")
        self._say("Nothing ran there before that could be disturbed, so all three were given it at once.")

    async def _release_well(self) -> None:
        self._chapter("A good release, app:2: it moves from cluster to cluster, on proof.")
        await self._set_image("app:2")
        await self._expect_everywhere("app:2", revision="1")
        self._expect_one_at_a_time()

    async def _release_badly(self) -> None:
        self._chapter("A bad release, app:bad: its pods never become ready.")
        await self._set_image("app:bad")
        if not await self._seen.until(self._stands_still, PATIENCE):
            raise NotAsTold(f"the rollout of app:bad does not stand still: {(await self._story()).why}")
        await asyncio.sleep(STANDSTILL)
        given, story = self._seen.with_image("app:bad"), await self._story()
        if len(given) != 1 or story.state is not State.waiting:
            raise NotAsTold(f"{listed(given)} got app:bad, and the placement is {story.state}")
        spared = [place.cluster for place in story.places if place.cluster not in given]
        self._say(f"For {STANDSTILL:g} s nothing else happened: {listed(spared)} still run app:2.")
        self._show(story)

    async def _fix(self) -> None:
        self._chapter("A fix, app:3: the broken cluster gets it at once, the others when it has proved itself.")
        await self._set_image("app:3")
        await self._expect_everywhere("app:3", revision="3")
        self._expect_one_at_a_time()
        if self._seen.with_image("app:bad") != [next(member for member, image in self._seen.gave if image == "app:3")]:
            raise NotAsTold("another cluster than the broken one got app:3 first")
        self._show(await self._story())

    async def _hint(self) -> None:
        self._out.print("\n`kedge demo --then-fix` goes on from here; `kedge up` keeps such a fleet up for kubectl.")

    # What is expected

    async def _expect_everywhere(self, image: str, revision: str) -> None:
        async def there() -> bool:
            story = await self._story()
            return story.is_done and story.index == revision and self._seen.are_available(image, 3)

        if not await self._seen.until(there, PATIENCE):
            raise NotAsTold(f"{image} is not available on three clusters: {(await self._story()).why}")

    async def _stands_still(self) -> bool:
        story = await self._story()
        return story.state is State.waiting and story.index == "2" and story.updated == 1

    def _expect_one_at_a_time(self) -> None:
        if self._seen.most_moving > 1:
            raise NotAsTold(f"{self._seen.most_moving} clusters were unavailable at once, and one may be")
        self._say("Never were two of them unavailable at once.")

    # Doing and seeing

    async def _set_image(self, image: str) -> None:
        self._seen.begin()
        change = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}
        await self._hub.patch(DEPLOYMENTS, APP, MergePatch(change), SPACE)

    async def _story(self) -> Story:
        placement = await self._hub.get(ClusterResourcePlacement, NAME)
        return await Found(self._hub, Which.of(NAME, None), placement).story()

    @asynccontextmanager
    async def _watching(self) -> AsyncIterator[None]:
        clients = {member.name: Client(member.transport(), limiter=Limiter(rate=0)) for member in self._fleet.members}
        watching = [self._seen.follow(name, client, APP, SPACE) for name, client in clients.items()]
        tasks = [asyncio.create_task(one) for one in (*watching, self._follow_placement())]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for client in clients.values():
                await client.close()

    async def _follow_placement(self) -> None:
        async with self._hub.watch(ClusterResourcePlacement, initial_events=True, seconds=3600) as events:
            async for _ in events:
                self._seen.stir()

    # Telling

    def _chapter(self, what: str) -> None:
        self._chapters += 1
        self._out.print(Text(f"\n{self._chapters}. {what}", "bold"))

    def _say(self, what: str) -> None:
        draw(Text(what), self._out, indent=3)

    def _show(self, story: Story) -> None:
        """As `kedge status` does; and if it waits, in the placement's own words why."""
        self._out.print(Text(f"\n   $ kedge status {NAME}", "dim"))
        draw(tree(story, drawn=can_draw(self._out)), self._out, indent=3)
        if not story.is_done:
            self._out.print(Text("\n   The placement says why:", "dim"))
            self._say(story.why)


def _deployment(image: str) -> dict[str, object]:
    labels = {"app": APP}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": image}]}}
    return {
        "metadata": {"name": APP, "labels": labels},
        "spec": {"replicas": 3, "selector": {"matchLabels": labels}, "template": template},
    }

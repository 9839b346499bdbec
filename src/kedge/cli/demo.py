"""`kedge demo`: a good release moves over three clusters, and a bad one stops at the first.

A hub and four members run in this process, with the roles that run on real clusters. What is told of clusters was seen
on the clusters; what is told of the placement is what its objects say; and what does not come true ends in an error.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping
from typing import Any, Final

from rich.console import Console

from kedge.api.placement import ClusterResourcePlacement
from kedge.cli.asking import Found, Which
from kedge.cli.quiet import quiet
from kedge.cli.show import PATIENCE, SELECTOR, STANDSTILL, NotAsTold, Show
from kedge.cli.showing import can_draw, console, tree
from kedge.kube.clock import Clock, SystemClock
from kedge.plan.state import State
from kedge.plan.telling.story import Story
from kedge.plan.text import listed

MEMBERS: Final = 4
NAME: Final = "crp"
SPEC: Final[Mapping[str, Any]] = {  # example 1 of the page on safe rollouts, to the letter
    "resourceSelectors": [SELECTOR],
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


def run(*, then_fix: bool) -> None:
    """Show it, and fail if anything does not go as told."""
    with quiet(logging.ERROR):  # the trouble is part of the show, and told there
        asyncio.run(Demo(console(), clock=SystemClock(), rng=random.Random(), then_fix=then_fix).tell())


class Demo:
    """The story, chapter by chapter."""

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
        self._then_fix = then_fix
        self._spec = spec
        self._show = Show(out, members=members, clock=clock, rng=rng)
        self._seen = self._show.seen

    async def tell(self) -> None:
        async with self._show.opened():
            await self._join()
            async with self._show.watching(ClusterResourcePlacement):
                await self._place()
                await self._release_well()
                await self._release_badly()
                await (self._fix() if self._then_fix else self._hint())

    # The chapters

    async def _join(self) -> None:
        members = self._show.members
        self._show.chapter(f"{len(members)} clusters join the fleet, each with the label env=prod.")
        await self._show.join({name: {"env": "prod"} for name in members})

    async def _place(self) -> None:
        self._show.chapter(
            "A Deployment of 3 replicas is to run on 3 of them, and at most 1 may be unavailable at a time."
        )
        await self._show.make_app("app:1")
        await self._show.hub.create(ClusterResourcePlacement, {"metadata": {"name": NAME}, "spec": self._spec})
        await self._expect_everywhere("app:1", revision="0")
        self._show.say("Nothing ran there before that could be disturbed, so all three were given it at once.")

    async def _release_well(self) -> None:
        self._show.chapter("A good release, app:2: it moves from cluster to cluster, on proof.")
        await self._show.set_image("app:2")
        await self._expect_everywhere("app:2", revision="1")
        self._expect_one_at_a_time()

    async def _release_badly(self) -> None:
        self._show.chapter("A bad release, app:bad: its pods never become ready.")
        await self._show.set_image("app:bad")
        if not await self._seen.until(self._stands_still, PATIENCE):
            raise NotAsTold(f"the rollout of app:bad does not stand still: {(await self._story()).why}")
        await asyncio.sleep(STANDSTILL)
        given, story = self._seen.with_image("app:bad"), await self._story()
        if len(given) != 1 or story.state is not State.waiting:
            raise NotAsTold(f"{listed(given)} got app:bad, and the placement is {story.state}")
        spared = [place.cluster for place in story.places if place.cluster not in given]
        self._show.say(f"For {STANDSTILL:g} s nothing else happened: {listed(spared)} still run app:2.")
        self._draw(story)

    async def _fix(self) -> None:
        self._show.chapter("A fix, app:3: the broken cluster gets it at once, the others when it has proved itself.")
        await self._show.set_image("app:3")
        await self._expect_everywhere("app:3", revision="3")
        self._expect_one_at_a_time()
        if self._seen.with_image("app:bad") != [next(member for member, image in self._seen.gave if image == "app:3")]:
            raise NotAsTold("another cluster than the broken one got app:3 first")
        self._draw(await self._story())

    async def _hint(self) -> None:
        hint = "`kedge demo --then-fix` goes on from here; `kedge up` keeps such a fleet up for kubectl."
        self._show.out.print(f"\n{hint}")

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
        self._show.say("Never were two of them unavailable at once.")

    # Seeing and telling

    async def _story(self) -> Story:
        placement = await self._show.hub.get(ClusterResourcePlacement, NAME)
        return await Found(self._show.hub, Which.of(NAME, None), placement).story()

    def _draw(self, story: Story) -> None:
        """As `kedge status` does; and if it waits, in the placement's own words why."""
        self._show.typed(f"kedge status {NAME}", tree(story, drawn=can_draw(self._show.out)))
        if not story.is_done:
            self._show.aside("The placement says why:")
            self._show.say(story.why)

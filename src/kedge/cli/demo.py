"""`kedge demo`: a good release moves over three clusters, and a bad one stops at the first.

A hub and four members run in this process, with the roles that run on real clusters. What is printed about clusters was
observed on the clusters. What is printed about the placement is what its objects say. Anything unexpected is an error.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping
from typing import Any, Final

from rich.console import Console

from kedge.api.placement import ClusterResourcePlacement
from kedge.cli.demo_fleet import SELECTOR, DemoFleet
from kedge.cli.demo_stage import QUIET_PERIOD, TIMEOUT, DemoFailed
from kedge.cli.render import can_draw, console, tree
from kedge.cli.targets import PlacementName, PlacementTarget, quiet_logs
from kedge.kube.clock import Clock, SystemClock
from kedge.plan.explaining.story import Story
from kedge.plan.state import State
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
    """Run the demo. Fails if anything unexpected happens."""
    with quiet_logs(logging.ERROR):  # the demo shows the failures itself
        asyncio.run(Demo(console(), clock=SystemClock(), rng=random.Random(), then_fix=then_fix).play())


class Demo:
    """The demo, step by step."""

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
        self._demo = DemoFleet(out, members=members, clock=clock, rng=rng)
        self._seen = self._demo.seen

    async def play(self) -> None:
        async with self._demo.running():
            await self._join()
            async with self._demo.watching(ClusterResourcePlacement):
                await self._place()
                await self._release_well()
                await self._release_badly()
                await (self._fix() if self._then_fix else self._hint())

    # Steps

    async def _join(self) -> None:
        members = self._demo.members
        self._demo.heading(f"{len(members)} clusters join the fleet, each with the label env=prod.")
        await self._demo.join({name: {"env": "prod"} for name in members})

    async def _place(self) -> None:
        self._demo.heading(
            "A Deployment of 3 replicas is to run on 3 of them, and at most 1 may be unavailable at a time."
        )
        await self._demo.create_app("app:1")
        await self._demo.hub.create(ClusterResourcePlacement, {"metadata": {"name": NAME}, "spec": self._spec})
        await self._expect_everywhere("app:1", revision="0")
        self._demo.say("Nothing ran there before that could be disturbed, so all three were given it at once.")

    async def _release_well(self) -> None:
        self._demo.heading("A good release, app:2: it moves from cluster to cluster, on proof.")
        await self._demo.set_image("app:2")
        await self._expect_everywhere("app:2", revision="1")
        self._expect_one_at_a_time()

    async def _release_badly(self) -> None:
        self._demo.heading("A bad release, app:bad: its pods never become ready.")
        await self._demo.set_image("app:bad")
        if not await self._seen.until(self._stands_still, TIMEOUT):
            raise DemoFailed(f"the rollout of app:bad does not stand still: {(await self._story()).why}")
        await asyncio.sleep(QUIET_PERIOD)
        given, story = self._seen.with_image("app:bad"), await self._story()
        if len(given) != 1 or story.state is not State.waiting:
            raise DemoFailed(f"{listed(given)} got app:bad, and the placement is {story.state}")
        spared = [place.cluster for place in story.places if place.cluster not in given]
        self._demo.say(f"For {QUIET_PERIOD:g} s nothing else happened: {listed(spared)} still run app:2.")
        self._draw(story)

    async def _fix(self) -> None:
        self._demo.heading("A fix, app:3: the broken cluster gets it at once, the others when it has proved itself.")
        await self._demo.set_image("app:3")
        await self._expect_everywhere("app:3", revision="3")
        self._expect_one_at_a_time()
        if self._seen.with_image("app:bad") != [
            next(member for member, image in self._seen.updates if image == "app:3")
        ]:
            raise DemoFailed("another cluster than the broken one got app:3 first")
        self._draw(await self._story())

    async def _hint(self) -> None:
        hint = "`kedge demo --then-fix` goes on from here; `kedge up` keeps such a fleet up for kubectl."
        self._demo.out.print(f"\n{hint}")

    # What is expected

    async def _expect_everywhere(self, image: str, revision: str) -> None:
        async def there() -> bool:
            story = await self._story()
            return story.is_done and story.index == revision and self._seen.are_available(image, 3)

        if not await self._seen.until(there, TIMEOUT):
            raise DemoFailed(f"{image} is not available on three clusters: {(await self._story()).why}")

    async def _stands_still(self) -> bool:
        story = await self._story()
        return story.state is State.waiting and story.index == "2" and story.updated == 1

    def _expect_one_at_a_time(self) -> None:
        if self._seen.most_unavailable > 1:
            raise DemoFailed(f"{self._seen.most_unavailable} clusters were unavailable at once, and one may be")
        self._demo.say("Never were two of them unavailable at once.")

    # Reading and printing

    async def _story(self) -> Story:
        placement = await self._demo.hub.get(ClusterResourcePlacement, NAME)
        return await PlacementTarget(self._demo.hub, PlacementName.of(NAME, None), placement).story()

    def _draw(self, story: Story) -> None:
        """Print what `kedge status` prints; and if the placement waits, why."""
        self._demo.command(f"kedge status {NAME}", tree(story, drawn=can_draw(self._demo.out)))
        if not story.is_done:
            self._demo.note("The placement says why:")
            self._demo.say(story.why)

"""`kedge demo zones`: a good release goes through three zones, one at a time; a bad one stops, and its fix goes on.

A cluster and the operator run in this process, as on a real cluster. What is printed was observed on the pods. Anything
unexpected is an error.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from typing import Any, Final

from rich.console import Console

from kedge.api.apps import StatefulSet
from kedge.api.pods import Pod
from kedge.api.zones import MAX_UNAVAILABLE, ROLLOUT_GROUP
from kedge.cli.demo_stage import QUIET_PERIOD, TIMEOUT, DemoFailed, DemoStage, Narrator, PodWatch, image_of
from kedge.cli.group_target import GroupName, read_group
from kedge.cli.groups import group_tree
from kedge.cli.render import can_draw, console
from kedge.cli.targets import quiet_logs
from kedge.kube.client import Client
from kedge.kube.clock import Clock, SystemClock
from kedge.kube.patches import MergePatch
from kedge.operator_role import OperatorOptions
from kedge.plan.text import listed
from kedge.plan.zoning.group_story import GroupStory
from kedge.plan.zoning.pods import is_running_and_ready

NAMESPACE, GROUP = "mimir", "ingester"
ZONES: Final = tuple(f"{GROUP}-zone-{letter}" for letter in "abc")
REPLICAS, AT_ONCE = 4, 2


def run() -> None:
    """Run the demo. Fails if anything unexpected happens."""
    with quiet_logs(logging.ERROR):  # the demo shows the failures itself
        asyncio.run(ZonesDemo(console(), clock=SystemClock(), rng=random.Random()).play())


class PodTimeline:
    """Watches all pods, prints what becomes of them, and knows how many were not ready at once."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.watch = PodWatch(self._take)
        self.worst: dict[str, int] = {}
        self.most_zones = 0

    def restart(self) -> None:
        self.watch.restart()
        self.worst, self.most_zones = {}, 0

    def _take(self, before: Pod | None, now: Pod | None) -> None:
        was_ready, is_ready = (one is not None and is_running_and_ready(one) for one in (before, now))
        if before is not None and was_ready and not is_ready:
            self._print(f"{before.metadata.name} goes, with {image_of(before)}")
        elif before is not None and now is not None and is_ready and not was_ready:
            self._print(f"{now.metadata.name} is ready, with {image_of(now)}")
        self._count()

    def _count(self) -> None:
        lacking = {zone: count for zone in ZONES if (count := REPLICAS - len(self.ready(zone)))}
        self.most_zones = max(self.most_zones, len(lacking))
        self.worst |= {zone: max(count, self.worst.get(zone, 0)) for zone, count in lacking.items()}

    def ready(self, zone: str, image: str = "") -> list[str]:
        """The pods of a zone that are ready; with this image, if one is given."""
        found = [pod for pod in self.watch.pods if pod.metadata.name.startswith(f"{zone}-")]
        return [
            pod.metadata.name for pod in found if is_running_and_ready(pod) and (not image or image_of(pod) == image)
        ]

    def _print(self, what: str) -> None:
        self._say(f"{self.watch.elapsed:6.1f} s  {what}")


class ZonesDemo:
    """The demo, step by step."""

    def __init__(self, out: Console, *, clock: Clock, rng: random.Random) -> None:
        self._stage = DemoStage(clock=clock, rng=rng)
        self._told = Narrator(out)
        self._seen = PodTimeline(self._told.say)
        self._client: Client

    async def play(self) -> None:
        self._told.begin("a cluster and its operator")
        async with self._stage as stage:
            self._client = await stage.cluster("cluster", namespaces=[NAMESPACE])
            await stage.operator("cluster", OperatorOptions(namespace=NAMESPACE, namespaces=(NAMESPACE,)))
            stage.start(self._seen.watch.follow(self._client, NAMESPACE))
            self._seen.restart()
            await self._open()
            await self._release_well()
            await self._release_badly()
            await self._fix()

    # Steps

    async def _open(self) -> None:
        self._told.heading(
            f"{len(ZONES)} StatefulSets of {REPLICAS} pods, one in each zone; at most {AT_ONCE} pods may go."
        )
        for zone in ZONES:
            await self._client.create(StatefulSet, _stateful_set(zone))
        await self._expect_everywhere("app:1")

    async def _release_well(self) -> None:
        self._told.heading("A good release, app:2: one zone after the other.")
        await self._release("app:2")
        await self._expect_everywhere("app:2")
        self._expect_one_zone()

    async def _release_badly(self) -> None:
        self._told.heading("A bad release, app:bad: its pods never become ready.")
        await self._release("app:bad")
        if not await self._seen.watch.until(self._stands_still):
            raise DemoFailed(f"the rollout of app:bad does not stand still: {(await self._story()).why}")
        await asyncio.sleep(QUIET_PERIOD)
        kept = [zone for zone in ZONES if len(self._seen.ready(zone, "app:2")) == REPLICAS]
        if kept != list(ZONES[1:]) or len(self._seen.ready(ZONES[0])) != REPLICAS - AT_ONCE:
            raise DemoFailed(f"only {listed(kept)} still run app:2 everywhere")
        self._told.say(f"For {QUIET_PERIOD:g} s nothing else happened: {listed(kept)} still run app:2.")
        await self._show()

    async def _fix(self) -> None:
        self._told.heading("A fix, app:3: the broken pods get it first.")
        await self._release("app:3")
        await self._expect_everywhere("app:3")
        self._expect_one_zone()
        await self._settled()
        await self._show()

    # What is expected

    async def _expect_everywhere(self, image: str) -> None:
        async def there() -> bool:
            return all(len(self._seen.ready(zone, image)) == REPLICAS for zone in ZONES)

        if not await self._seen.watch.until(there):
            raise DemoFailed(f"not every pod runs {image}: {(await self._story()).why}")

    async def _stands_still(self) -> bool:
        story = await self._story()
        stuck = [pod.name for pod in story.zones[0].pods if not pod.is_ready and "ImagePullBackOff" in pod.why]
        return len(stuck) == AT_ONCE and not story.deletes

    async def _settled(self) -> None:
        """Wait until the statuses of the StatefulSets say the same as the pods."""
        async with asyncio.timeout(TIMEOUT):
            while not (await self._story()).is_done:  # noqa: ASYNC110  # a status that nobody watches here
                await asyncio.sleep(0.1)

    def _expect_one_zone(self) -> None:
        most = max(self._seen.worst.values(), default=0)
        if self._seen.most_zones > 1 or most > AT_ONCE:
            raise DemoFailed(f"{most} pods in {self._seen.most_zones} zones were not ready at once")
        self._told.say(f"Never were pods of two zones away at once, and never more than {AT_ONCE}.")

    # Acting and printing

    async def _release(self, image: str) -> None:
        self._seen.restart()
        body = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}
        for zone in ZONES:
            await self._client.patch(StatefulSet, zone, MergePatch(body), NAMESPACE)

    async def _story(self) -> GroupStory:
        return await read_group(self._client, GroupName(NAMESPACE, GROUP))

    async def _show(self) -> None:
        """Print what `kedge status` prints, and why if something waits."""
        story = await self._story()
        tree = group_tree(story, drawn=can_draw(self._told.out))
        self._told.command(f"kedge status -n {NAMESPACE} {GROUP}", tree)
        if story.why:
            self._told.say(story.why)


def _stateful_set(name: str) -> dict[str, Any]:
    labels = {"name": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
    meta = {
        "name": name,
        "namespace": NAMESPACE,
        "labels": {ROLLOUT_GROUP: GROUP},
        "annotations": {MAX_UNAVAILABLE: str(AT_ONCE)},
    }
    spec = {
        "replicas": REPLICAS,
        "serviceName": name,
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete"},
        "selector": {"matchLabels": labels},
        "template": template,
    }
    return {"metadata": meta, "spec": spec}

"""`kedge demo batches`: a good release moves in batches; a bad one stops in its first batch, and is taken back.

A cluster and the operator run in this process, as on a real cluster. What is printed of pods was observed on the pods.
Anything unexpected is an error.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from rich.console import Console

from kedge.api.apps import Deployment
from kedge.api.crds import oam_crds
from kedge.api.oam.rollouts import RolloutTrait
from kedge.api.pods import Pod
from kedge.cli.batch_target import RolloutName
from kedge.cli.batches import do_verb, rollout_story, rollout_tree
from kedge.cli.demo_stage import QUIET_PERIOD, DemoFailed, DemoStage, Narrator, PodWatch, image_of
from kedge.cli.render import can_draw, console
from kedge.cli.targets import quiet_logs
from kedge.kube.client import Client
from kedge.kube.clock import Clock, SystemClock
from kedge.kube.patches import MergePatch
from kedge.operator_role import OperatorOptions
from kedge.plan.batching.rollout_story import RolloutStory
from kedge.plan.batching.rollout_verbs import RolloutVerb
from kedge.plan.text import counted, listed
from kedge.plan.workloads.pods import is_active, is_ready

NAMESPACE, NAME = "shop", "web"
SIZES: Final = (2, 4, 4)
PODS: Final = sum(SIZES)
DEFINITIONS: Final = tuple(oam_crds())
"""Made before a loop runs: that reads sources."""


def run() -> None:
    """Run the demo. Fails if anything unexpected happens."""
    with quiet_logs(logging.ERROR):  # the demo shows the failures itself
        asyncio.run(BatchesDemo(console(), clock=SystemClock(), rng=random.Random()).play())


class PodCounts:
    """Watches all pods, prints how many of each image are ready, and knows the fewest and the most there were."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self.watch = PodWatch(self._count)
        self._printed = ""
        self.fewest = self.most = 0

    def restart(self) -> None:
        self.watch.restart()
        self.fewest, self.most = len(self._ready()), len(self._there())

    def _count(self, _: Pod | None, __: Pod | None) -> None:
        self.fewest, self.most = min(self.fewest, len(self._ready())), max(self.most, len(self._there()))
        images = self.ready()
        line = listed(f"{number} of {image}" for image, number in sorted(images.items())) or "none"
        if line != self._printed:
            self._say(f"{self.watch.elapsed:6.1f} s  ready: {line}")
        self._printed = line

    def ready(self) -> Counter[str]:
        """How many pods of each image are ready."""
        return Counter(image_of(pod) for pod in self._ready())

    def there(self) -> Counter[str]:
        """How many pods of each image there are."""
        return Counter(image_of(pod) for pod in self._there())

    def _there(self) -> list[Pod]:
        return [pod for pod in self.watch.pods if is_active(pod)]

    def _ready(self) -> list[Pod]:
        return [pod for pod in self._there() if is_ready(pod)]


class BatchesDemo:
    """The demo, step by step."""

    def __init__(self, out: Console, *, clock: Clock, rng: random.Random) -> None:
        self._stage = DemoStage(clock=clock, rng=rng)
        self._told = Narrator(out)
        self._seen = PodCounts(self._told.say)
        self._client: Client

    async def play(self) -> None:
        self._told.begin("a cluster and its operator")
        async with self._stage as stage:
            self._client = await stage.cluster("cluster", namespaces=[NAMESPACE], definitions=DEFINITIONS)
            await stage.operator("cluster", OperatorOptions(namespace=NAMESPACE, namespaces=(NAMESPACE,), batches=True))
            stage.start(self._seen.watch.follow(self._client, NAMESPACE))
            await self._open()
            await self._release_well()
            await self._release_badly()
            await self._roll_back()

    # Steps

    async def _open(self) -> None:
        self._told.heading(f"Deployment web-v1 runs {PODS} pods of app:1.")
        self._seen.restart()
        await self._client.create(Deployment, _deployment("web-v1", PODS, "app:1"))
        await self._expect({"app:1": PODS})

    async def _release_well(self) -> None:
        self._told.heading(
            f"A good release, app:2, in batches of {listed(map(str, SIZES))}: new pods first, then old ones go."
        )
        await self._client.create(Deployment, _deployment("web-v2", 0, "app:2"))
        self._seen.restart()
        await self._client.create(RolloutTrait, _trait("web-v2", "web-v1"))
        await self._expect_end({"app:2": PODS})
        self._expect_limits()

    async def _release_badly(self) -> None:
        self._told.heading("A bad release, app:bad: its pods never become ready.")
        await self._client.create(Deployment, _deployment("web-v3", 0, "app:bad"))
        self._seen.restart()
        patch = MergePatch({"spec": {"targetRef": _ref("web-v3"), "sourceRef": [_ref("web-v2")]}})
        await self._client.patch(RolloutTrait, NAME, patch, NAMESPACE)
        if not await self._seen.watch.until(self._stands_still):
            raise DemoFailed(f"the rollout of app:bad does not stand still: {(await self._story()).why}")
        await asyncio.sleep(QUIET_PERIOD)
        given, ready = self._seen.there()["app:bad"], self._seen.ready()
        if given != SIZES[0] or ready != {"app:2": PODS}:
            raise DemoFailed(f"{counted(given, 'pod')} got app:bad, and {dict(ready)} are ready")
        self._told.say(f"For {QUIET_PERIOD:g} s nothing else happened: all {PODS} pods of app:2 are still ready.")
        await self._show("The rollout says why:")

    async def _roll_back(self) -> None:
        self._told.heading("The way back, with one command.")
        self._told.command(f"kedge rollback rollouttrait/{NAME} -n {NAMESPACE}")
        self._told.say(await do_verb(self._client, RolloutVerb.rollback, RolloutName(RolloutTrait, NAMESPACE, NAME)))
        await self._expect_end({"app:2": PODS})
        if self._seen.there() != {"app:2": PODS}:
            raise DemoFailed(f"there are other pods than those of app:2: {dict(self._seen.there())}")
        self._expect_limits()
        await self._show("")

    # What is expected

    async def _expect(self, ready: dict[str, int]) -> None:
        async def there() -> bool:
            return self._seen.ready() == ready

        if not await self._seen.watch.until(there):
            raise DemoFailed(f"{dict(self._seen.ready())} are ready, and not {ready}")

    async def _expect_end(self, ready: dict[str, int]) -> None:
        async def ended() -> bool:
            return (await self._story()).has_ended

        if not await self._seen.watch.until(ended) or not (await self._story()).is_done:
            raise DemoFailed(f"the rollout has not succeeded: {(await self._story()).why}")
        await self._expect(ready)

    async def _stands_still(self) -> bool:
        story = await self._story()
        stuck = sum("ImagePullBackOff" in trouble or "ErrImagePull" in trouble for trouble in story.troubles)
        return story.current == 0 and stuck == SIZES[0]

    def _expect_limits(self) -> None:
        most = PODS + max(SIZES)
        if self._seen.fewest < PODS or self._seen.most > most:
            raise DemoFailed(f"{self._seen.fewest} pods were ready at least, and there were {self._seen.most} at most")
        self._told.say(f"Never were fewer than {PODS} pods ready, and never were there more than {most}.")

    # Acting and printing

    async def _story(self) -> RolloutStory:
        return await rollout_story(self._client, RolloutName(RolloutTrait, NAMESPACE, NAME))

    async def _show(self, before: str) -> None:
        """Print what `kedge status` prints, and why if something waits."""
        story, out = await self._story(), self._told.out
        tree = rollout_tree(story, self._stage.clock.now(), drawn=can_draw(out))
        self._told.command(f"kedge status rollouttrait/{NAME} -n {NAMESPACE}", tree)
        if before and story.why:
            self._told.say(f"{before} {story.why}")


def _deployment(name: str, replicas: int, image: str) -> dict[str, Any]:
    labels = {"app": NAME, "version": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def _trait(target: str, source: str) -> dict[str, Any]:
    plan = {"rolloutBatches": [{"replicas": size} for size in SIZES]}
    spec = {"targetRef": _ref(target), "sourceRef": [_ref(source)], "rolloutPlan": plan}
    return {"metadata": {"name": NAME, "namespace": NAMESPACE}, "spec": spec}


def _ref(name: str) -> dict[str, str]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}

"""`kedge demo batches`: a good release moves in batches; a bad one stops in its first batch, and is taken back.

A cluster and the operator run in this process, as on a real cluster. What is printed of pods was observed on the pods.
Anything unexpected is an error.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from prometheus_client import CollectorRegistry
from rich.console import Console, RenderableType
from rich.text import Text

from kedge import __version__
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import Deployment
from kedge.api.core import Namespace
from kedge.api.crds import oam_crds
from kedge.api.oam.rollouts import RolloutTrait
from kedge.api.pods import Pod
from kedge.cli.batch_target import RolloutName
from kedge.cli.batches import do_verb, rollout_story, rollout_tree
from kedge.cli.demo_fleet import QUIET_PERIOD, TIMEOUT, DemoFailed
from kedge.cli.render import can_draw, console, draw
from kedge.cli.targets import quiet_logs
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.client import Client
from kedge.kube.clock import Clock, SystemClock
from kedge.kube.connect.outbound import HttpOutbound
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.operator_role import Operator, OperatorOptions
from kedge.plan.batching.rollout_story import RolloutStory
from kedge.plan.batching.rollout_verbs import Verb
from kedge.plan.text import counted, listed
from kedge.plan.workloads.pods import is_active, is_ready

NAMESPACE, NAME = "shop", "web"
SIZES: Final = (2, 4, 4)
PODS: Final = sum(SIZES)
NODES: Final = 3
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
        self._pods: dict[str, Pod] = {}
        self._news = asyncio.Event()
        self._began = 0.0
        self._printed = ""
        self.fewest = self.most = 0

    def restart(self) -> None:
        self._began = asyncio.get_running_loop().time()
        self.fewest, self.most = len(self._ready()), len(self._there())

    async def follow(self, client: Client) -> None:
        while True:  # a watch ends after its time
            async with client.watch(Pod, NAMESPACE, initial_events=True, seconds=3600) as events:
                async for event in events:
                    if isinstance(found := getattr(event, "object", None), Pod):
                        self._take(found, is_gone=getattr(event, "type", "") == "DELETED")

    def _take(self, pod: Pod, *, is_gone: bool) -> None:
        self._pods.pop(pod.metadata.name, None)
        if not is_gone:
            self._pods[pod.metadata.name] = pod
        self.fewest, self.most = min(self.fewest, len(self._ready())), max(self.most, len(self._there()))
        self._news.set()
        images = self.ready()
        line = listed(f"{number} of {image}" for image, number in sorted(images.items())) or "none"
        if line != self._printed:
            self._say(f"{asyncio.get_running_loop().time() - self._began:6.1f} s  ready: {line}")
        self._printed = line

    def ready(self) -> Counter[str]:
        """How many pods of each image are ready."""
        return Counter(_image(pod) for pod in self._ready())

    def there(self) -> Counter[str]:
        """How many pods of each image there are."""
        return Counter(_image(pod) for pod in self._there())

    def _there(self) -> list[Pod]:
        return [pod for pod in self._pods.values() if is_active(pod)]

    def _ready(self) -> list[Pod]:
        return [pod for pod in self._there() if is_ready(pod)]

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> bool:
        """Whether it holds in time. A rollout may change while no pod does, so it is asked now and then."""
        try:
            async with asyncio.timeout(TIMEOUT):
                while not await holds():
                    self._news.clear()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._news.wait(), 0.2)
        except TimeoutError:
            return False
        return True


class BatchesDemo:
    """The demo, step by step."""

    def __init__(self, out: Console, *, clock: Clock, rng: random.Random) -> None:
        self._out = out
        self._clock = clock
        self._rng = rng
        self._cluster = EmbeddedCluster("cluster", clock=clock, rng=_branch(rng))
        self._client = Client(self._cluster.transport(), limiter=Limiter(rate=0))
        self._seen = PodCounts(self._say)
        self._headings = 0

    async def play(self) -> None:
        self._out.print(f"Kedge {__version__}: a cluster and its operator in this process; no Kubernetes needed.")
        async with self._running():
            await self._open()
            await self._release_well()
            await self._release_badly()
            await self._roll_back()

    # Steps

    async def _open(self) -> None:
        self._heading(f"Deployment web-v1 runs {PODS} pods of app:1.")
        self._seen.restart()
        await self._client.create(Deployment, _deployment("web-v1", PODS, "app:1"))
        await self._expect({"app:1": PODS})

    async def _release_well(self) -> None:
        self._heading(
            f"A good release, app:2, in batches of {listed(map(str, SIZES))}: new pods first, then old ones go."
        )
        await self._client.create(Deployment, _deployment("web-v2", 0, "app:2"))
        self._seen.restart()
        await self._client.create(RolloutTrait, _trait("web-v2", "web-v1"))
        await self._expect_end({"app:2": PODS})
        self._expect_limits()

    async def _release_badly(self) -> None:
        self._heading("A bad release, app:bad: its pods never become ready.")
        await self._client.create(Deployment, _deployment("web-v3", 0, "app:bad"))
        self._seen.restart()
        patch = MergePatch({"spec": {"targetRef": _ref("web-v3"), "sourceRef": [_ref("web-v2")]}})
        await self._client.patch(RolloutTrait, NAME, patch, NAMESPACE)
        if not await self._seen.until(self._stands_still):
            raise DemoFailed(f"the rollout of app:bad does not stand still: {(await self._story()).why}")
        await asyncio.sleep(QUIET_PERIOD)
        given, ready = self._seen.there()["app:bad"], self._seen.ready()
        if given != SIZES[0] or ready != {"app:2": PODS}:
            raise DemoFailed(f"{counted(given, 'pod')} got app:bad, and {dict(ready)} are ready")
        self._say(f"For {QUIET_PERIOD:g} s nothing else happened: all {PODS} pods of app:2 are still ready.")
        await self._show("The rollout says why:")

    async def _roll_back(self) -> None:
        self._heading("The way back, with one command.")
        self._command(f"kedge rollback rollouttrait/{NAME} -n {NAMESPACE}")
        self._say(await do_verb(self._client, Verb.rollback, RolloutName(RolloutTrait, NAMESPACE, NAME)))
        await self._expect_end({"app:2": PODS})
        if self._seen.there() != {"app:2": PODS}:
            raise DemoFailed(f"there are other pods than those of app:2: {dict(self._seen.there())}")
        self._expect_limits()
        await self._show("")

    # What is expected

    async def _expect(self, ready: dict[str, int]) -> None:
        async def there() -> bool:
            return self._seen.ready() == ready

        if not await self._seen.until(there):
            raise DemoFailed(f"{dict(self._seen.ready())} are ready, and not {ready}")

    async def _expect_end(self, ready: dict[str, int]) -> None:
        async def ended() -> bool:
            return (await self._story()).has_ended

        if not await self._seen.until(ended) or not (await self._story()).is_done:
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
        self._say(f"Never were fewer than {PODS} pods ready, and never were there more than {most}.")

    # Acting and printing

    async def _story(self) -> RolloutStory:
        return await rollout_story(self._client, RolloutName(RolloutTrait, NAMESPACE, NAME))

    async def _show(self, before: str) -> None:
        """Print what `kedge status` prints, and why if something waits."""
        story = await self._story()
        self._command(f"kedge status rollouttrait/{NAME} -n {NAMESPACE}")
        self._draw(rollout_tree(story, self._clock.now(), drawn=can_draw(self._out)))
        if before and story.why:
            self._say(f"{before} {story.why}")

    def _command(self, typed: str) -> None:
        self._out.print(Text(f"\n   $ {typed}", "dim"))

    def _heading(self, what: str) -> None:
        self._headings += 1
        self._out.print(Text(f"\n{self._headings}. {what}", "bold"))

    def _say(self, what: str) -> None:
        self._draw(Text(what))

    def _draw(self, what: RenderableType) -> None:
        draw(what, self._out, indent=3)

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        """The cluster, its workloads and the operator run while the context is open."""
        self._cluster.start()
        outbound = HttpOutbound()
        await make_nodes(self._client, NODES, self._clock)
        await self._client.create(Namespace, {"metadata": {"name": NAMESPACE}})
        for definition in DEFINITIONS:
            await self._client.create(CustomResourceDefinition, definition)
        made: dict[str, Any] = {"clock": self._clock, "rng": _branch(self._rng)}
        async with Manager(component="cluster", **made) as workloads, Manager(component="operator", **made) as manager:
            add_workloads(workloads, await workloads.connect("cluster", self._cluster.transport()))
            operator = Operator(
                await manager.connect("cluster", self._cluster.transport(), limiter=Limiter(rate=0)),
                OperatorOptions(namespace=NAMESPACE, namespaces=(NAMESPACE,), batches=True),
                clock=self._clock,
                rng=_branch(self._rng),
                registry=CollectorRegistry(),
                outbound=outbound,
            )
            for controller in operator.acting:
                manager.add_controller(controller)
            running = [asyncio.create_task(one.run(signals=False)) for one in (workloads, manager)]
            running.append(asyncio.create_task(self._seen.follow(self._client)))
            try:
                yield
            finally:
                for task in running:
                    task.cancel()
                await asyncio.gather(*running, return_exceptions=True)
                await outbound.close()
                await self._client.close()
        self._cluster.stop()


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


def _image(pod: Pod) -> str:
    return next((one.image for one in pod.spec.containers or ()), "")


def _branch(rng: random.Random) -> random.Random:
    """Chance of its own: what one part draws changes nothing for the others."""
    return random.Random(rng.getrandbits(64))

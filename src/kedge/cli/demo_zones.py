"""`kedge demo zones`: a good release goes through three zones, one at a time; a bad one stops, and its fix goes on.

A cluster and the operator run in this process, as on a real cluster. What is printed was observed on the pods. Anything
unexpected is an error.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from prometheus_client import CollectorRegistry
from rich.console import Console, RenderableType
from rich.text import Text

from kedge import __version__
from kedge.api.apps import StatefulSet
from kedge.api.core import Namespace
from kedge.api.pods import Pod
from kedge.api.zones import MAX_UNAVAILABLE, ROLLOUT_GROUP
from kedge.cli.demo_fleet import QUIET_PERIOD, TIMEOUT, DemoFailed
from kedge.cli.group_target import GroupName, read_group
from kedge.cli.groups import group_tree
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
from kedge.plan.text import listed
from kedge.plan.zoning.group_story import GroupStory
from kedge.plan.zoning.pods import is_running_and_ready

NAMESPACE, GROUP = "mimir", "ingester"
ZONES: Final = tuple(f"{GROUP}-zone-{letter}" for letter in "abc")
REPLICAS, AT_ONCE = 4, 2
NODES: Final = 3


def run() -> None:
    """Run the demo. Fails if anything unexpected happens."""
    with quiet_logs(logging.ERROR):  # the demo shows the failures itself
        asyncio.run(ZonesDemo(console(), clock=SystemClock(), rng=random.Random()).play())


class PodTimeline:
    """Watches all pods, prints what becomes of them, and knows how many were not ready at once."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._pods: dict[str, Pod] = {}
        self._news = asyncio.Event()
        self._began = 0.0
        self.worst: dict[str, int] = {}
        self.most_zones = 0

    def restart(self) -> None:
        self._began = asyncio.get_running_loop().time()
        self.worst, self.most_zones = {}, 0

    async def follow(self, client: Client) -> None:
        while True:  # a watch ends after its time
            async with client.watch(Pod, NAMESPACE, initial_events=True, seconds=3600) as events:
                async for event in events:
                    if isinstance(found := getattr(event, "object", None), Pod):
                        self._take(found, is_gone=getattr(event, "type", "") == "DELETED")

    def _take(self, pod: Pod, *, is_gone: bool) -> None:
        name = pod.metadata.name
        before = self._pods.pop(name, None)
        if not is_gone:
            self._pods[name] = pod
        if before is not None and is_running_and_ready(before) and (is_gone or not is_running_and_ready(pod)):
            self._print(f"{name} goes, with {_image(before)}")
        elif before is not None and not is_gone and is_running_and_ready(pod) and not is_running_and_ready(before):
            self._print(f"{name} is ready, with {_image(pod)}")
        self._count()
        self._news.set()

    def _count(self) -> None:
        lacking = {zone: count for zone in ZONES if (count := REPLICAS - len(self.ready(zone)))}
        self.most_zones = max(self.most_zones, len(lacking))
        self.worst |= {zone: max(count, self.worst.get(zone, 0)) for zone, count in lacking.items()}

    def ready(self, zone: str, image: str = "") -> list[str]:
        """The pods of a zone that are ready; with this image, if one is given."""
        found = [pod for name, pod in self._pods.items() if name.startswith(f"{zone}-") and is_running_and_ready(pod)]
        return [pod.metadata.name for pod in found if not image or _image(pod) == image]

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> bool:
        """Whether it holds in time."""
        try:
            async with asyncio.timeout(TIMEOUT):
                while not await holds():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    def _print(self, what: str) -> None:
        self._say(f"{asyncio.get_running_loop().time() - self._began:6.1f} s  {what}")


class ZonesDemo:
    """The demo, step by step."""

    def __init__(self, out: Console, *, clock: Clock, rng: random.Random) -> None:
        self._out = out
        self._clock = clock
        self._rng = rng
        self._cluster = EmbeddedCluster("cluster", clock=clock, rng=_branch(rng))
        self._client = Client(self._cluster.transport(), limiter=Limiter(rate=0))
        self._seen = PodTimeline(self._say)
        self._headings = 0

    async def play(self) -> None:
        self._out.print(f"Kedge {__version__}: a cluster and its operator in this process; no Kubernetes needed.")
        async with self._running():
            self._seen.restart()
            await self._open()
            await self._release_well()
            await self._release_badly()
            await self._fix()

    # Steps

    async def _open(self) -> None:
        self._heading(f"{len(ZONES)} StatefulSets of {REPLICAS} pods, one in each zone; at most {AT_ONCE} pods may go.")
        await self._client.create(Namespace, {"metadata": {"name": NAMESPACE}})
        for zone in ZONES:
            await self._client.create(StatefulSet, _stateful_set(zone))
        await self._expect_everywhere("app:1")

    async def _release_well(self) -> None:
        self._heading("A good release, app:2: one zone after the other.")
        await self._release("app:2")
        await self._expect_everywhere("app:2")
        self._expect_one_zone()

    async def _release_badly(self) -> None:
        self._heading("A bad release, app:bad: its pods never become ready.")
        await self._release("app:bad")
        if not await self._seen.until(self._stands_still):
            raise DemoFailed(f"the rollout of app:bad does not stand still: {(await self._story()).why}")
        await asyncio.sleep(QUIET_PERIOD)
        kept = [zone for zone in ZONES if len(self._seen.ready(zone, "app:2")) == REPLICAS]
        if kept != list(ZONES[1:]) or len(self._seen.ready(ZONES[0])) != REPLICAS - AT_ONCE:
            raise DemoFailed(f"only {listed(kept)} still run app:2 everywhere")
        self._say(f"For {QUIET_PERIOD:g} s nothing else happened: {listed(kept)} still run app:2.")
        await self._show()

    async def _fix(self) -> None:
        self._heading("A fix, app:3: the broken pods get it first.")
        await self._release("app:3")
        await self._expect_everywhere("app:3")
        self._expect_one_zone()
        await self._settled()
        await self._show()

    # What is expected

    async def _expect_everywhere(self, image: str) -> None:
        async def there() -> bool:
            return all(len(self._seen.ready(zone, image)) == REPLICAS for zone in ZONES)

        if not await self._seen.until(there):
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
        self._say(f"Never were pods of two zones away at once, and never more than {AT_ONCE}.")

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
        self._out.print(Text(f"\n   $ kedge status -n {NAMESPACE} {GROUP}", "dim"))
        self._draw(group_tree(story, drawn=can_draw(self._out)))
        if story.why:
            self._say(story.why)

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
        made: dict[str, Any] = {"clock": self._clock, "rng": _branch(self._rng)}
        async with Manager(component="cluster", **made) as workloads, Manager(component="operator", **made) as manager:
            add_workloads(workloads, await workloads.connect("cluster", self._cluster.transport()))
            operator = Operator(
                await manager.connect("cluster", self._cluster.transport(), limiter=Limiter(rate=0)),
                OperatorOptions(namespace=NAMESPACE, namespaces=(NAMESPACE,)),
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


def _image(pod: Pod) -> str:
    return next((one.image for one in pod.spec.containers or ()), "")


def _branch(rng: random.Random) -> random.Random:
    """Chance of its own: what one part draws changes nothing for the others."""
    return random.Random(rng.getrandbits(64))

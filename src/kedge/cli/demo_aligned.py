"""`kedge demo aligned`: a Deployment that is divided over two clusters rolls as one; beside it, one that does not.

A hub and two members run in this process, as on real clusters. The counters are of all pods of both members, as they
were observed there. Anything unexpected is an error.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from rich.console import Console

from kedge.api.apps import Deployment
from kedge.api.core import Namespace
from kedge.api.crds import karmada_crds
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.clusters import Cluster
from kedge.api.pods import Pod
from kedge.cli.binding_target import BindingName, BindingReader
from kedge.cli.bindings import binding_tree
from kedge.cli.demo_stage import DemoFailed, DemoStage, Narrator, PodWatch, image_of
from kedge.cli.render import can_draw, console
from kedge.cli.targets import quiet_logs
from kedge.kube.client import Client
from kedge.kube.clock import Clock, SystemClock
from kedge.kube.patches import MergePatch
from kedge.plan.aligning.binding_story import BindingStory
from kedge.plan.aligning.names import work_namespace
from kedge.plan.state import State
from kedge.plan.workloads.pods import is_active, is_ready
from kedge.roles import add_karmada_hub, add_karmada_member

ALIGNED, COPIED = "aligned", "copied"
NAME: Final = "demo"
BINDING: Final = BindingName(ResourceBinding, ALIGNED, f"{NAME}-deployment")
REPLICAS: Final[Mapping[str, int]] = {"cluster-1": 4, "cluster-2": 6}
PODS: Final = sum(REPLICAS.values())
UNAVAILABLE, SURGE = 2, 1
FEWEST, MOST = PODS - UNAVAILABLE, PODS + SURGE
DEFINITIONS: Final = karmada_crds()
"""Made before a loop runs: that reads sources."""
LINE_EVERY: Final = 0.1
"""Seconds. A line has the fewest available pods and the most pods since the line before."""


def run() -> None:
    """Run the demo. Fails if the counters leave their bounds, or anything else unexpected happens."""
    with quiet_logs(logging.ERROR):  # the demo shows the failures itself
        asyncio.run(AlignedDemo(console(), clock=SystemClock(), rng=random.Random()).play())


class PodCounters:
    """Counts the pods of one namespace on all clusters, and knows the fewest and the most there were."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.watch = PodWatch(self._count)
        self.restart()

    def restart(self) -> None:
        self.fewest, self.most = self.available, self.pods
        self.restart_line()

    def restart_line(self) -> None:
        self.line_fewest, self.line_most = self.available, self.pods

    def _count(self, _: Pod | None, __: Pod | None) -> None:
        available, pods = self.available, self.pods
        self.fewest, self.line_fewest = min(self.fewest, available), min(self.line_fewest, available)
        self.most, self.line_most = max(self.most, pods), max(self.line_most, pods)
        self._changed()

    @property
    def available(self) -> int:
        return sum(is_ready(pod) for pod in self.watch.pods if is_active(pod))

    @property
    def pods(self) -> int:
        return sum(map(is_active, self.watch.pods))

    @property
    def keeps_bounds(self) -> bool:
        return self.fewest >= FEWEST and self.most <= MOST

    def all_run(self, image: str) -> bool:
        ready = [image_of(pod) for pod in self.watch.pods if is_active(pod) and is_ready(pod)]
        return ready == [image] * PODS == [image] * self.pods


class AlignedDemo:
    """The demo, step by step."""

    def __init__(self, out: Console, *, clock: Clock, rng: random.Random) -> None:
        self._stage = DemoStage(clock=clock, rng=rng)
        self._told = Narrator(out)
        self._aligned, self._copied = PodCounters(self._print), PodCounters(self._print)
        self._signs = ("≥", "≤") if can_draw(out) else (">=", "<=")
        self._next_line: float | None = None
        self._hub: Client
        self._members: dict[str, Client] = {}

    async def play(self) -> None:
        self._told.begin(f"a hub and {len(REPLICAS)} clusters")
        async with self._stage as stage:
            self._hub = await aligned_hub(stage, [ALIGNED])
            for name in REPLICAS:
                self._members[name] = await aligned_member(stage, self._hub, name, [ALIGNED, COPIED])
            stage.start(
                *(self._aligned.watch.follow(one, ALIGNED, name) for name, one in self._members.items()),
                *(self._copied.watch.follow(one, COPIED, name) for name, one in self._members.items()),
            )
            await self._open()
            await self._release()
            self._judge()

    # Steps

    async def _open(self) -> None:
        parts = " and ".join(f"{number} in {name}" for name, number in REPLICAS.items())
        self._told.heading(
            f"A Deployment of {PODS} pods, divided over two clusters: {parts}; maxUnavailable {UNAVAILABLE},"
            f" maxSurge {SURGE}."
        )
        self._told.say("It is there twice: aligned by Kedge, and copied to each cluster as it is, with its strategy.")
        self._restart()
        await self._hub.create(Deployment, _deployment(ALIGNED, PODS))
        await self._hub.create(ResourceBinding, _binding())
        for name, number in REPLICAS.items():
            await self._members[name].create(Deployment, _deployment(COPIED, number))
        await self._expect("app:1")
        self._told.say(f"All {PODS} pods of each are available.")

    async def _release(self) -> None:
        self._told.heading(
            f"A release, app:2. By its strategy at least {FEWEST} pods stay available, and there are at most {MOST}."
        )
        self._restart()
        body = MergePatch({"spec": {"template": {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}}})
        await self._hub.patch(Deployment, NAME, body, ALIGNED)
        for member in self._members.values():
            await member.patch(Deployment, NAME, body, COPIED)
        self._next_line = LINE_EVERY
        await self._tell_who_waits()
        await self._expect("app:2")
        self._next_line = 0
        self._print()
        await self._show()

    def _judge(self) -> None:
        aligned, copied = self._aligned, self._copied
        if not aligned.keeps_bounds:
            raise DemoFailed(f"{aligned.fewest} pods were available at least, and there were {aligned.most} at most")
        if copied.keeps_bounds:
            raise DemoFailed("the copies kept the bounds by themselves, which they cannot")
        self._told.heading("What came of it.")
        self._told.say(
            f"Copied: as few as {copied.fewest} pods were available, and there were up to {copied.most}."
            " Each cluster spends the budget for itself."
        )
        self._told.say(
            f"Aligned: never were fewer than {FEWEST} pods available, and never were there more than {MOST}."
        )

    # What is expected

    async def _tell_who_waits(self) -> None:
        """Print why a cluster waits, while it does."""
        found: list[BindingStory] = []

        async def waits() -> bool:
            found[:] = [await self._story()]
            return any(one.state is State.waiting for one in found[0].clusters)

        if not await self._aligned.watch.until(waits):
            raise DemoFailed(f"no cluster waits for another: {found[0].why}")
        first = next(one for one in found[0].clusters if one.state is State.waiting)
        self._told.say(f"          {first.name} waits: {first.why}.")

    async def _expect(self, image: str) -> None:
        async def there() -> bool:
            is_told = (await self._story()).is_done
            return is_told and self._aligned.all_run(image) and self._copied.all_run(image)

        if not await self._aligned.watch.until(there):
            raise DemoFailed(f"not every pod runs {image}: {(await self._story()).why}")

    # Reading and printing

    def _restart(self) -> None:
        self._aligned.watch.restart()
        self._aligned.restart()
        self._copied.restart()

    async def _story(self) -> BindingStory:
        return await BindingReader(self._hub).story(BINDING)

    async def _show(self) -> None:
        tree = binding_tree(await self._story(), drawn=can_draw(self._told.out))
        self._told.command(f"kedge status binding/{BINDING.name} -n {ALIGNED}", tree)

    def _print(self) -> None:
        elapsed = self._aligned.watch.elapsed
        if self._next_line is None or elapsed < self._next_line:
            return
        self._next_line = elapsed + LINE_EVERY
        at_least, at_most = self._signs
        one, other = self._aligned, self._copied
        self._told.say(
            f"{elapsed:6.1f} s  aligned: available {one.line_fewest:2} ({at_least} {FEWEST}),"
            f" pods {one.line_most:2} ({at_most} {MOST})"
            f"   copied: available {other.line_fewest:2}, pods {other.line_most:2}"
        )
        one.restart_line()
        other.restart_line()


# The hub and its members


async def aligned_hub(stage: DemoStage, namespaces: list[str]) -> Client:
    """A hub whose bindings are aligned."""
    hub = await stage.cluster("hub", nodes=0, namespaces=namespaces, definitions=DEFINITIONS)
    manager = await stage.manager("hub")
    add_karmada_hub(manager, await stage.connect(manager, "hub"))
    return hub


async def aligned_member(stage: DemoStage, hub: Client, name: str, namespaces: list[str]) -> Client:
    """A member of the hub, which is ready."""
    member = await stage.cluster(name, namespaces=namespaces)
    manager = await stage.manager("member")
    add_karmada_member(manager, name, await stage.connect(manager, "hub"), await stage.connect(manager, name))
    await hub.create(Namespace, {"metadata": {"name": work_namespace(name)}})
    await hub.create(Cluster, {"metadata": {"name": name}, "spec": {}})
    since = {"lastTransitionTime": f"{stage.clock.now():%Y-%m-%dT%H:%M:%SZ}"}
    ready = {"type": "Ready", "status": "True", "reason": "ClusterReady", "message": "", **since}
    await hub.patch(Cluster, name, MergePatch({"status": {"conditions": [ready]}}), subresource="status")
    return member


def _deployment(namespace: str, replicas: int) -> dict[str, Any]:
    labels = {"app": NAME}
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": UNAVAILABLE, "maxSurge": SURGE}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
    spec = {"replicas": replicas, "strategy": strategy, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": NAME, "namespace": namespace}, "spec": spec}


def _binding() -> dict[str, Any]:
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME, "namespace": ALIGNED}
    clusters = [{"name": name, "replicas": number} for name, number in REPLICAS.items()]
    meta = {"name": BINDING.name, "namespace": ALIGNED}
    return {"metadata": meta, "spec": {"resource": resource, "clusters": clusters}}

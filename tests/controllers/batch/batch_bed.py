"""Batch bed: an embedded cluster with Deployments and the controllers of rollouts in batches, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import Deployment
from kedge.api.condition import is_true
from kedge.api.core import Event, Namespace
from kedge.api.crd import crd
from kedge.api.kruise import KRUISE_KINDS
from kedge.api.oam.rollouts import ROLLOUT_KINDS, RolloutTrait
from kedge.api.pods import Pod
from kedge.controllers.batch.batch_controllers import batch_controllers
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.client import Client
from kedge.kube.connect.outbound import Answer, Call, Outbound, OutboundFailed
from kedge.kube.events import EventObserver
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from support.stage import LoopClock

SHOP = "shop"
DEFINITIONS = tuple(
    crd(kind) for kind in (*ROLLOUT_KINDS, *KRUISE_KINDS)
)  # reads sources, which must not happen while a loop runs


class Nobody:
    """An outside world in which nobody answers."""

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        raise OutboundFailed(f"{call}: nobody is there")

    async def close(self) -> None:
        """There is nothing to close."""


class Bed:
    """A cluster, its user, and how the pods were at every moment."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def deployment(self, name: str, replicas: int, image: str = "app:1", **spec: Any) -> None:
        labels = {"app": "web", "version": name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": image}]}}
        body = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec}
        await self.client.create(Deployment, {"metadata": {"name": name, "namespace": SHOP}, "spec": body})

    async def workload(self, kind: type[Any], image: str = "app:1", **spec: Any) -> None:
        """A workload that changes in place."""
        labels = {"app": "web"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": image}]}}
        body = {"selector": {"matchLabels": labels}, "template": template, **spec}
        await self.client.create(kind, {"metadata": {"name": "web", "namespace": SHOP}, "spec": body})

    async def images(self) -> list[str]:
        """What runs and is ready."""
        pods = (await self.client.list(Pod, SHOP)).items
        ready = [pod for pod in pods if is_true(pod.status.conditions, "Ready") and not pod.metadata.deletion_timestamp]
        return sorted((pod.spec.containers or ())[0].image for pod in ready)

    async def until_images(self, **number: int) -> None:
        """Until so many pods of each image are ready, and no others: `until_images(v1=3, v2=2)`."""
        wanted = sorted(f"app:{name[1:]}" for name, count in number.items() for _ in range(count))

        async def do() -> bool:
            return await self.images() == wanted

        await self.until(do)

    async def trait(self, target: str, *sources: str, name: str = "web", kind: str = "Deployment", **plan: Any) -> None:
        refs = [_ref(one, kind) for one in sources]
        spec = {"targetRef": _ref(target, kind), "sourceRef": refs, "rolloutPlan": plan}
        await self.client.create(RolloutTrait, {"metadata": {"name": name, "namespace": SHOP}, "spec": spec})

    async def edit(self, spec: dict[str, Any], name: str = "web") -> None:
        await self.client.patch(RolloutTrait, name, MergePatch({"spec": spec}), SHOP)

    async def get(self, name: str = "web") -> RolloutTrait:
        return await self.client.get(RolloutTrait, name, SHOP)

    async def sizes(self) -> dict[str, int]:
        found = (await self.client.list(Deployment, SHOP)).items
        return {one.metadata.name: one.spec.replicas or 0 for one in found}

    async def until_state(self, rolling: str, batch: str = "", name: str = "web") -> RolloutTrait:
        async def reached() -> bool:
            status = (await self.get(name)).status
            return status.rolling_state == rolling and batch in ("", status.batch_rolling_state)

        await self.until(reached)
        return await self.get(name)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(600):
            while not await holds():
                await asyncio.sleep(0.1)

    async def events(self, reason: str) -> list[str]:
        found = (await self.client.list(Event, SHOP)).items
        return [event.message for event in found if event.reason == reason]


@asynccontextmanager
async def bed(
    outbound: Outbound | None = None,
    definitions: Sequence[Mapping[str, Any]] = DEFINITIONS,
    namespaces: Sequence[str] = (),
    observer: EventObserver | None = None,
) -> AsyncIterator[Bed]:
    clock = LoopClock()
    cluster = EmbeddedCluster("cluster", clock=clock, rng=Random(1))
    cluster.start()
    user = Client(cluster.transport(), limiter=Limiter(rate=0), rng=Random(2))
    await make_nodes(user, 3, clock)
    await user.create(Namespace, {"metadata": {"name": SHOP}})
    for definition in definitions:
        await user.create(CustomResourceDefinition, definition)
    async with (
        Manager(component="kcm", clock=clock, rng=Random(4)) as others,
        Manager(component="kedge-operator", clock=clock, rng=Random(5), event_observer=observer) as manager,
    ):
        add_workloads(others, await others.connect("cluster", cluster.transport()))
        connected = await manager.connect("cluster", cluster.transport(), limiter=Limiter(rate=0))
        for controller in batch_controllers(connected, namespaces, clock=clock, outbound=outbound or Nobody()):
            manager.add_controller(controller)
        running = [asyncio.create_task(one.run(signals=False)) for one in (others, manager)]
        try:
            yield Bed(user)
        finally:
            manager.stop()
            others.stop()
            await asyncio.gather(*running)
    cluster.stop()


def _ref(name: str, kind: str = "Deployment") -> dict[str, str]:
    version = "apps.kruise.io/v1alpha1" if kind == "CloneSet" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "name": name}

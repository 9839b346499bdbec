"""Rollout groups on an embedded server with the controller of groups, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import StatefulSet
from kedge.api.core import Event, Namespace
from kedge.api.pods import Pod
from kedge.api.zones import ROLLOUT_GROUP
from kedge.controllers.zone.budget_guard import BudgetGuard
from kedge.controllers.zone.budget_metrics import BudgetMetrics
from kedge.controllers.zone.disruption_budgets import BUDGETS, DisruptionBudgets
from kedge.controllers.zone.group import Groups
from kedge.controllers.zone.metrics import GroupMetrics
from kedge.controllers.zone.observed import GroupCaches
from kedge.controllers.zone.recent_evictions import RecentEvictions
from kedge.controllers.zone.selected_zones import BudgetTurns, SelectedZones
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.client import Client
from kedge.kube.cluster import Cluster
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request, Response
from support.stage import LoopClock

A, B, C = "ingester-zone-a", "ingester-zone-b", "ingester-zone-c"
SHOP = "shop"


class Watched(InProcessTransport):
    """Notes every write that goes through."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.writes: list[str] = []
        self.preconditions: list[dict[str, str]] = []

    async def send(self, request: Request, *, timeout: float) -> Response:
        if request.method != "GET":
            self.writes.append(f"{request.method} {request.path}")
        if request.method == "DELETE":
            self.preconditions.append(msgspec.json.decode(request.body)["preconditions"])
        return await super().send(request, timeout=timeout)


class Bed:
    """A cluster with a rollout group, and the controller of groups."""

    def __init__(self, client: Client, transport: Watched, registry: CollectorRegistry) -> None:
        self.client = client
        self.transport = transport
        self.registry = registry

    async def create(
        self, name: str, namespace: str = SHOP, group: str = "ingester", image: str = "app:1", **spec: Any
    ) -> None:
        """A StatefulSet of a group; of none, if it is empty."""
        labels = {"app": name, "team": "mimir"}
        containers = [{"name": "app", "image": image}]
        template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
        body = {
            "replicas": 2,
            "serviceName": name,
            "selector": {"matchLabels": {"app": name}},
            "updateStrategy": {"type": "OnDelete"},
            "template": template,
        }
        named = {ROLLOUT_GROUP: group} if group else {}
        meta = {"name": name, "namespace": namespace, "labels": {**labels, **named}}
        await self.client.create(StatefulSet, {"metadata": meta, "spec": {**body, **spec}})

    async def release(self, image: str, *names: str, namespace: str = SHOP) -> None:
        body = {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}
        for name in names:
            await self.patch(name, body, namespace)

    async def patch(self, name: str, body: dict[str, Any], namespace: str = SHOP) -> None:
        await self.client.patch(StatefulSet, name, MergePatch(body), namespace)

    async def annotate(self, name: str, key: str, value: str | None) -> None:
        await self.patch(name, {"metadata": {"annotations": {key: value}}})

    async def images(self, name: str, namespace: str = SHOP) -> list[str]:
        """What runs and is ready."""
        pods = (await self.client.list(Pod, namespace, labels={"app": name})).items
        ready = [
            pod for pod in pods if any(one.type == "Ready" and one.status == "True" for one in pod.status.conditions)
        ]
        return sorted((pod.spec.containers or ())[0].image for pod in ready if not pod.metadata.deletion_timestamp)

    async def until_runs(self, image: str, *names: str, namespace: str = SHOP) -> None:
        async def runs() -> bool:
            return all([await self.images(name, namespace) == [image, image] for name in names])

        await self.until(runs)

    async def set_budget(self, **spec: Any) -> None:
        """A budget over all StatefulSets of the namespace."""
        whole = {"selector": {"matchLabels": {"team": "mimir"}}, "maxUnavailable": 1, **spec}
        await self.client.create(BUDGETS, {"metadata": {"name": "all", "namespace": SHOP}, "spec": whole})

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(300):
            while not await holds():
                await asyncio.sleep(0.1)

    async def events(self, reason: str) -> list[str]:
        found = (await self.client.list(Event, SHOP)).items
        return [f"{event.involved_object.name}: {event.message}" for event in found if event.reason == reason]

    async def until_said(self, reason: str, *parts: str) -> str:
        found: list[str] = []

        async def is_said() -> bool:
            found[:] = [text for text in await self.events(reason) if all(part in text for part in parts)]
            return bool(found)

        await self.until(is_said)
        return found[0]

    def metric(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)


@asynccontextmanager
async def bed(interval: float = 0.0, *, definitions: Sequence[Mapping[str, Any]] = ()) -> AsyncIterator[Bed]:
    """Runs a cluster with the operator, whose budgets are served if their definitions are given."""
    clock = LoopClock()
    cluster = EmbeddedCluster("cluster", clock=clock, rng=Random(1))
    cluster.start()
    user = Client(cluster.transport(), limiter=Limiter(rate=0), rng=Random(2))
    registry = CollectorRegistry()
    transport = Watched(cluster.server, rng=Random(3))
    await make_nodes(user, 2, clock)
    for definition in definitions:
        await user.create(CustomResourceDefinition, definition)
    for namespace in (SHOP, "other"):
        await user.create(Namespace, {"metadata": {"name": namespace}})
    async with (
        Manager(component="kcm", clock=clock, rng=Random(4)) as others,
        Manager(component="kedge-operator", clock=clock, rng=Random(5)) as manager,
    ):
        add_workloads(others, await others.connect("cluster", cluster.transport()))
        connected = await manager.connect("cluster", transport, limiter=Limiter(rate=0))
        manager.add_controller(_groups(connected, clock, registry, interval, is_guarded=bool(definitions)).controller)
        running = [asyncio.create_task(one.run(signals=False)) for one in (others, manager)]
        yield Bed(user, transport, registry)
        manager.stop()
        others.stop()
        await asyncio.gather(*running)
    cluster.stop()


def _groups(
    cluster: Cluster, clock: LoopClock, registry: CollectorRegistry, interval: float, *, is_guarded: bool
) -> Groups:
    observed, metrics = GroupCaches(cluster), GroupMetrics(registry)
    if not is_guarded:
        return Groups(cluster, observed, clock=clock, metrics=metrics, interval=interval)
    counted = BudgetMetrics(registry)
    budgets = DisruptionBudgets(cluster, metrics=counted)
    recent = RecentEvictions(asyncio.get_running_loop().time)
    for cache in observed.pod_caches:
        recent.follow(cache)
    selected = SelectedZones(cluster.client.without_retry())
    guard = BudgetGuard(budgets, selected, recent, clock, turns=BudgetTurns(), metrics=counted)
    return Groups(cluster, observed, clock=clock, metrics=metrics, guard=guard, budgets=budgets, interval=interval)

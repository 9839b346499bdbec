"""Rollout groups on an embedded server: what is written and said, and what is not; in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec
import pytest
from prometheus_client import CollectorRegistry

from kedge.api.apps import StatefulSet
from kedge.api.core import Event, Namespace
from kedge.api.pods import Pod
from kedge.api.zones import MAX_UNAVAILABLE, PAUSED, ROLLOUT_GROUP
from kedge.controllers.zone.group import Groups
from kedge.controllers.zone.metrics import GroupMetrics
from kedge.controllers.zone.observed import GroupCaches
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.client import Client
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request, Response
from support.stage import LoopClock
from support.virtual import run

A, B = "ingester-zone-a", "ingester-zone-b"
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

    async def create(self, name: str, namespace: str = SHOP, group: str = "ingester", **spec: Any) -> None:
        labels = {"app": name}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
        body = {
            "replicas": 2,
            "serviceName": name,
            "selector": {"matchLabels": labels},
            "updateStrategy": {"type": "OnDelete"},
            "template": template,
        }
        meta = {"name": name, "namespace": namespace, "labels": {ROLLOUT_GROUP: group}}
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
async def bed(interval: float = 0.0) -> AsyncIterator[Bed]:
    clock = LoopClock()
    cluster = EmbeddedCluster("cluster", clock=clock, rng=Random(1))
    cluster.start()
    user = Client(cluster.transport(), limiter=Limiter(rate=0), rng=Random(2))
    registry = CollectorRegistry()
    transport = Watched(cluster.server, rng=Random(3))
    await make_nodes(user, 2, clock)
    for namespace in (SHOP, "other"):
        await user.create(Namespace, {"metadata": {"name": namespace}})
    async with (
        Manager(component="kcm", clock=clock, rng=Random(4)) as others,
        Manager(component="kedge-operator", clock=clock, rng=Random(5)) as manager,
    ):
        add_workloads(others, await others.connect("cluster", cluster.transport()))
        connected = await manager.connect("cluster", transport, limiter=Limiter(rate=0))
        observed = GroupCaches(connected)
        groups = Groups(connected, observed, clock=clock, metrics=GroupMetrics(registry), interval=interval)
        manager.add_controller(groups.controller)
        running = [asyncio.create_task(one.run(signals=False)) for one in (others, manager)]
        yield Bed(user, transport, registry)
        manager.stop()
        others.stop()
        await asyncio.gather(*running)
    cluster.stop()


def test_a_release_is_rolled_out_said_and_named_in_the_status() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.create(B)
            await here.until_runs("app:1", A, B)
            await here.release("app:2", A, B)
            await here.until_runs("app:2", A, B)
            assert "to update to revision ingester-zone-a-" in (await here.until_said("DeletingPods", A))
            await here.until_said("RolloutComplete", B, "all 2 pods run revision ingester-zone-b-")
            for name in (A, B):
                status = (await here.client.get(StatefulSet, name, SHOP)).status
                assert status.current_revision == status.update_revision

    run(body())


def test_a_group_at_rest_writes_nothing() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.create(B)
            await here.release("app:bad", A, B)
            await here.until_said("RolloutWaits", A, "ImagePullBackOff")
            await asyncio.sleep(60)
            before = list(here.transport.writes)
            await asyncio.sleep(3600)
            assert here.transport.writes == before

    run(body())


def test_a_bad_release_stops_says_why_and_its_fix_arrives() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.create(B)
            await here.until_runs("app:1", A, B)
            await here.release("app:bad", A, B)
            said = await here.until_said("RolloutWaits", B, "all pods of the other zones have to be ready")
            assert "ingester-zone-a-0 (ImagePullBackOff) is not ready" in said
            assert await here.images(B) == ["app:1", "app:1"]
            await here.release("app:3", A, B)
            await here.until_runs("app:3", A, B)

    run(body())


def test_a_zone_that_is_scaled_down_in_order_while_two_pods_are_broken_gets_there_with_the_next_release() -> None:
    """The StatefulSet itself waits for the lower one before it removes the upper one, and never removes that."""

    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.create(B)
            await here.until_runs("app:1", A, B)
            await here.annotate(A, PAUSED, "true")
            await here.release("app:bad", A)
            for pod in (f"{A}-1", f"{A}-0"):  # they come back with the bad image
                await here.client.delete(Pod, pod, SHOP)
                await asyncio.sleep(30)
            await here.annotate(A, PAUSED, None)
            await here.patch(A, {"spec": {"replicas": 0}})
            await asyncio.sleep(600)
            assert len((await here.client.list(Pod, SHOP, labels={"app": A})).items) == 2
            await here.release("app:3", A, B)
            await here.until_runs("app:3", B)
            assert (await here.client.list(Pod, SHOP, labels={"app": A})).items == ()

    run(body())


def test_a_group_with_another_update_strategy_is_left_alone_and_says_so() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.create(B, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
            await here.until_runs("app:1", A, B)
            await here.release("app:2", A)
            said = await here.until_said("RolloutWaits", A)
            assert "StatefulSet ingester-zone-b has RollingUpdate update strategy while OnDelete is expected" in said
            assert await here.images(A) == ["app:1", "app:1"]

    run(body())


@pytest.mark.parametrize("value", ["xxx", "0", "-1", "300%", "", "9" * 300])
def test_a_limit_that_cannot_be_read_counts_as_one_and_is_said_once(value: str) -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.annotate(A, MAX_UNAVAILABLE, value)
            await here.until_runs("app:1", A)
            await here.release("app:2", A)
            await here.until_runs("app:2", A)
            said = await here.events("InvalidMaxUnavailable")
            assert len(said) == 1
            assert "expected a positive integer or a percentage" in said[0]
            assert all("deleting 1 pod," in text for text in await here.events("DeletingPods"))

    run(body())


def test_a_paused_zone_waits_and_the_others_go_on() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.create(B)
            await here.until_runs("app:1", A, B)
            await here.annotate(A, PAUSED, "true")
            await here.release("app:2", A, B)
            await here.until_runs("app:2", B)
            await here.until_said("RolloutWaits", A, "it is paused")
            assert await here.images(A) == ["app:1", "app:1"]
            await here.annotate(A, PAUSED, None)
            await here.until_runs("app:2", A)

    run(body())


def test_groups_of_one_name_in_two_namespaces_do_not_wait_for_each_other() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.create(A, namespace="other")
            await here.until_runs("app:1", A)
            await here.until_runs("app:1", A, namespace="other")
            await here.release("app:bad", A)
            await here.until_said("RolloutWaits", A)
            await here.release("app:2", A, namespace="other")
            await here.until_runs("app:2", A, namespace="other")

    run(body())


def test_metrics_of_a_group_go_with_its_last_statefulset() -> None:
    async def body() -> None:
        async with bed() as here:
            total = "rollout_operator_group_reconciles_total"
            await here.create(A)
            await here.create(A, namespace="other")
            await here.until_runs("app:1", A)
            assert (here.metric(total, rollout_group="ingester") or 0) > 0
            assert here.metric("rollout_operator_group_reconciles_failed_total", rollout_group="ingester") == 0
            await here.client.delete(StatefulSet, A, SHOP)
            await asyncio.sleep(60)
            assert here.metric(total, rollout_group="ingester") is not None
            await here.client.delete(StatefulSet, A, "other")
            await asyncio.sleep(60)
            assert here.metric(total, rollout_group="ingester") is None

    run(body())


def test_every_pod_is_deleted_in_the_version_that_was_seen() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.until_runs("app:1", A)
            await here.release("app:2", A)
            await here.until_runs("app:2", A)
            assert [sorted(one) for one in here.transport.preconditions] == [["resourceVersion", "uid"]] * 2
            promoted = [write for write in here.transport.writes if write.startswith("PUT")]
            assert promoted == [f"PUT /apis/apps/v1/namespaces/{SHOP}/statefulsets/{A}/status"]

    run(body())


def test_two_reconciles_of_a_group_are_as_far_apart_as_asked_for() -> None:
    async def body() -> None:
        async with bed(interval=5.0) as here:
            await here.create(A)
            await here.until_runs("app:1", A)
            before = here.metric("rollout_operator_group_reconciles_total", rollout_group="ingester") or 0
            began = asyncio.get_running_loop().time()
            await here.release("app:2", A)
            await here.until_runs("app:2", A)
            seconds = asyncio.get_running_loop().time() - began
            after = here.metric("rollout_operator_group_reconciles_total", rollout_group="ingester") or 0
            assert after - before <= seconds / 5 + 1
            assert seconds > 5

    run(body())

"""Rollouts in batches on a real control plane, judged by whoever watches the pods themselves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
import yaml

from controlplane.cluster import Cluster
from kedge.api.apps import Deployment
from kedge.api.crd import crd
from kedge.api.oam.rollouts import ROLLOUT_KINDS, RolloutTrait
from kedge.controllers.batch.batch_controllers import batch_controllers
from kedge.kube.client import Client
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.connect.outbound import HttpOutbound
from kedge.kube.errors import NotFound
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from real.batch_pods import PodRecorder, recorded
from support.waiting import until, until_so

pytestmark = pytest.mark.timeout(600)
PODS, BATCHES = 20, 5
DEFINITIONS = yaml.safe_dump_all([dict(crd(kind)) for kind in ROLLOUT_KINDS])


class Shop:
    """A namespace with two revisions of a Deployment, and whoever watches its pods."""

    def __init__(self, client: Client, namespace: str, recorder: PodRecorder) -> None:
        self.client = client
        self.namespace = namespace
        self.recorder = recorder

    async def deployment(self, name: str, replicas: int, image: str, **more: Any) -> None:
        labels = {"app": "web", "version": name}
        template = {
            "metadata": {"labels": labels, "annotations": {"kedge.dev/ready-after": "500ms"}},
            "spec": {"containers": [{"name": "app", "image": image}], "terminationGracePeriodSeconds": 0},
        }
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **more}
        await self.client.create(Deployment, {"metadata": {"name": name, "namespace": self.namespace}, "spec": spec})

    async def rollout(self, target: str, *sources: str, **plan: Any) -> None:
        spec = {"targetRef": ref(target), "sourceRef": [ref(one) for one in sources], "rolloutPlan": plan}
        await self.client.create(RolloutTrait, {"metadata": {"name": "web", "namespace": self.namespace}, "spec": spec})

    async def edit(self, spec: dict[str, Any]) -> None:
        await self.client.patch(RolloutTrait, "web", MergePatch({"spec": spec}), self.namespace)

    async def is_in(self, rolling: str, batch: str = "") -> bool:
        status = (await self.client.get(RolloutTrait, "web", self.namespace)).status
        return status.rolling_state == rolling and batch in ("", status.batch_rolling_state)

    async def sizes(self) -> dict[str, int]:
        found = (await self.client.list(Deployment, self.namespace)).items
        return {one.metadata.name: one.spec.replicas or 0 for one in found}


def ref(name: str) -> dict[str, str]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}


@pytest.fixture
async def shop(full_cluster: Cluster) -> AsyncIterator[Shop]:
    await full_cluster.kubectl("apply", "--server-side", "-f", "-", input=DEFINITIONS)
    connection = await asyncio.to_thread(load, [full_cluster.kubeconfig])
    client = Client(HttpsTransport(connection), limiter=Limiter(rate=0))
    namespace = await full_cluster.fresh_namespace("batches")
    found = Shop(client, namespace, PodRecorder(floor=PODS, ceiling=PODS + PODS // BATCHES))
    async with recorded(client, namespace, found.recorder), operator(full_cluster, namespace):
        await found.deployment("v1", PODS, "app:1")
        await found.deployment("v2", 0, "app:2")
        await until(lambda: found.recorder.ready("app:1") == PODS)
        found.recorder.judges = True
        yield found
    await client.close()


@asynccontextmanager
async def operator(cluster: Cluster, namespace: str) -> AsyncIterator[None]:
    connection = await asyncio.to_thread(load, [cluster.kubeconfig])
    async with Manager(component="operator", rng=Random(1)) as manager:
        connected = await manager.connect("cluster", HttpsTransport(connection), limiter=Limiter(rate=0))
        for controller in batch_controllers(connected, (namespace,), clock=manager.clock, outbound=HttpOutbound()):
            manager.add_controller(controller)
        running = asyncio.create_task(manager.run(signals=False))
        yield
        manager.stop()
        await running


@pytest.mark.core
async def test_a_release_moves_batch_by_batch_within_its_floor_and_ceiling(
    shop: Shop, record_property: Callable[[str, object], None]
) -> None:
    begun = time.perf_counter()
    await shop.rollout("v2", "v1", numBatches=BATCHES)
    await until_so(lambda: shop.is_in("rolloutSucceed"), within=90)
    record_property("told", f"{PODS} pods in {BATCHES} batches: {time.perf_counter() - begun:.1f} s")
    await until(lambda: shop.recorder.ready("app:1") == 0)
    assert shop.recorder.ready("app:2") == PODS
    assert shop.recorder.wrong == []
    assert shop.recorder.most > PODS  # a batch came before the old pods went


@pytest.mark.parametrize("sources", [("v1",), ()])
async def test_a_target_that_is_written_paused_gets_its_pods_batch_by_batch(
    shop: Shop, sources: tuple[str, ...]
) -> None:
    shop.recorder.judges = bool(sources)
    await shop.deployment("v3", PODS, "app:3", paused=True)
    await shop.rollout("v3", *sources, numBatches=BATCHES, batchPartition=0, targetSize=PODS)
    await until_so(lambda: shop.is_in("rollingInBatches", "batchReady"))
    await until(lambda: shop.recorder.ready("app:3") == PODS // BATCHES)
    await shop.edit({"rolloutPlan": {"batchPartition": BATCHES}})
    await until_so(lambda: shop.is_in("rolloutSucceed"), within=90)
    await until(lambda: shop.recorder.ready("app:3") == PODS)
    assert shop.recorder.wrong == []


async def test_with_decrease_first_old_pods_go_first_within_other_limits(shop: Shop) -> None:
    shop.recorder.floor, shop.recorder.ceiling = PODS - PODS // BATCHES, PODS
    await shop.rollout("v2", "v1", numBatches=BATCHES, rolloutStrategy="DecreaseFirst")
    await until_so(lambda: shop.is_in("rolloutSucceed"), within=90)
    await until(lambda: (shop.recorder.ready("app:1"), shop.recorder.ready("app:2")) == (0, PODS))
    assert shop.recorder.wrong == []
    assert shop.recorder.fewest < PODS  # old pods went before new ones came


async def test_it_holds_at_the_partition_and_is_taken_back_when_it_is_deleted(shop: Shop) -> None:
    await shop.rollout("v2", "v1", numBatches=BATCHES, batchPartition=1, revertOnDelete=True)
    await until_so(lambda: shop.is_in("rollingInBatches", "batchReady"))
    await until_so(lambda: _are(shop, {"v1": 12, "v2": 8}))
    await shop.client.delete(RolloutTrait, "web", shop.namespace)

    async def is_gone() -> bool:
        try:
            await shop.client.get(RolloutTrait, "web", shop.namespace)
        except NotFound:
            return True
        return False

    await until_so(is_gone, within=90)
    assert await shop.sizes() == {"v1": PODS, "v2": 0}
    assert shop.recorder.wrong == []


async def test_to_a_third_revision_midway_and_back_again(shop: Shop) -> None:
    await shop.rollout("v2", "v1", numBatches=BATCHES, batchPartition=1)
    await until_so(lambda: _are(shop, {"v1": 12, "v2": 8}))
    await shop.deployment("v3", 0, "app:3")
    await shop.edit({"targetRef": ref("v3"), "rolloutPlan": {"batchPartition": 0}})
    await until_so(lambda: _are(shop, {"v3": 4}))
    await until_so(lambda: shop.is_in("rollingInBatches", "batchReady"))
    await shop.edit({"targetRef": ref("v1"), "rolloutPlan": {"batchPartition": BATCHES}})
    await until_so(lambda: shop.is_in("rolloutSucceed"), within=90)
    assert await shop.sizes() == {"v1": PODS, "v2": 0, "v3": 0}
    assert shop.recorder.wrong == []


async def _are(shop: Shop, sizes: dict[str, int]) -> bool:
    found = await shop.sizes()
    return all(found.get(name) == size for name, size in sizes.items())

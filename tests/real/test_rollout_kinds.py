"""Rollouts of component revisions on a real control plane, judged by whoever watches the pods themselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
import yaml

from controlplane.cluster import Cluster
from kedge.api.apps import ControllerRevision, Deployment, StatefulSet
from kedge.api.crds import oam_crds
from kedge.api.oam.components import ApplicationConfiguration, Component
from kedge.api.oam.rollouts import Rollout, RolloutTrait
from kedge.controllers.application.everything import application_controllers
from kedge.controllers.batch.batch_controllers import batch_controllers
from kedge.kube.client import Client
from kedge.kube.codec import untyped
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
PODS = 6
HALVES = [{"replicas": "50%"}, {"replicas": "50%"}]
DEFINITIONS = yaml.safe_dump_all([dict(one) for one in oam_crds()])


def workload(number: int, kind: str = "Deployment") -> dict[str, Any]:
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels, "annotations": {"kedge.dev/ready-after": "500ms"}},
        "spec": {"containers": [{"name": "app", "image": f"app:{number}"}], "terminationGracePeriodSeconds": 0},
    }
    more = {"serviceName": "web", "podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}
    spec = {"selector": {"matchLabels": labels}, "template": template, **more}
    return {"apiVersion": "apps/v1", "kind": kind, "spec": spec}


class Shop:
    """A namespace with a component, its Rollout, and whoever watches its pods."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.recorder = PodRecorder(floor=PODS, ceiling=PODS + PODS // 2)

    async def component(self, number: int, kind: str = "Deployment") -> None:
        """Create the Component, or change it; its controller makes a revision of it."""
        spec = {"workload": workload(number, kind)}
        if await self.is_gone(Component):
            await self.create(Component, "web", spec)
        else:
            await self.client.patch(Component, "web", MergePatch({"spec": spec}), self.namespace)
        await until_so(lambda: self.exists(ControllerRevision, f"web-v{number}"))

    async def rollout(self, target: str, **plan: Any) -> None:
        spec = {"targetRevisionName": target, "componentName": "web", "rolloutPlan": plan}
        await self.create(Rollout, "web", spec)

    async def create(self, kind: Any, name: str, spec: dict[str, Any]) -> None:
        await self.client.create(kind, {"metadata": {"name": name, "namespace": self.namespace}, "spec": spec})

    async def to(self, target: str | None = None, **plan: Any) -> None:
        asked = {"targetRevisionName": target} if target else {}
        await self.client.patch(Rollout, "web", MergePatch({"spec": {**asked, "rolloutPlan": plan}}), self.namespace)

    async def is_in(self, target: str, rolling: str, batch: str = "") -> bool:
        status = (await self.client.get(Rollout, "web", self.namespace)).status
        is_there = status.rolling_state == rolling and batch in ("", status.batch_rolling_state)
        return is_there and status.last_target_revision == target

    async def until_in(self, target: str, rolling: str, batch: str = "") -> None:
        await until_so(lambda: self.is_in(target, rolling, batch), within=120)

    async def until_pods(self, **number: int) -> None:
        wanted = {f"app:{name[1:]}": count for name, count in number.items()}
        await until(lambda: {image: self.recorder.ready(image) for image in wanted} == wanted)

    async def sizes(self) -> dict[str, int]:
        found = (await self.client.list(Deployment, self.namespace)).items
        return {one.metadata.name: one.spec.replicas or 0 for one in found}

    async def are(self, sizes: dict[str, int]) -> bool:
        return await self.sizes() == sizes

    async def is_gone(self, kind: Any, name: str = "web") -> bool:
        return not await self.exists(kind, name)

    async def exists(self, kind: Any, name: str = "web") -> bool:
        try:
            await self.client.get(untyped(kind.resource), name, self.namespace)
        except NotFound:
            return False
        return True


@pytest.fixture
async def shop(full_cluster: Cluster) -> AsyncIterator[Shop]:
    await full_cluster.kubectl("apply", "--server-side", "-f", "-", input=DEFINITIONS)
    connection = await asyncio.to_thread(load, [full_cluster.kubeconfig])
    client = Client(HttpsTransport(connection), limiter=Limiter(rate=0))
    found = Shop(client, await full_cluster.fresh_namespace("revisions"))
    async with recorded(client, found.namespace, found.recorder), operator(full_cluster, found.namespace):
        yield found
    await client.close()


@asynccontextmanager
async def operator(cluster: Cluster, namespace: str) -> AsyncIterator[None]:
    connection = await asyncio.to_thread(load, [cluster.kubeconfig])
    async with Manager(component="operator", rng=Random(1)) as manager:
        connected = await manager.connect("cluster", HttpsTransport(connection), limiter=Limiter(rate=0))
        outbound = HttpOutbound()
        batches = batch_controllers(connected, (namespace,), clock=manager.clock, outbound=outbound)
        for controller in (*application_controllers(connected, (namespace,), clock=manager.clock), *batches):
            manager.add_controller(controller)
        running = asyncio.create_task(manager.run(signals=False))
        yield
        manager.stop()
        await running
        await outbound.close()


@pytest.mark.core
async def test_the_life_of_a_component(shop: Shop) -> None:
    for number in (1, 2, 3):
        await shop.component(number)
    await shop.rollout("web-v1", targetSize=PODS)
    await shop.until_in("web-v1", "rolloutSucceed")
    await shop.until_pods(v1=PODS)
    shop.recorder.judges = True
    await shop.to("web-v2", rolloutBatches=HALVES, batchPartition=0)
    await shop.until_in("web-v2", "rollingInBatches", "batchReady")
    await until_so(lambda: shop.are({"web-v1": 3, "web-v2": 3}))
    await shop.to("web-v3", batchPartition=1)
    await shop.until_in("web-v3", "rolloutSucceed")
    await until_so(lambda: shop.are({"web-v3": PODS}))
    await shop.to("web-v2")
    await shop.until_in("web-v2", "rolloutSucceed")
    await until_so(lambda: shop.are({"web-v2": PODS}))
    assert shop.recorder.wrong == []
    shop.recorder.judges = False
    await shop.client.delete(Rollout, "web", shop.namespace)
    await until_so(lambda: shop.is_gone(Rollout))
    await until_so(lambda: shop.are({}), within=60)


async def test_a_rollout_that_is_deleted_midway_leaves_its_pods_also_without_its_revisions(shop: Shop) -> None:
    for number in (1, 2):
        await shop.component(number)
    await shop.rollout("web-v1", targetSize=PODS)
    await shop.until_in("web-v1", "rolloutSucceed")
    await shop.to("web-v2", rolloutBatches=HALVES, batchPartition=0)
    await shop.until_in("web-v2", "rollingInBatches", "batchReady")
    await shop.until_pods(v1=3, v2=3)
    shop.recorder.judges = True
    await shop.client.delete(Component, "web", shop.namespace)
    await until_so(lambda: shop.is_gone(ControllerRevision, "web-v2"))
    await shop.client.delete(Rollout, "web", shop.namespace)
    await until_so(lambda: shop.is_gone(Rollout))
    await shop.until_pods(v1=3, v2=3)
    for name in ("web-v1", "web-v2"):
        meta = (await shop.client.get(untyped(Deployment.resource), name, shop.namespace))["metadata"]
        assert "ownerReferences" not in meta
        assert "kedge.dev/rolled-by" not in meta["annotations"]
    assert shop.recorder.wrong == []


async def test_a_stateful_set_goes_forward_holds_and_goes_back(shop: Shop) -> None:
    for number in (1, 2):
        await shop.component(number, "StatefulSet")
    await shop.rollout("web-v1", targetSize=PODS)
    await shop.until_in("web-v1", "rolloutSucceed")
    await shop.until_pods(v1=PODS)
    await shop.to("web-v2", rolloutBatches=HALVES, batchPartition=0)
    await shop.until_in("web-v2", "rollingInBatches", "batchReady")
    await shop.until_pods(v1=3, v2=3)
    await shop.to("web-v1", batchPartition=1)
    await shop.until_in("web-v1", "rolloutSucceed")
    await shop.until_pods(v1=PODS, v2=0)
    found = await shop.client.get(untyped(StatefulSet.resource), "web", shop.namespace)
    assert found["metadata"]["labels"]["app.oam.dev/revision"] == "web-v1"


async def test_a_trait_moves_a_component_when_it_changes(shop: Shop) -> None:
    await shop.component(1)
    plan = {"targetSize": PODS, "rolloutBatches": HALVES}
    trait = {"apiVersion": "standard.oam.dev/v1alpha1", "kind": "RolloutTrait", "spec": {"rolloutPlan": plan}}
    configured = {"components": [{"componentName": "web", "traits": [{"trait": trait}]}]}
    await shop.create(ApplicationConfiguration, "conf", configured)
    await shop.until_pods(v1=PODS)

    async def has_succeeded() -> bool:
        status = (await shop.client.get(RolloutTrait, "web", shop.namespace)).status
        return status.rolling_state == "rolloutSucceed"

    await until_so(has_succeeded)
    shop.recorder.judges = True
    await shop.component(2)
    await shop.until_pods(v1=0, v2=PODS)
    await until_so(lambda: shop.are({"web-v1": 0, "web-v2": PODS}))
    await until_so(has_succeeded)
    assert shop.recorder.wrong == []

"""Rollouts of Applications on a real control plane, judged by whoever watches the pods themselves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest
import yaml

from controlplane.cluster import Cluster
from kedge.api.crds import oam_crds
from kedge.api.oam.applications import Application
from kedge.api.oam.keys import ROLLING_COMPONENTS, ROLLOUT_TEMPLATE
from kedge.api.oam.rollouts import ApplicationDeployment, AppRollout
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
PODS, BATCHES = 10, 5
PLAN = {"numBatches": BATCHES}
DEFINITIONS = yaml.safe_dump_all([dict(one) for one in oam_crds()])


class Store:
    """A namespace in which Applications run, and whoever watches their pods."""

    def __init__(self, client: Client, namespace: str, recorder: PodRecorder) -> None:
        self.client = client
        self.namespace = namespace
        self.recorder = recorder

    async def application(self, image: str, *, name: str = "store", template: bool = False, **more: Any) -> None:
        """Create an Application, or change it."""
        spec = {"components": [{"name": "web", "type": "raw", "properties": deployment(image)}], **more}
        meta = {"name": name, "namespace": self.namespace}
        try:
            live = await self.client.get(untyped(Application.resource), name, self.namespace)
        except NotFound:
            notes = {ROLLOUT_TEMPLATE: "true"} if template else {}
            await self.client.create(Application, {"metadata": {**meta, "annotations": notes}, "spec": spec})
        else:
            change = {"spec": {**dict.fromkeys(live["spec"]), **spec}}
            await self.client.patch(Application, name, MergePatch(change), self.namespace)

    async def rollout(self, kind: Any, **spec: Any) -> None:
        await self.client.create(kind, {"metadata": {"name": "web", "namespace": self.namespace}, "spec": spec})

    async def status(self, kind: Any, name: str = "web") -> Any:
        try:
            return (await self.client.get(untyped(kind.resource), name, self.namespace)).get("status", {})
        except NotFound:
            return {}

    async def until_state(self, kind: Any, rolling: str, batch: str = "", name: str = "web") -> None:
        async def reached() -> bool:
            found = await self.status(kind, name)
            return found.get("rollingState") == rolling and batch in ("", found.get("batchRollingState"))

        await until_so(reached, within=120)

    async def until_ready(self, **number: int) -> None:
        """So many pods of each image, and no others."""
        wanted = {f"app:{name[1:]}": count for name, count in number.items()}
        await until(
            lambda: (
                all(self.recorder.ready(image) == count for image, count in wanted.items())
                and self.recorder.ready() == sum(wanted.values())
            ),
            within=120,
        )

    async def delete(self, kind: Any) -> None:
        await self.client.delete(kind, "web", self.namespace)

        async def is_gone() -> bool:
            try:
                await self.client.get(kind, "web", self.namespace)
            except NotFound:
                return True
            return False

        await until_so(is_gone, within=120)

    async def annotations(self, name: str) -> dict[str, str]:
        found = await self.client.get(Application, name, self.namespace)
        return dict(found.metadata.annotations)


def deployment(image: str) -> dict[str, Any]:
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels, "annotations": {"kedge.dev/ready-after": "300ms"}},
        "spec": {"containers": [{"name": "app", "image": f"app:{image}"}], "terminationGracePeriodSeconds": 0},
    }
    spec = {"replicas": PODS, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec}


@pytest.fixture
async def store(full_cluster: Cluster) -> AsyncIterator[Store]:
    await full_cluster.kubectl("apply", "--server-side", "-f", "-", input=DEFINITIONS)
    connection = await asyncio.to_thread(load, [full_cluster.kubeconfig])
    client = Client(HttpsTransport(connection), limiter=Limiter(rate=0))
    namespace = await full_cluster.fresh_namespace("apps")
    found = Store(client, namespace, PodRecorder(floor=PODS, ceiling=PODS + PODS // BATCHES))
    async with recorded(client, namespace, found.recorder), operator(full_cluster, (namespace,)):
        yield found
    await client.close()


@asynccontextmanager
async def operator(cluster: Cluster, namespaces: Sequence[str]) -> AsyncIterator[None]:
    connection = await asyncio.to_thread(load, [cluster.kubeconfig])
    async with Manager(component="operator", rng=Random(1)) as manager:
        connected = await manager.connect("cluster", HttpsTransport(connection), limiter=Limiter(rate=0))
        batches = batch_controllers(connected, namespaces, clock=manager.clock, outbound=HttpOutbound())
        for controller in (*application_controllers(connected, clock=manager.clock), *batches):
            manager.add_controller(controller)
        running = asyncio.create_task(manager.run(signals=False))
        yield
        manager.stop()
        await running


async def _runs(store: Store, name: str = "store") -> None:
    await store.application("1", name=name)
    await store.until_ready(v1=PODS)
    store.recorder.judges = True


@pytest.mark.core
async def test_an_application_goes_from_revision_to_revision_and_back_midway(store: Store) -> None:
    await _runs(store)
    spec = {"targetAppRevisionName": "store-v2", "sourceAppRevisionName": "store-v1"}
    await store.rollout(AppRollout, **spec, rolloutPlan={**PLAN, "batchPartition": 1})
    await store.application("2")
    await store.until_state(AppRollout, "rollingInBatches", "batchReady")
    await store.until_ready(v1=6, v2=4)
    back = {"targetAppRevisionName": "store-v1", "rolloutPlan": {"batchPartition": None}}
    await store.client.patch(AppRollout, "web", MergePatch({"spec": back}), store.namespace)
    await store.until_state(AppRollout, "rolloutSucceed")
    await store.until_ready(v1=PODS)
    forth = {"targetAppRevisionName": "store-v2"}
    await store.client.patch(AppRollout, "web", MergePatch({"spec": forth}), store.namespace)
    await store.until_ready(v2=PODS)
    await store.until_state(AppRollout, "rolloutSucceed")
    assert store.recorder.wrong == []


@pytest.mark.parametrize("reverts", [True, False])
async def test_deleted_midway_it_is_taken_back_or_stays(store: Store, reverts: bool) -> None:
    await _runs(store)
    spec = {"targetAppRevisionName": "store-v2", "sourceAppRevisionName": "store-v1", "revertOnDelete": reverts}
    await store.rollout(AppRollout, **spec, rolloutPlan={**PLAN, "batchPartition": 1})
    await store.application("2")
    await store.until_state(AppRollout, "rollingInBatches", "batchReady")
    await store.until_ready(v1=6, v2=4)
    await store.delete(AppRollout)
    await asyncio.sleep(5)  # nobody goes on with it
    await store.until_ready(**({"v1": PODS} if reverts else {"v1": 6, "v2": 4}))
    assert store.recorder.wrong == []


async def test_the_plan_of_an_application_rolls_each_change_out(store: Store) -> None:
    await store.application("1", rolloutPlan=PLAN)
    await store.until_ready(v1=PODS)
    await store.until_state(AppRollout, "rolloutSucceed", name="store")
    store.recorder.judges = True
    await store.application("2", rolloutPlan=PLAN)
    await store.until_ready(v2=PODS)
    await store.until_state(AppRollout, "rolloutSucceed", name="store")
    assert store.recorder.wrong == []


@pytest.mark.core
async def test_an_application_deployment_brings_a_new_application_in(store: Store) -> None:
    await _runs(store, "old")
    await store.application("2", name="new", template=True)
    spec = {"targetApplicationName": "new", "sourceApplicationName": "old"}
    await store.rollout(ApplicationDeployment, **spec, revertOnDelete=True, rolloutPlan={**PLAN, "batchPartition": 1})
    await store.until_state(ApplicationDeployment, "rollingInBatches", "batchReady")
    await store.until_ready(v1=6, v2=4)
    await store.delete(ApplicationDeployment)
    await store.until_ready(v1=PODS)
    assert (await store.annotations("new"))[ROLLING_COMPONENTS] == "web"
    await store.rollout(ApplicationDeployment, **spec, rolloutPlan=PLAN)
    await store.until_ready(v2=PODS)
    await store.until_state(ApplicationDeployment, "rolloutSucceed")
    await store.delete(ApplicationDeployment)
    await asyncio.sleep(5)
    await store.until_ready(v2=PODS)  # it does not go with the rollout
    assert store.recorder.wrong == []

"""A shop on a real control plane: a component, the Rollout of its revisions, and whoever watches its pods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import yaml

from controlplane.cluster import Cluster
from kedge.api.apps import ControllerRevision, Deployment
from kedge.api.crds import oam_crds
from kedge.api.kruise import CloneSet
from kedge.api.oam.components import Component
from kedge.api.oam.rollouts import Rollout
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

PODS = 6
AT_ONCE = 2
"""How many pods of a workload that changes in place may be unavailable."""
HALVES = [{"replicas": "50%"}, {"replicas": "50%"}]
DEFINITIONS = yaml.safe_dump_all([dict(one) for one in oam_crds()])  # here: it reads files


def workload(number: int, kind: str = "Deployment") -> dict[str, Any]:
    labels = {"app": "web"}
    template = {
        "metadata": {"labels": labels, "annotations": {"kedge.dev/ready-after": "500ms"}},
        "spec": {"containers": [{"name": "app", "image": f"app:{number}"}], "terminationGracePeriodSeconds": 0},
    }
    more: dict[str, dict[str, Any]] = {
        "StatefulSet": {"serviceName": "web", "podManagementPolicy": "Parallel"},
        "CloneSet": {"updateStrategy": {"maxUnavailable": AT_ONCE}},
    }
    spec = {"selector": {"matchLabels": labels}, "template": template, **more.get(kind, {})}
    version = CloneSet.resource.api_version if kind == "CloneSet" else "apps/v1"
    return {"apiVersion": version, "kind": kind, "spec": spec}


class Shop:
    """A namespace with a component, its Rollout, and whoever watches its pods."""

    def __init__(self, client: Client, namespace: str, recorder: PodRecorder) -> None:
        self.client = client
        self.namespace = namespace
        self.recorder = recorder

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


@asynccontextmanager
async def open_shop(cluster: Cluster, *, floor: int, ceiling: int) -> AsyncIterator[Shop]:
    """A namespace with an operator. Its recorder judges by these numbers of pods once it is told to."""
    await cluster.kubectl("apply", "--server-side", "-f", "-", input=DEFINITIONS)
    connection = await asyncio.to_thread(load, [cluster.kubeconfig])
    client = Client(HttpsTransport(connection), limiter=Limiter(rate=0))
    found = Shop(client, await cluster.fresh_namespace("revisions"), PodRecorder(floor, ceiling))
    async with recorded(client, found.namespace, found.recorder), _operator(cluster, found.namespace):
        yield found
    await client.close()


@asynccontextmanager
async def _operator(cluster: Cluster, namespace: str) -> AsyncIterator[None]:
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

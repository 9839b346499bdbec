"""App bed: an embedded cluster with the controllers of Applications and of rollouts in batches, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from controllers.batch.batch_bed import Nobody
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import Deployment
from kedge.api.condition import is_true
from kedge.api.core import Namespace
from kedge.api.crds import oam_crds
from kedge.api.oam.applications import Application
from kedge.api.oam.keys import ROLLOUT_TEMPLATE
from kedge.api.oam.rollouts import ApplicationDeployment, AppRollout
from kedge.api.pods import Pod
from kedge.controllers.application.everything import application_controllers
from kedge.controllers.batch.batch_controllers import batch_controllers
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.errors import NotFound
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.plan.fields import text
from support.stage import LoopClock

SHOP = "shop"
DEFINITIONS = oam_crds()  # here: it reads files


class AppBed:
    """A cluster, and what users do with Applications there."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def application(
        self,
        image: str,
        replicas: int | None = None,
        *,
        name: str = "store",
        template: bool = False,
        traits: Any = (),
        **more: Any,
    ) -> None:
        """Create an Application with one component, or change it."""
        properties = {"image": f"app:{image}"} | ({"replicas": replicas} if replicas is not None else {})
        component = {"name": "web", "type": "webservice", "properties": properties, "traits": list(traits)}
        spec = {"components": [component], **more}
        annotations = {ROLLOUT_TEMPLATE: "true"} if template else {}
        try:
            live = await self.raw(Application, name)
        except NotFound:
            meta = {"name": name, "namespace": SHOP, "annotations": annotations}
            await self.client.create(Application, {"metadata": meta, "spec": spec})
        else:
            await self.client.replace(untyped(Application.resource), {**live, "spec": spec})

    async def app_rollout(self, target: str, source: str = "", **more: Any) -> None:
        plan = more.pop("plan", {})
        spec = {"targetAppRevisionName": target, "rolloutPlan": plan, **more}
        if source:
            spec["sourceAppRevisionName"] = source
        await self.client.create(AppRollout, {"metadata": {"name": "web", "namespace": SHOP}, "spec": spec})

    async def deployment_of(self, target: str, source: str = "", *, name: str = "web", **more: Any) -> None:
        """An ApplicationDeployment."""
        plan = more.pop("plan", {})
        spec = {"targetApplicationName": target, "rolloutPlan": plan, **more}
        if source:
            spec["sourceApplicationName"] = source
        await self.client.create(ApplicationDeployment, {"metadata": {"name": name, "namespace": SHOP}, "spec": spec})

    async def edit(self, kind: Any, spec: dict[str, Any], name: str = "web") -> None:
        await self.client.patch(kind, name, MergePatch({"spec": spec}), SHOP)

    async def delete(self, kind: Any, name: str = "web") -> None:
        """Delete it, and wait until it is gone."""
        await self.client.delete(kind, name, SHOP)
        await self.until(lambda: self.is_gone(kind, name))

    async def raw(self, kind: Any, name: str = "web") -> Any:
        return await self.client.get(untyped(kind.resource), name, SHOP)

    async def annotations(self, kind: Any, name: str) -> dict[str, str]:
        found: dict[str, str] = (await self.raw(kind, name))["metadata"].get("annotations", {})
        return found

    async def is_gone(self, kind: Any, name: str = "web") -> bool:
        try:
            await self.raw(kind, name)
        except NotFound:
            return True
        return False

    async def sizes(self) -> dict[str, int]:
        found = (await self.client.list(Deployment, SHOP)).items
        return {one.metadata.name: one.spec.replicas or 0 for one in found}

    async def images(self) -> dict[str, int]:
        """How many ready pods there are of each image."""
        pods = (await self.client.list(Pod, SHOP)).items
        ready = [pod for pod in pods if is_true(pod.status.conditions, "Ready") and not pod.metadata.deletion_timestamp]
        images = [(pod.spec.containers or ())[0].image.removeprefix("app:") for pod in ready]
        return {image: images.count(image) for image in sorted(images)}

    async def message(self, kind: Any, name: str = "web") -> str:
        return text(await self.raw(kind, name), "status", "message")

    async def until_message(self, kind: Any, part: str, name: str = "web") -> None:
        async def says() -> bool:
            return part in await self.message(kind, name)

        await self._until(says, lambda: self.message(kind, name), part)

    async def until_images(self, **number: int) -> None:
        wanted = {name[1:]: count for name, count in number.items()}

        async def are() -> bool:
            return await self.images() == wanted

        await self._until(are, self.images, wanted)

    async def until_sizes(self, sizes: dict[str, int]) -> None:
        async def are() -> bool:
            return await self.sizes() == sizes

        await self._until(are, self.sizes, sizes)

    async def until_state(self, kind: Any, rolling: str, batch: str = "", name: str = "web") -> Any:
        async def status() -> Any:
            return None if await self.is_gone(kind, name) else (await self.raw(kind, name)).get("status", {})

        async def reached() -> bool:
            found = await status() or {}
            return found.get("rollingState") == rolling and batch in ("", found.get("batchRollingState"))

        await self._until(reached, status, f"{rolling} {batch}")
        return await status()

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(300):
            while not await holds():
                await asyncio.sleep(0.2)

    async def _until(
        self, holds: Callable[[], Awaitable[bool]], look: Callable[[], Awaitable[Any]], wanted: Any
    ) -> None:
        try:
            await self.until(holds)
        except TimeoutError:
            raise AssertionError(f"{await look()} instead of {wanted}") from None


@asynccontextmanager
async def app_bed() -> AsyncIterator[AppBed]:
    clock = LoopClock()
    cluster = EmbeddedCluster("cluster", clock=clock, rng=Random(1))
    cluster.start()
    user = Client(cluster.transport(), limiter=Limiter(rate=0), rng=Random(2))
    await make_nodes(user, 3, clock)
    await user.create(Namespace, {"metadata": {"name": SHOP}})
    for definition in DEFINITIONS:
        await user.create(CustomResourceDefinition, definition)
    async with (
        Manager(component="kcm", clock=clock, rng=Random(4)) as others,
        Manager(component="kedge-operator", clock=clock, rng=Random(5)) as manager,
    ):
        add_workloads(others, await others.connect("cluster", cluster.transport()))
        connected = await manager.connect("cluster", cluster.transport(), limiter=Limiter(rate=0))
        batches = batch_controllers(connected, (), clock=clock, outbound=Nobody())
        for controller in (*application_controllers(connected, clock=clock), *batches):
            manager.add_controller(controller)
        running = [asyncio.create_task(one.run(signals=False)) for one in (others, manager)]
        yield AppBed(user)
        manager.stop()
        others.stop()
        await asyncio.gather(*running)
    cluster.stop()

"""A cluster with the kinds of OAM, simulated workloads, and the controllers of Applications; in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from kedge.api.apps import ControllerRevision, Deployment
from kedge.api.core import Event, Namespace
from kedge.api.crds import oam_crds
from kedge.api.oam.applications import Application, ApplicationRevision
from kedge.api.oam.components import ApplicationConfiguration, Component
from kedge.api.oam.keys import COMPONENT_OF_REVISION
from kedge.api.resource import Resource
from kedge.controllers.application.everything import application_controllers
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.errors import NotFound
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.kube.transport import ConnectionFailed, Request, Response
from support.stage import LoopClock
from support.virtual import run

CRD = untyped(
    Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
)
DEFINITIONS = oam_crds()  # here: it reads files
NAMESPACE = "prod"


class Watched(InProcessTransport):
    """Notes every write, and loses the answer of one, or cuts the connection after some."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.writes: list[str] = []
        self.fail_after: int | None = None

    async def send(self, request: Request, *, timeout: float) -> Response:
        is_write = request.method != "GET" and "/events" not in request.path and "/leases" not in request.path
        if is_write:
            self.writes.append(f"{request.method} {request.path.rpartition('/namespaces/')[2]}")
            if self.fail_after is not None and len(self.writes) == self.fail_after:
                await super().send(request, timeout=timeout)
                raise ConnectionFailed("no answer", sent=True)
        return await super().send(request, timeout=timeout)


class Bed:
    """A cluster, and what a user does with it."""

    def __init__(self, client: Client, transport: Watched) -> None:
        self.client = client
        self.transport = transport

    async def application(self, *components: Mapping[str, Any], name: str = "shop", **options: Any) -> None:
        """Create an Application, or change it."""
        annotations = options.pop("annotations", None)
        spec = {"components": list(components), **options}
        try:
            live = await self.client.get(untyped(Application.resource), name, NAMESPACE)
        except NotFound:
            meta = {"name": name, "namespace": NAMESPACE, "annotations": annotations or {}}
            await self.client.create(Application, {"metadata": meta, "spec": spec})
        else:
            await self.client.replace(untyped(Application.resource), {**live, "spec": spec})

    async def component(self, workload: Mapping[str, Any], name: str = "web", **more: Any) -> None:
        """Create a Component, or change it."""
        spec = {"workload": workload, **more}
        try:
            live = await self.client.get(untyped(Component.resource), name, NAMESPACE)
        except NotFound:
            await self.client.create(Component, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})
        else:
            await self.client.replace(untyped(Component.resource), {**live, "spec": spec})

    async def configuration(self, *components: Mapping[str, Any], name: str = "conf", **annotations: str) -> None:
        meta = {"name": name, "namespace": NAMESPACE, "annotations": annotations}
        await self.client.create(ApplicationConfiguration, {"metadata": meta, "spec": {"components": list(components)}})

    async def annotate(self, kind: Any, name: str, key: str, value: str | None) -> None:
        await self.client.patch(kind, name, MergePatch({"metadata": {"annotations": {key: value}}}), NAMESPACE)

    async def all(self, kind: Any) -> list[Any]:
        return sorted(
            (await self.client.list(untyped(kind.resource), NAMESPACE)).items,
            key=lambda one: str(one["metadata"]["name"]),
        )

    async def names(self, kind: Any) -> list[str]:
        return [one["metadata"]["name"] for one in await self.all(kind)]

    async def revisions(self) -> list[str]:
        """The component revisions."""
        found = await self.client.list(ControllerRevision, NAMESPACE, labels=COMPONENT_OF_REVISION)
        return sorted(one.metadata.name for one in found.items)

    async def app_revisions(self) -> list[str]:
        return await self.names(ApplicationRevision)

    async def get(self, kind: Any, name: str) -> Any:
        return await self.client.get(untyped(kind.resource), name, NAMESPACE)

    async def deployments(self) -> dict[str, tuple[str, int]]:
        """Name → the image and how many pods are available."""
        return {
            one["metadata"]["name"]: (
                one["spec"]["template"]["spec"]["containers"][0]["image"],
                one.get("status", {}).get("availableReplicas", 0),
            )
            for one in await self.all(Deployment)
        }

    async def condition(self, kind: Any, name: str, type: str) -> tuple[str, str, str]:  # noqa: A002
        found = (await self.get(kind, name)).get("status", {}).get("conditions", ())
        return next(
            ((one["status"], one["reason"], one["message"]) for one in found if one["type"] == type), ("", "", "")
        )

    async def until(self, holds: Callable[[], Awaitable[object]]) -> None:
        async with asyncio.timeout(300):
            while not await holds():
                await asyncio.sleep(0.2)

    async def until_equal(self, look: Callable[[], Awaitable[Any]], wanted: Any) -> None:
        found: Any = None
        try:
            async with asyncio.timeout(120):
                while (found := await look()) != wanted:
                    await asyncio.sleep(0.2)
        except TimeoutError:
            raise AssertionError(f"{found} instead of {wanted}") from None

    async def at_rest(self) -> None:
        """Wait until nothing is written any more."""
        for _ in range(10):
            before = len(self.transport.writes)
            await asyncio.sleep(40)
            if len(self.transport.writes) == before:
                return
        raise AssertionError(f"it never came to rest: {self.transport.writes[-5:]}")

    async def events(self) -> set[str]:
        found = (await self.client.list(Event, NAMESPACE)).items
        return {f"{one.involved_object.kind} {one.reason}: {one.message}" for one in found}


@asynccontextmanager
async def bed(*, definitions: Any = (), operators: int = 1) -> AsyncIterator[Bed]:
    """Without leader election: several operators at once must do no harm."""
    clock = LoopClock()
    cluster = EmbeddedCluster("cluster", clock=clock, rng=Random(1))
    cluster.start()
    user = Client(cluster.transport(), limiter=Limiter(rate=0), rng=Random(2))
    transport = Watched(cluster.server, rng=Random(3))
    await make_nodes(user, 2, clock)
    await user.create(Namespace, {"metadata": {"name": NAMESPACE}})
    for definition in (*DEFINITIONS, *definitions):
        await user.create(CRD, definition)
    await asyncio.sleep(2)
    managers = [Manager(component="kedge-operator", clock=clock, rng=Random(5 + number)) for number in range(operators)]
    async with Manager(component="kcm", clock=clock, rng=Random(4)) as others:
        add_workloads(others, await others.connect("cluster", cluster.transport()))
        for manager in managers:
            await manager.__aenter__()
            connected = await manager.connect("cluster", transport, limiter=Limiter(rate=0))
            for controller in application_controllers(connected, clock=clock):
                manager.add_controller(controller)
        running = [asyncio.create_task(one.run(signals=False)) for one in (others, *managers)]
        yield Bed(user, transport)
        for one in (*managers, others):
            one.stop()
        await asyncio.gather(*running)
        for manager in managers:
            await manager.__aexit__(None, None, None)
    cluster.stop()


def play(scene: Coroutine[Any, Any, None]) -> None:
    run(scene)

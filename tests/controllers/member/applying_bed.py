"""A hub and a member with an applier between them, embedded, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec

from kedge.api.crd import crd
from kedge.api.dialect import Dialect
from kedge.api.fleet import member_namespace
from kedge.api.resource import Resource
from kedge.api.work import AppliedWork, Work
from kedge.controllers.member.applier import Applier
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.request_info import Caller
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import NotFound
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.kube.transport import ConnectionFailed, Request, Response
from support.stage import LoopClock
from support.virtual import run

NAME = "cluster-1"
NAMESPACE = member_namespace(NAME)
CRD = untyped(
    Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
)
NAMESPACES = untyped(Resource("", "v1", "Namespace", "namespaces", namespaced=False))
MAPS = untyped(Resource("", "v1", "ConfigMap", "configmaps"))
SECRETS = untyped(Resource("", "v1", "Secret", "secrets"))
DEPLOYMENTS = untyped(Resource("apps", "v1", "Deployment", "deployments"))
SERVICES = untyped(Resource("", "v1", "Service", "services"))
DEFINITIONS = tuple(crd(kind, Dialect.seed) for kind in (Work, AppliedWork))  # here: it reads files
JOBS = untyped(Resource("batch", "v1", "Job", "jobs"))


class Counting(InProcessTransport):
    """Notes every write that goes through, and breaks for good after one of them if asked to."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.writes: list[str] = []
        self.reads: list[str] = []
        self.paths: set[str] = set()
        self.on_write: Callable[[], None] = lambda: None
        self.broken = False
        self.forbidden = ""  # a method
        self.fails_after = ""  # the end of a path: a POST there is done, and answered with 500
        self.loses = ""  # one there is never answered, and may arrive later
        self.lost: list[Request] = []

    async def send(self, request: Request, *, timeout: float) -> Response:
        if self.broken:
            raise ConnectionFailed("broken", sent=False)
        self.paths.add(request.path)
        if request.method == self.forbidden:
            refusal = {
                "kind": "Status",
                "status": "Failure",
                "code": 403,
                "reason": "Forbidden",
                "message": "not allowed",
            }
            return Response(403, msgspec.json.encode(refusal))
        if self.loses and request.method == "POST" and request.path.endswith(self.loses):
            self.lost.append(request)
            raise ConnectionFailed("no answer", sent=True)
        answer = await super().send(request, timeout=timeout)
        if self.fails_after and request.method == "POST" and request.path.endswith(self.fails_after):
            failure = {"kind": "Status", "status": "Failure", "code": 500, "reason": "InternalError", "message": "oh"}
            return Response(500, msgspec.json.encode(failure))
        if request.method == "GET":
            self.reads.append(request.path)
        elif ("dryRun", "All") not in request.query:
            self.writes.append(f"{request.method} {request.path}")
            self.on_write()
        if self.broken:
            raise ConnectionFailed("broken", sent=True)
        return answer

    async def arrive(self, request: Request) -> None:
        """What was lost arrives after all."""
        await super().send(request, timeout=10.0)


class Bed:
    """A hub, a member, and the applier between them."""

    WORKS = Work

    def __init__(self, hub: EmbeddedCluster, member: EmbeddedCluster) -> None:
        self.hub_cluster, self.member_cluster = hub, member
        self.hub = Client(hub.transport(), limiter=Limiter(rate=0))
        self.member = Client(InProcessTransport(member.server, rng=Random(5), caller=Caller()), limiter=Limiter(rate=0))
        self.to_hub = Counting(hub.server, rng=Random(3), delay=(0.001, 0.01))
        self.to_member = Counting(member.server, rng=Random(4), delay=(0.001, 0.01), caller=Caller())
        self.applier: Applier
        self.manager: Manager
        self._running: asyncio.Task[None] | None = None

    async def prepare(self) -> None:
        for client in (self.hub, self.member):
            for definition in DEFINITIONS:
                await client.create(CRD, definition)
        await self.hub.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        await asyncio.sleep(2)

    @asynccontextmanager
    async def agent(self, *, join: bool = True, seed: int = 1, **options: Any) -> AsyncIterator[Applier]:
        """The agent, while it runs."""
        clock = LoopClock()
        async with Manager(clock=clock, rng=Random(seed)) as manager:
            hub = await manager.connect("hub", Unclosed(self.to_hub), limiter=Limiter(rate=0))
            member = await manager.connect(NAME, Unclosed(self.to_member), limiter=Limiter(rate=0))
            applier = self.applier = Applier(hub, member, NAME, clock=clock, **options)
            manager.add_controller(applier.controller)
            self.manager = manager
            if join:
                applier.join()
            running = asyncio.create_task(manager.run(signals=False))
            try:
                yield applier
            finally:
                manager.stop()
                await running

    # The hub's side

    async def place(self, *manifests: Mapping[str, Any], name: str = "web-work", **spec: Any) -> None:
        """Create the Work, or change what it asks for."""
        body = {"workload": {"manifests": list(manifests)}, **spec}
        try:
            await self.hub.get(Work, name, NAMESPACE)
        except NotFound:
            await self.hub.create(Work, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": body})
        else:
            await self.hub.patch(Work, name, MergePatch({"spec": body}), NAMESPACE)

    async def work(self, name: str = "web-work") -> Work:
        return await self.hub.get(Work, name, NAMESPACE)

    async def conditions(self, name: str = "web-work") -> dict[str, tuple[str, str]]:
        """Type to status and reason, of a Work whose conditions speak of what it is now."""
        work = await self.work(name)
        assert all(one.observed_generation == work.metadata.generation for one in work.status.conditions)
        return {one.type: (one.status, one.reason) for one in work.status.conditions}

    async def manifests(self, name: str = "web-work") -> list[dict[str, str]]:
        """Type to reason, of each manifest."""
        work = await self.work(name)
        return [{one.type: one.reason for one in each.conditions} for each in work.status.manifest_conditions]

    async def message(self, ordinal: int = 0, name: str = "web-work") -> str:
        """What is said of one manifest's being applied."""
        return (await self.work(name)).status.manifest_conditions[ordinal].conditions[0].message

    # The member's side

    async def applied(self, name: str = "web-work") -> AppliedWork | None:
        try:
            return await self.member.get(AppliedWork, name)
        except NotFound:
            return None

    async def get(self, kind: Any, name: str, namespace: str | None = "shop") -> Untyped | None:
        try:
            found: Untyped = await self.member.get(kind, name, namespace)
        except NotFound:
            return None
        return found

    async def change(self, kind: Any, name: str, body: Mapping[str, Any], namespace: str | None = "shop") -> None:
        """Somebody on the member changes an object."""
        await self.member.patch(kind, name, MergePatch(body), namespace, manager="somebody")

    async def rest(self, seconds: float = 3.0) -> None:
        """Let things come to rest."""
        await asyncio.sleep(seconds)


class Unclosed:
    """A transport that outlives who uses it."""

    def __init__(self, inner: InProcessTransport) -> None:
        self._inner = inner
        self.send = inner.send
        self.stream = inner.stream

    async def close(self) -> None:
        """Another may want it."""


@asynccontextmanager
async def bed(seed: int = 1) -> AsyncIterator[Bed]:
    clock = LoopClock()
    hub, member = (EmbeddedCluster(name, clock=clock, rng=Random(seed)) for name in ("hub", NAME))
    for cluster in (hub, member):
        cluster.start()
    here = Bed(hub, member)
    await here.prepare()
    try:
        yield here
    finally:
        for client in (here.hub, here.member):
            await client.close()
        await here.to_hub.close()
        await here.to_member.close()
        for cluster in (hub, member):
            cluster.stop()


def play(scene: Callable[[Bed], Coroutine[Any, Any, None]], **options: Any) -> None:
    """Run a scene with an agent."""

    async def whole() -> None:
        async with bed() as here, here.agent(**options):
            await scene(here)

    run(whole())


def namespace(name: str = "shop") -> Untyped:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def config(name: str = "settings", /, **data: str) -> Untyped:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "shop"},
        "data": data or {"a": "1"},
    }


def deployment(name: str = "web", *, image: str = "app:1", replicas: int = 2) -> Untyped:
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "app", "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


async def make_available(here: Bed, name: str = "web") -> None:
    """What the member's own controllers would say of a Deployment."""
    found = await here.member.get(DEPLOYMENTS, name, "shop")
    count = found["spec"]["replicas"]
    status = {
        "observedGeneration": found["metadata"]["generation"],
        "replicas": count,
        "updatedReplicas": count,
        "readyReplicas": count,
        "availableReplicas": count,
    }
    await here.member.patch(DEPLOYMENTS, name, MergePatch({"status": status}), "shop", subresource="status")

"""A rollout group on an embedded server, and pods that answer as a test wants; in virtual time."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Coroutine, Mapping
from random import Random
from typing import Any

import msgspec
from yarl import URL

from kedge.api import zones
from kedge.api.apps import StatefulSet
from kedge.api.core import Event
from kedge.api.crd import crd
from kedge.api.meta import ObjectMeta
from kedge.api.pods import Pod, PodStatus
from kedge.api.resource import Resource
from kedge.controllers.zone.adjustment import ScalingGroup
from kedge.controllers.zone.pod_calls import PodCalls
from kedge.controllers.zone.scaling import GroupScaling, ScalingResult
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.server import Server
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.connect.outbound import Answer, Call, OutboundFailed
from kedge.kube.events import Recorder
from kedge.kube.limits import Limiter
from kedge.kube.patches import MergePatch
from kedge.kube.transport import ConnectionFailed, Request, Response
from kedge.plan.zoning.scaling_text import wait_text
from support.stage import LoopClock
from support.virtual import run

NAMESPACE = "default"
CRD = untyped(
    Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
)
DEPLOYMENTS = untyped(Resource("apps", "v1", "Deployment", "deployments"))
TEMPLATES = untyped(zones.ReplicaTemplate.resource)
DEFINITION = crd(zones.ReplicaTemplate)  # here: it reads files
URL_OF_PODS = "http://pod:8080/prepare?why=scale"
MIRRORS = {
    zones.MIRROR_NAME: "replicas",
    zones.MIRROR_KIND: "ReplicaTemplate",
    zones.MIRROR_API_VERSION: f"{zones.GROUP}/v1",
}
DELAYED = {zones.DELAYED_DOWNSCALE: "1h", zones.DELAYED_DOWNSCALE_URL: URL_OF_PODS}
BOTH = {**MIRRORS, **DELAYED}
POD = {"metadata": {"labels": {"name": "x"}}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}


class FakePods:
    """Answers in place of pods: prepares and cancels as asked, unless a fault says otherwise."""

    def __init__(self, clock: LoopClock) -> None:
        self.calls: list[str] = []
        self.headers: list[Mapping[str, str]] = []
        self.prepared: dict[str, int] = {}
        self.faults: dict[str, Answer | str | Exception] = {}
        self.most_at_once = self._under_way = 0
        self._clock = clock

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        pod = (URL(call.url).host or "").split(".")[0]
        self.calls.append(f"{call.method} {pod}")
        self.headers.append(call.headers)
        self._under_way += 1
        self.most_at_once = max(self.most_at_once, self._under_way)
        try:
            return await self._answer(call, pod)
        finally:
            self._under_way -= 1

    async def close(self) -> None:
        pass

    async def _answer(self, call: Call, pod: str) -> Answer:
        fault = self.faults.get(f"{call.method} {pod}", self.faults.get(pod))
        if isinstance(fault, Answer):
            return fault
        if isinstance(fault, Exception):
            raise fault
        await asyncio.sleep(math.inf if fault == "hang" else 0.01)
        if call.method == "DELETE":
            self.prepared.pop(pod, None)
            return Answer(200)
        timestamp = self.prepared.setdefault(pod, int(self._clock.now().timestamp()))
        return Answer(200, msgspec.json.encode({"timestamp": timestamp}))

    def took(self) -> list[str]:
        """The calls since the last look, sorted: they are made at the same time."""
        calls, self.calls = sorted(self.calls), []
        return calls


class Api(InProcessTransport):
    """Notes requests, and refuses or breaks those that a test names."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.asked: list[str] = []
        self.bodies: list[bytes] = []
        self.refused: dict[str, int | None] = {}

    async def send(self, request: Request, *, timeout: float) -> Response:
        what = f"{request.method} {request.path.partition(f'/namespaces/{NAMESPACE}/')[2] or request.path}"
        self.asked.append(what)
        if request.method == "PATCH":
            self.bodies.append(request.body)
        if what in self.refused:
            code = self.refused[what]
            if code is None:
                await super().send(request, timeout=timeout)
                raise ConnectionFailed("no answer", sent=True)
            body = {"kind": "Status", "status": "Failure", "code": code, "reason": "Forbidden", "message": "denied"}
            return Response(code, msgspec.json.encode(body))
        return await super().send(request, timeout=timeout)

    def writes(self) -> list[str]:
        """The writes since the last look, without events."""
        found = [one for one in self.asked if not one.startswith("GET") and not one.endswith("events")]
        self.asked = []
        return found


class Bed:
    """One group, and what scales it."""

    def __init__(self) -> None:
        self.clock = LoopClock()
        self.server = Server(clock=self.clock, rng=Random(1))
        self.api = Api(self.server, rng=Random(2))
        self.user = Client(InProcessTransport(self.server, rng=Random(3)), limiter=Limiter(rate=0))
        self.pods = FakePods(self.clock)
        self.shown_pods: dict[str, tuple[Pod, ...]] = {}
        self.stale: tuple[StatefulSet, ...] | None = None
        client = Client(self.api, limiter=Limiter(rate=0))
        self.recorder = Recorder(client, "test", clock=self.clock, rng=Random(4))
        self.scaling = self.restarted(client)

    def restarted(self, client: Client | None = None) -> GroupScaling:
        client = client or Client(self.api, limiter=Limiter(rate=0))
        calls = PodCalls(self.pods)
        self.scaling = GroupScaling(client, calls, self.recorder, clock=self.clock, rng=Random(5))
        return self.scaling

    async def zone(
        self, letter: str, replicas: int, annotations: Mapping[str, str] | None = None, **labels: str
    ) -> StatefulSet:
        name = f"ingester-zone-{letter}"
        meta = {"name": name, "namespace": NAMESPACE, "annotations": annotations or {}}
        spec = {"replicas": replicas, "serviceName": name, "selector": {"matchLabels": {"name": "x"}}, "template": POD}
        group = labels.pop("group", "ingester")
        body = {"metadata": {**meta, "labels": {zones.ROLLOUT_GROUP: group, **labels}}, "spec": spec}
        return await self.user.create(StatefulSet, body)

    async def template(self, replicas: int, reported: int | None = None) -> None:
        """The reference: makes it, with its definition, or changes what it wants."""
        if "replicatemplates.rollout-operator.grafana.com" not in await self._definitions():
            await self.user.create(CRD, DEFINITION)
            await asyncio.sleep(2)
            meta = {"name": "replicas", "namespace": NAMESPACE}
            await self.user.create(TEMPLATES, {"metadata": meta, "spec": {"replicas": replicas}})
        await self.user.patch(TEMPLATES, "replicas", MergePatch({"spec": {"replicas": replicas}}), NAMESPACE)
        if reported is not None:
            change = MergePatch({"status": {"replicas": reported}})
            await self.user.patch(TEMPLATES, "replicas", change, NAMESPACE, subresource="status")

    async def _definitions(self) -> set[str]:
        return {one["metadata"]["name"] for one in (await self.user.list(CRD)).items}

    async def reported(self) -> int:
        found = await self.user.get(TEMPLATES, "replicas", NAMESPACE)
        return int((found.get("status") or {}).get("replicas", 0))

    async def group(self, name: str = "ingester") -> ScalingGroup:
        sets = (await self.user.list(StatefulSet, NAMESPACE, labels={zones.ROLLOUT_GROUP: name})).items
        return ScalingGroup(NAMESPACE, name, self.stale or sets, self.shown_pods)

    async def adjust(self, group: str = "ingester") -> ScalingResult:
        return await self.scaling.adjust(await self.group(group))

    async def step(self) -> str:
        """What one adjustment scales: `b=5`."""
        found = (await self.adjust()).step
        return f"{found.name[-1]}={found.replicas}" if found is not None else ""

    async def texts(self) -> list[str]:
        """What one adjustment that scales nothing waits for."""
        found = await self.adjust()
        assert not found.changed
        return [wait_text(wait) for wait in found.waits]

    async def replicas(self) -> str:
        return " ".join(f"{one.metadata.name[-1]}={one.spec.replicas}" for one in (await self.group()).sets)

    async def annotate(self, letter: str, key: str, value: str | None) -> None:
        change = MergePatch({"metadata": {"annotations": {key: value}}})
        await self.user.patch(StatefulSet, f"ingester-zone-{letter}", change, NAMESPACE)

    async def scale(self, letter: str, replicas: int) -> None:
        change = MergePatch({"spec": {"replicas": replicas}})
        await self.user.patch(StatefulSet, f"ingester-zone-{letter}", change, NAMESPACE)

    def show_pods(self, letter: str, *uids: str) -> None:
        """What the cache shows of the pods of a zone, all of them ready."""
        name = f"ingester-zone-{letter}"
        self.shown_pods[name] = tuple(
            Pod(metadata=ObjectMeta(name=f"{name}-{ordinal}", uid=uid), status=PodStatus(phase="Running"))
            for ordinal, uid in enumerate(uids)
        )

    async def events(self) -> Counter[str]:
        """What was told: `b Normal ScaledUp`."""
        writing = asyncio.create_task(self.recorder.run())
        await self.recorder.written()
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        found = (await self.user.list(Event, NAMESPACE)).items
        return Counter({f"{one.involved_object.name[-1]} {one.type} {one.reason}": one.count for one in found})


def calls(letter: str, method: str, *ordinals: int) -> list[str]:
    """What `FakePods.took` shows for these pods."""
    return [f"{method} ingester-zone-{letter}-{ordinal}" for ordinal in ordinals]


def play(scene: Coroutine[Any, Any, None]) -> None:
    run(scene)


NO_ANSWER = OutboundFailed("no such host")

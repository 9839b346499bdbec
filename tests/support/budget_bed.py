"""Three zones of three pods on an embedded server, a budget over them, and all that keeps to it, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any
from urllib.parse import urlsplit

import msgspec
from prometheus_client import CollectorRegistry

from kedge.admission import review
from kedge.admission.pod_eviction import eviction_rules
from kedge.admission.server import Rule
from kedge.api.admission import AdmissionRequest, AdmissionResponse
from kedge.api.apps import StatefulSet
from kedge.api.crd import crd
from kedge.api.dialect import Dialect
from kedge.api.pods import Pod
from kedge.api.resource import Resource
from kedge.api.zones import ZoneAwarePodDisruptionBudget
from kedge.controllers.zone.budget_guard import BudgetGuard
from kedge.controllers.zone.budget_metrics import BudgetMetrics
from kedge.controllers.zone.disruption_budgets import BUDGETS, DisruptionBudgets
from kedge.controllers.zone.ready_times import ReadyTimes
from kedge.controllers.zone.recent_evictions import RecentEvictions
from kedge.controllers.zone.selected_zones import BudgetTurns, SelectedZones
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.inprocess import InProcessTransport
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.connect.outbound import Answer, Call
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.kube.transport import BufferedStream, Request, Response, Stream
from support.stage import LoopClock
from support.virtual import run

NAMESPACE = "mimir"
LABELS = {"rollout-group": "ingester"}
NUMBERED = r"[a-z\-]+-zone-[a-z]-([0-9]+)"
CRDS = untyped(
    Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
)
NAMESPACES = untyped(Resource("", "v1", "Namespace", "namespaces", namespaced=False))
DEFINITION = crd(ZoneAwarePodDisruptionBudget, Dialect.seed)  # here: it reads files


Refuses = Callable[[Request], bool]


def refuses_none(_: Request) -> bool:
    return False


def refuses_budgets(request: Request) -> bool:
    return request.path.endswith(f"/{BUDGETS.resource.plural}")


class Gatekeeper(InProcessTransport):
    """Refuses some requests, and notes the others."""

    code = 403

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.asked: list[Request] = []
        self.refuses: Refuses = refuses_none

    async def send(self, request: Request, *, timeout: float) -> Response:
        if self.refuses(request):
            return self._refusal()
        self.asked.append(request)
        return await super().send(request, timeout=timeout)

    @asynccontextmanager
    async def stream(self, request: Request, *, timeout: float, silence: float) -> AsyncIterator[Stream]:
        if self.refuses(request):
            yield BufferedStream(self._refusal())
            return
        async with super().stream(request, timeout=timeout, silence=silence) as stream:
            yield stream

    def _refusal(self) -> Response:
        reason = "Forbidden" if self.code == 403 else "InternalError"
        body = {"kind": "Status", "status": "Failure", "code": self.code, "reason": reason, "message": "no"}
        return Response(self.code, msgspec.json.encode(body))


class RuleOutbound:
    """Calls of webhooks, answered by the rules themselves."""

    def __init__(self) -> None:
        self.rules: Mapping[str, Rule] = {}

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        question = review.decode(review.JSON, call.body)
        answer = await self.rules[urlsplit(call.url).path](question.request)
        return Answer(200, review.encode(question, answer), {"content-type": review.JSON})

    async def close(self) -> None:
        """Nothing is open."""


class BudgetBed:
    """The server, what users do there, and what the operator answers."""

    def __init__(self, cluster: EmbeddedCluster, webhooks: RuleOutbound) -> None:
        self._webhooks = webhooks
        self.client = Client(cluster.transport(), limiter=Limiter(rate=0))
        self.transport = Gatekeeper(cluster.server, rng=Random(3), delay=(0.001, 0.01))
        self.registry = CollectorRegistry()
        self.budgets: DisruptionBudgets
        self.recent: RecentEvictions
        self.selected: SelectedZones
        self.turns: BudgetTurns
        self.guard: BudgetGuard
        self._rules: Mapping[str, Rule] = {}

    async def prepare(self, definition: Mapping[str, Any] | None) -> None:
        if definition is not None:
            await self.client.create(CRDS, definition)
        await self.client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        await asyncio.sleep(2)
        for letter in "abc":
            await self.add_zone(letter)

    @asynccontextmanager
    async def operator(self) -> AsyncIterator[None]:
        clock = LoopClock()
        async with Manager(clock=clock, rng=Random(1)) as manager:
            cluster = await manager.connect("here", self.transport, limiter=Limiter(rate=0))
            metrics = BudgetMetrics(self.registry)
            pods = cluster.cache(Pod, NAMESPACE)
            self.budgets = DisruptionBudgets(cluster, [NAMESPACE], metrics=metrics)
            self.recent = RecentEvictions(asyncio.get_running_loop().time)
            self.recent.follow(pods)
            self.selected, self.turns = SelectedZones(cluster.client), BudgetTurns()
            known = (self.budgets, self.selected, self.recent, clock)
            self.guard = BudgetGuard(*known, turns=self.turns, metrics=metrics)
            self._rules = eviction_rules(cluster.client, *known, turns=self.turns, metrics=metrics)
            self._webhooks.rules = self._rules
            manager.add_controller(ReadyTimes(cluster, [pods], self.budgets, clock=clock).controller)
            manager.add_controller(self.budgets.controller)
            running = asyncio.create_task(manager.run(signals=False))
            try:
                await pods.synced()
                yield
            finally:
                manager.stop()
                await running

    # What users and other controllers do

    async def add_zone(self, letter: str, *, replicas: int = 3) -> None:
        """A StatefulSet and its pods, all ready."""
        name = f"ingester-zone-{letter}"
        labels = {"name": name, **LABELS}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
        spec = {
            "replicas": replicas,
            "serviceName": name,
            "selector": {"matchLabels": {"name": name}},
            "template": template,
            "updateStrategy": {"type": "OnDelete"},
        }
        body = {"metadata": {"name": name, "namespace": NAMESPACE, "labels": LABELS}, "spec": spec}
        await self.client.create(StatefulSet, body)
        status = {"status": {"replicas": replicas, "readyReplicas": replicas}}
        await self.client.patch(StatefulSet, name, MergePatch(status), NAMESPACE, subresource="status")
        for number in range(replicas):
            await self.add_pod(f"{letter}-{number}")

    async def add_pod(self, short: str, *, ready: bool = True) -> None:
        owner = await self.client.get(StatefulSet, f"ingester-zone-{short[0]}", NAMESPACE)
        template = owner.spec.template
        reference = {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "name": owner.metadata.name,
            "uid": owner.metadata.uid,
            "controller": True,
        }
        meta = {"name": f"ingester-zone-{short}", "namespace": NAMESPACE, "ownerReferences": [reference]}
        labels = template["metadata"]["labels"]
        await self.client.create(Pod, {"metadata": meta | {"labels": labels}, "spec": template["spec"]})
        if ready:
            await self.say_of_pod(short)

    async def say_of_pod(self, short: str, phase: str = "Running", *, ready: bool = True) -> None:
        """What a kubelet says."""
        state = {"running": {}} if phase == "Running" else {"waiting": {"reason": "ContainerCreating"}}
        container = {"name": "app", "image": "app:1", "imageID": "", "restartCount": 0, "ready": ready, "state": state}
        condition = {"type": "Ready", "status": "True" if ready else "False"}
        body = {"status": {"phase": phase, "containerStatuses": [container], "conditions": [condition]}}
        await self.client.patch(Pod, f"ingester-zone-{short}", MergePatch(body), NAMESPACE, subresource="status")

    async def remove_pod(self, short: str) -> None:
        await self.client.delete(Pod, f"ingester-zone-{short}", NAMESPACE, grace_seconds=0)

    async def set_budget(self, name: str = "ingester", **spec: Any) -> None:
        """Create the budget, or change it."""
        whole = {"selector": {"matchLabels": LABELS}} | spec
        body = {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": whole}
        await self.client.apply(BUDGETS, body, manager="user", force=True)
        await self.rest()

    async def pod(self, short: str) -> Pod:
        return await self.client.get(Pod, f"ingester-zone-{short}", NAMESPACE)

    async def rest(self, seconds: float = 1.0) -> None:
        """Let caches catch up."""
        await asyncio.sleep(seconds)

    # What the operator says

    async def evict(self, short: str, **fields: Any) -> AdmissionResponse:
        """What is answered to an eviction."""
        asked = {
            "uid": "u-1",
            "name": f"ingester-zone-{short}",
            "namespace": NAMESPACE,
            "operation": "CREATE",
            "sub_resource": "eviction",
        }
        return await self.ask("/admission/pod-eviction", **asked | fields)

    async def said(self, short: str, **fields: Any) -> str:
        """The same in short: code and message, or `allowed`."""
        found = await self.evict(short, **fields)
        return "allowed" if found.status is None else f"{found.status.code} {found.status.message}"

    async def ask(self, path: str, **fields: Any) -> AdmissionResponse:
        return await self._rules[path](AdmissionRequest(**fields))

    def counted(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"rollout_operator_zpdb_{name}", labels) or 0.0


Scene = Callable[[BudgetBed], Coroutine[Any, Any, None]]


def play(
    scene: Scene,
    *,
    definition: Mapping[str, Any] | None = DEFINITION,
    refuses: Refuses = refuses_none,
    code: int = 403,
) -> None:
    """Run a scene; without a definition, the server does not know budgets. `refuses`: what the operator may not do."""

    async def whole() -> None:
        webhooks = RuleOutbound()
        cluster = EmbeddedCluster("here", clock=LoopClock(), rng=Random(1), outbound=webhooks)
        cluster.start()
        here = BudgetBed(cluster, webhooks)
        here.transport.refuses, here.transport.code = refuses, code
        try:
            await here.prepare(definition)
            async with here.operator():
                await here.rest()
                await scene(here)
        finally:
            await here.client.close()
            cluster.stop()

    run(whole())

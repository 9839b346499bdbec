"""Beside bed: a modelled Karmada with members, embedded, in virtual time; `kedge align` beside it; all pods counted."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from random import Random
from typing import Any

from controllers.align.align_bed import HUB_DEFINITIONS, MEMBER_DEFINITIONS, SHOP, AlignBed, _client, _server
from controllers.align.karmada_model import BindingController, ExecutionController, Lag, WorkStatusController
from kedge.api.apps import Deployment
from kedge.api.condition import Condition, find_condition
from kedge.api.core import Namespace
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.clusters import Cluster
from kedge.api.karmada.keys import ALIGN, LEDGER, POLICY_NAME, POLICY_NAMESPACE, TURNS
from kedge.api.karmada.overrides import OverridePolicy
from kedge.api.karmada.policies import PropagationPolicy
from kedge.embedded.workloads.everything import add_workloads
from kedge.kube.client import Client
from kedge.kube.cluster import Cluster as Connected
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request, Response, Stream, Transport
from kedge.plan.aligning.ledger_text import read_ledger
from kedge.roles import add_align
from support.stage import LoopClock
from support.waiting import until_so

STORY = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2, "maxSurge": 1}}
DIVIDED = {"replicaScheduling": {"replicaSchedulingType": "Divided"}}
_READY = {"type": "Ready", "status": "True", "reason": "ClusterReady", "message": ""}


class Witness:
    """A transport that notes what is asked for: a verb on a kind each."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.asked: set[str] = set()

    async def send(self, request: Request, *, timeout: float) -> Response:
        self._note(request)
        return await self._transport.send(request, timeout=timeout)

    def stream(self, request: Request, *, timeout: float, silence: float) -> AbstractAsyncContextManager[Stream]:
        self._note(request)
        return self._transport.stream(request, timeout=timeout, silence=silence)

    async def close(self) -> None:
        await self._transport.close()

    def _note(self, request: Request) -> None:
        found = re.fullmatch(
            r"/apis?(?:/[^/]+)?/v[^/]+(?:/namespaces/[^/]+)?/([a-z]+)(/[^/]+)?(/status)?", request.path
        )
        if found is not None:
            reading = "watch" if ("watch", "true") in request.query else "get" if found[2] else "list"
            verb = {"GET": reading, "POST": "create", "PATCH": "patch", "DELETE": "delete"}[request.method]
            self.asked.add(f"{verb} {found[1]}{found[3] or ''}")


class BesideBed(AlignBed):
    """A Karmada with one Deployment."""

    asked: set[str]
    """What Kedge asked of the Karmada."""

    async def propagate(
        self, replicas: dict[str, int], *, align: bool = True, strategy: dict[str, Any] = STORY, **more: Any
    ) -> None:
        """A Deployment with a policy; Karmada's scheduler has divided it so."""
        labels, total = {"app": "demo"}, sum(replicas.values())
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}}
        spec = {"replicas": total, "selector": {"matchLabels": labels}, "template": template, "strategy": strategy}
        await self.hub.create(Deployment, {"metadata": {"name": "demo", "namespace": SHOP}, "spec": spec})
        resource = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "demo"}
        notes = {"annotations": {ALIGN: "true"}} if align else {}
        policy = {"resourceSelectors": [resource], "placement": DIVIDED, **more}
        await self.hub.create(
            PropagationPolicy, {"metadata": {"name": "demo", "namespace": SHOP, **notes}, "spec": policy}
        )
        binding = {
            "resource": {**resource, "namespace": SHOP},
            "clusters": [{"name": name, "replicas": number} for name, number in replicas.items()],
            "placement": DIVIDED,
        }
        whose = {POLICY_NAME: "demo", POLICY_NAMESPACE: SHOP}
        meta = {"name": "demo-deployment", "namespace": SHOP, "annotations": whose}
        await self.hub.create(ResourceBinding, {"metadata": meta, "spec": binding})

    async def taken_over(self, clusters: int) -> None:
        """Until Kedge knows so many clusters, and none has a turn: what ran before was Karmada's alone."""

        async def is_so() -> bool:
            for one in (await self.hub.list(OverridePolicy, SHOP)).items:
                notes = one.metadata.annotations
                return notes.get(TURNS) == "{}" and len(read_ledger(notes.get(LEDGER, "")).specs) == clusters
            return False

        await until_so(is_so, 300)

    async def opt(self, value: str | None) -> None:
        body = MergePatch({"metadata": {"annotations": {ALIGN: value}}})
        await self.hub.patch(PropagationPolicy, "demo", body, SHOP)

    async def aligned(self) -> Condition | None:
        """What the binding says of its alignment."""
        binding = await self.hub.get(ResourceBinding, "demo-deployment", SHOP)
        return find_condition(binding.status.conditions, "Aligned")

    async def until_aligned(self, reason: str) -> Condition:
        async def is_so() -> bool:
            found = await self.aligned()
            return found is not None and found.reason == reason

        await until_so(is_so, 300)
        found = await self.aligned()
        assert found is not None
        return found

    async def suspended(self) -> tuple[str, ...]:
        """The clusters that the policy suspends."""
        found = (await self.hub.get(PropagationPolicy, "demo", SHOP)).spec.suspension
        some = found.dispatching_on_clusters if found is not None else None
        return some.cluster_names if some is not None else ()


async def register(user: Client, name: str) -> None:
    """A cluster that Karmada knows, and has heard of."""
    await user.create(Namespace, {"metadata": {"name": f"karmada-es-{name}"}})
    await user.create(Cluster, {"metadata": {"name": name}, "spec": {}})
    ready = {**_READY, "lastTransitionTime": "2030-01-01T00:00:00Z"}
    await user.patch(Cluster, name, MergePatch({"status": {"conditions": [ready]}}), subresource="status")


def add_karmada(
    manager: Manager,
    hub: Connected,
    members: Mapping[str, Connected],
    *,
    seed: int = 1,
    lag: float = 0.3,
    tells_seq: bool = False,
) -> None:
    """Run a modelled Karmada."""
    manager.add_controller(BindingController(hub, Lag(Random(seed), lag)).controller)
    for number, (name, member) in enumerate(members.items()):
        slow = Lag(Random(f"{seed} {number}"), lag)
        manager.add_controller(ExecutionController(hub, member, name, clock=manager.clock, lag=slow).controller)
        manager.add_controller(WorkStatusController(hub, member, name, lag=slow, tells_seq=tells_seq).controller)


@asynccontextmanager
async def beside_bed(
    *names: str, seed: int = 1, lag: float = 0.3, tells_seq: bool = False, aligned: bool = True
) -> AsyncIterator[BesideBed]:
    clock = LoopClock()
    async with AsyncExitStack() as stack:
        hub = await _server(stack, "hub", clock, HUB_DEFINITIONS, nodes=0)
        user, members = _client(hub), {}
        karmada = await stack.enter_async_context(Manager(component="karmada", clock=clock, rng=Random(seed)))
        on_hub = await karmada.connect("hub", hub.transport(), limiter=Limiter(rate=0))
        managers, connected = [karmada], {}
        for name in names:
            await register(user, name)
            server = await _server(stack, name, clock, MEMBER_DEFINITIONS, nodes=3)
            members[name] = _client(server)
            others = await stack.enter_async_context(Manager(component="kcm", clock=clock, rng=Random(2)))
            add_workloads(others, await others.connect(name, server.transport()))
            connected[name] = await karmada.connect(name, server.transport(), limiter=Limiter(rate=0))
            managers.append(others)
        add_karmada(karmada, on_hub, connected, seed=seed, lag=lag, tells_seq=tells_seq)
        if aligned:
            kedge = await stack.enter_async_context(Manager(component="kedge-align", clock=clock, rng=Random(seed)))
            witness = Witness(hub.transport())
            add_align(kedge, await kedge.connect("hub", witness, limiter=Limiter(rate=0)))
            managers.append(kedge)
        running = [asyncio.create_task(one.run(signals=False)) for one in managers]
        bed = BesideBed(user, members)
        bed.asked = witness.asked if aligned else set()
        yield bed
        for one in managers:
            one.stop()
        await asyncio.gather(*running)

"""Align bed: a hub with bindings and members with workloads, embedded, in virtual time; and who counts all pods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from random import Random
from typing import Any

import yaml

from controllers.align.recorder import image_of
from controllers.align.stories import NAMESPACE, StoryBed
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.apps import Deployment, StatefulSet
from kedge.api.condition import is_true
from kedge.api.core import Namespace
from kedge.api.crds import karmada_crds, kruise_crds
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.clusters import Cluster
from kedge.api.karmada.proposed import ProposedBinding
from kedge.api.kruise import CloneSet
from kedge.api.pods import Pod
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.workloads.everything import add_workloads
from kedge.embedded.workloads.nodes import make_nodes
from kedge.kube.client import Client
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Transport
from kedge.roles import add_karmada_hub, add_karmada_member
from support.stage import LoopClock
from support.waiting import until_so

SHOP = "shop"
MEMBER_DEFINITIONS = kruise_crds()  # here: it reads files
HUB_DEFINITIONS = (*karmada_crds(), *MEMBER_DEFINITIONS)


class AlignBed:
    """A hub, its members, and the pods of all of them."""

    def __init__(self, hub: Client, members: dict[str, Client], agents: dict[str, Manager] | None = None) -> None:
        self.hub = hub
        self.members = members
        self._agents = agents or {}

    def silence(self, name: str) -> None:
        """Stop the agent of a member. What runs there goes on."""
        self._agents[name].stop()

    async def pods(self) -> list[Pod]:
        found = [(await member.list(Pod, SHOP)).items for member in self.members.values()]
        return [pod for pods in found for pod in pods if pod.metadata.deletion_timestamp is None]

    async def images(self) -> list[str]:
        return sorted(image_of(pod) for pod in await self.pods() if is_true(pod.status.conditions, "Ready"))

    async def deploy(self, kind: type[Any], replicas: dict[str, int], image: str = "app:1", **spec: Any) -> None:
        labels = {"app": "demo"}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": image}]}}
        body = {"replicas": sum(replicas.values()), "selector": {"matchLabels": labels}, "template": template, **spec}
        await self.hub.create(kind, {"metadata": {"name": "demo", "namespace": SHOP}, "spec": body})
        resource = {"apiVersion": kind.resource.api_version, "kind": kind.resource.kind, "name": "demo"}
        clusters = [{"name": name, "replicas": number} for name, number in replicas.items()]
        binding = {"resource": {**resource, "namespace": SHOP}, "clusters": clusters}
        name = f"demo-{kind.resource.kind.lower()}"
        await self.hub.create(ResourceBinding, {"metadata": {"name": name, "namespace": SHOP}, "spec": binding})

    async def are_ready(self) -> bool:
        found = (await self.hub.list(Cluster)).items
        return all(is_true(one.status.conditions, "Ready") for one in found)

    async def edit(self, kind: type[Any], spec: dict[str, Any]) -> None:
        await self.hub.patch(kind, "demo", MergePatch({"spec": spec}), SHOP)

    async def until_images(self, *images: str) -> None:
        async with asyncio.timeout(600):
            while await self.images() != sorted(images):
                await asyncio.sleep(0.05)

    @property
    def story(self) -> StoryBed:
        return StoryBed(self.hub, self.members, self._apply, quiet=60.0)

    async def _apply(self, manifests: str) -> None:
        for one in yaml.safe_load_all(manifests):
            body = {**one, "metadata": {"namespace": NAMESPACE, **one["metadata"]}}
            await self.hub.apply(_KINDS[one["apiVersion"], one["kind"]], body, manager="kubectl", force=True)


_KINDS: dict[tuple[str, str], Any] = {
    (kind.resource.api_version, kind.resource.kind): kind
    for kind in (Deployment, StatefulSet, CloneSet, ProposedBinding)
}


@asynccontextmanager
async def align_bed(*names: str, way: Callable[[Transport], Transport] | None = None) -> AsyncIterator[AlignBed]:
    """`way`: what comes between the controllers of the hub and its server."""
    clock = LoopClock()
    async with AsyncExitStack() as stack:
        hub = await _server(stack, "hub", clock, HUB_DEFINITIONS, nodes=0)
        managers = [await stack.enter_async_context(Manager(component="kedge-align", clock=clock, rng=Random(1)))]
        transport: Transport = hub.transport()
        connected = await managers[0].connect("hub", way(transport) if way else transport, limiter=Limiter(rate=0))
        add_karmada_hub(managers[0], connected)
        user = _client(hub)
        members, agents = {}, {}
        for name in names:
            await user.create(Cluster, {"metadata": {"name": name}, "spec": {}})
            server = await _server(stack, name, clock, MEMBER_DEFINITIONS, nodes=3)
            members[name] = _client(server)
            others = await stack.enter_async_context(Manager(component="kcm", clock=clock, rng=Random(2)))
            add_workloads(others, await others.connect(name, server.transport()))
            agent = await stack.enter_async_context(Manager(component="agent", clock=clock, rng=Random(3)))
            on_hub = await agent.connect("hub", hub.transport(), limiter=Limiter(rate=0))
            on_member = await agent.connect(name, server.transport(), limiter=Limiter(rate=0))
            add_karmada_member(agent, name, on_hub, on_member)
            agents[name] = agent
            managers += [others, agent]
        running = [asyncio.create_task(one.run(signals=False)) for one in managers]
        bed = AlignBed(user, members, agents)
        await until_so(bed.are_ready)
        yield bed
        for one in managers:
            one.stop()
        await asyncio.gather(*running)


def _client(server: EmbeddedCluster) -> Client:
    return Client(server.transport(), limiter=Limiter(rate=0), rng=Random(9))


async def _server(
    stack: AsyncExitStack, name: str, clock: LoopClock, definitions: Sequence[Any], *, nodes: int
) -> EmbeddedCluster:
    server = EmbeddedCluster(name, clock=clock, rng=Random(name))
    server.start()
    stack.callback(server.stop)
    user = _client(server)
    if nodes:
        await make_nodes(user, nodes, clock)
    await user.create(Namespace, {"metadata": {"name": SHOP}})
    for definition in definitions:
        await user.create(CustomResourceDefinition, definition)
    return server

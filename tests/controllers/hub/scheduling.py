"""A hub with a scheduler, on which a test plays the other controllers; meant for virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from random import Random
from typing import Any

from prometheus_client import CollectorRegistry

from kedge.api.binding import ClusterResourceBinding
from kedge.api.cluster import MemberCluster
from kedge.api.core import Namespace
from kedge.api.fleet import IS_LATEST, NUMBER_OF_CLUSTERS, PARENT_PLACEMENT, PLACEMENT_GENERATION, POLICY_INDEX
from kedge.api.placement_kinds import CLUSTER, Binding, Placement, PlacementKinds, PolicySnapshot
from kedge.controllers.hub.metrics import SchedulingMetrics
from kedge.controllers.hub.scheduler import Scheduler
from kedge.embedded.cluster import EmbeddedCluster
from kedge.embedded.inprocess import InProcessTransport
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.errors import NotFound
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Transport
from support.fleets import IDENTITY, client_of, fleet_cluster
from support.stage import LoopClock

SELECTORS = [{"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}]


class Hub:
    """The hub, through a client of the test's own."""

    def __init__(self, cluster: EmbeddedCluster, client: Client, kinds: PlacementKinds) -> None:
        self.cluster = cluster
        self.client = client
        self.kinds = kinds
        self.namespace = "shop" if kinds.placement.resource.namespaced else None
        self.registry = CollectorRegistry()
        self.metrics = SchedulingMetrics(self.registry)

    # Members

    async def join(self, *names: str, labels: Mapping[str, str] | None = None, **spec: Any) -> None:
        """Members that are well."""
        for name in names:
            body = {"metadata": {"name": name, "labels": dict(labels or {})}, "spec": {"identity": IDENTITY, **spec}}
            await self.client.create(MemberCluster, body)
            await self.beat(name)

    async def beat(self, name: str, *, unhealthy_since: datetime | None = None, **status: Any) -> None:
        """A heartbeat of a member, and what it says besides."""
        now = LoopClock().now()
        said = [
            {
                "type": kind,
                "status": str(not since),
                "reason": "R",
                "message": "",
                "lastTransitionTime": f"{since or now:%FT%TZ}",
            }
            for kind, since in (("Joined", None), ("Healthy", unhealthy_since))
        ]
        agent = {"type": "MemberAgent", "conditions": said, "lastReceivedHeartbeat": f"{now:%FT%TZ}"}
        body = {"status": {"agentStatus": [agent], **status}}
        await self.client.patch(MemberCluster, name, MergePatch(body), subresource="status")

    async def change_member(self, name: str, body: Mapping[str, Any]) -> None:
        await self.client.patch(MemberCluster, name, MergePatch(body))

    # Placements and policies

    async def place(
        self, name: str = "crp", policy: Mapping[str, Any] | None = None, number: int | None = None, **spec: Any
    ) -> None:
        """A placement, and the first snapshot of its policy."""
        body: dict[str, Any] = {"resourceSelectors": SELECTORS, **spec}
        if policy is not None:
            body["policy"] = dict(policy) | ({"numberOfClusters": number} if number is not None else {})
        await self.client.create(self.kinds.placement, {"metadata": {"name": name}, "spec": body}, self.namespace)
        await self.snapshot(name, 0, policy, number)

    async def snapshot(
        self, name: str, index: int, policy: Mapping[str, Any] | None, number: int | None = None, generation: int = 1
    ) -> None:
        """Another policy, which is the newest from now on."""
        if index:
            old = {"metadata": {"labels": {IS_LATEST: "false"}}}
            await self.client.patch(self.kinds.policy_snapshot, f"{name}-{index - 1}", MergePatch(old), self.namespace)
        annotations = {PLACEMENT_GENERATION: str(generation)}
        if number is not None:
            annotations[NUMBER_OF_CLUSTERS] = str(number)
        labels = {PARENT_PLACEMENT: name, IS_LATEST: "true", POLICY_INDEX: str(index)}
        meta = {"name": f"{name}-{index}", "labels": labels, "annotations": annotations}
        spec: dict[str, Any] = {"policyHash": "aGFzaA=="}
        if policy is not None:
            spec["policy"] = dict(policy)
        await self.client.create(self.kinds.policy_snapshot, {"metadata": meta, "spec": spec}, self.namespace)

    async def annotate(self, name: str, **values: str) -> None:
        """What changes on a snapshot without another one: `number`, `generation`."""
        keys = {"number": NUMBER_OF_CLUSTERS, "generation": PLACEMENT_GENERATION}
        body = {"metadata": {"annotations": {keys[key]: value for key, value in values.items()}}}
        await self.client.patch(self.kinds.policy_snapshot, name, MergePatch(body), self.namespace)

    # Looking

    async def placement(self, name: str = "crp") -> Placement:
        return await self.client.get(self.kinds.placement, name, self.namespace)

    async def policy(self, name: str = "crp-0") -> PolicySnapshot:
        return await self.client.get(self.kinds.policy_snapshot, name, self.namespace)

    async def bindings(self) -> list[Binding]:
        found = await self.client.list(self.kinds.binding, self.namespace)
        return sorted(found.items, key=lambda each: each.metadata.name)

    async def shown(self) -> dict[str, str]:
        """The state of each cluster's binding; `leaving` for one on its way out."""
        return {
            each.spec.target_cluster: "leaving" if each.metadata.deletion_timestamp else each.spec.state
            for each in await self.bindings()
        }

    async def said(self, name: str = "crp-0") -> list[str]:
        """The decisions, those that are not picked with a minus."""
        status = (await self.policy(name)).status
        decisions = status.target_clusters if status else ()
        return [each.cluster_name if each.selected else f"-{each.cluster_name}" for each in decisions]

    async def reason(self, name: str = "crp-0") -> str | None:
        status = (await self.policy(name)).status
        return status.conditions[0].reason if status else None

    # Playing others

    async def bind(self, *clusters: str) -> None:
        """What a rollout does."""
        spec = {"state": "Bound", "resourceSnapshotName": "crp-0-snapshot"}
        for each in await self.bindings():
            if each.spec.target_cluster in clusters and each.metadata.deletion_timestamp is None:
                await self.client.patch(
                    self.kinds.binding, each.metadata.name, MergePatch({"spec": spec}), self.namespace
                )

    async def hold(self, *clusters: str) -> None:
        """What the works controller does: a finalizer."""
        for each in await self.bindings():
            if each.spec.target_cluster in clusters:
                body = {"metadata": {"finalizers": [*each.metadata.finalizers, "kubernetes-fleet.io/work-cleanup"]}}
                await self.client.patch(self.kinds.binding, each.metadata.name, MergePatch(body), self.namespace)

    async def evict(self, cluster: str) -> None:
        for each in await self.bindings():
            if each.spec.target_cluster == cluster:
                await self.client.delete(self.kinds.binding, each.metadata.name, self.namespace)

    async def is_gone(self, name: str = "crp") -> bool:
        try:
            await self.placement(name)
        except NotFound:
            return True
        return False

    @asynccontextmanager
    async def scheduling(
        self, transport: Transport | None = None, *, seed: int = 1, clock: Clock | None = None
    ) -> AsyncIterator[Scheduler]:
        """A process that schedules."""
        async with Manager(clock=clock or LoopClock(), rng=Random(seed), grace=1.0) as manager:
            way = transport or InProcessTransport(self.cluster.server, rng=Random(seed), delay=(0.001, 0.05))
            hub = await manager.connect("hub", way, limiter=Limiter(rate=0))
            scheduler = Scheduler(hub, self.kinds, clock=manager.clock, rng=Random(seed), metrics=self.metrics)
            manager.add_controller(scheduler.controller)
            running = asyncio.create_task(manager.run(signals=False))
            try:
                yield scheduler
            finally:
                manager.stop()
                await running


@asynccontextmanager
async def hub_of(kinds: PlacementKinds = CLUSTER, members: Sequence[str] = ()) -> AsyncIterator[Hub]:
    """A hub with these members."""
    async with fleet_cluster() as cluster, client_of(cluster) as client:
        hub = Hub(cluster, client, kinds)
        if hub.namespace:
            await client.create(Namespace, {"metadata": {"name": hub.namespace}})
        await hub.join(*members)
        yield hub


async def a_while(seconds: float = 5.0) -> None:
    """Long enough for everything to come to rest."""
    await asyncio.sleep(seconds)


def two_for_one(bindings: Sequence[ClusterResourceBinding | Binding]) -> list[str]:
    """The clusters that more than one live binding holds."""
    held = [
        each.spec.target_cluster
        for each in bindings
        if each.metadata.deletion_timestamp is None and each.spec.state != "Unscheduled"
    ]
    return sorted({cluster for cluster in held if held.count(cluster) > 1})

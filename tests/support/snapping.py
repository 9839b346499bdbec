"""A hub on which snapshots are taken, and what a user does there; meant for virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from kedge.api.core import ConfigMap, Namespace
from kedge.api.fleet import IS_LATEST, PARENT_PLACEMENT, RESOURCE_HASH, RESOURCE_INDEX
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, PlacementKinds
from kedge.api.resource import Resource
from kedge.controllers.hub.resources import Resources
from kedge.controllers.hub.snapshots import Snapshots
from kedge.embedded.cluster import EmbeddedCluster
from kedge.kube.client import Client
from kedge.kube.cluster import Cluster
from kedge.kube.codec import Untyped, untyped
from kedge.kube.manager import Manager
from kedge.kube.patches import MergePatch
from support.fleets import client_of, fleet_cluster, managed
from support.stage import LoopClock
from support.virtual import run
from support.waiting import until_so

SHOP = {"group": "", "version": "v1", "kind": "Namespace", "name": "shop"}
MAPS = {"group": "", "version": "v1", "kind": "ConfigMap"}
QUIET = 5.0  # seconds after which nothing more is to be expected


class User:
    """What a user does on a hub, and sees there."""

    def __init__(self, client: Client, kinds: PlacementKinds = CLUSTER) -> None:
        self.client = client
        self.kinds = kinds
        self.namespace = "shop" if kinds is NAMESPACED else None

    async def place(self, *selectors: dict[str, Any], name: str = "crp", **spec: Any) -> Any:
        chosen = selectors or ((SHOP,) if self.namespace is None else (MAPS,))
        body = {"metadata": {"name": name}, "spec": {"resourceSelectors": list(chosen), **spec}}
        return await self.client.create(self.kinds.placement, body, self.namespace)

    async def change(self, spec: dict[str, Any], name: str = "crp") -> None:
        await self.client.patch(self.kinds.placement, name, MergePatch({"spec": spec}), self.namespace)

    async def annotate(self, annotations: dict[str, Any], name: str = "crp") -> None:
        patch = MergePatch({"metadata": {"annotations": annotations}})
        await self.client.patch(self.kinds.placement, name, patch, self.namespace)

    async def keep(self, name: str, value: str = "1", namespace: str = "shop") -> None:
        """Make or change a ConfigMap."""
        meta = {"name": name, "namespace": namespace}
        await self.client.apply(ConfigMap, {"metadata": meta, "data": {"value": value}}, manager="user", force=True)

    async def drop(self, name: str, namespace: str = "shop") -> None:
        await self.client.delete(ConfigMap, name, namespace)

    async def resources_of(self, name: str = "crp") -> list[Untyped]:
        return await self._of(self.kinds.resource_snapshot.resource, name)

    async def policies_of(self, name: str = "crp") -> list[Untyped]:
        return await self._of(self.kinds.policy_snapshot.resource, name)

    async def _of(self, resource: Resource, name: str) -> list[Untyped]:
        found = await self.client.list(untyped(resource), self.namespace, labels={PARENT_PLACEMENT: name})
        return sorted(found.items, key=lambda each: str(each["metadata"]["creationTimestamp"]))

    async def indexes(self, name: str = "crp") -> list[int]:
        """The numbers of the revisions there are."""
        masters = [each for each in await self.resources_of(name) if RESOURCE_HASH in each["metadata"]["annotations"]]
        return sorted(int(each["metadata"]["labels"][RESOURCE_INDEX]) for each in masters)

    async def newest(self, name: str = "crp") -> Untyped:
        marked = [each for each in await self.resources_of(name) if each["metadata"]["labels"].get(IS_LATEST) == "true"]
        assert len(marked) == 1
        return marked[0]

    async def values(self, name: str = "crp") -> dict[str, str]:
        """The ConfigMaps of the newest revision."""
        held = (await self.newest(name))["spec"]["selectedResources"]
        return {each["metadata"]["name"]: each["data"]["value"] for each in held if each["kind"] == "ConfigMap"}

    async def until_indexes(self, wanted: list[int], name: str = "crp", within: float = QUIET) -> None:
        async def so() -> bool:
            return await self.indexes(name) == wanted

        await until_so(so, within)


class Bench(User):
    """The same where the controller runs."""

    def __init__(self, client: Client, resources: Resources, hub: Cluster, kinds: PlacementKinds) -> None:
        super().__init__(client, kinds)
        self.resources = resources
        self.hub = hub

    async def problem(self, name: str = "crp") -> str:
        return self.resources.selected(await self.client.get(self.kinds.placement, name, self.namespace)).problem


Play = Callable[[Bench], Awaitable[None]]


@asynccontextmanager
async def bench(
    kinds: PlacementKinds = CLUSTER, cluster: EmbeddedCluster | None = None, **options: Any
) -> AsyncIterator[Bench]:
    if cluster is None:
        async with fleet_cluster() as cluster, bench(kinds, cluster, **options) as found:
            await found.client.create(Namespace, {"metadata": {"name": "shop"}})
            yield found
        return
    async with client_of(cluster) as client, managed() as manager:
        hub = await manager.connect("hub", cluster.transport())
        yield Bench(client, start(manager, hub, kinds, **options), hub, kinds)


def start(manager: Manager, hub: Cluster, kinds: PlacementKinds, **options: Any) -> Resources:
    resources = Resources(hub)
    manager.add_controller(resources.controller)
    manager.add_controller(Snapshots(hub, kinds, resources, clock=LoopClock(), **options).controller)
    return resources


def play(act: Play, kinds: PlacementKinds = CLUSTER, **options: Any) -> None:
    async def main() -> None:
        async with bench(kinds, **options) as found:
            await act(found)

    run(main())

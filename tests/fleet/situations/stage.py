"""Stage: a running fleet on which one situation after the other is played, each from a clean floor.

What users do is done through the API, and so is all reading. Every situation has namespace `shop` with a ConfigMap in
it, and places them as `app`: the whole namespace with a ClusterResourcePlacement, the ConfigMap with a
ResourcePlacement, whose namespace is brought to the members by another placement.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct

from fleet import kinds
from fleet.bed import MEMBERS, Bed, member_cluster
from kedge.api.cluster import InternalMemberCluster, MemberCluster
from kedge.api.placement import ClusterResourcePlacementStatus
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, PlacementKinds
from kedge.api.resource import Resource
from kedge.api.work import AppliedWork, Work
from kedge.kube.codec import Codec, Untyped, untyped
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch

SHOP: Final = "shop"
APP: Final = "app"
SETTINGS: Final = "settings"

WORKS: Final = untyped(Work.resource)
APPLIED: Final = untyped(AppliedWork.resource)
MEMBER_CLUSTERS: Final = untyped(MemberCluster.resource)
INTERNAL: Final = untyped(InternalMemberCluster.resource)
COPIES: Final = untyped(ClusterResourcePlacementStatus.resource)
CONFIG_MAPS: Final = untyped(Resource("", "v1", "ConfigMap", "configmaps"))
SERVICES: Final = untyped(Resource("", "v1", "Service", "services"))
PRIORITIES: Final = untyped(Resource("scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", namespaced=False))
WIDGETS: Final = untyped(Resource("example.com", "v1", "Widget", "widgets"))
_FOREIGN: Final = ("widgets.example.com",)


class Twin(Struct, frozen=True):
    """One of the two kinds of placements, and how to ask for what is around it."""

    kinds: PlacementKinds

    @property
    def prefix(self) -> str:
        return self.kinds.prefix

    @property
    def namespace(self) -> str | None:
        return SHOP if self.kinds is NAMESPACED else None

    @property
    def placements(self) -> Codec[Untyped]:
        return untyped(self.kinds.placement.resource)

    @property
    def policies(self) -> Codec[Untyped]:
        return untyped(self.kinds.policy_snapshot.resource)

    @property
    def snapshots(self) -> Codec[Untyped]:
        return untyped(self.kinds.resource_snapshot.resource)

    @property
    def bindings(self) -> Codec[Untyped]:
        return untyped(self.kinds.binding.resource)


CRP: Final = Twin(CLUSTER)
RP: Final = Twin(NAMESPACED)
BOTH: Final = (CRP, RP)


class Stage:
    """What one situation has at hand: the fleet, and the kind of placement it is played with."""

    def __init__(self, bed: Bed, twin: Twin, *, spares: tuple[str, ...] = ()) -> None:
        """`spares` are placements that stay when the situation ends."""
        self.bed = bed
        self._spared = spares
        self.twin = twin
        self.hub = bed.hub
        self.farewells: list[Callable[[], Awaitable[None]]] = []
        """What is done before what was made is taken away."""
        self._made: list[tuple[str, Codec[Untyped], str, str | None]] = []

    # Doing

    async def make(self, kind: Codec[Untyped], body: Mapping[str, Any], where: str = "hub") -> Untyped:
        """Make an object; it is taken away when the situation ends."""
        meta = body["metadata"]
        self._made.append((where, kind, meta["name"], meta.get("namespace")))
        return await self.bed.clients[where].create(kind, dict(body), meta.get("namespace"))

    async def change(
        self, kind: Codec[Untyped], name: str, body: Untyped, namespace: str | None = None, *, on: str = "hub"
    ) -> Untyped:
        """Merge this into an object."""
        return await self.bed.clients[on].patch(kind, name, MergePatch(body), namespace)

    async def say(self, kind: Codec[Untyped], name: str, status: Untyped, namespace: str | None = None) -> Untyped:
        """Merge this into the status of an object."""
        return await self.hub.patch(kind, name, MergePatch({"status": status}), namespace, subresource="status")

    async def settle_in(self, *bodies: Untyped) -> None:
        """Namespace `shop` with a ConfigMap, and what else is to be in it."""
        await self.make(kinds.NAMESPACES, {"metadata": {"name": SHOP}})
        await self.make(CONFIG_MAPS, config_map(SETTINGS, colour="blue"))
        for body in bodies:
            await self.make(_kind_of(body), body)

    async def place(self, *selectors: Untyped, name: str = APP, **spec: Any) -> None:
        """Place what is selected; without selectors, what `settle_in` made."""
        if self.twin is RP and name == APP:
            await self._bring_namespace()
        body = {"resourceSelectors": list(selectors) or [self.usual_selector()], **spec}
        meta = {"name": name, **({"namespace": self.twin.namespace} if self.twin.namespace else {})}
        await self.make(self.twin.placements, {"metadata": meta, "spec": body})

    async def _bring_namespace(self) -> None:
        selector = {**select("Namespace", SHOP), "selectionScope": "NamespaceOnly"}
        body = {"metadata": {"name": "shop-alone"}, "spec": {"resourceSelectors": [selector]}}
        await self.make(CRP.placements, body)
        for member in MEMBERS:
            await self.bed.until(partial(self._is_there, kinds.NAMESPACES, SHOP, member))

    async def _is_there(self, kind: Codec[Untyped], name: str, where: str) -> bool:
        return not await self.bed.is_gone(kind, name, on=where)

    def usual_selector(self) -> Untyped:
        return select("Namespace", SHOP) if self.twin is CRP else select("ConfigMap", SETTINGS)

    async def placed(self, *bodies: Untyped, **spec: Any) -> None:
        """The usual, placed, and everything at rest."""
        await self.settle_in(*bodies)
        await self.place(**spec)
        await self.rest()

    async def edit(self, **spec: Any) -> None:
        """Change the spec of the placement."""
        await self.change(self.twin.placements, APP, {"spec": spec}, self.twin.namespace)

    async def paint(self, colour: str) -> None:
        """Change what is placed."""
        await self.change(CONFIG_MAPS, SETTINGS, {"data": {"colour": colour}}, SHOP)

    # Waiting

    async def rest(self, within: float = 180.0) -> None:
        """Wait until nothing around placements changes any more."""
        loop, quiet = asyncio.get_running_loop(), self.bed.ground.quiet
        last, since, deadline = await self._versions(), loop.time(), loop.time() + within
        while loop.time() - since < quiet:
            assert loop.time() < deadline, f"it did not come to rest within {within:g} s"
            await asyncio.sleep(0.3)
            now = await self._versions()
            if now != last:
                last, since = now, loop.time()

    async def _versions(self) -> set[tuple[str, str]]:
        around = [kind for twin in BOTH for kind in (twin.placements, twin.policies, twin.snapshots, twin.bindings)]
        return {
            (one["metadata"]["uid"], one["metadata"]["resourceVersion"])
            for kind in (*around, WORKS)
            for one in await self.bed.all(kind)
        }

    # Reading

    async def placement(self) -> Untyped:
        return await self.bed.get(self.twin.placements, APP, self.twin.namespace)

    async def status(self) -> Untyped:
        found: Untyped = (await self.placement()).get("status", {})
        return found

    async def says(self) -> list[str]:
        """The placement's conditions, each as `Type Status Reason`, of the placement as it is."""
        found = await self.placement()
        said = spoken(found.get("status", {}), found["metadata"]["generation"])
        assert all(one.startswith(self.twin.prefix) for one in said)
        return [one.removeprefix(self.twin.prefix) for one in said]

    async def entries(self) -> list[Untyped]:
        """What the placement says of clusters."""
        return list((await self.status()).get("placementStatuses", ()))

    async def picked(self) -> list[str]:
        return sorted(one["clusterName"] for one in await self.entries() if "clusterName" in one)

    async def says_of(self, cluster: str) -> list[str]:
        """What the placement says of one cluster; '' are those that are not named."""
        found = await self.placement()
        entries = [one for one in await self.entries() if one.get("clusterName", "") == cluster]
        return [words for one in entries for words in spoken(one, found["metadata"]["generation"])]

    async def entry(self, cluster: str) -> Untyped:
        return next(one for one in await self.entries() if one.get("clusterName") == cluster)

    async def bindings(self) -> dict[str, Untyped]:
        """The bindings of the placement by cluster."""
        found = [one for one in await self.bed.all(self.twin.bindings) if parent(one) == APP]
        return {one["spec"]["targetCluster"]: one for one in found}

    async def works(self, cluster: str) -> list[Untyped]:
        """The Works of the placement for a cluster."""
        room = f"fleet-member-{cluster}"
        found = [one for one in await self.bed.all(WORKS) if one["metadata"]["namespace"] == room]
        return [one for one in found if parent(one) == APP]

    async def work(self, cluster: str) -> Untyped:
        (found,) = await self.works(cluster)
        return found

    async def snapshots(self) -> list[Untyped]:
        """The resource snapshots of the placement, by name."""
        return await self._own(self.twin.snapshots)

    async def policies(self) -> list[Untyped]:
        """The policy snapshots of the placement, by name."""
        return await self._own(self.twin.policies)

    async def _own(self, kind: Codec[Untyped]) -> list[Untyped]:
        found = [one for one in await self.bed.all(kind) if parent(one) == APP]
        return sorted(found, key=lambda one: str(one["metadata"]["name"]))

    async def decisions(self) -> dict[str, str]:
        """What the scheduler says of each cluster: the reason."""
        policy = next(one for one in await self.policies() if _is_latest(one))
        return {one["clusterName"]: one["reason"] for one in policy["status"].get("targetClusters", ())}

    async def seen_on(self, *members: str, kind: Codec[Untyped] = CONFIG_MAPS, name: str = SETTINGS) -> list[str]:
        """On which of these members an object of the shop is."""
        return [one for one in members or MEMBERS if not await self.bed.is_gone(kind, name, SHOP, on=one)]

    # Ending

    async def clear(self) -> None:
        """Leave the fleet as it was found."""
        for twin in (RP, CRP):
            for one in await self._all(twin.placements):
                await self._remove("hub", twin.placements, one["metadata"]["name"], one["metadata"].get("namespace"))
            await self._until_none(twin.placements, twin.bindings)
        for bid_farewell in self.farewells:
            await bid_farewell()
        for where, kind, name, namespace in reversed(self._made):
            await self._remove(where, kind, name, namespace)
        for where, kind, name, namespace in self._made:
            await self.bed.until(partial(self.bed.is_gone, kind, name, namespace, on=where), within=1200.0)
        await self._until_none(WORKS)
        await asyncio.gather(*(self._tidy(member) for member in MEMBERS))

    async def _remove(self, where: str, kind: Codec[Untyped], name: str, namespace: str | None) -> None:
        try:
            await self.bed.clients[where].delete(kind, name, namespace)
        except NotFound:
            return

    async def _until_none(self, *those: Codec[Untyped]) -> None:
        try:
            await self.bed.until(partial(self._has_none, *those), within=120.0)
        except AssertionError as error:
            left = [f"{kind.resource.kind} {one['metadata']}" for kind in those for one in await self._all(kind)]
            raise AssertionError(f"still there: {'; '.join(left)}") from error

    async def _has_none(self, *those: Codec[Untyped]) -> bool:
        return not any([await self._all(kind) for kind in those])

    async def _all(self, kind: Codec[Untyped]) -> list[Untyped]:
        """All that is not to stay."""
        found = await self.bed.all(kind)
        return [one for one in found if not {one["metadata"]["name"], parent(one)} & set(self._spared)]

    async def _tidy(self, member: str) -> None:
        """Put a member back as the fleet began with it."""
        for kind, name in ((kinds.NAMESPACES, SHOP), *((kinds.DEFINITIONS, one) for one in _FOREIGN)):
            await self._remove(member, kind, name, None)
            await self.bed.until(partial(self.bed.is_gone, kind, name, on=member))
        await self.change(kinds.NODES, "node-1", {"spec": {"unschedulable": None}}, on=member)
        if await self.bed.is_gone(MEMBER_CLUSTERS, member):
            await self.hub.create(kinds.MEMBERS, member_cluster(member))
            await self.bed.until(partial(self.bed.is_joined, member))
        there, wanted = await self.bed.get(MEMBER_CLUSTERS, member), member_cluster(member)["metadata"]["labels"]
        mark = {"kubernetes-fleet.io/member-name"}
        labels = {**{key: None for key in there["metadata"]["labels"] if key not in mark}, **wanted}
        await self.change(MEMBER_CLUSTERS, member, {"metadata": {"labels": labels}, "spec": {"taints": None}})


# Objects


def config_map(name: str, namespace: str = SHOP, **data: str) -> Untyped:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def deployment(image: str = "app:1", replicas: int = 1, name: str = "web") -> Untyped:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": image}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": SHOP}, "spec": spec}


def widget(name: str = "one", **spec: Any) -> Untyped:
    meta = {"name": name, "namespace": SHOP}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta, "spec": spec}


def widgets() -> Untyped:
    """The definition of a kind nobody can track."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [version],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": spec,
    }


def select(kind: str, name: str = "", *, group: str = "", version: str = "v1") -> Untyped:
    return {"group": group, "version": version, "kind": kind, **({"name": name} if name else {})}


def fixed(*clusters: str) -> Untyped:
    return {"placementType": "PickFixed", "clusterNames": list(clusters)}


def pick(number: int, **more: Any) -> Untyped:
    return {"placementType": "PickN", "numberOfClusters": number, **more}


def required(**labels: str) -> Untyped:
    """An affinity for clusters with these labels."""
    terms = [{"labelSelector": {"matchLabels": labels}}]
    return {"clusterAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"clusterSelectorTerms": terms}}}


def rolling(max_unavailable: int | str = 1, max_surge: int | str = 1, period: int = 60) -> Untyped:
    update = {"maxUnavailable": max_unavailable, "maxSurge": max_surge, "unavailablePeriodSeconds": period}
    return {"type": "RollingUpdate", "rollingUpdate": update}


# Reading objects


def spoken(holder: Untyped, generation: int | None = None) -> list[str]:
    """Conditions, each as `Type Status Reason`; all of this generation, if one is given."""
    found: Sequence[Untyped] = holder.get("conditions", ())
    if generation is not None:
        assert {one.get("observedGeneration") for one in found} <= {generation}, f"{found} is not of {generation}"
    return [f"{one['type']} {one['status']} {one['reason']}" for one in found]


def message(holder: Untyped, type: str) -> str:  # noqa: A002  # its name there
    """What the condition of this type says in words."""
    return next((one.get("message", "") for one in holder.get("conditions", ()) if one["type"] == type), "")


def names(objects: Iterable[Untyped]) -> list[str]:
    return [one["metadata"]["name"] for one in objects]


def parent(obj: Untyped) -> str:
    return str(obj["metadata"].get("labels", {}).get("kubernetes-fleet.io/parent-CRP", ""))


def _is_latest(obj: Untyped) -> bool:
    return bool(obj["metadata"]["labels"].get("kubernetes-fleet.io/is-latest-snapshot") == "true")


def _kind_of(obj: Untyped) -> Codec[Untyped]:
    known = (CONFIG_MAPS, SERVICES, PRIORITIES, WIDGETS, kinds.DEPLOYMENTS, kinds.DEFINITIONS, kinds.QUOTAS)
    return next(kind for kind in known if kind.resource.kind == obj["kind"])

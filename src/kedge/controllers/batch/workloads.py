"""Workloads: the objects that rollouts move, read from the server each time, and the writes that move them.

What a rollout decides on is never cached: a plan on an old status could take away pods that others have lost
meanwhile. Watches of metadata alone say when to look again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from kedge.api.apps import ControllerRevision, DaemonSet, Deployment, StatefulSet
from kedge.api.meta import ObjectMeta
from kedge.api.oam.keys import COMPONENT_LABEL
from kedge.api.oam.rollout_plan import Traffic
from kedge.api.pods import Pod
from kedge.api.resource import Resource
from kedge.controllers.batch.located import Located, WorkloadPlace
from kedge.controllers.followed_kinds import FollowedKinds
from kedge.controllers.gather import gather
from kedge.controllers.kinds import Kinds
from kedge.kube.cache import Cache
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import PartialObject, Untyped, metadata_of, untyped
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.plan.batching.moves import Workload, WorkloadRef, Workloads, Write
from kedge.plan.batching.set_revisions import with_revisions
from kedge.plan.fields import Object, at
from kedge.plan.oam.emission import belongs_to

MANAGER: Final = "kedge-rollout"
CLONE_SETS: Final = Resource("apps.kruise.io", "v1alpha1", "CloneSet", "clonesets")
_WATCHED: Final = (Deployment.resource, StatefulSet.resource, DaemonSet.resource, CLONE_SETS)
_LISTS_PODS: Final = ("StatefulSet", "DaemonSet")
"""Kinds whose status does not say which pods are of the new revision."""


class WorkloadAccess:
    """The workloads of one cluster."""

    def __init__(self, cluster: Cluster, namespaces: Sequence[str] = ()) -> None:
        self._cluster = cluster
        self._client = cluster.client.without_retry()
        self._kinds = Kinds(cluster.client)
        places: Sequence[str | None] = namespaces or (None,)
        self._caches: list[Cache[PartialObject]] = [
            cluster.cache(metadata_of(resource), place, transform=in_short, optional=True)
            for resource in _WATCHED
            for place in places
        ]
        self._others = FollowedKinds(cluster, places, transform=in_short)

    @property
    def client(self) -> Client:
        return self._client

    def sources(self, referrers: Referrers) -> Iterable[Source]:
        """What wakes rollouts: the workloads they looked at last."""
        for cache in self._caches:
            kind = cache.codec.resource.kind
            yield self._cluster.watch(cache, to=partial(_keys, referrers, kind))
        yield self._others.source(partial(_keys, referrers))

    def are_watched(self, found: Workloads) -> bool:
        """Whether somebody tells when these change."""
        return all(self._is_watched(one.ref) for one in (found.target, *found.sources))

    def _is_watched(self, ref: WorkloadRef) -> bool:
        resource = self._known(ref.api_version, ref.kind)
        return resource in _WATCHED or (resource is not None and self._others.is_watched(resource))

    async def resource(self, api_version: str, kind: str) -> Resource | None:
        """The resource of a kind; None if the server serves no such kind."""
        if self._known(api_version, kind) is None:
            await self._kinds.ask()
        return self._known(api_version, kind)

    def _known(self, api_version: str, kind: str) -> Resource | None:
        group, _, version = api_version.rpartition("/")
        own = (one for one in _WATCHED if (one.group, one.version, one.kind) == (group, version, kind))
        return next(own, None) or self._kinds.lookup(group, version, kind)

    # Reading

    async def read(self, located: Located, claim: str, clock: Clock, *, lists_pods: bool = False) -> Workloads:
        """The workloads as they are now; with `lists_pods` all with their pods, not only kinds that need them."""
        places = (located.target, *located.sources)
        target, *sources = await gather([partial(self._workload, place, lists_pods) for place in places])
        left = [one for one, place in zip(sources, located.sources, strict=True) if one.obj or not place.is_recorded]
        found = Workloads(
            target,
            tuple(left),
            in_place=located.in_place,
            removes_sources=located.removes_sources,
            claim=claim,
            now=clock.now(),
        )
        return with_revisions(found, await self._revisions(target)) if located.in_place else found

    async def _revisions(self, workload: Workload) -> Sequence[ControllerRevision]:
        labels = _selector(workload.obj)
        found = await self._client.list(ControllerRevision, workload.ref.namespace, labels=labels)
        return found.items

    async def _workload(self, place: WorkloadPlace, lists_pods: bool) -> Workload:
        obj = await self.get(place.ref)
        if (resource := self._known(place.ref.api_version, place.ref.kind)) is not None and resource not in _WATCHED:
            self._others.look(resource)
        wants_pods = obj is not None and (lists_pods or place.ref.kind in _LISTS_PODS)
        pods = await self._pods(place.ref, obj) if wants_pods and obj is not None else ()
        return Workload(place.ref, obj, place.manifest, pods, place.revision)

    async def get(self, ref: WorkloadRef) -> Untyped | None:
        """A workload as it is now; None if there is none."""
        resource = await self.resource(ref.api_version, ref.kind)
        if resource is None:
            return None
        try:
            return await self._client.get(untyped(resource), ref.name, ref.namespace)
        except NotFound:
            return None

    async def of_component(self, kind: WorkloadRef, component: str, application: str) -> tuple[Untyped, ...]:
        """All workloads of a component that are of the kind of this one."""
        resource = await self.resource(kind.api_version, kind.kind)
        if resource is None:
            return ()
        found = await self._client.list(untyped(resource), kind.namespace, labels={COMPONENT_LABEL: component})
        return tuple(one for one in found.items if belongs_to(one, application, component))

    async def services(self, namespace: str, traffic: Traffic | None) -> tuple[Untyped, ...]:
        """The Services that traffic moves between, as far as they are there."""
        names = () if traffic is None else (traffic.source_service, traffic.target_service)
        found = [await self.get(WorkloadRef("v1", "Service", namespace, name)) for name in names if "/" not in name]
        return tuple(one for one in found if one is not None)

    async def _pods(self, ref: WorkloadRef, obj: Untyped) -> tuple[Pod, ...]:
        found = await self._client.list(Pod, ref.namespace, labels=_selector(obj))
        return found.items

    # Writing

    async def write(self, write: Write) -> None:
        """Make one write. A Conflict if the object is not the one that was looked at."""
        resource = await self.resource(write.ref.api_version, write.ref.kind)
        assert resource is not None, f"{write.ref} was read"
        kind, name, namespace = untyped(resource), write.ref.name, write.ref.namespace
        if write.create is not None:
            await self._client.create(kind, dict(write.create), namespace, manager=MANAGER)
        if write.patch is not None:
            given: dict[str, Any] = {"uid": write.uid or None, "resource_version": write.resource_version or None}
            await self._client.patch(kind, name, MergePatch(write.patch), namespace, manager=MANAGER, **given)
        if write.delete:
            await self._client.delete(kind, name, namespace, uid=write.uid or None, propagation="Background")
        for meta, change in write.patch_pods:
            await self._client.patch(Pod, meta.name, MergePatch(change), namespace, uid=meta.uid, manager=MANAGER)
        await gather([partial(self._client.remove, Pod, meta) for meta in write.delete_pods])


class Referrers:
    """Which rollouts looked at which workloads last. Lost in a restart, and found again with the first look."""

    def __init__(self) -> None:
        self._refs: dict[Key, frozenset[tuple[str, str | None, str]]] = {}

    def look(self, key: Key, located: Located | None) -> None:
        """A rollout looked at these."""
        if located is None:
            self._refs.pop(key, None)
            return
        places = (located.target, *located.sources)
        self._refs[key] = frozenset((one.ref.kind, one.ref.namespace, one.ref.name) for one in places)

    def in_namespace(self, namespace: str) -> list[Key]:
        """The rollouts of a namespace that are under way."""
        return [key for key in self._refs if key.namespace == namespace]

    def of(self, kind: str, namespace: str | None, name: str) -> list[Key]:
        """The rollouts that looked at this workload."""
        return [key for key, refs in self._refs.items() if (kind, namespace, name) in refs]


def _selector(obj: Object | None) -> dict[str, str] | None:
    """The labels that its pods and revisions have."""
    labels = at(obj, "spec", "selector", "matchLabels")
    return labels if isinstance(labels, dict) else None


def _keys(referrers: Referrers, kind: str, seen: WatchedObject[PartialObject]) -> Iterable[Key]:
    return referrers.of(kind, seen.meta.namespace, seen.meta.name)


def in_short(found: PartialObject) -> PartialObject:
    """Who it is, and in which version: all that is needed to notice a change."""
    meta = found.metadata
    kept = ObjectMeta(name=meta.name, namespace=meta.namespace, uid=meta.uid, resource_version=meta.resource_version)
    return PartialObject(metadata=kept)

"""Observed: the StatefulSets of rollout groups and their pods, from caches, or as they are on the server this moment.

A cache may lag behind. That costs nothing while a plan only waits; but before pods are deleted, the plan is made again
on what the server has now. So a frozen watch, or a second process that does the same, never makes more pods unavailable
than one process with fresh eyes would.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from kedge.api.apps import StatefulSet
from kedge.api.meta import ObjectMeta, controller_of
from kedge.api.pods import Pod, PodSpec
from kedge.api.selector import LabelSelector
from kedge.api.zones import READY_TIME, ROLLOUT_GROUP
from kedge.controllers.gather import gather
from kedge.kube.cache import Cache
from kedge.kube.cluster import Cluster
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.plan.zoning.zone import Zone

_GROUP: Final = "group"
_OWNER: Final = "owner"


class GroupCaches:
    """The rollout groups of some namespaces of a cluster; of all its namespaces if none is given."""

    def __init__(self, cluster: Cluster, namespaces: Sequence[str] = ()) -> None:
        self._cluster = cluster
        self._client = cluster.client
        places: Sequence[str | None] = namespaces or (None,)
        self._sets = {
            place: cluster.cache(StatefulSet, place, labels=ROLLOUT_GROUP, indexes={_GROUP: _groups})
            for place in places
        }
        self._pods = {
            place: cluster.cache(Pod, place, only=_has_stateful_set, transform=_in_short, indexes={_OWNER: _owners})
            for place in places
        }

    @property
    def pod_caches(self) -> Sequence[Cache[Pod]]:
        """Pods that StatefulSets control: one cache for each namespace, or one for all."""
        return tuple(self._pods.values())

    def sources(self) -> Iterable[Source]:
        """What wakes a group: its StatefulSets and their pods. The key has the group's name."""
        for cache in self._sets.values():
            yield self._cluster.watch(cache, to=_group_of)
        for pods in self._pods.values():
            yield self._cluster.watch(pods, to=self._groups_of_pod)

    def zones(self, key: Key) -> tuple[Zone, ...]:
        """A group, as the caches have it."""
        sets = self._sets[self._place(key.namespace)].by(_GROUP, f"{key.namespace}/{key.name}")
        pods = self._pods[self._place(key.namespace)]
        return _by_name(Zone(one, pods.by(_OWNER, one.metadata.uid)) for one in sets)

    def groups_in(self, namespace: str) -> Iterable[Key]:
        """The keys of all groups of a namespace."""
        cache = self._sets[self._place(namespace)]
        names = {_name_of(one) for one in cache.all() if one.metadata.namespace == namespace}
        return [Key(self._cluster.name, namespace, name) for name in sorted(names)]

    def exists_anywhere(self, name: str) -> bool:
        """Whether there is a group of this name in any namespace."""
        return any(_name_of(one) == name for cache in self._sets.values() for one in cache.all())

    async def zones_now(self, key: Key) -> tuple[Zone, ...]:
        """A group, as the server has it now.

        StatefulSets are read last: a pod must not be taken for an outdated one because its StatefulSet was read before
        it changed. A read that fails is not repeated, since what was read before it would be old by then.
        """
        client = self._client.without_retry()
        known = dict.fromkeys(_selector_text(zone.stateful_set.spec.selector) for zone in self.zones(key))
        pages = await gather([partial(client.list, Pod, key.namespace, labels=one or None) for one in known])
        pods = {pod.metadata.uid: pod for page in pages for pod in page.items}.values()
        found = await client.list(StatefulSet, key.namespace, labels={ROLLOUT_GROUP: key.name})
        if any(_selector_text(one.spec.selector) not in known for one in found.items):
            return ()  # a new one: the caches will have it soon
        return _by_name(Zone(one, _owned(one, pods)) for one in found.items)

    def _place(self, namespace: str | None) -> str | None:
        return namespace if namespace in self._sets else None

    def _groups_of_pod(self, seen: WatchedObject[Pod]) -> Iterable[Key]:
        owner = controller_of(seen.meta)
        namespace = seen.meta.namespace
        found = self._sets[self._place(namespace)].get(owner.name, namespace) if owner is not None else None
        if found is not None:
            yield Key(seen.cluster, namespace, _name_of(found))


def _by_name(zones: Iterable[Zone]) -> tuple[Zone, ...]:
    return tuple(sorted(zones, key=lambda zone: zone.name))


def _owned(one: StatefulSet, pods: Iterable[Pod]) -> tuple[Pod, ...]:
    return tuple(pod for pod in pods if one.metadata.uid in _owners(pod))


def _name_of(one: StatefulSet) -> str:
    return one.metadata.labels[ROLLOUT_GROUP]


def _groups(one: StatefulSet) -> Iterable[str]:
    return (f"{one.metadata.namespace}/{_name_of(one)}",)


def _owners(pod: Pod) -> Iterable[str]:
    owner = controller_of(pod.metadata)
    return () if owner is None else (owner.uid,)


def _group_of(seen: WatchedObject[StatefulSet]) -> Iterable[Key]:
    yield Key(seen.cluster, seen.meta.namespace, _name_of(seen.object))


def _has_stateful_set(pod: Pod) -> bool:
    owner = controller_of(pod.metadata)
    return owner is not None and owner.kind == StatefulSet.resource.kind


def _in_short(pod: Pod) -> Pod:
    """What is kept of a pod: who it is, whose, of which revision, and how it is doing."""
    meta, status = pod.metadata, pod.status
    ready_time = meta.annotations.get(READY_TIME)
    kept = ObjectMeta(
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        creation_timestamp=meta.creation_timestamp,
        deletion_timestamp=meta.deletion_timestamp,
        labels=meta.labels,
        annotations={} if ready_time is None else {READY_TIME: ready_time},
        owner_references=meta.owner_references,
    )
    return Pod(metadata=kept, spec=PodSpec(), status=status)


def _selector_text(selector: LabelSelector | None) -> str:
    """The labels that all pods of a StatefulSet have, as a query. Expressions only narrow it; they are left out."""
    return ",".join(f"{key}={value}" for key, value in sorted((selector.match_labels if selector else {}).items()))

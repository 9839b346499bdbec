"""Wakes of Works: which bindings to look at when something around them changes."""

from __future__ import annotations

from collections.abc import Iterable

from kedge.api.core import Namespace
from kedge.api.fleet import PARENT_NAMESPACE, is_of_the_system, member_of, resource_snapshot_name
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.twins import Twins
from kedge.api.work import Work
from kedge.controllers.hub.followed import followed
from kedge.controllers.hub.indexes import BINDINGS, CLUSTER, PLACEMENT, by_binding, named
from kedge.controllers.hub.keys import key_of
from kedge.kube.cluster import Cluster
from kedge.kube.codec import PartialObject
from kedge.kube.queue import Key
from kedge.kube.source import Seen
from kedge.kube.store import Change
from kedge.plan.revisions import parent, resource_index
from kedge.plan.working.wanted import abandons, report_back


class WorkWakes:
    """Knows the bindings of one kind of placement."""

    def __init__(self, hub: Cluster, twins: Twins) -> None:
        self._hub = hub.name
        self._twins = twins
        self._bindings = followed(hub, twins.binding, indexes=BINDINGS)

    def by_work(self, seen: Seen[Work]) -> Iterable[Key]:
        """The binding a Work says it is of, and those that may wait for it to go."""
        namespace = seen.meta.labels.get(PARENT_NAMESPACE)
        if (namespace is not None) != self._twins.binding.resource.namespaced or is_of_the_system(namespace):
            return
        for owner in by_binding(seen.object):
            yield Key(self._hub, namespace, owner.rpartition("/")[2])
        for binding in self._bindings.by(CLUSTER, member_of(seen.meta.namespace or "") or ""):
            meta = binding.metadata
            if parent(meta) == parent(seen.meta) and meta.namespace == namespace:
                yield key_of(self._hub, meta)

    def by_placement(self, seen: Seen[ClusterResourcePlacement]) -> Iterable[Key]:
        """All its bindings."""
        found = self._bindings.by(PLACEMENT, named(seen.meta.namespace, seen.meta.name))
        return [key_of(self._hub, one.metadata) for one in found]

    def by_snapshot(self, seen: Seen[PartialObject]) -> Iterable[Key]:
        """The bindings that point at the revision it is part of: they may have missed it."""
        index, owner = resource_index(seen.meta), parent(seen.meta)
        if index is None:
            return []
        master = resource_snapshot_name(owner, index)
        found = self._bindings.by(PLACEMENT, named(seen.meta.namespace, owner))
        return [key_of(self._hub, one.metadata) for one in found if one.spec.resource_snapshot_name == master]

    def by_room(self, seen: Seen[Namespace]) -> Iterable[Key]:
        """The bindings to the member whose namespace it is."""
        found = self._bindings.by(CLUSTER, member_of(seen.meta.name) or "")
        return [key_of(self._hub, one.metadata) for one in found]


def says_otherwise(change: Change[ClusterResourcePlacement]) -> bool:
    """Whether a placement is new, or what it says in its Works beside the objects is another."""
    old, new = change.old, change.new
    if old is None or new is None:
        return old is None
    return (abandons(old), report_back(old)) != (abandons(new), report_back(new))


def is_new(change: Change[PartialObject]) -> bool:
    return change.old is None


def opens_or_closes(change: Change[Namespace]) -> bool:
    """Whether a namespace came, went, or begins to go."""
    if change.old is None or change.new is None:
        return True
    return change.old.metadata.deletion_timestamp != change.new.metadata.deletion_timestamp

"""Keys: whom to wake when an object changes that belongs to a placement or to a member."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kedge.api.cluster import MemberCluster
from kedge.api.fleet import member_of
from kedge.api.meta import ObjectMeta
from kedge.api.staged import ClusterStagedUpdateRun
from kedge.controllers.hub.indexes import CLUSTER
from kedge.kube.cache import Cache
from kedge.kube.queue import Key
from kedge.kube.source import Seen
from kedge.plan.revisions import parent


def key_of(cluster: str, meta: ObjectMeta) -> Key:
    """The object itself."""
    return Key(cluster, meta.namespace, meta.name)


def placement_key(cluster: str, meta: ObjectMeta) -> Key:
    """The placement that a binding, a snapshot or a Work's owner belongs to."""
    return Key(cluster, meta.namespace, parent(meta))


def by_owner(seen: Seen[Any]) -> Iterable[Key]:
    """The placement of a binding or a snapshot; none if it names none."""
    return (placement_key(seen.cluster, seen.meta),) if parent(seen.meta) else ()


def by_run(seen: Seen[ClusterStagedUpdateRun]) -> Iterable[Key]:
    """The placement that a run moves."""
    return (Key(seen.cluster, seen.meta.namespace, seen.object.spec.placement_name),)


def by_member(bindings: Cache[Any]) -> Callable[[Seen[MemberCluster]], Iterable[Key]]:
    """The placements that have a binding on a member."""

    def placed_on(seen: Seen[MemberCluster]) -> Iterable[Key]:
        return [placement_key(seen.cluster, one.metadata) for one in bindings.by(CLUSTER, seen.meta.name)]

    return placed_on


def by_namespace(seen: Seen[Any]) -> Iterable[Key]:
    """The member in whose namespace an object is."""
    member = member_of(seen.meta.namespace or "")
    return (Key(seen.cluster, None, member),) if member else ()

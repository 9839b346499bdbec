"""Followed: caches of placements and of what belongs to them, without what is in namespaces of the system.

    bindings = followed(hub, twins.binding, indexes=BINDINGS)

A member writes in its own namespace on the hub. What it forges there is as good as not there: every controller of the
hub sees placements, snapshots, bindings, runs and approvals through these caches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

from kedge.api.fleet import is_followed
from kedge.kube.cache import Cache
from kedge.kube.client import Kind
from kedge.kube.cluster import Cluster
from kedge.kube.store import Index

T = TypeVar("T")


def followed(
    hub: Cluster,
    kind: Kind[T],
    *,
    transform: Callable[[T], T] | None = None,
    indexes: Mapping[str, Index[Any]] | None = None,
) -> Cache[T]:
    """The objects of one kind that count: the same cache for everyone who asks for the same."""
    counts = cast("Callable[[T], bool]", is_followed)
    return hub.cache(kind, only=counts, transform=transform, indexes=indexes)

"""Indexes: how controllers of a hub look up what belongs to a placement or a cluster.

Whoever asks a cluster for a cache with the same indexes gets the same cache, so these are for everyone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kedge.api.fleet import PARENT_BINDING, PARENT_NAMESPACE
from kedge.api.meta import Object
from kedge.api.twins import Binding
from kedge.api.work import Work
from kedge.kube.store import Index
from kedge.plan.revisions import parent

PLACEMENT: Final = "placement"
CLUSTER: Final = "cluster"
BINDING: Final = "binding"


def named(namespace: str | None, name: str) -> str:
    """How an object with or without a namespace is looked up."""
    return f"{namespace or ''}/{name}"


def by_placement(found: Object) -> Iterable[str]:
    """Index of snapshots and bindings: whose they are."""
    owner = parent(found.metadata)
    return (named(found.metadata.namespace, owner),) if owner else ()


def by_cluster(binding: Binding) -> Iterable[str]:
    """Index of bindings: where they are bound to."""
    return (binding.spec.target_cluster,)


def by_binding(work: Work) -> Iterable[str]:
    """Index of Works: the binding that asked for them."""
    labels = work.metadata.labels
    owner = labels.get(PARENT_BINDING)
    return (named(labels.get(PARENT_NAMESPACE), owner),) if owner else ()


SNAPSHOTS: Final[Mapping[str, Index[Any]]] = {PLACEMENT: by_placement}
BINDINGS: Final[Mapping[str, Index[Any]]] = {PLACEMENT: by_placement, CLUSTER: by_cluster}
WORKS: Final[Mapping[str, Index[Any]]] = {BINDING: by_binding}

"""Caches: how controllers of a hub see placements and what belongs to them, and how they look them up.

    bindings = trusted_cache(hub, kinds.binding, indexes=BINDINGS)
    bindings.by(PLACEMENT, named(namespace, name))

A member writes in its own namespace on the hub. What it forges there is as good as not there: every controller of the
hub sees placements, snapshots, bindings, runs and approvals through `trusted_cache`, which leaves out the namespaces of
the system. Whoever asks for a cache with the same indexes gets the same cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar, cast

from msgspec.structs import replace

from kedge.api.fleet import PARENT_BINDING, PARENT_NAMESPACE, TARGET_RUN, is_followed
from kedge.api.meta import Object
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.placement_kinds import Approval, Binding, PlacementKinds, Run
from kedge.api.placement_status import PlacementStatus
from kedge.api.work import Work
from kedge.kube.cache import Cache
from kedge.kube.client import Kind
from kedge.kube.cluster import Cluster
from kedge.kube.store import Change, Index
from kedge.plan.revisions import parent

PLACEMENT: Final = "placement"
CLUSTER: Final = "cluster"
BINDING: Final = "binding"
STRATEGY: Final = "strategy"
RUN: Final = "run"


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


def by_moved_placement(run: Run) -> Iterable[str]:
    """Index of runs: what they move."""
    return (named(run.metadata.namespace, run.spec.placement_name),)


def by_strategy(run: Run) -> Iterable[str]:
    """Index of runs: whose stages they move through."""
    return (named(run.metadata.namespace, run.spec.staged_rollout_strategy_name),)


def by_run(approval: Approval) -> Iterable[str]:
    """Index of requests for approval: the run that asks."""
    run = approval.metadata.labels.get(TARGET_RUN) or approval.spec.parent_stage_rollout
    return (named(approval.metadata.namespace, run),)


SNAPSHOTS: Final[Mapping[str, Index[Any]]] = {PLACEMENT: by_placement}
BINDINGS: Final[Mapping[str, Index[Any]]] = {PLACEMENT: by_placement, CLUSTER: by_cluster}
WORKS: Final[Mapping[str, Index[Any]]] = {BINDING: by_binding}
RUNS: Final[Mapping[str, Index[Any]]] = {PLACEMENT: by_moved_placement, STRATEGY: by_strategy}
APPROVALS: Final[Mapping[str, Index[Any]]] = {RUN: by_run}


T = TypeVar("T")


def trusted_cache(
    hub: Cluster,
    kind: Kind[T],
    *,
    transform: Callable[[T], T] | None = None,
    indexes: Mapping[str, Index[Any]] | None = None,
) -> Cache[T]:
    """The objects of one kind that count: the same cache for everyone who asks for the same."""
    counts = cast("Callable[[T], bool]", is_followed)
    return hub.cache(kind, only=counts, transform=transform, indexes=indexes)


_NOTHING = PlacementStatus()


def without_status(placement: ClusterResourcePlacement) -> ClusterResourcePlacement:
    """The same placement, saying nothing of its clusters: of a thousand of them that is most of it."""
    return replace(placement, status=_NOTHING)


def placements_without_status(hub: Cluster, kinds: PlacementKinds) -> Cache[ClusterResourcePlacement]:
    """What users want of every placement: one cache for all who need no more."""
    return trusted_cache(hub, kinds.placement, transform=without_status)


def spec_changed(change: Change[ClusterResourcePlacement]) -> bool:
    """Whether a placement came, went, or asks for something else: not for a change of status alone."""
    return _spec_version(change.old) != _spec_version(change.new)


def _spec_version(placement: ClusterResourcePlacement | None) -> object:
    if placement is None:
        return None
    meta = placement.metadata
    return meta.uid, meta.generation, meta.deletion_timestamp, meta.finalizers, meta.annotations

"""Indexes: how controllers of a hub look up what belongs to a placement or a cluster.

Whoever asks a cluster for a cache with the same indexes gets the same cache, so these are for everyone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kedge.api.fleet import PARENT_BINDING, PARENT_NAMESPACE, TARGET_RUN
from kedge.api.meta import Object
from kedge.api.twins import Approval, Binding, Run
from kedge.api.work import Work
from kedge.kube.store import Index
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

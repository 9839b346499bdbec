"""Observing: what a rollout's plan depends on, from the objects of a hub."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from kedge.api.cluster import MemberCluster
from kedge.api.dialect import Dialect
from kedge.api.meta import ObjectMeta
from kedge.api.twins import Binding, Placement
from kedge.plan.membership import unreachable_message
from kedge.plan.rolling.budget import BadStrategy, Clusters, budget_of
from kedge.plan.rolling.plan import Seen
from kedge.plan.rolling.wanted import wanted


def observe(
    placement: Placement,
    bindings: Iterable[Binding],
    snapshots: Iterable[ObjectMeta],
    members: Mapping[str, MemberCluster],
    dialect: Dialect = Dialect.seed,
) -> Seen:
    """A placement with its bindings, the metadata of its resource snapshots, and the members by name."""
    held = tuple(bindings)
    clusters = {one.spec.target_cluster: members.get(one.spec.target_cluster) for one in held}
    return Seen(
        placement=placement,
        bindings=held,
        wanted=wanted(placement.metadata, snapshots),
        unreachable={name: said for name, one in clusters.items() if (said := unreachable_message(one))},
        gone={name for name, one in clusters.items() if one is None},
        parting={name for name, one in clusters.items() if one and one.metadata.deletion_timestamp},
        dialect=dialect,
    )


def period_of(placement: Placement, dialect: Dialect = Dialect.seed) -> timedelta:
    """How long a cluster is given where it cannot be seen whether its resources work."""
    try:
        return budget_of(placement.spec, Clusters(), dialect).period
    except BadStrategy:
        return timedelta(0)

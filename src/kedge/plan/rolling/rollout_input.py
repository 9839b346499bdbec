"""Rollout input: what a rollout's plan depends on, from the objects of a hub.

Which resources a placement rolls out is part of it: the newest, or those it is pinned to (`kedge rollback`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from datetime import timedelta
from typing import Final

from msgspec import Struct

from kedge.api.binding import BindingState
from kedge.api.cluster import MemberCluster
from kedge.api.dialect import Dialect
from kedge.api.fleet import PINNED, THROTTLE_FIRST
from kedge.api.meta import ObjectMeta
from kedge.api.placement_kinds import Binding, Placement
from kedge.api.rollout import ApplyStrategy
from kedge.plan.membership import unreachable_message
from kedge.plan.placements import is_external
from kedge.plan.revisions import is_master, newest_resources, resource_index
from kedge.plan.rolling.budget import BadStrategy, Clusters, budget_of
from kedge.plan.rolling.pod_budget import given_budget
from kedge.plan.rolling.pod_counts import PodCounts, read_counts

_ON: Final = "true"


class Wanted(Struct, frozen=True):
    """The resources to roll out, by the name of their first snapshot; empty if there are none."""

    name: str = ""
    problem: str = ""
    """Why what is asked for cannot be had; empty if it can, or nothing is there yet."""


class RolloutInput(Struct, frozen=True):
    """Everything a plan depends on but the time."""

    placement: Placement
    bindings: tuple[Binding, ...]
    wanted: Wanted
    """The resources to roll out."""
    unreachable: Mapping[str, str] = {}
    """Clusters that are not heard of, and what is known of since when, in words."""
    gone: Set[str] = frozenset()
    """Clusters that are no members any more."""
    parting: Set[str] = frozenset()
    """Members that are leaving: what was placed there is to stay, so nothing is touched until they are gone."""
    dialect: Dialect = Dialect.seed
    pods: Mapping[str, PodCounts] = {}
    """How many pods revisions run on a cluster, by the name of their first snapshot; of those that are counted."""

    @property
    def uncounted(self) -> tuple[str, ...]:
        """The revisions whose pods have to be counted: none unless there is a budget of pods."""
        if given_budget(self.placement.spec) is None or not self.wanted.name:
            return ()
        held = {one.spec.resource_snapshot_name for one in self.bindings}
        return tuple(sorted(name for name in {self.wanted.name, *held} if name and name not in self.pods))

    @property
    def apply_strategy(self) -> ApplyStrategy:
        """How objects are to be written."""
        strategy = self.placement.spec.strategy
        return (strategy.apply_strategy if strategy is not None else None) or ApplyStrategy()

    def is_applied_so(self, binding: Binding) -> bool:
        """Whether a cluster's objects are written as they are to be."""
        return (binding.spec.apply_strategy or ApplyStrategy()) == self.apply_strategy

    def has_wanted(self, binding: Binding) -> bool:
        """Whether a cluster has the resources wanted, in the way wanted."""
        return binding.spec.resource_snapshot_name == self.wanted.name and self.is_applied_so(binding)

    def wants_to_move(self, binding: Binding) -> bool:
        """Whether a binding is not where it is to be."""
        return binding.spec.state != BindingState.bound or not self.has_wanted(binding)


def observe(
    placement: Placement,
    bindings: Iterable[Binding],
    snapshots: Iterable[ObjectMeta],
    members: Mapping[str, MemberCluster],
    dialect: Dialect = Dialect.seed,
) -> RolloutInput:
    """A placement with its bindings, the metadata of its resource snapshots, and the members by name."""
    held, revisions = tuple(bindings), tuple(snapshots)
    clusters = {one.spec.target_cluster: members.get(one.spec.target_cluster) for one in held}
    return RolloutInput(
        placement=placement,
        bindings=held,
        wanted=wanted(placement.metadata, revisions),
        unreachable={name: said for name, one in clusters.items() if (said := unreachable_message(one))},
        gone={name for name, one in clusters.items() if one is None},
        parting={name for name, one in clusters.items() if one and one.metadata.deletion_timestamp},
        dialect=dialect,
        pods={one.name: counts for one in revisions if (counts := read_counts(one)) is not None},
    )


def period_of(placement: Placement, dialect: Dialect = Dialect.seed) -> timedelta:
    """How long a cluster is given where it cannot be seen whether its resources work."""
    try:
        return budget_of(placement.spec, Clusters(), dialect).period
    except BadStrategy:
        return timedelta(0)


def is_rolling(placement: Placement) -> bool:
    """Whether a placement is rolled out from here: not if it goes away, nor if staged runs move it."""
    return placement.metadata.deletion_timestamp is None and not is_external(placement)


def throttles_additions(placement: Placement) -> bool:
    """Whether clusters that have nothing yet are added a few at a time, too."""
    return placement.metadata.annotations.get(THROTTLE_FIRST) == _ON


# The resources to roll out


def wanted(placement: ObjectMeta, snapshots: Iterable[ObjectMeta]) -> Wanted:
    """What a placement with these annotations rolls out, of these snapshots."""
    asked = placement.annotations.get(PINNED)
    if asked is not None:
        return _pinned(asked, [meta for meta in snapshots if is_master(meta)])
    newest = newest_resources(snapshots)
    return Wanted(newest.name) if newest is not None else Wanted()


def _pinned(asked: str, masters: list[ObjectMeta]) -> Wanted:
    for meta in masters:
        if str(resource_index(meta)) == asked.strip():
            return Wanted(meta.name)
    known = sorted(index for meta in masters if (index := resource_index(meta)) is not None)
    there = f"there are {', '.join(map(str, known))}" if known else "there are none at all"
    return Wanted(problem=f"annotation {PINNED} asks for resources {asked!r}, and {there}: change or remove it")

"""Scheduling: which clusters a placement picks.

Shared by both kinds of placement, and copied into the snapshots that remember a policy.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from kedge.api.cluster import TaintEffect
from kedge.api.markers import Rule, Schema
from kedge.api.meta import Value
from kedge.api.selector import LabelSelector

Selector = Annotated[LabelSelector, Schema(map_type="atomic")]


class PlacementType(StrEnum):
    """How clusters are picked."""

    pick_all = "PickAll"
    pick_n = "PickN"
    pick_fixed = "PickFixed"


class PropertySelectorRequirement(Value, frozen=True, gc=False):
    """One thing that must hold of a cluster's property."""

    name: str
    """The property's name."""
    operator: str
    """How the property is held against the value: Gt, Ge, Eq, Ne, Lt or Le."""
    values: Annotated[tuple[str, ...], Schema(max_items=1)]
    """The one quantity to compare with."""


class PropertySelector(Value, frozen=True, gc=False):
    """Clusters by their properties. Everything must hold."""

    match_expressions: tuple[PropertySelectorRequirement, ...]
    """What must hold."""


class SortOrder(StrEnum):
    """Which end of a property's range is better."""

    ascending = "Ascending"
    descending = "Descending"


class PropertySorter(Value, frozen=True, gc=False):
    """Prefers clusters by where they stand between the least and the most of a property."""

    name: str
    """The property's name."""
    sort_order: SortOrder
    """Ascending prefers less of it, Descending more."""


class ClusterSelectorTerm(Value, frozen=True, gc=False):
    """Clusters by labels and properties. Everything given must hold."""

    label_selector: Selector | None = None
    """Which labels a cluster must have."""
    property_selector: PropertySelector | None = None
    """Which properties a cluster must have."""
    property_sorter: PropertySorter | None = None
    """Which property to prefer clusters by; only where the term is a preference."""


class ClusterSelector(Value, frozen=True, gc=False):
    """Clusters that satisfy at least one of the terms."""

    cluster_selector_terms: Annotated[tuple[ClusterSelectorTerm, ...], Schema(max_items=10)]
    """The terms; one of them is enough."""


class PreferredClusterSelector(Value, frozen=True, gc=False):
    """Clusters to prefer, and how strongly."""

    weight: Annotated[int, Schema(minimum=-100, maximum=100, format="int32")]
    """How strongly; negative avoids them."""
    preference: ClusterSelectorTerm
    """Which clusters."""


class ClusterAffinity(Value, frozen=True, gc=False):
    """Which clusters a placement needs, and which it likes better."""

    required_during_scheduling_ignored_during_execution: ClusterSelector | None = None
    """Only these clusters are picked. A cluster picked once stays, also when it stops fitting."""
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredClusterSelector, ...] = ()
    """Of the clusters that may be picked, those with the highest sum of weights come first."""


class Affinity(Value, frozen=True, gc=False):
    """What draws a placement to clusters."""

    cluster_affinity: ClusterAffinity | None = None
    """Which clusters a placement needs, and which it likes better."""


class UnsatisfiableAction(StrEnum):
    """What to do when clusters cannot be spread evenly enough."""

    do_not_schedule = "DoNotSchedule"
    schedule_anyway = "ScheduleAnyway"


class TopologySpreadConstraint(Value, frozen=True, gc=False):
    """Spreads the picked clusters evenly over the values of a label."""

    topology_key: str
    """The label of clusters to spread over."""
    max_skew: Annotated[int, Schema(minimum=1, default=1, format="int32")] = 1
    """By how many clusters the fullest value may be ahead of the emptiest."""
    when_unsatisfiable: Annotated[UnsatisfiableAction, Schema(default=UnsatisfiableAction.do_not_schedule)] = (
        UnsatisfiableAction.do_not_schedule
    )
    """Whether to pick too few clusters or to spread unevenly, if it must be one of them."""


class TolerationOperator(StrEnum):
    """How a toleration is held against a taint."""

    equal = "Equal"
    exists = "Exists"


class Toleration(Value, frozen=True, gc=False):
    """Which taints a placement does not mind."""

    key: str = ""
    """The taint's key; empty with Exists means any."""
    operator: Annotated[TolerationOperator, Schema(default=TolerationOperator.equal)] = TolerationOperator.equal
    """Equal compares values, Exists does not."""
    value: str = ""
    """The taint's value, for Equal."""
    effect: TaintEffect | None = None
    """The taint's effect; absent means any."""


_TOLERATION_RULES = (
    Rule(
        "self.all(t, t.operator != 'Exists' || !has(t.value) || t.value == '')",
        "value must be empty when operator is Exists",
    ),
    Rule(
        "self.all(t, t.operator == 'Exists' || (has(t.key) && t.key != ''))",
        "operator must be Exists when key is empty",
    ),
)


class PlacementPolicy(Value, frozen=True, gc=False):
    """Which clusters a placement picks. Without one it picks all."""

    placement_type: Annotated[PlacementType, Schema(default=PlacementType.pick_all)] = PlacementType.pick_all
    """PickAll takes every cluster that fits, PickN so many of them, PickFixed those named. Cannot change."""
    cluster_names: Annotated[tuple[str, ...], Schema(max_items=100)] = ()
    """The clusters PickFixed takes."""
    number_of_clusters: Annotated[int | None, Schema(minimum=0, format="int32")] = None
    """How many clusters PickN takes."""
    affinity: Affinity | None = None
    """Which clusters fit, and which fit better; not for PickFixed."""
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    """How PickN spreads over clusters."""
    tolerations: Annotated[tuple[Toleration, ...], Schema(max_items=100, rules=_TOLERATION_RULES)] = ()
    """Which taints of clusters do not matter; not for PickFixed."""


def _empty(*names: str) -> str:
    return " && ".join(f"(!has(self.{name}) || size(self.{name}) == 0)" for name in names)


POLICY_RULES = (
    Rule("self.placementType == oldSelf.placementType", "placement type is immutable"),
    Rule(
        "self.placementType != 'PickFixed' || (!has(self.affinity) && !has(self.numberOfClusters) && "
        f"{_empty('topologySpreadConstraints', 'tolerations')})",
        "affinity, numberOfClusters, topologySpreadConstraints, and tolerations cannot be set when placementType is "
        "PickFixed: remove them",
    ),
    Rule(
        "self.placementType != 'PickAll' || (!has(self.numberOfClusters) && "
        f"{_empty('clusterNames', 'topologySpreadConstraints')})",
        "clusterNames, numberOfClusters, and topologySpreadConstraints cannot be set when placementType is PickAll: "
        "remove them",
    ),
    Rule(
        f"self.placementType != 'PickN' || (has(self.numberOfClusters) && {_empty('clusterNames')})",
        "clusterNames cannot be set and numberOfClusters must be set when placementType is PickN",
    ),
)

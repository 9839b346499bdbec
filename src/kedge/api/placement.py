"""Placement: which resources go to which clusters, and how changes reach them.

The two kinds share their spec and status. A ClusterResourcePlacement places cluster-wide objects and whole
namespaces; a ResourcePlacement places objects of its own namespace. A ClusterResourcePlacementStatus is a copy of a
placement's status that can be read in the namespace it places.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from msgspec import field

from kedge.api.markers import AGE, Column, Definition, Rule, Schema, Version, condition_column
from kedge.api.meta import ObjectMeta, Value
from kedge.api.placement_status import PlacementStatus
from kedge.api.resource import Resource
from kedge.api.rollout import RolloutStrategy
from kedge.api.scheduling import POLICY_RULES, PlacementPolicy, Selector

GROUP: Final = "placement.kubernetes-fleet.io"
CATEGORIES: Final = ("fleet", "fleet-placement")
_VERSIONS = (Version("v1"), Version("v1beta1", storage=True))


class SelectionScope(StrEnum):
    """How much of a selected namespace is meant."""

    namespace_only = "NamespaceOnly"
    namespace_with_resources = "NamespaceWithResources"
    namespace_with_resource_selectors = "NamespaceWithResourceSelectors"


class ResourceSelector(Value, frozen=True, gc=False):
    """Objects of one kind: one by name, some by labels, or all of them."""

    group: str
    """The group of their API; empty for the core group."""
    version: str
    """The version of their API."""
    kind: str
    """Their kind."""
    name: str = ""
    """The one object meant."""
    label_selector: Selector | None = None
    """The labels of the objects meant."""
    selection_scope: Annotated[SelectionScope, Schema(default=SelectionScope.namespace_with_resources)] = (
        SelectionScope.namespace_with_resources
    )
    """For namespaces: the namespace alone, with all that is in it, or with what the other selectors pick in it."""


_SELECTOR_RULES = (
    Rule(
        "self.all(s, !has(s.labelSelector) || !has(s.name) || s.name == '')",
        "name and labelSelector are mutually exclusive in a resource selector",
    ),
)


class StatusReportingScope(StrEnum):
    """Who can read a placement's status."""

    cluster_scope_only = "ClusterScopeOnly"
    namespace_accessible = "NamespaceAccessible"


class PlacementSpec(Value, frozen=True, gc=False):
    """What goes where, and how."""

    resource_selectors: Annotated[
        tuple[ResourceSelector, ...], Schema(min_items=1, max_items=100, rules=_SELECTOR_RULES)
    ]
    """The objects to place: those that any of these selects."""
    policy: Annotated[PlacementPolicy | None, Schema(rules=POLICY_RULES)] = None
    """Which clusters to place them on; all of them without it. Cannot be removed once set."""
    strategy: RolloutStrategy | None = None
    """How changes reach the clusters. Without it: a rolling update of 25 % at once."""
    revision_history_limit: Annotated[int, Schema(minimum=1, maximum=1000, default=10, format="int32")] = 10
    """How many earlier versions of the resources and the policy are kept."""
    status_reporting_scope: Annotated[StatusReportingScope, Schema(default=StatusReportingScope.cluster_scope_only)] = (
        StatusReportingScope.cluster_scope_only
    )
    """Whether the status can also be read inside the one namespace that is placed. Cannot change."""


_POLICY_STAYS = Rule("has(self.policy) || !has(oldSelf.policy)", "policy cannot be removed once set")


_IS_NAMESPACE = "s.group == '' && s.kind == 'Namespace'"
_IS_PICKY = f"{_IS_NAMESPACE} && s.selectionScope == 'NamespaceWithResourceSelectors'"
_ONE_NAMESPACE = f"self.resourceSelectors.filter(s, {_IS_NAMESPACE}).size() == 1"


_PICKY_NAMESPACE_RULES = (
    Rule(
        f"self.resourceSelectors.filter(s, {_IS_PICKY}).size() <= 1",
        "only one namespace selector with NamespaceWithResourceSelectors mode is allowed",
    ),
    Rule(
        f"self.resourceSelectors.all(s, !({_IS_PICKY}) || (has(s.name) && s.name != ''))",
        "namespace selector with NamespaceWithResourceSelectors mode must select by name",
    ),
    Rule(
        f"!self.resourceSelectors.exists(s, {_IS_PICKY}) || {_ONE_NAMESPACE}",
        "when using NamespaceWithResourceSelectors mode, only one namespace selector is allowed",
    ),
)
_STATUS_SCOPE_RULES = (
    Rule("self.statusReportingScope == oldSelf.statusReportingScope", "statusReportingScope is immutable"),
    Rule(
        f"self.statusReportingScope != 'NamespaceAccessible' || {_ONE_NAMESPACE}",
        "when statusReportingScope is NamespaceAccessible, exactly one resourceSelector with kind 'Namespace' is "
        "required",
    ),
)


def _columns(kind: str) -> tuple[Column, ...]:
    return (
        Column("Gen", ".metadata.generation"),
        Column("Type", ".spec.policy.placementType", wide=True),
        condition_column("Scheduled", f"{kind}Scheduled"),
        condition_column("Scheduled-Gen", f"{kind}Scheduled", "observedGeneration"),
        condition_column("Work-Synchronized", f"{kind}WorkSynchronized", wide=True),
        condition_column("Work-Synchronized-Gen", f"{kind}WorkSynchronized", "observedGeneration", wide=True),
        condition_column("Available", f"{kind}Available"),
        condition_column("Available-Gen", f"{kind}Available", "observedGeneration"),
        AGE,
    )


class ClusterResourcePlacement(Value, frozen=True, gc=False):
    """Places cluster-wide objects, and namespaces with what is in them, on member clusters."""

    resource: ClassVar[Resource] = Resource(
        GROUP, "v1beta1", "ClusterResourcePlacement", "clusterresourceplacements", namespaced=False
    )
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS,
        short_names=("crp",),
        categories=CATEGORIES,
        status=True,
        columns=_columns("ClusterResourcePlacement"),
    )
    spec: Annotated[PlacementSpec, Schema(rules=(_POLICY_STAYS, *_STATUS_SCOPE_RULES, *_PICKY_NAMESPACE_RULES))]
    """What goes where, and how."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: PlacementStatus = PlacementStatus()
    """What was selected, and what became of it."""


class ResourcePlacement(Value, frozen=True, gc=False):
    """Places objects of its own namespace on member clusters."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1beta1", "ResourcePlacement", "resourceplacements")
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS,
        short_names=("rp",),
        categories=CATEGORIES,
        status=True,
        columns=_columns("ResourcePlacement"),
    )
    spec: Annotated[PlacementSpec, Schema(rules=(_POLICY_STAYS, *_PICKY_NAMESPACE_RULES))]
    """What goes where, and how."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: PlacementStatus = PlacementStatus()
    """What was selected, and what became of it."""


class ClusterResourcePlacementStatus(Value, frozen=True, gc=False):
    """The status of the ClusterResourcePlacement of the same name, for those who can read this namespace only."""

    resource: ClassVar[Resource] = Resource(
        GROUP, "v1beta1", "ClusterResourcePlacementStatus", "clusterresourceplacementstatuses"
    )
    definition: ClassVar[Definition] = Definition(
        versions=(Version("v1"), Version("v1beta1", storage=True)),
        short_names=("crps",),
        categories=CATEGORIES,
        columns=(
            Column("Resource-Index", ".sourceStatus.observedResourceIndex"),
            Column("Last-Updated", ".lastUpdatedTime"),
            AGE,
        ),
    )
    source_status: PlacementStatus
    """The placement's status."""
    last_updated_time: datetime
    """When it was copied."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)

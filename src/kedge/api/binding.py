"""Binding: one placement on one cluster, and how far it has got there.

The scheduler makes it, a rollout points it at resources, and what the member reports comes back into its status. The
namespaced kind lives in a ResourcePlacement's own namespace.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import field

from kedge.api.condition import BY_TYPE, Condition
from kedge.api.markers import AGE, Definition, Version, condition_column
from kedge.api.meta import ObjectMeta, Value
from kedge.api.placement import CATEGORIES, GROUP
from kedge.api.placement_status import (
    AT_MOST_100,
    DiffedPlacement,
    DriftedPlacement,
    FailedPlacement,
    NamespacedName,
)
from kedge.api.resource import Resource
from kedge.api.rollout import ApplyStrategy
from kedge.api.snapshot import ClusterDecision


class BindingState(StrEnum):
    """What is wanted of the cluster: nothing yet, the resources, or their removal."""

    scheduled = "Scheduled"
    bound = "Bound"
    unscheduled = "Unscheduled"


class BindingSpec(Value, frozen=True, gc=False):
    """Which resources go to which cluster."""

    state: str
    """Scheduled, Bound or Unscheduled."""
    resource_snapshot_name: str
    """The resources the cluster is to have; empty before a rollout gives it some."""
    scheduling_policy_snapshot_name: str
    """The policy by which the cluster was picked."""
    target_cluster: str
    """The cluster."""
    cluster_decision: ClusterDecision
    """Why the cluster was picked."""
    resource_override_snapshots: tuple[NamespacedName, ...] = ()
    """Overrides of namespaced resources that hold here."""
    cluster_resource_override_snapshots: tuple[str, ...] = ()
    """Overrides of cluster-wide resources that hold here."""
    apply_strategy: ApplyStrategy | None = None
    """How objects are written to the member."""


class BindingStatus(Value, frozen=True, gc=False):
    """How far the placement has got on the cluster."""

    failed_placements: Annotated[tuple[FailedPlacement, ...], AT_MOST_100] = ()
    """Objects that could not be placed, or do not work; the first hundred."""
    drifted_placements: Annotated[tuple[DriftedPlacement, ...], AT_MOST_100] = ()
    """Objects that were changed on the member; the first hundred."""
    diffed_placements: Annotated[tuple[DiffedPlacement, ...], AT_MOST_100] = ()
    """Objects that differ and were left alone; the first hundred."""
    conditions: Annotated[tuple[Condition, ...], BY_TYPE] = ()
    """How far it has got, step by step."""


_COLUMNS = (
    condition_column("WorkSynchronized", "WorkSynchronized"),
    condition_column("ResourcesApplied", "Applied"),
    condition_column("ResourceAvailable", "Available", wide=True),
    AGE,
)


class ClusterResourceBinding(Value, frozen=True, gc=False):
    """A ClusterResourcePlacement on one cluster."""

    resource: ClassVar[Resource] = Resource(
        GROUP, "v1beta1", "ClusterResourceBinding", "clusterresourcebindings", namespaced=False
    )
    definition: ClassVar[Definition] = Definition(
        versions=(Version("v1"), Version("v1beta1", storage=True)),
        short_names=("crb",),
        categories=CATEGORIES,
        status=True,
        columns=_COLUMNS,
    )
    spec: BindingSpec
    """Which resources go to which cluster."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: BindingStatus = BindingStatus()
    """How far the placement has got there."""


class ResourceBinding(Value, frozen=True, gc=False):
    """A ResourcePlacement on one cluster."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1beta1", "ResourceBinding", "resourcebindings")
    definition: ClassVar[Definition] = Definition(
        versions=(Version("v1beta1", storage=True),),
        short_names=("rb",),
        categories=CATEGORIES,
        status=True,
        columns=_COLUMNS,
    )
    spec: BindingSpec
    """Which resources go to which cluster."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: BindingStatus = BindingStatus()
    """How far the placement has got there."""

"""Snapshots: what a placement's resources and its policy were at one moment, each kept under a running number.

A snapshot never changes once made, but for its labels. Each kind also exists in a ResourcePlacement's own namespace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from msgspec import field

from kedge.api.condition import BY_TYPE, Condition
from kedge.api.markers import AGE, Column, Definition, Schema, Version
from kedge.api.meta import ObjectMeta, Value
from kedge.api.placement import CATEGORIES, GROUP
from kedge.api.resource import Resource
from kedge.api.scheduling import PlacementPolicy

_VERSIONS = (Version("v1"), Version("v1beta1", storage=True))
_BETA = (Version("v1beta1", storage=True),)
_COLUMNS = (Column("Gen", ".metadata.generation"), AGE)

Manifest = Annotated[Mapping[str, Any], Schema(embedded_resource=True)]
"""A whole object of any kind."""


class ResourceSnapshotSpec(Value, frozen=True, gc=False):
    """The objects that were selected."""

    selected_resources: tuple[Manifest, ...]
    """The objects, as far as they are to be placed."""


class ResourceSnapshotStatus(Value, frozen=True, gc=False):
    """What became of the snapshot."""

    conditions: Annotated[tuple[Condition, ...], BY_TYPE] = ()
    """What is known of the snapshot."""


class ClusterResourceSnapshot(Value, frozen=True, gc=False):
    """What a ClusterResourcePlacement selected at one moment; large selections come in several parts."""

    resource: ClassVar[Resource] = Resource(
        GROUP, "v1beta1", "ClusterResourceSnapshot", "clusterresourcesnapshots", namespaced=False
    )
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS, short_names=("crs",), categories=CATEGORIES, status=True, columns=_COLUMNS
    )
    spec: ResourceSnapshotSpec
    """The objects that were selected."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: ResourceSnapshotStatus = ResourceSnapshotStatus()
    """What became of the snapshot."""


class ResourceSnapshot(Value, frozen=True, gc=False):
    """What a ResourcePlacement selected at one moment; large selections come in several parts."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1beta1", "ResourceSnapshot", "resourcesnapshots")
    definition: ClassVar[Definition] = Definition(
        versions=_BETA, short_names=("rs",), categories=CATEGORIES, status=True, columns=_COLUMNS
    )
    spec: ResourceSnapshotSpec
    """The objects that were selected."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: ResourceSnapshotStatus = ResourceSnapshotStatus()
    """What became of the snapshot."""


class PolicySnapshotSpec(Value, frozen=True, gc=False):
    """A policy, and what tells it from others."""

    policy_hash: Annotated[str, Schema(format="byte")]
    """A digest of the policy, without its number of clusters."""
    policy: PlacementPolicy | None = None
    """The policy; without one every cluster is picked."""


class ClusterScore(Value, frozen=True, omit_defaults=False, gc=False):
    """How well a cluster fits."""

    affinity_score: Annotated[int | None, Schema(format="int32")] = None
    """The sum of the weights of the preferences it satisfies."""
    priority_score: Annotated[int | None, Schema(format="int32")] = None
    """How well it spreads the placement."""


class ClusterDecision(Value, frozen=True, gc=False):
    """Whether a cluster was picked, and why."""

    cluster_name: str
    """Which cluster."""
    selected: bool
    """Whether it was picked."""
    reason: str
    """Why."""
    cluster_score: ClusterScore | None = None
    """How well it fits; absent where clusters are not compared."""


class PolicySnapshotStatus(Value, frozen=True, gc=False):
    """Which clusters were picked by the policy."""

    observed_crp_generation: Annotated[int, Schema(format="int64")] = field(name="observedCRPGeneration")
    """The generation of the placement this speaks of."""
    conditions: Annotated[tuple[Condition, ...], BY_TYPE] = ()
    """Whether the policy could be fulfilled."""
    target_clusters: Annotated[tuple[ClusterDecision, ...], Schema(max_items=1000)] = ()
    """The clusters that were picked, and some of those that were not."""


class ClusterSchedulingPolicySnapshot(Value, frozen=True, gc=False):
    """The policy of a ClusterResourcePlacement at one moment, and the clusters it picked."""

    resource: ClassVar[Resource] = Resource(
        GROUP, "v1beta1", "ClusterSchedulingPolicySnapshot", "clusterschedulingpolicysnapshots", namespaced=False
    )
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS, short_names=("csps",), categories=CATEGORIES, status=True, columns=_COLUMNS
    )
    spec: PolicySnapshotSpec
    """The policy."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: PolicySnapshotStatus | None = None
    """Which clusters were picked; absent before the first look."""


class SchedulingPolicySnapshot(Value, frozen=True, gc=False):
    """The policy of a ResourcePlacement at one moment, and the clusters it picked."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1beta1", "SchedulingPolicySnapshot", "schedulingpolicysnapshots")
    definition: ClassVar[Definition] = Definition(
        versions=_BETA, short_names=("sps",), categories=CATEGORIES, status=True, columns=_COLUMNS
    )
    spec: PolicySnapshotSpec
    """The policy."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: PolicySnapshotStatus | None = None
    """Which clusters were picked; absent before the first look."""

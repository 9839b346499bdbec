"""Bindings: what is to run where, one for each resource that a policy propagates. The scheduler names the clusters."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final

from msgspec import field

from kedge.api.condition import BY_TYPE, Condition
from kedge.api.karmada.keys import WORK_GROUP
from kedge.api.markers import AGE, Definition, Schema, Version, condition_column
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource

_VERSIONS: Final = (Version("v1alpha2", storage=True),)
BINDING_COLUMNS: Final = (
    condition_column("Scheduled", "Scheduled"),
    condition_column("FullyApplied", "FullyApplied"),
    AGE,
)
_REPLICAS: Final = Schema(minimum=0, format="int32")
Raw = Annotated[Mapping[str, Any], Schema(preserve_unknown_fields=True)]


class BoundResource(Value, frozen=True, gc=False):
    """The resource that is propagated."""

    api_version: str
    """Its group and version."""
    kind: str
    """Its kind."""
    name: str
    """Its name."""
    namespace: str = ""
    """Its namespace; empty if it is of the whole cluster."""
    resource_version: str = ""
    """The version that was looked at last."""
    uid: str = ""
    """Which object of this name it is."""


class TargetCluster(Value, frozen=True, gc=False):
    """One cluster that it runs in."""

    name: str
    """The cluster."""
    replicas: Annotated[int, _REPLICAS] = 0
    """How many of the replicas it runs."""


class DispatchingOnClusters(Value, frozen=True, gc=False):
    """Clusters that nothing is written to."""

    cluster_names: tuple[str, ...] = ()
    """Their names."""


class Suspension(Value, frozen=True, gc=False):
    """What is held back."""

    dispatching: bool = False
    """Whether nothing is written to any cluster."""
    dispatching_on_clusters: DispatchingOnClusters | None = None
    """The clusters that nothing is written to."""
    scheduling: bool = False
    """Whether it is not scheduled."""


class GracefulEvictionTask(Value, frozen=True, gc=False):
    """A cluster that is to be left when others have taken over. Its pods run until then."""

    from_cluster: str
    """The cluster."""
    replicas: Annotated[int | None, _REPLICAS] = None
    """How many replicas it runs."""
    reason: str = ""
    """Why it is left."""
    producer: str = ""
    """Who said so."""
    creation_timestamp: datetime | None = None
    """Since when."""


class BindingSpec(Value, frozen=True, gc=False):
    """What runs where."""

    resource: BoundResource
    """The resource that is propagated."""
    replicas: Annotated[int, _REPLICAS] = 0
    """How many replicas it has in all clusters together."""
    clusters: tuple[TargetCluster, ...] = ()
    """The clusters it is scheduled to."""
    placement: Raw = field(default_factory=dict)
    """The placement of the policy it came from."""
    graceful_eviction_tasks: tuple[GracefulEvictionTask, ...] = ()
    """Clusters that are to be left when others have taken over."""
    scheduler_name: str = ""
    """Who schedules it."""
    conflict_resolution: str = ""
    """What happens to an object of a member that somebody else made: Abort or Overwrite."""
    suspension: Suspension | None = None
    """What is held back."""
    preserve_resources_on_deletion: bool = False
    """Whether what runs in the members stays when this is deleted."""


class AggregatedStatusItem(Value, frozen=True, gc=False):
    """What one cluster reports."""

    cluster_name: str
    """The cluster."""
    status: Raw | None = None
    """The status of the resource there."""
    applied: bool = False
    """Whether what was asked for was written there."""
    applied_message: str = ""
    """Why not."""
    health: str = ""
    """Healthy, Unhealthy or Unknown."""


class BindingStatus(Value, frozen=True, gc=False):
    """What became of it."""

    conditions: Annotated[tuple[Condition, ...], BY_TYPE] = ()
    """Whether it is scheduled, and applied everywhere."""
    aggregated_status: tuple[AggregatedStatusItem, ...] = ()
    """What each cluster reports."""
    scheduler_observed_generation: Annotated[int, Schema(format="int64")] = 0
    """The generation that was scheduled last."""
    last_scheduled_time: datetime | None = None
    """When."""


class ResourceBinding(Value, frozen=True, gc=False):
    """A resource of a namespace, and the clusters it runs in."""

    resource: ClassVar[Resource] = Resource(WORK_GROUP, "v1alpha2", "ResourceBinding", "resourcebindings")
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS, short_names=("rb",), categories=("karmada-io",), status=True, columns=BINDING_COLUMNS
    )
    spec: Annotated[BindingSpec, Schema(preserve_unknown_fields=True)]
    """What runs where."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: Annotated[BindingStatus, Schema(preserve_unknown_fields=True)] = BindingStatus()
    """What became of it."""


class ClusterResourceBinding(Value, frozen=True, gc=False):
    """A resource of the whole cluster, and the clusters it runs in."""

    resource: ClassVar[Resource] = Resource(
        WORK_GROUP, "v1alpha2", "ClusterResourceBinding", "clusterresourcebindings", namespaced=False
    )
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS, short_names=("crb",), categories=("karmada-io",), status=True, columns=BINDING_COLUMNS
    )
    spec: Annotated[BindingSpec, Schema(preserve_unknown_fields=True)]
    """What runs where."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: Annotated[BindingStatus, Schema(preserve_unknown_fields=True)] = BindingStatus()
    """What became of it."""

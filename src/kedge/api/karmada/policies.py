"""Policies: which resources go to which clusters, and how their replicas are divided."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Final

from msgspec import field

from kedge.api.condition import BY_TYPE, Condition
from kedge.api.karmada.bindings import Raw, Suspension
from kedge.api.karmada.clusters import TaintEffect
from kedge.api.karmada.keys import DEFAULT_SCHEDULER, POLICY_GROUP
from kedge.api.markers import AGE, Column, Definition, Schema, Version, condition_column
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector

_VERSIONS: Final = (Version("v1alpha1", storage=True),)
_COLUMNS: Final = (
    Column("Conflict-Resolution", ".spec.conflictResolution"),
    Column("Priority", ".spec.priority"),
    condition_column("Accepted", "Accepted"),
    AGE,
)


class ResourceSelector(Value, frozen=True, gc=False):
    """Which resources are meant: by name, by labels, or all of a kind."""

    api_version: str
    """Their group and version."""
    kind: str
    """Their kind."""
    namespace: str = ""
    """Their namespace; that of the policy if it is empty."""
    name: str = ""
    """Their name."""
    label_selector: LabelSelector | None = None
    """Their labels; not asked for if there is a name."""


class ClusterAffinity(Value, frozen=True, gc=False):
    """Which clusters are meant. Without anything, all."""

    cluster_names: tuple[str, ...] = ()
    """Their names."""
    label_selector: LabelSelector | None = None
    """Their labels."""
    exclude: tuple[str, ...] = ()
    """Clusters that are not meant."""
    field_selector: Raw | None = None
    """Their provider, region and zone: not known here."""


class ReplicaSchedulingType(StrEnum):
    """What becomes of the replicas of a workload in several clusters."""

    duplicated = "Duplicated"
    divided = "Divided"


class StaticClusterWeight(Value, frozen=True, gc=False):
    """How much some clusters get."""

    target_cluster: ClusterAffinity
    """The clusters."""
    weight: Annotated[int, Schema(minimum=1, format="int64")]
    """Their weight; the largest that is given to a cluster counts."""


class WeightPreference(Value, frozen=True, gc=False):
    """How replicas are divided."""

    static_weight_list: tuple[StaticClusterWeight, ...] = ()
    """The weights of clusters."""
    dynamic_weight: str = ""
    """By what is free in the clusters: not known here."""


class ReplicaScheduling(Value, frozen=True, gc=False):
    """What becomes of the replicas of a workload."""

    replica_scheduling_type: Annotated[ReplicaSchedulingType, Schema(default="Divided")] = ReplicaSchedulingType.divided
    """Whether each cluster runs all of them, or they are divided."""
    replica_division_preference: str = ""
    """Weighted, or Aggregated, which is not known here."""
    weight_preference: WeightPreference | None = None
    """How they are divided; equally if it is left out."""


class Toleration(Value, frozen=True, gc=False):
    """Taints of clusters that do not keep anything away."""

    key: str = ""
    """Their key; all if it is empty."""
    operator: Annotated[str, Schema(enum=("", "Exists", "Equal"))] = ""
    """Whether the value has to be the same (Equal), or does not matter (Exists)."""
    value: str = ""
    """Their value."""
    effect: TaintEffect | None = None
    """Their effect; all if it is left out."""
    toleration_seconds: Annotated[int | None, Schema(format="int64")] = None
    """For how long. Nothing is evicted here, so it does not matter."""


class Placement(Value, frozen=True, gc=False):
    """Which clusters, and how replicas are divided among them."""

    cluster_affinity: ClusterAffinity | None = None
    """Which clusters; all if it is left out."""
    replica_scheduling: ReplicaScheduling | None = None
    """What becomes of replicas; each cluster runs all of them if it is left out."""
    cluster_tolerations: tuple[Toleration, ...] = ()
    """Taints of clusters that do not keep it away."""
    cluster_affinities: tuple[Raw, ...] = ()
    """Groups of clusters, one after the other: not known here."""
    spread_constraints: tuple[Raw, ...] = ()
    """How it is spread over regions, zones and providers: not known here."""
    workload_affinity: Raw | None = None
    """What it is to be near, and far from: not known here."""


class PropagationSpec(Value, frozen=True, gc=False):
    """Which resources go where."""

    resource_selectors: Annotated[tuple[ResourceSelector, ...], Schema(min_items=1)]
    """Which resources."""
    placement: Placement = Placement()
    """Where they go."""
    priority: Annotated[int, Schema(format="int32", default=0)] = 0
    """Of several policies for one resource the one with the highest counts."""
    conflict_resolution: Annotated[str, Schema(enum=("Abort", "Overwrite"), default="Abort")] = "Abort"
    """What happens to an object of a member that somebody else made."""
    preserve_resources_on_deletion: bool = False
    """Whether what runs in the members stays when a resource is deleted."""
    preemption: Annotated[str, Schema(enum=("Always", "Never"), default="Never")] = "Never"
    """Whether it takes resources from policies that mean them less."""
    suspension: Suspension | None = None
    """What is held back."""
    scheduler_name: Annotated[str, Schema(default=DEFAULT_SCHEDULER)] = DEFAULT_SCHEDULER
    """Who schedules; others than the default are left to themselves."""
    propagate_deps: bool = False
    """Whether what a resource uses goes along: not known here."""
    association: bool = False
    """The same, by an older name."""
    dependent_overrides: tuple[str, ...] = ()
    """Overrides to wait for: not known here."""
    failover: Raw | None = None
    """What happens when a cluster or an application fails: not known here."""
    activation_preference: Annotated[str, Schema(enum=("", "Lazy"))] = ""
    """Whether a change of the policy waits for one of the resource: Lazy is not known here."""
    schedule_priority: Raw | None = None
    """Who is scheduled first: not known here."""


class PropagationStatus(Value, frozen=True, gc=False):
    """What became of it. Karmada's own has no status."""

    conditions: Annotated[tuple[Condition, ...], BY_TYPE] = ()
    """Whether it is followed, and why not."""


class PropagationPolicy(Value, frozen=True, gc=False):
    """Which resources of its namespace go to which clusters."""

    resource: ClassVar[Resource] = Resource(POLICY_GROUP, "v1alpha1", "PropagationPolicy", "propagationpolicies")
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS, short_names=("pp",), categories=("karmada-io",), status=True, columns=_COLUMNS
    )
    spec: PropagationSpec
    """Which resources go where."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: PropagationStatus = PropagationStatus()
    """What became of it."""


class ClusterPropagationPolicy(Value, frozen=True, gc=False):
    """Which resources of any namespace, or of none, go to which clusters."""

    resource: ClassVar[Resource] = Resource(
        POLICY_GROUP, "v1alpha1", "ClusterPropagationPolicy", "clusterpropagationpolicies", namespaced=False
    )
    definition: ClassVar[Definition] = Definition(
        versions=_VERSIONS, short_names=("cpp",), categories=("karmada-io",), status=True, columns=_COLUMNS
    )
    spec: PropagationSpec
    """Which resources go where."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: PropagationStatus = PropagationStatus()
    """What became of it."""

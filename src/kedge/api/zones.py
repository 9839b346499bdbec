"""Zones: the labels and annotations of StatefulSets that are rolled out zone by zone, and the two kinds beside them.

The keys, kinds and values are those of Grafana's rollout-operator. A rollout group is all StatefulSets of a namespace
with the same value of the label `rollout-group`; each of them is a zone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from msgspec import field

from kedge.api.markers import AGE, Column, Definition, Scale, Schema, Version
from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource

GROUP: Final = "rollout-operator.grafana.com"

# Labels of a StatefulSet
ROLLOUT_GROUP: Final = "rollout-group"
NO_DOWNSCALE: Final = "grafana.com/no-downscale"
PREPARE_DOWNSCALE: Final = "grafana.com/prepare-downscale"
MIN_TIME_BETWEEN_ZONES: Final = "grafana.com/min-time-between-zones-downscale"

# Annotations of a StatefulSet
MAX_UNAVAILABLE: Final = "rollout-max-unavailable"
PAUSED: Final = "grafana.com/rollout-paused"
DOWNSCALE_LEADER: Final = "grafana.com/rollout-downscale-leader"
UPSCALE_WHEN_LEADER_READY: Final = "grafana.com/rollout-upscale-only-when-leader-ready"
FORCE_REPLICAS: Final = "grafana.com/rollout-force-replicas"
MIRROR_NAME: Final = "grafana.com/rollout-mirror-replicas-from-resource-name"
MIRROR_KIND: Final = "grafana.com/rollout-mirror-replicas-from-resource-kind"
MIRROR_API_VERSION: Final = "grafana.com/rollout-mirror-replicas-from-resource-api-version"
MIRROR_WRITE_BACK: Final = "grafana.com/rollout-mirror-replicas-from-resource-write-back"
DELAYED_DOWNSCALE: Final = "grafana.com/rollout-delayed-downscale"
DELAYED_DOWNSCALE_URL: Final = "grafana.com/rollout-prepare-delayed-downscale-url"
PREPARE_DOWNSCALE_PATH: Final = "grafana.com/prepare-downscale-http-path"
PREPARE_DOWNSCALE_PORT: Final = "grafana.com/prepare-downscale-http-port"
LAST_DOWNSCALE: Final = "grafana.com/last-downscale"
"""Written when a downscale was prepared: RFC 3339, UTC."""

# Annotation of a pod that a disruption budget selects
READY_TIME: Final = "grafana.com/ready-time"

# Labels of a webhook configuration that gets the CA of this operator
INJECT_CA: Final = "grafana.com/inject-rollout-operator-ca"
INJECT_NAMESPACE: Final = "grafana.com/namespace"


class ReplicaTemplateSpec(Value, frozen=True, gc=False):
    """How many replicas whoever mirrors this is to have."""

    replicas: Annotated[int, Schema(minimum=0, default=1, format="int32")] = 1
    """How many pods each StatefulSet that mirrors this is to have."""
    label_selector: str = ""
    """The pods that an autoscaler looks at, as a label selector."""


class ReplicaTemplateStatus(Value, frozen=True, gc=False):
    """How many there are."""

    replicas: Annotated[int, Schema(format="int32")] = field(default_factory=int)
    """How many replicas the StatefulSets that mirror this have."""


class ReplicaTemplate(Value, frozen=True, gc=False):
    """A number of replicas that an autoscaler sets, and StatefulSets mirror."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1", "ReplicaTemplate", "replicatemplates")
    definition: ClassVar[Definition] = Definition(
        versions=(Version("v1", storage=True),),
        categories=("all",),
        status=True,
        scale=Scale(".spec.replicas", ".status.replicas", ".spec.labelSelector"),
        columns=(
            Column("Replicas", ".spec.replicas", "integer"),
            Column("Current", ".status.replicas", "integer"),
            AGE,
        ),
    )
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ReplicaTemplateSpec = ReplicaTemplateSpec()
    status: ReplicaTemplateStatus = ReplicaTemplateStatus()


class BudgetSelector(Value, frozen=True, gc=False):
    """Which pods are meant."""

    match_labels: Mapping[str, str]
    """Labels that all of them have."""


class ZoneBudgetSpec(Value, frozen=True, gc=False):
    """How many pods of several zones may be away at once."""

    selector: BudgetSelector
    """Which pods, and which StatefulSets, this is about."""
    max_unavailable: Annotated[int | None, Schema(minimum=0)] = None
    """How many pods of a zone may be unavailable; 0 forbids every eviction. 1 if no percentage is set either."""
    max_unavailable_percentage: Annotated[int | None, Schema(minimum=0, maximum=100)] = None
    """The same as a percentage of the zone's replicas."""
    pod_name_partition_regex: str = ""
    """Finds the partition in a pod's name: pods of one partition in several zones are replicas of each other."""
    pod_name_regex_group: Annotated[int | None, Schema(minimum=1)] = None
    """Which group of the expression is the partition; the first if not set."""
    cross_zone_eviction_delay: str = ""
    """How long a pod has to be ready before one of its partition in another zone may be evicted, such as 10m."""


class ZoneAwarePodDisruptionBudget(Value, frozen=True, gc=False):
    """How many pods may be evicted at once, over several zones."""

    resource: ClassVar[Resource] = Resource(
        GROUP, "v1", "ZoneAwarePodDisruptionBudget", "zoneawarepoddisruptionbudgets"
    )
    definition: ClassVar[Definition] = Definition(
        versions=(Version("v1", storage=True),),
        short_names=("zpdb",),
        status=True,
        columns=(
            Column("Max unavailable", ".spec.maxUnavailable", "integer"),
            Column("Percentage", ".spec.maxUnavailablePercentage", "integer", wide=True),
            Column("Partitions", ".spec.podNamePartitionRegex", wide=True),
            AGE,
        ),
    )
    spec: ZoneBudgetSpec
    """How many pods of several zones may be away at once."""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)


ZONE_KINDS: Final = (ReplicaTemplate, ZoneAwarePodDisruptionBudget)

"""Rollout plan: in which batches a workload moves to another revision, and what has to hold in between.

The fields are those of the seed and of KubeVela's releases; where both name a field differently, both names are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Final, TypeAlias

from kedge.api.markers import Schema
from kedge.api.meta import Value
from kedge.api.numbers import IntOrPercent
from kedge.api.oam.rollout_rules import (
    BATCH_HOOK_RULES,
    BATCH_RULES,
    BATCHES_RULES,
    DURATION,
    MAX_BATCHES,
    NOT_NEGATIVE,
    NUMBER,
    PLAN_RULES,
    RANGE_RULES,
    SHARE,
    SOME_TIME,
    TEMPLATE_RULES,
    TRAFFIC_RULES,
    URL,
)

_NOT_BELOW_0 = Schema(minimum=0, format="int32")
_NAME: Final = Schema(max_length=253)
_NEEDED: Final = Schema(min_length=1, max_length=253)
_SHARE: Final = Schema(pattern=SHARE, max_length=10, rules=NOT_NEGATIVE)
_END: Final = Schema(pattern=NUMBER, max_length=64)
_LIMIT: Final = Schema(minimum=0, maximum=1000, format="int32")


class ObjectReference(Value, frozen=True, gc=False):
    """An object, by its kind and name."""

    api_version: Annotated[str, _NAME] = ""
    """The API group and version of the object."""
    kind: Annotated[str, _NAME] = ""
    """What the object is."""
    name: Annotated[str, _NAME] = ""
    """Its name."""
    namespace: Annotated[str, _NAME] = ""
    """Its namespace; that of whoever refers to it if empty."""
    uid: Annotated[str, _NAME] = ""
    """Its uid, if only this one is meant."""
    resource_version: Annotated[str, _NAME] = ""
    """Not used."""
    field_path: Annotated[str, _NAME] = ""
    """Not used."""


class RolloutStrategy(StrEnum):
    """What comes first in each batch."""

    increase_first = "IncreaseFirst"
    decrease_first = "DecreaseFirst"


class HookType(StrEnum):
    """When a rollout webhook is called."""

    initialize_rollout = "initialize-rollout"
    pre_batch_rollout = "pre-batch-rollout"
    post_batch_rollout = "post-batch-rollout"
    finalize_rollout = "finalize-rollout"


HttpStatus: TypeAlias = Annotated[int, Schema(minimum=100, maximum=599)]


class RolloutWebhook(Value, frozen=True, gc=False):
    """Somebody to ask over HTTP before a rollout goes on."""

    type: HookType
    """When it is called."""
    name: Annotated[str, _NEEDED]
    """What it is called in status and events."""
    url: Annotated[str, Schema(pattern=URL, max_length=2048)]
    """Where it is."""
    method: Annotated[str, Schema(enum=("", "POST", "GET", "PUT"))] = ""
    """GET, POST or PUT; POST if not set."""
    expected_status: Annotated[tuple[HttpStatus, ...], Schema(max_items=32)] = ()
    """The HTTP statuses that mean yes; if none is given, 200, 201 and 202."""
    metadata: Annotated[Mapping[str, Annotated[str, Schema(max_length=1024)]] | None, Schema(max_properties=32)] = None
    """Sent along."""
    timeout_seconds: Annotated[int | None, Schema(minimum=1, maximum=300, format="int32")] = None
    """How long one call may take; 10 if not set."""


class MetricsRange(Value, frozen=True, gc=False):
    """Between what a metric has to be. At least one end is given."""

    min: Annotated[IntOrPercent | None, _END] = None
    """The least it may be: a number, or a text such as `0.99`."""
    max: Annotated[IntOrPercent | None, _END] = None
    """The most it may be."""


class NoData(StrEnum):
    """What it means that a query finds nothing."""

    inconclusive = "Inconclusive"
    fail = "Fail"


class CanaryMetric(Value, frozen=True, gc=False):
    """A metric that has to stay in its range before a rollout goes on."""

    name: Annotated[str, _NEEDED]
    """What it is called in status and events."""
    interval: Annotated[str, Schema(pattern=DURATION, max_length=64, rules=SOME_TIME)] = ""
    """The window a query looks back over, such as `1m`, and the time between two measurements. One minute if empty."""
    metrics_range: Annotated[MetricsRange | None, Schema(required=True, rules=RANGE_RULES)] = None
    """Between what it has to be."""
    template_ref: Annotated[ObjectReference | None, Schema(required=True, rules=TEMPLATE_RULES)] = None
    """The MetricTemplate with the query and where to ask it."""
    count: Annotated[int | None, Schema(minimum=1, maximum=1000, format="int32")] = None
    """How many measurements have to be in the range; 1 if not set."""
    failure_limit: Annotated[int | None, _LIMIT] = None
    """How many may be out of it before the rollout fails; 0 if not set."""
    inconclusive_limit: Annotated[int | None, _LIMIT] = None
    """How many may have no answer, or none that is a number, before the rollout fails; no limit if not set."""
    no_data: NoData | None = None
    """What it means that the query finds nothing: Inconclusive if not set. Never that all is well."""


Metrics: TypeAlias = Annotated[tuple[CanaryMetric, ...], Schema(max_items=16, list_type="map", list_map_keys=("name",))]
_HOOKS: Final = Schema(max_items=16, list_type="map", list_map_keys=("type", "name"))
Hooks: TypeAlias = Annotated[tuple[RolloutWebhook, ...], _HOOKS]
BatchHooks: TypeAlias = Annotated[tuple[Annotated[RolloutWebhook, Schema(rules=BATCH_HOOK_RULES)], ...], _HOOKS]
PodNames: TypeAlias = Annotated[tuple[Annotated[str, _NEEDED], ...], Schema(max_items=1000, list_type="set")]


class RolloutBatch(Value, frozen=True, gc=False):
    """One batch."""

    replicas: Annotated[IntOrPercent | None, _SHARE] = None
    """How many pods, or which share of all; shares are rounded up. The last batch takes all that are left."""
    pod_list: PodNames = ()
    """The pods that are replaced, by name, instead of a number."""
    max_unavailable: Annotated[IntOrPercent | None, _SHARE] = None
    """How many pods of the target may be unavailable when the batch counts as done; 0 if not set."""
    instance_interval: Annotated[int | None, _NOT_BELOW_0] = None
    """Seconds between two pods of the batch."""
    batch_rollout_webhooks: BatchHooks = ()
    """Whom to ask before and after this batch."""
    canary_metric: Metrics = ()
    """Which metrics have to be in their range after this batch."""


class OnDeadline(StrEnum):
    """What happens when a batch takes too long."""

    fail = "Fail"
    hold = "Hold"


class OnAutoscaler(StrEnum):
    """What happens when an autoscaler sets the replicas of the same workload."""

    hold = "Hold"
    take_over = "TakeOver"


class TrafficProvider(StrEnum):
    """What divides the traffic."""

    gateway_api = "gateway-api"
    istio = "istio"
    nginx = "nginx"


class Traffic(Value, frozen=True, gc=False):
    """Traffic that moves along with the batches."""

    provider: TrafficProvider
    """What divides the traffic: gateway-api, istio or nginx."""
    route_ref: ObjectReference
    """The HTTPRoute, VirtualService or Ingress."""
    source_service: Annotated[str, _NEEDED]
    """The Service of the old revision."""
    target_service: Annotated[str, _NEEDED]
    """The Service of the new revision."""
    max_weight: Annotated[int | None, Schema(minimum=1, maximum=100, format="int32")] = None
    """The largest share in percent that the target gets before the last batch is done; 100 if not set."""


class RolloutPlan(Value, frozen=True, gc=False):
    """In which batches, and what has to hold in between."""

    rollout_strategy: RolloutStrategy | None = None
    """IncreaseFirst adds pods of the target before it removes others; DecreaseFirst the other way round."""
    target_size: Annotated[int | None, Schema(minimum=0, format="int32")] = None
    """How many pods the target is to have; as many as the source if not set."""
    num_batches: Annotated[int | None, Schema(minimum=1, maximum=MAX_BATCHES, format="int32")] = None
    """How many batches of about the same size; 1 if rolloutBatches is not set either."""
    rollout_batches: Annotated[
        tuple[Annotated[RolloutBatch, Schema(rules=BATCH_RULES)], ...] | None,
        Schema(min_items=1, max_items=MAX_BATCHES, rules=BATCHES_RULES),
    ] = None
    """The batches, one by one."""
    batch_partition: Annotated[int | None, _NOT_BELOW_0] = None
    """The last batch that may roll, counted from 0; all of them if not set."""
    last_batch_to_rollout: Annotated[int | None, _NOT_BELOW_0] = None
    """Another name of batchPartition."""
    revert_on_delete: bool = False
    """Whether a rollout that is deleted midway is taken back, in batches."""
    paused: bool = False
    """Whether it stands still."""
    rollout_webhooks: Hooks = ()
    """Whom to ask before the first and after the last batch; before and after every batch, too."""
    canary_metric: Metrics = ()
    """Which metrics have to be in their range after every batch."""
    progress_deadline_seconds: Annotated[int | None, Schema(minimum=1, format="int32")] = None
    """How long a batch may take until it is available; as long as it likes if not set."""
    on_deadline: OnDeadline | None = None
    """What happens when a batch took too long: Fail, or Hold, which only says so. Fail if not set."""
    on_autoscaler: OnAutoscaler | None = None
    """What happens when an autoscaler sets the same replicas: Hold, or TakeOver for the time. Hold if not set."""
    traffic: Annotated[Traffic | None, Schema(rules=TRAFFIC_RULES)] = None
    """Traffic that moves along."""

    @property
    def last_batch(self) -> int | None:
        """The last batch that may roll, by whichever name it was given."""
        return self.batch_partition if self.batch_partition is not None else self.last_batch_to_rollout


RuledPlan: TypeAlias = Annotated[RolloutPlan, Schema(rules=PLAN_RULES)]
"""The plan of a kind: what it says has to agree with itself."""

"""Rollout status: how far a rollout has got. All that the controller knows: a restart goes on from here."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from msgspec import field

from kedge.api.condition import Condition
from kedge.api.markers import Schema
from kedge.api.meta import Value
from kedge.api.oam.rollout_plan import ObjectReference
from kedge.api.oam.rollout_states import ABANDONED
from kedge.api.oam.rollout_states import BatchState as BatchState  # noqa: PLC0414  # callers take it from here
from kedge.api.oam.rollout_states import RollingState as RollingState  # noqa: PLC0414

_INT32 = Schema(format="int32")
_STATE: Final = Schema(required=True, enum=(*RollingState, ABANDONED))


class HookResult(Value, frozen=True, gc=False):
    """What came of asking one webhook at one point of a rollout."""

    id: str
    """Of the call: the same for every attempt, so that the other side can tell a repetition."""
    name: str
    """The webhook's name."""
    state: str
    """Accepted, Refused or Failed; Failed is tried again."""
    attempts: Annotated[int, _INT32] = 0
    """How many times it was called."""
    message: str = ""
    """What it answered."""
    time: datetime | None = None
    """When it was called last."""


class MetricResult(Value, frozen=True, gc=False):
    """What was measured of one metric after one batch."""

    name: str
    """The metric's name."""
    batch: Annotated[int, _INT32]
    """After which batch."""
    successful: Annotated[int, _INT32] = 0
    """How many measurements were in the range."""
    failed: Annotated[int, _INT32] = 0
    """How many were out of it."""
    inconclusive: Annotated[int, _INT32] = 0
    """How many had no answer, or none that is a number."""
    value: str = ""
    """What was measured last."""
    message: str = ""
    """What was wrong with the last measurement."""
    time: datetime | None = None
    """When it was measured last."""


class PlannedBatch(Value, frozen=True, gc=False):
    """One batch, in pods."""

    replicas: Annotated[int, _INT32]
    """How many pods it moves."""
    goal: Annotated[int, _INT32]
    """How many pods the target has when it is done; for a scale operation, how many the workload has."""


class SourceRecord(Value, frozen=True, gc=False):
    """One workload of an old revision, as it was before the rollout."""

    api_version: str
    """The API group and version of the workload."""
    kind: str
    """What the workload is."""
    name: str
    """Its name."""
    replicas: Annotated[int, _INT32]
    """How many pods it asked for."""
    revision: str = ""
    """The revision it is of, if that is known."""


class Remembered(Value, frozen=True, gc=False):
    """Something that the rollout changed and gives back at the end."""

    ref: ObjectReference
    """What was changed."""
    value: str
    """What it was before, as JSON."""


class RolloutStatus(Value, frozen=True, gc=False):
    """How far a rollout has got."""

    conditions: tuple[Condition, ...] = ()
    """What the rollout says of itself."""
    rollout_original_size: Annotated[int, _INT32] = 0
    """How many pods there were before."""
    rollout_target_size: Annotated[int, _INT32] = 0
    """How many pods there are to be; -1 before that is known."""
    target_generation: str = ""
    """The hash of the target's pod template."""
    last_applied_pod_template_identifier: str = ""
    """The hash of the pod template that was rolled out successfully last."""
    rolling_state: Annotated[RollingState | None, _STATE] = None
    """Where it is."""
    batch_rolling_state: Annotated[BatchState | None, Schema(required=True)] = None
    """Where the current batch is."""
    current_batch: Annotated[int, _INT32, Schema(required=True)] = field(default_factory=int)
    """The current batch, counted from 0."""
    upgraded_replicas: Annotated[int, _INT32, Schema(required=True)] = field(default_factory=int)
    """How many pods of the target are asked for."""
    upgraded_ready_replicas: Annotated[int, _INT32, Schema(required=True)] = field(default_factory=int)
    """How many pods of the target are ready."""

    # Beyond the peer
    observed_generation: Annotated[int, Schema(format="int64")] = 0
    """The generation of the rollout this was said about."""
    message: str = ""
    """What it does or waits for, in a sentence."""
    waiting_since: datetime | None = None
    """Since when it waits for that."""
    batch_started_at: datetime | None = None
    """When the current batch began."""
    batch_available_at: datetime | None = None
    """Since when the current batch is available; not set while it is not."""
    batches: tuple[PlannedBatch, ...] = ()
    """The plan in effect."""
    sources: tuple[SourceRecord, ...] = ()
    """The workloads of old revisions, as they were before."""
    target_workload: ObjectReference | None = None
    """The workload that the rollout moves to, or moved to last. Found by it when what the rollout refers to is gone."""
    target_before: Annotated[int, _INT32] = 0
    """How many pods the target asked for before."""
    hooks: tuple[HookResult, ...] = ()
    """What came of asking webhooks."""
    metrics: tuple[MetricResult, ...] = ()
    """What was measured."""
    remembered: tuple[Remembered, ...] = ()
    """What was changed beside the workloads, and is given back at the end."""
    desired_size: Annotated[int, _INT32] = 0
    """How many pods there are to be, kept while one rollout replaces another midway; 0 if nothing is under way."""
    fixed_plan: str = ""
    """A digest of what cannot change of the plan while its batches roll: strategy, webhooks and traffic."""
    retried: str = ""
    """The last request to start a failed rollout again that was taken note of."""
    failure: str = ""
    """Why the rollout failed, if it did."""
    runs: Annotated[int, _INT32] = 0
    """How many times it began anew: with another target, or after a failure. Tells the webhook calls of one from those
    of another."""

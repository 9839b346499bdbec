"""States: where a rollout is, and what may happen to it there, as a table.

Two levels: the rollout, and within `rollingInBatches` the current batch. `after` looks an event up; what the table does
not have is not legal, and `after` says so without changing anything. A rollout that has ended stays as it ended,
whatever happens, until what it is asked for changes. `docs/batch-states.md` is drawn from this table.

A status that another controller wrote, such as KubeVela's, says how far the rollout got, but not by which batches:
then it begins anew, from what the workloads show.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from kedge.api.oam.rollout_states import BEFORE_BATCHES, BatchState, RollingState
from kedge.api.oam.rollout_status import RolloutStatus


class RolloutEvent(StrEnum):
    """What may happen to a rollout. The values are KubeVela's, where it has them."""

    located = "AppLocatedEvent"
    verified = "RollingSpecVerifiedEvent"
    initialized = "RollingInitializedEvent"
    batch_initialized = "InitializedOneBatchEvent"
    batch_rolled = "RolloutOneBatchEvent"
    batch_available = "OneBatchAvailable"
    batch_finished = "FinishedOneBatchEvent"
    all_batches_finished = "AllBatchFinishedEvent"
    batch_approved = "BatchRolloutApprovedEvent"
    batch_failed = "BatchRolloutFailedEvent"
    finalized = "RollingFinalizedEvent"
    failed = "RollingFailedEvent"
    modified = "RollingModifiedEvent"
    deleted = "RollingDeletedEvent"
    retried = "RollingRetriedEvent"
    adopted = "RollingAdoptedEvent"


class RolloutState(Struct, frozen=True, order=True):
    """Both levels. Outside of `rollingInBatches` the batch only says how far it got."""

    rolling: RollingState
    batch: BatchState = BatchState.initializing


class Transition(Struct, frozen=True):
    """Where an event leads to."""

    state: RolloutState
    next_batch: bool = False
    """Whether the next batch begins."""
    resets: bool = False
    """Whether what was known of the rollout is forgotten: it begins anew."""


class Illegal(Struct, frozen=True):
    """An event that cannot happen in this state."""

    state: RolloutState
    event: RolloutEvent

    def __str__(self) -> str:
        where = self.state.batch if self.state.rolling is RollingState.rolling else self.state.rolling
        return f"{self.event} cannot happen in the state {where}"


ENDED: Final = frozenset({RollingState.succeeded, RollingState.failed})
_R, _B, _E = RollingState, BatchState, RolloutEvent
_START: Final = Transition(RolloutState(_R.locating), resets=True)
_ADOPTED: Final = (_R.verifying, _R.initializing, _R.rolling, _R.finalising, _R.abandoning)
_WORKING: Final = tuple(state for state in _R if state not in ENDED and state is not _R.deleting)

ROLLOUT_TABLE: Final[Mapping[tuple[RollingState, RolloutEvent], Transition]] = {
    (_R.locating, _E.located): Transition(RolloutState(_R.verifying)),
    (_R.verifying, _E.verified): Transition(RolloutState(_R.initializing)),
    (_R.initializing, _E.initialized): Transition(RolloutState(_R.rolling)),
    (_R.finalising, _E.finalized): Transition(RolloutState(_R.succeeded, _B.ready)),
    (_R.failing, _E.finalized): Transition(RolloutState(_R.failed)),
    (_R.deleting, _E.finalized): Transition(RolloutState(_R.failed)),
    (_R.abandoning, _E.finalized): _START,
    # Nothing was touched before initializing, so there is nothing to let go of.
    (_R.locating, _E.failed): Transition(RolloutState(_R.failed)),
    (_R.verifying, _E.failed): Transition(RolloutState(_R.failed)),
    (_R.initializing, _E.failed): Transition(RolloutState(_R.failing)),
    (_R.rolling, _E.failed): Transition(RolloutState(_R.failing)),
    (_R.finalising, _E.failed): Transition(RolloutState(_R.failing)),
    (_R.locating, _E.modified): _START,
    (_R.verifying, _E.modified): _START,
    **{
        (state, _E.modified): Transition(RolloutState(_R.abandoning))
        for state in (_R.initializing, _R.rolling, _R.finalising, _R.failing, _R.abandoning)
    },
    **{(state, _E.modified): _START for state in sorted(ENDED)},
    **{(state, _E.deleted): Transition(RolloutState(_R.deleting)) for state in (*_WORKING, _R.deleting)},
    (_R.failed, _E.retried): _START,
    **{(state, _E.adopted): _START for state in _ADOPTED},
    # What failed midway is taken back when it is deleted, if that was asked for.
    (_R.failed, _E.deleted): Transition(RolloutState(_R.deleting)),
}
BATCH_TABLE: Final[Mapping[tuple[BatchState, RolloutEvent], Transition]] = {
    (_B.initializing, _E.batch_initialized): Transition(RolloutState(_R.rolling, _B.rolling)),
    (_B.rolling, _E.batch_rolled): Transition(RolloutState(_R.rolling, _B.verifying)),
    (_B.verifying, _E.batch_available): Transition(RolloutState(_R.rolling, _B.finalizing)),
    (_B.verifying, _E.batch_failed): Transition(RolloutState(_R.failing, _B.verify_failed)),
    (_B.finalizing, _E.batch_finished): Transition(RolloutState(_R.rolling, _B.ready)),
    (_B.finalizing, _E.all_batches_finished): Transition(RolloutState(_R.finalising, _B.ready)),
    (_B.ready, _E.batch_approved): Transition(RolloutState(_R.rolling, _B.initializing), next_batch=True),
}


def has_moved(status: RolloutStatus) -> bool:
    """Whether pods may have moved. Kedge fixes the batches before any does; other controllers write none."""
    return bool(status.batches) or status.current_batch > 0 or status.upgraded_replicas > 0


def has_begun(status: RolloutStatus) -> bool:
    """Whether what the plan says is fixed: a rollout that failed before it had batches may be mended."""
    if status.rolling_state is RollingState.failed:
        return has_moved(status)
    return bool(status.batches) or status.rolling_state not in (None, *BEFORE_BATCHES)


def is_others(status: RolloutStatus) -> bool:
    """Whether another controller wrote this of a rollout under way: the batches or the workload are not in it."""
    if status.rolling_state not in _ADOPTED:
        return False
    is_verifying = status.rolling_state is RollingState.verifying
    return status.target_workload is None or not (status.batches or is_verifying)


def after(state: RolloutState, event: RolloutEvent) -> Transition | Illegal:
    """Where an event leads to from a state."""
    if state.rolling is RollingState.rolling and (state.batch, event) in BATCH_TABLE:
        return BATCH_TABLE[state.batch, event]
    return ROLLOUT_TABLE.get((state.rolling, event), Illegal(state, event))

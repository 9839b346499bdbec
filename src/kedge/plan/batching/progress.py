"""Progress: the status of a rollout after an event, and what it says while it waits.

Conditions are derived from where a rollout is, never collected: a rollout that goes on after a pause is not paused.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, TypeVar, cast

from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, Condition, new_condition, set_condition
from kedge.api.oam.rollout_status import BatchState, RollingState, RolloutStatus
from kedge.plan.batching.rollout_waits import BatchCode, sentence
from kedge.plan.batching.states import Illegal, RolloutState, after
from kedge.plan.batching.steps import Move
from kedge.plan.moving.wait import Wait

S = TypeVar("S", bound=RolloutStatus)
_R, _B = RollingState, BatchState
_ORDER: Final = (_R.verifying, _R.initializing, _R.rolling, _R.finalising, _R.succeeded)
_TYPES: Final = {
    _R.verifying: "RolloutSpecVerifying",
    _R.initializing: "RolloutInitializing",
    _R.rolling: "RolloutInProgress",
    _R.finalising: "RolloutFinalizing",
    _R.failing: "RolloutFailing",
    _R.abandoning: "RolloutAbandoning",
    _R.deleting: "RolloutDeleting",
    _R.failed: "RolloutFailed",
    _R.succeeded: "RolloutSucceed",
}
_BATCH_TYPES: Final = {
    _B.initializing: "BatchInitializing",
    _B.rolling: "RolloutInProgress",
    _B.verifying: "BatchVerifying",
    _B.verify_failed: "BatchRolloutFailed",
    _B.finalizing: "BatchFinalizing",
    _B.ready: "BatchReady",
}
_BATCH_ORDER: Final = (_B.initializing, _B.rolling, _B.verifying, _B.finalizing, _B.ready)
PAUSED: Final = "BatchPaused"


def state_of(status: RolloutStatus) -> RolloutState:
    """Where a rollout is; one without a status is at the beginning."""
    return RolloutState(status.rolling_state or _R.locating, status.batch_rolling_state or _B.initializing)


def moved(move: Move, before: S, now: datetime) -> S | Illegal:
    """The status after an event. `before` is what it was, for what the event does not change."""
    found = after(state_of(before), move.event)
    if isinstance(found, Illegal):
        return found
    status = cast("S", replace(move.status, rolling_state=found.state.rolling, batch_rolling_state=found.state.batch))
    if found.next_batch:
        status = replace(status, current_batch=status.current_batch + 1)
    if found.resets:
        status = _reset(status, keeps_size=before.rolling_state is not _R.succeeded)
    return replace(status, waiting_since=now, message=move.message)


def _reset(status: S, *, keeps_size: bool) -> S:
    """A new beginning. After a success nothing of the old rollout counts; else its size and its sources still do.

    One that failed before it had a size moved nothing: what ran before it may be asked for again.
    """
    desired = status.desired_size or max(0, status.rollout_target_size)
    applied = "" if keeps_size and not desired else status.last_applied_pod_template_identifier
    fresh: S = replace(
        status,
        target_generation="",
        rollout_target_size=-1,
        batches=(),
        fixed_plan="",
        current_batch=0,
        upgraded_replicas=0,
        upgraded_ready_replicas=0,
        batch_started_at=None,
        batch_available_at=None,
        runs=status.runs + 1,
        hooks=(),
        metrics=(),
        failure="",
        desired_size=desired,
        last_applied_pod_template_identifier=applied,
    )
    return fresh if keeps_size else replace(fresh, desired_size=0, sources=(), target_before=0)


def reported(status: S, wait: Wait | None, ready: int | None, *, now: datetime, generation: int) -> S:
    """The status with what the rollout waits for, how many pods are ready if that is known, and its conditions."""
    state = state_of(status)
    status = replace(status, rolling_state=state.rolling, batch_rolling_state=state.batch)
    message = sentence(wait) if wait is not None else status.message
    since = status.waiting_since if message == status.message else now
    status = replace(status, message=message, waiting_since=since, observed_generation=generation)
    if ready is not None:
        status = replace(status, upgraded_ready_replicas=ready)
    return replace(status, conditions=_conditions(status, wait, now, generation))


def without_future(status: S, now: datetime) -> S:
    """The status with nothing later than now: whoever wrote it may have another clock."""
    return replace(
        status,
        batch_started_at=_at_most(status.batch_started_at, now),
        batch_available_at=_at_most(status.batch_available_at, now),
        hooks=tuple(replace(one, time=_at_most(one.time, now)) for one in status.hooks),
        metrics=tuple(replace(one, time=_at_most(one.time, now)) for one in status.metrics),
    )


def _at_most(time: datetime | None, now: datetime) -> datetime | None:
    return None if time is None else min(time, now)


def is_only_reported(before: RolloutStatus, after: RolloutStatus) -> bool:
    """Whether nothing differs but what is said of a wait: a rollout that loses this loses nothing."""
    said = ("message", "waiting_since", "upgraded_ready_replicas", "conditions")
    return replace(after, **{name: getattr(before, name) for name in said}) == before


def _conditions(status: RolloutStatus, wait: Wait | None, now: datetime, generation: int) -> tuple[Condition, ...]:
    wanted = dict(_true(status)) | _current(status, wait)
    if status.rolling_state is _R.rolling:
        is_paused = wait is not None and wait.code == BatchCode.paused
        wanted[PAUSED] = (TRUE, "Paused", "") if is_paused else (FALSE, "NotPaused", "")
    kept = tuple(one for one in status.conditions if one.type in wanted)
    for type_, (value, reason, message) in wanted.items():
        made = new_condition(type_, value, reason, message, now=now, generation=generation)
        kept = set_condition(kept, made)
    return kept


def _true(status: RolloutStatus) -> Iterable[tuple[str, tuple[str, str, str]]]:
    """The conditions of all states that are behind it."""
    state = status.rolling_state or _R.locating
    reached = _ORDER.index(state) if state in _ORDER else 0
    for passed in _ORDER[:reached]:
        yield _TYPES[passed], (TRUE, "Done", "")
    if state is _R.rolling and status.batch_rolling_state in _BATCH_ORDER:
        for batch in _BATCH_ORDER[: _BATCH_ORDER.index(status.batch_rolling_state)]:
            yield _BATCH_TYPES[batch], (TRUE, "Done", "")


def _current(status: RolloutStatus, wait: Wait | None) -> dict[str, tuple[str, str, str]]:
    state = status.rolling_state or _R.locating
    if state in (_R.succeeded, _R.failed):
        return {_TYPES[state]: (TRUE, "Done" if state is _R.succeeded else "Failed", status.failure)}
    if state is _R.rolling:
        batch = status.batch_rolling_state or _B.initializing
        held = (TRUE, "Done", status.message) if batch is _B.ready else (FALSE, _reason(wait), status.message)
        return {_TYPES[state]: (FALSE, _reason(wait), status.message)} | {_BATCH_TYPES[batch]: held}
    type_ = _TYPES.get(state, _TYPES[_R.verifying])
    return {type_: (FALSE, _reason(wait), status.message)}


def _reason(wait: Wait | None) -> str:
    return wait.code if wait is not None else "InProgress"

"""Batch step: what a rollout does within `rollingInBatches`: the next step of its current batch.

A batch begins while those before it are available and everybody who is asked agrees; its pods roll; they are verified,
with their traffic and their metrics; and the next batch may roll, unless it is behind the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from kedge.api.oam.rollout_plan import HookType, OnDeadline, RolloutStrategy
from kedge.api.oam.rollout_status import BatchState
from kedge.plan.batching.batches import batch_at, begun, current_batch, replanned
from kedge.plan.batching.gates import (
    autoscalers,
    hooks,
    metrics,
    traffic,
)
from kedge.plan.batching.moves import Batch, Step
from kedge.plan.batching.rollout_waits import BatchCode, sentence, waiting_for
from kedge.plan.batching.sizes import BadBatches
from kedge.plan.batching.states import RolloutEvent
from kedge.plan.batching.steps import (
    BatchRolloutInput,
    Ended,
    Hold,
    Move,
    Next,
    Note,
    answer,
    failed,
    invalid_plan,
    known,
    not_located,
)
from kedge.plan.moving.wait import Wait


def rolling(seen: BatchRolloutInput, now: datetime) -> Next:
    """What the current batch does next."""
    if (missing := not_located(seen)) is not None:
        return missing
    if seen.plan.paused:
        return Hold(waiting_for("the rollout", BatchCode.paused))
    if (invalid := invalid_plan(seen)) is not None:
        return invalid
    batch = current_batch(seen.plan, seen.status, is_scale=seen.is_scale)
    return _BATCH_STATES[seen.status.batch_rolling_state or BatchState.initializing](seen, batch, now)


def _batch_initializing(seen: BatchRolloutInput, batch: Batch, now: datetime) -> Next:
    """A batch begins only while those before it are still available, and when everybody agrees."""
    if batch.index and (lost := _lost(seen, batch.index - 1)) is not None:
        return lost
    if (contested := autoscalers(seen)) is not None:
        return contested
    if (asked := hooks(seen, HookType.pre_batch_rollout, BatchState.initializing, now, batch.index)) is not None:
        return asked
    return Move(RolloutEvent.batch_initialized, replace(seen.status, batch_started_at=now, batch_available_at=None))


def _lost(seen: BatchRolloutInput, index: int) -> Next | None:
    workloads, moves = known(seen)
    before = batch_at(seen.plan, seen.status, index, is_scale=seen.is_scale)
    found = moves.check(workloads, seen.status, before)
    if found.wait is None:
        return None
    # Nobody can tell how many pods there are of what is gone, or has not reported yet: then that is what it waits for.
    is_counted = "available" in found.wait.numbers
    return Hold(replace(found.wait, code=BatchCode.proof_lost) if is_counted else found.wait)


def _batch_rolling(seen: BatchRolloutInput, batch: Batch, now: datetime) -> Next:
    workloads, moves = known(seen)
    number, next_pod = begun(batch, seen.status.batch_started_at, now)
    part = replace(batch, goal=batch.before + (number if batch.goal >= batch.before else -number))
    found = moves.roll(workloads, seen.status, part)
    if (shifted := _traffic_before(seen, found, part, batch, now)) is not None:
        return shifted
    if found.is_done and next_pod is not None:
        interval, size = batch.spec.instance_interval or 0, abs(batch.goal - batch.before)
        wait = waiting_for(f"batch {batch.index}", BatchCode.interval, moved=number, size=size, seconds=interval)
        return Hold(wait, next_pod)
    rolled = replace(seen.status, upgraded_replicas=batch.goal)
    return _within_deadline(seen, now, answer(seen, found, lambda: Move(RolloutEvent.batch_rolled, rolled)))


def _traffic_before(seen: BatchRolloutInput, found: Step, part: Batch, batch: Batch, now: datetime) -> Next | None:
    """Pods are taken away only when their traffic has gone; the target is there already if it comes first."""
    takes_away = any(write.takes_away for write in found.writes) and not found.makes_room
    if not takes_away or seen.is_scale or batch.strategy is RolloutStrategy.decrease_first:
        return None
    return traffic(seen, part.goal, batch, now)


def _batch_verifying(seen: BatchRolloutInput, batch: Batch, now: datetime) -> Next:
    workloads, moves = known(seen)
    found = moves.check(workloads, seen.status, batch)
    if not found.is_done:
        if seen.status.batch_available_at is not None:
            return Note(replace(seen.status, batch_available_at=None))  # what was measured since says nothing
        return _within_deadline(seen, now, answer(seen, found, Ended))
    shifted = None if seen.is_scale else traffic(seen, batch.goal, batch, now)
    return shifted or metrics(seen, batch, now) or Move(RolloutEvent.batch_available, seen.status)


def _batch_failed(seen: BatchRolloutInput, batch: Batch, now: datetime) -> Next:  # noqa: ARG001
    """The event that leads here leads out of the batches as well: somebody else wrote this state."""
    return failed(seen, f"batch {batch.index} failed its verification")


def _batch_finalizing(seen: BatchRolloutInput, batch: Batch, now: datetime) -> Next:
    if (asked := hooks(seen, HookType.post_batch_rollout, BatchState.finalizing, now, batch.index)) is not None:
        return asked
    if batch.index + 1 >= len(seen.status.batches):
        return Move(RolloutEvent.all_batches_finished, seen.status)
    return Move(RolloutEvent.batch_finished, seen.status)


def _batch_ready(seen: BatchRolloutInput, batch: Batch, now: datetime) -> Next:  # noqa: ARG001
    """The next batch may roll, unless it is behind the partition. One that was lowered only holds."""
    last, number = seen.plan.last_batch, len(seen.status.batches)
    if last is not None and last <= batch.index:
        return Hold(waiting_for("the rollout", BatchCode.last_batch, batch=batch.index, batches=number))
    return _with_later_batches(seen) or Move(RolloutEvent.batch_approved, seen.status)


def _with_later_batches(seen: BatchRolloutInput) -> Next | None:
    """Batches that have not begun may be changed."""
    try:
        batches = replanned(seen.plan, seen.status, is_scale=seen.is_scale)
    except BadBatches as error:
        return Hold(waiting_for("the plan", BatchCode.invalid, str(error)))
    return Note(replace(seen.status, batches=batches)) if batches != seen.status.batches else None


def _within_deadline(seen: BatchRolloutInput, now: datetime, found: Next) -> Next:
    """A wait of a batch ends at its deadline, if it has one."""
    seconds, since = seen.plan.progress_deadline_seconds, seen.status.batch_started_at
    if not isinstance(found, Hold) or seconds is None or since is None:
        return found
    deadline = since + timedelta(seconds=seconds)
    if now < deadline:
        return replace(found, until=min(found.until or deadline, deadline))
    if seen.plan.on_deadline is OnDeadline.hold:
        return Hold(waiting_for(found.wait.unit, BatchCode.deadline, *_reported(found.wait), seconds=seconds))
    late = f"batch {seen.status.current_batch} was not available within {seconds} s"
    return failed(seen, f"{late}: {sentence(found.wait)}")


def _reported(wait: Wait) -> tuple[str, ...]:
    return tuple(one.reported for one in wait.blockers)


_BATCH_STATES: Final[Mapping[BatchState, Callable[[BatchRolloutInput, Batch, datetime], Next]]] = {
    BatchState.initializing: _batch_initializing,
    BatchState.rolling: _batch_rolling,
    BatchState.verifying: _batch_verifying,
    BatchState.verify_failed: _batch_failed,
    BatchState.finalizing: _batch_finalizing,
    BatchState.ready: _batch_ready,
}

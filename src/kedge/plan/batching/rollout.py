"""Rollout: one step of a rollout in batches, from what is observed to what is to be done next.

`step` answers with one thing: an event that leads to another state, something to do in this one, a wait, or nothing
more to do. The caller does it, looks again and asks again. What was done is seen in the workloads, and where it has got
is in the status, so that a restart at any moment goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.oam.rollout_plan import OnDeadline, RolloutPlan
from kedge.api.oam.rollout_status import BatchState, RollingState, RolloutStatus
from kedge.plan.batching.batches import back, batch_at, begun, current_batch, planned
from kedge.plan.batching.moves import Batch, Moves, Step, Verified, Workloads, Write
from kedge.plan.batching.records import with_old_target, with_records
from kedge.plan.batching.rollout_waits import BatchCode, waiting_for
from kedge.plan.batching.sizes import BadBatches
from kedge.plan.batching.states import ENDED, RolloutEvent
from kedge.plan.moving.wait import Wait


class Identity(Struct, frozen=True):
    """Which rollout."""

    kind: str
    namespace: str
    name: str
    uid: str
    generation: int = 0

    @property
    def claim(self) -> str:
        """What it writes to the workloads that it moves."""
        return f"{self.kind}/{self.name}/{self.uid}"


class RolloutInput(Struct, frozen=True):
    """A rollout, and all that a step depends on."""

    identity: Identity
    plan: RolloutPlan
    status: RolloutStatus
    wanted: str
    """What it is asked to move to."""
    moving: str
    """What it moves to, or moved to last, by its status; empty if nothing yet."""
    workloads: Workloads | None = None
    """What moves; None if that is not known."""
    moves: Moves | None = None
    wait: Wait | None = None
    """What has to be there before it is known what moves."""
    problem: str = ""
    """Why it can never be known."""
    is_deleting: bool = False
    is_aborted: bool = False
    retry: str = ""
    """A request to start a failed rollout again."""

    @property
    def is_scale(self) -> bool:
        return self.workloads is not None and self.workloads.is_scale


class Move(Struct, frozen=True):
    """An event, and what it changes in the status beside the state."""

    event: RolloutEvent
    status: RolloutStatus
    message: str = ""


class Act(Struct, frozen=True):
    """Something to do."""

    writes: tuple[Write, ...] = ()


class Hold(Struct, frozen=True):
    """Something to wait for; `until` is when time alone may change something."""

    wait: Wait
    until: datetime | None = None


class Ended(Struct, frozen=True):
    """Nothing is left to do; a rollout that is being deleted may go."""


Next: TypeAlias = Move | Act | Hold | Ended


def step(seen: RolloutInput, now: datetime) -> Next:
    """What to do next. Pure: same observation, same step."""
    state = seen.status.rolling_state or RollingState.locating
    return _interrupted(seen, state) or _STATES[state](seen, now)


# What may happen in any state


def _interrupted(seen: RolloutInput, state: RollingState) -> Next | None:
    if seen.is_deleting:
        return None if state in (*ENDED, RollingState.deleting) else Move(RolloutEvent.deleted, seen.status)
    if is_modified(seen) and state not in (RollingState.locating, RollingState.abandoning, RollingState.deleting):
        return Move(RolloutEvent.modified, seen.status)
    if seen.is_aborted and state not in (*ENDED, RollingState.failing, RollingState.abandoning, RollingState.deleting):
        return _failed(seen, "it was aborted")
    return None


def is_modified(seen: RolloutInput) -> bool:
    """Whether it is asked for something else than it does: another target, or another size."""
    if seen.moving and seen.moving != seen.wanted:
        return True
    size, known = seen.plan.target_size, seen.status.rollout_target_size
    return bool(seen.moving) and size is not None and bool(seen.status.batches) and size != known


def _failed(seen: RolloutInput, why: str) -> Move:
    return Move(RolloutEvent.failed, replace(seen.status, failure=why), why)


def _ended(seen: RolloutInput, now: datetime) -> Next:  # noqa: ARG001
    if seen.is_deleting or seen.status.rolling_state is RollingState.succeeded:
        return Ended()
    # What failed before anything was touched may be mended by an edit.
    is_mended = not seen.status.batches and seen.status.observed_generation < seen.identity.generation
    if is_mended or (seen.retry and seen.retry != seen.status.retried):
        return Move(RolloutEvent.retried, replace(seen.status, retried=seen.retry))
    return Ended()


# Before the first batch


def _locating(seen: RolloutInput, now: datetime) -> Next:  # noqa: ARG001
    if seen.problem:
        return _failed(seen, seen.problem)
    if seen.wait is not None or seen.workloads is None:
        return Hold(seen.wait or waiting_for("the target", BatchCode.missing))
    return Move(RolloutEvent.located, with_records(seen.status, seen.workloads))


def _verifying(seen: RolloutInput, now: datetime) -> Next:  # noqa: ARG001
    if (unlocated := _unlocated(seen)) is not None:
        return unlocated
    workloads, moves = _known(seen)
    found = moves.verify(workloads, seen.plan, seen.status)
    return _sized(seen, found) if isinstance(found, Verified) else _answer(seen, found, Ended)


def _sized(seen: RolloutInput, found: Verified) -> Next:
    try:
        batches = planned(seen.plan, found.original, found.total, is_scale=seen.is_scale)
    except BadBatches as error:
        return _failed(seen, str(error))
    status = replace(
        seen.status,
        rollout_original_size=found.original,
        rollout_target_size=found.total,
        desired_size=found.total,
        target_generation=found.template_hash,
        batches=batches,
        current_batch=0,
    )
    return Move(RolloutEvent.verified, status)


def _initializing(seen: RolloutInput, now: datetime) -> Next:  # noqa: ARG001
    if (unlocated := _unlocated(seen)) is not None:
        return unlocated
    workloads, moves = _known(seen)
    found = moves.initialize(workloads, seen.status, seen.identity.claim)
    return _answer(seen, found, lambda: Move(RolloutEvent.initialized, seen.status))


# Batches


def _rolling(seen: RolloutInput, now: datetime) -> Next:
    if (unlocated := _unlocated(seen)) is not None:
        return unlocated
    if seen.plan.paused:
        return Hold(waiting_for("the rollout", BatchCode.paused))
    batch = current_batch(seen.plan, seen.status, is_scale=seen.is_scale)
    return _BATCH_STATES[seen.status.batch_rolling_state or BatchState.initializing](seen, batch, now)


def _batch_initializing(seen: RolloutInput, batch: Batch, now: datetime) -> Next:
    """A batch begins only while those before it are still available."""
    if batch.index and (lost := _lost(seen, batch.index - 1)) is not None:
        return lost
    return Move(RolloutEvent.batch_initialized, replace(seen.status, batch_started_at=now))


def _lost(seen: RolloutInput, index: int) -> Next | None:
    workloads, moves = _known(seen)
    before = batch_at(seen.plan, seen.status, index, is_scale=seen.is_scale)
    found = moves.check(workloads, seen.status, before)
    if found.wait is None:
        return None
    return Hold(replace(found.wait, code=BatchCode.proof_lost))


def _batch_rolling(seen: RolloutInput, batch: Batch, now: datetime) -> Next:
    workloads, moves = _known(seen)
    number, next_pod = begun(batch, seen.status.batch_started_at, now)
    growing = batch.goal >= batch.before
    part = replace(batch, goal=batch.before + (number if growing else -number))
    found = moves.roll(workloads, seen.status, part)
    if found.is_done and next_pod is not None:
        interval, size = batch.spec.instance_interval or 0, abs(batch.goal - batch.before)
        wait = waiting_for(f"batch {batch.index}", BatchCode.interval, moved=number, size=size, seconds=interval)
        return Hold(wait, next_pod)
    rolled = replace(seen.status, upgraded_replicas=batch.goal)
    return _within_deadline(seen, now, _answer(seen, found, lambda: Move(RolloutEvent.batch_rolled, rolled)))


def _batch_verifying(seen: RolloutInput, batch: Batch, now: datetime) -> Next:
    workloads, moves = _known(seen)
    found = moves.check(workloads, seen.status, batch)
    return _within_deadline(seen, now, _answer(seen, found, lambda: Move(RolloutEvent.batch_available, seen.status)))


def _batch_finalizing(seen: RolloutInput, batch: Batch, now: datetime) -> Next:  # noqa: ARG001
    if batch.index + 1 >= len(seen.status.batches):
        return Move(RolloutEvent.all_batches_finished, seen.status)
    return Move(RolloutEvent.batch_finished, seen.status)


def _batch_ready(seen: RolloutInput, batch: Batch, now: datetime) -> Next:  # noqa: ARG001
    """The next batch may roll, unless it is behind the partition. One that was lowered only holds."""
    last = seen.plan.last_batch
    if last is None or last > batch.index:
        return Move(RolloutEvent.batch_approved, seen.status)
    return Hold(
        waiting_for(
            "the rollout", BatchCode.last_batch, batch=last, current=batch.index, batches=len(seen.status.batches)
        )
    )


def _within_deadline(seen: RolloutInput, now: datetime, found: Next) -> Next:
    """A wait of a batch ends at its deadline, if it has one."""
    seconds, since = seen.plan.progress_deadline_seconds, seen.status.batch_started_at
    if not isinstance(found, Hold) or seconds is None or since is None:
        return found
    deadline = since + timedelta(seconds=seconds)
    if now < deadline:
        return replace(found, until=min(found.until or deadline, deadline))
    late = waiting_for(found.wait.unit, BatchCode.deadline, *_reported(found.wait), seconds=seconds)
    if seen.plan.on_deadline is OnDeadline.hold:
        return Hold(late)
    return _failed(seen, f"batch {seen.status.current_batch} was not available within {seconds} s")


def _reported(wait: Wait) -> tuple[str, ...]:
    return tuple(one.reported for one in wait.blockers if one.reported)


# The end


def _finalising(seen: RolloutInput, now: datetime) -> Next:
    done = replace(seen.status, last_applied_pod_template_identifier=seen.status.target_generation, desired_size=0)
    return _let_go(seen, now, succeeded=True, done=done)


def _failing(seen: RolloutInput, now: datetime) -> Next:
    return _let_go(seen, now, succeeded=False, done=seen.status)


def _abandoning(seen: RolloutInput, now: datetime) -> Next:
    """The next rollout begins where this one got to: its target is one of the old revisions."""
    done = with_old_target(seen.status, seen.workloads.target.ref) if seen.workloads is not None else seen.status
    return _let_go(seen, now, succeeded=False, done=done)


def _deleting(seen: RolloutInput, now: datetime) -> Next:
    """Taken back first, if that was asked for. What is gone already needs nothing: a deletion always gets through."""
    if seen.plan.revert_on_delete and seen.status.batches and seen.workloads is not None and seen.moves is not None:
        batch = back(seen.plan, seen.status, is_scale=seen.is_scale)
        found = seen.moves.revert(seen.workloads, seen.status, batch)
        if found.writes:
            return Act(found.writes)
        if found.wait is not None:
            return Hold(found.wait)
    return _let_go(seen, now, succeeded=False, done=seen.status)


def _let_go(seen: RolloutInput, now: datetime, *, succeeded: bool, done: RolloutStatus) -> Next:  # noqa: ARG001
    if seen.workloads is not None and seen.moves is not None:
        found = seen.moves.finalize(seen.workloads, seen.status, succeeded=succeeded)
        if found.writes:
            return Act(found.writes)
        if found.wait is not None:
            return Hold(found.wait)
    return Move(RolloutEvent.finalized, done)


# Shared


def _known(seen: RolloutInput) -> tuple[Workloads, Moves]:
    assert seen.workloads is not None
    assert seen.moves is not None
    return seen.workloads, seen.moves


def _unlocated(seen: RolloutInput) -> Next | None:
    """What is referred to may vanish at any time."""
    if seen.workloads is not None and seen.moves is not None:
        return None
    if seen.problem:
        return _failed(seen, seen.problem)
    return Hold(seen.wait or waiting_for("the target", BatchCode.missing))


def _answer(seen: RolloutInput, found: Step, done: Callable[[], Next]) -> Next:
    if found.failure:
        return _failed(seen, found.failure)
    if found.writes:
        return Act(found.writes)
    return Hold(found.wait) if found.wait is not None else done()


_STATES: Final[Mapping[RollingState, Callable[[RolloutInput, datetime], Next]]] = {
    RollingState.locating: _locating,
    RollingState.verifying: _verifying,
    RollingState.initializing: _initializing,
    RollingState.rolling: _rolling,
    RollingState.finalising: _finalising,
    RollingState.failing: _failing,
    RollingState.abandoning: _abandoning,
    RollingState.deleting: _deleting,
    RollingState.succeeded: _ended,
    RollingState.failed: _ended,
}
_BATCH_STATES: Final[Mapping[BatchState, Callable[[RolloutInput, Batch, datetime], Next]]] = {
    BatchState.initializing: _batch_initializing,
    BatchState.rolling: _batch_rolling,
    BatchState.verifying: _batch_verifying,
    BatchState.verify_failed: _batch_verifying,
    BatchState.finalizing: _batch_finalizing,
    BatchState.ready: _batch_ready,
}

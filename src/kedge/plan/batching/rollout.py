"""Rollout: one step of a rollout in batches, from what is observed to what is to be done next.

`step` answers with one thing: an event that leads to another state, something to do or to note in this one, a wait, or
nothing more to do. The caller does it, looks again and asks again. What was done is seen in the workloads, and where it
has got to is in the status, so that a restart at any moment goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from kedge.api.oam.rollout_plan import HookType
from kedge.api.oam.rollout_status import BatchState, RollingState, RolloutStatus
from kedge.plan.batching.batch_step import rolling
from kedge.plan.batching.batches import is_rewritten, planned
from kedge.plan.batching.ending import abandoning, deleting, disowned, failing, finalising
from kedge.plan.batching.gates import (
    applications_released,
    autoscalers,
    hooks,
    route_recorded,
    services,
)
from kedge.plan.batching.moves import Step, Verified, WorkloadRef, Workloads
from kedge.plan.batching.progress import without_future
from kedge.plan.batching.records import asked_of_all, at_beginning, has_new_sources, with_records
from kedge.plan.batching.rollout_waits import BatchCode, waiting_for
from kedge.plan.batching.sizes import BadBatches
from kedge.plan.batching.spec_rules import fixed_part
from kedge.plan.batching.states import ENDED, RolloutEvent, has_moved, is_others
from kedge.plan.batching.steps import (
    Act,
    BatchRolloutInput,
    Ended,
    Hold,
    Move,
    Next,
    answer,
    failed,
    invalid_plan,
    invalid_references,
    known,
    not_located,
)

ADOPTED: Final = "another controller began it: it begins again, from what its pods show"
_LEAVING: Final = (RollingState.failing, RollingState.abandoning, RollingState.deleting)


def step(seen: BatchRolloutInput, now: datetime) -> Next:
    """What to do next. Pure: same observation, same step."""
    seen = replace(seen, status=without_future(seen.status, now))
    state = seen.status.rolling_state or RollingState.locating
    return _interrupted(seen, state) or _STATES[state](seen, now)


# What may happen in any state


def _interrupted(seen: BatchRolloutInput, state: RollingState) -> Next | None:
    if seen.is_deleting:
        is_over = state in (*ENDED, RollingState.deleting) and not _is_taken_back(seen, state)
        return None if is_over else Move(RolloutEvent.deleted, seen.status)
    if is_others(seen.status):
        return _adopted(seen)
    # What failed before it had a size is begun again by an edit (`_ended`), whatever it moved to before.
    is_left = state is RollingState.failed and not seen.status.batches
    unmoved = (RollingState.locating, RollingState.abandoning, RollingState.deleting)
    if is_modified(seen) and state not in unmoved and not is_left:
        return Move(RolloutEvent.modified, seen.status)
    if seen.is_aborted and state not in (*ENDED, *_LEAVING):
        return failed(seen, "it was aborted")
    return None


def _adopted(seen: BatchRolloutInput) -> Next:
    """Begin anew what another controller began. Its size is the one that it was to have, never that of a part."""
    size, status = seen.plan.target_size or seen.status.rollout_target_size, seen.status
    if size <= 0:
        if seen.writes:
            return Act(seen.writes)
        if (missing := not_located(seen)) is not None:
            return missing
        status = replace(status, rollout_target_size=asked_of_all(known(seen)[0]))
    return Move(RolloutEvent.adopted, status, ADOPTED)


def _is_taken_back(seen: BatchRolloutInput, state: RollingState) -> bool:
    """Whether a rollout that failed midway is taken back now that it is deleted."""
    return state is RollingState.failed and seen.plan.revert_on_delete and bool(seen.status.batches)


def is_modified(seen: BatchRolloutInput) -> bool:
    """Whether it is asked for something else than it does: another target, another size, or another beginning."""
    if seen.moving and seen.moving != seen.wanted:
        return True
    size, fixed = seen.plan.target_size, seen.status.rollout_target_size
    if not seen.moving or not (seen.status.batches or _has_size_of_others(seen.status)):
        return False
    return (size is not None and size != fixed) or (_may_roll(seen.status) and _begins_otherwise(seen))


def _has_size_of_others(status: RolloutStatus) -> bool:
    """Whether another controller ended it, and wrote its size: then another size is another rollout."""
    return status.rolling_state is RollingState.succeeded and status.rollout_target_size > 0


def _may_roll(status: RolloutStatus) -> bool:
    """Whether pods of the current batch may still be moved."""
    if status.rolling_state is RollingState.rolling:
        return status.batch_rolling_state in (None, BatchState.initializing, BatchState.rolling)
    return status.rolling_state is RollingState.initializing


def _begins_otherwise(seen: BatchRolloutInput) -> bool:
    """Whether it has other sources or batches than it began with: it was asked for another target in between."""
    if seen.workloads is None:
        return False
    return has_new_sources(seen.status, seen.workloads) or is_rewritten(seen.plan, seen.status, is_scale=seen.is_scale)


def _ended(seen: BatchRolloutInput, now: datetime) -> Next:  # noqa: ARG001
    if seen.status.rolling_state is RollingState.succeeded:
        return Ended()
    # One that failed before its first batch had no state in which it let go of them.
    if (held := applications_released(seen, succeeded=False, reverted=not has_moved(seen.status))) is not None:
        return held
    if seen.is_deleting:
        return disowned(seen) or Ended()
    # What failed before anything was touched may be mended by an edit.
    is_mended = not seen.status.batches and 0 < seen.status.observed_generation < seen.identity.generation
    if is_mended or (seen.retry and seen.retry != seen.status.retried):
        return Move(RolloutEvent.retried, replace(seen.status, retried=seen.retry))
    return Ended()


# Before the first batch


def _locating(seen: BatchRolloutInput, now: datetime) -> Next:  # noqa: ARG001
    if (invalid := invalid_references(seen)) is not None:
        return invalid
    if seen.problem:
        return failed(seen, seen.problem)
    if seen.writes:
        return Act(seen.writes)
    if seen.wait is not None or seen.workloads is None:
        return Hold(seen.wait or waiting_for("the target", BatchCode.missing))
    if (missing := _missing_source(seen.workloads)) is not None:
        return Hold(waiting_for(str(missing), BatchCode.missing_source))
    return Move(RolloutEvent.located, with_records(seen.status, seen.workloads))


def _missing_source(workloads: Workloads) -> WorkloadRef | None:
    """A source that is not there, and that no revision can say anything of. It is not recorded: it may be a mistake."""
    found = (one for one in workloads.sources if one.obj is None and one.manifest is None and not one.revision)
    return None if workloads.in_place else next((one.ref for one in found), None)


def _verifying(seen: BatchRolloutInput, now: datetime) -> Next:
    if (missing := not_located(seen) or invalid_plan(seen)) is not None:
        return missing
    workloads, moves = known(seen)
    found = moves.verify(workloads, seen.plan, seen.status)
    if isinstance(found, Step) and found.writes and (held := _not_to_be_created(seen, now)) is not None:
        return held
    return _sized(seen, found) if isinstance(found, Verified) else answer(seen, found, Ended)


def _not_to_be_created(seen: BatchRolloutInput, now: datetime) -> Next | None:
    """What comes before a target that has pods as soon as it exists."""
    if seen.plan.paused:
        return Hold(waiting_for("the rollout", BatchCode.paused))
    return hooks(seen, HookType.initialize_rollout, RollingState.initializing, now)


def _sized(seen: BatchRolloutInput, found: Verified) -> Next:
    try:
        batches = planned(seen.plan, found.original, found.total, is_scale=seen.is_scale)
    except BadBatches as error:
        return failed(seen, str(error))
    status = replace(
        at_beginning(seen.status, known(seen)[0]),
        rollout_original_size=found.original,
        rollout_target_size=found.total,
        desired_size=found.total,
        target_generation=found.template_hash,
        batches=batches,
        fixed_plan=fixed_part(seen.plan),
        current_batch=0,
    )
    return Move(RolloutEvent.verified, status)


def _initializing(seen: BatchRolloutInput, now: datetime) -> Next:
    if (missing := not_located(seen)) is not None:
        return missing
    if (asked := hooks(seen, HookType.initialize_rollout, RollingState.initializing, now)) is not None:
        return asked
    if (contested := autoscalers(seen)) is not None:
        return contested
    if (shared := services(seen)) is not None:
        return shared
    if (unread := route_recorded(seen, now)) is not None:
        return unread
    workloads, moves = known(seen)
    found = moves.initialize(workloads, seen.status, seen.identity.claim)
    if seen.plan.paused and any(write.resizes for write in found.writes):
        return Hold(waiting_for("the rollout", BatchCode.paused))  # taking over is no move, but this is
    return answer(seen, found, lambda: Move(RolloutEvent.initialized, seen.status))


_STATES: Final[Mapping[RollingState, Callable[[BatchRolloutInput, datetime], Next]]] = {
    RollingState.locating: _locating,
    RollingState.verifying: _verifying,
    RollingState.initializing: _initializing,
    RollingState.rolling: rolling,
    RollingState.finalising: finalising,
    RollingState.failing: failing,
    RollingState.abandoning: abandoning,
    RollingState.deleting: deleting,
    RollingState.succeeded: _ended,
    RollingState.failed: _ended,
}

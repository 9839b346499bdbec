"""Step: what a run does now, and what it waits for.

    planned = step(seen, now)

Promises:

* of a stage never more clusters move than its maxConcurrency allows: one that has begun counts until it is proven done;
* no cluster of a stage begins before the stages before it are over, their tasks and its own beforeStageTasks included;
* nothing begins while the run is stopped, or another run moves the placement; what has begun is followed to its end;
* clusters begin in their order; a run that stands still says why.

That a cluster begins is written on the run first, and only then is its binding moved: the server takes that word only
if the run is still as it was seen, so that a run that was stopped a moment ago moves nothing. Should the second write
be lost, the next look finds a cluster that has begun and does not point where it should.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, UNKNOWN
from kedge.api.dialect import Dialect
from kedge.api.placement_kinds import Run
from kedge.api.reasons import (
    INITIALIZED,
    PROGRESSING,
    RUN_FAILED,
    RUN_PROGRESSING,
    RUN_STARTED,
    RUN_STOPPED,
    RUN_STOPPING,
    RUN_STUCK,
    RUN_SUCCEEDED,
    RUN_WAITING,
    STAGE_FAILED,
    STAGE_STOPPED,
    STAGE_STOPPING,
    SUCCEEDED,
)
from kedge.api.stage import StrategySpec
from kedge.api.staged import RunState
from kedge.api.staged_status import RunStatus, StageStatus
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.staging.clearing import Clearing
from kedge.plan.staging.conditions import (
    Stamp,
    at_generation,
    find,
    has_begun,
    has_ended,
    is_initialized,
    is_moving,
    is_over,
    reason_of,
    settled_at,
    with_condition,
)
from kedge.plan.staging.grouping import newcomers, with_newcomers
from kedge.plan.staging.run_input import RunInput, RunStep
from kedge.plan.staging.stages import Stages
from kedge.plan.staging.step_builder import RunFailure, StepBuilder
from kedge.plan.staging.wait_text import RunCode, wait_texts
from kedge.plan.text import listed

_SOON: Final = 0.001


def wanted_state(run: Run, dialect: Dialect) -> RunState:
    """What is wanted of a run; one that does not say runs, and in today's KubeFleet only gets ready."""
    default = RunState.initialize if dialect is Dialect.kubefleet else RunState.run
    return run.spec.state or default


def step(seen: RunInput, now: datetime) -> RunStep:
    """What a run that is initialized does now. Pure: same observation, same step."""
    at = Stamp(now, seen.run.metadata.generation)
    status = at_generation(seen.run.status, at.generation)
    if has_ended(status):
        return RunStep(status=status)
    builder = StepBuilder(seen, at, is_stopped=wanted_state(seen.run, seen.dialect) is RunState.stop)
    try:
        status = _taken(seen, status, builder, at)
    except RunFailure as failure:
        failed = _failed(status if failure.status is None else failure.status, str(failure), at)
        return RunStep(status=failed, accept=tuple(builder.accept))
    return RunStep(
        status=status,
        point=tuple(builder.point),
        remove=tuple(builder.remove),
        request=tuple(builder.request),
        withdraw=tuple(builder.withdraw),
        accept=tuple(builder.accept),
        measure=tuple(builder.measure),
        waits=(*builder.stuck, *(one for one in builder.waits if one not in builder.stuck)),
        look_again=max(_SOON, (min(builder.timers) - now).total_seconds()) if builder.timers else None,
    )


def _taken(seen: RunInput, status: RunStatus, builder: StepBuilder, at: Stamp) -> RunStatus:
    if seen.gone_for_good:
        raise RunFailure(seen.gone_for_good)
    if problem := torn(status):
        raise RunFailure(problem)
    match wanted_state(seen.run, seen.dialect):
        case RunState.initialize:
            return status
        case RunState.stop:
            return _stopped(seen, status, builder, at)
        case RunState.run if seen.ahead:
            builder.waits.append(Wait(seen.run.metadata.name, RunCode.other_run, {}, (Blocker(seen.ahead),)))
            return _waiting(seen, status, builder, at)
        case _:
            return _advanced(seen, status, builder, at)


def torn(status: RunStatus) -> str:
    """What is wrong if the status was changed by somebody, and no longer has what the run was begun with."""
    strategy = status.staged_update_strategy_snapshot
    if strategy is None:
        return "status.stagedUpdateStrategySnapshot was removed: make another run"
    wanted, found = [one.name for one in strategy.stages], [one.stage_name for one in status.stages_status]
    if wanted == found:
        return ""
    return (
        f"status.stagesStatus was changed: it has {_named(found)}, and the strategy that the run was begun with has "
        f"{_named(wanted)}: make another run"
    )


def _named(stages: Sequence[str]) -> str:
    return f"{'stage' if len(stages) == 1 else 'stages'} {listed(stages)}" if stages else "no stages"


# Running


def _advanced(seen: RunInput, status: RunStatus, builder: StepBuilder, at: Stamp) -> RunStatus:
    """As far as it gets now: through clusters that are done, and stages that are over."""
    status, strategy = with_newcomers(seen, status), _strategy(status)
    stages, walk = list(status.stages_status), Stages(seen, builder, strategy, at)
    for number, stage in enumerate(stages):
        if is_over(stage):
            walk.keep(stage)
            continue
        try:
            stages[number] = walk.advance(stage)
        except RunFailure as failure:
            failure.status = _with(status, stages, number, failure.stage or stage)
            raise
        if not is_over(stages[number]):
            return _with_progressing(seen, replace(status, stages_status=tuple(stages)), builder, at)
    status = replace(status, stages_status=tuple(stages))
    last = Clearing(seen, builder, strategy, at, _done_at(status)).advance(status.deletion_stage_status)
    status = replace(status, deletion_stage_status=last)
    return _ended(seen, status, at) if is_over(last) else _with_progressing(seen, status, builder, at)


def _done_at(status: RunStatus) -> datetime | None:
    """When the last cluster was done; when the run began, if it had none."""
    began = find(status, INITIALIZED)
    done = [at for at in map(settled_at, status.stages_status) if at is not None]
    return max(done, default=began.last_transition_time if began is not None else None)


def _with(status: RunStatus, stages: list[StageStatus], number: int, stage: StageStatus) -> RunStatus:
    return replace(status, stages_status=(*stages[:number], stage, *stages[number + 1 :]))


def _with_progressing(seen: RunInput, status: RunStatus, builder: StepBuilder, at: Stamp) -> RunStatus:
    """What a run says that is under way."""
    if builder.stuck:
        return _stuck(seen, status, builder, at)
    if builder.moves:
        reason = RUN_PROGRESSING if seen.dialect is Dialect.kubefleet else RUN_STARTED
        return with_condition(status, PROGRESSING, TRUE, reason, "", at)
    return _waiting(seen, status, builder, at)


def _stuck(seen: RunInput, status: RunStatus, builder: StepBuilder, at: Stamp) -> RunStatus:
    return with_condition(status, PROGRESSING, FALSE, RUN_STUCK, wait_texts(builder.stuck, seen.run.metadata.name), at)


def _waiting(seen: RunInput, status: RunStatus, builder: StepBuilder, at: Stamp) -> RunStatus:
    name = seen.run.metadata.name
    return with_condition(
        status, PROGRESSING, FALSE, RUN_WAITING, f"{name} waits: {wait_texts(builder.waits, name)}", at
    )


def _ended(seen: RunInput, status: RunStatus, at: Stamp) -> RunStatus:
    late = sorted(newcomers(seen, status))
    left = (
        f"{listed(late)} joined too late, or belongs to no stage: the next run brings the change there" if late else ""
    )
    status = with_condition(status, PROGRESSING, FALSE, RUN_SUCCEEDED, "", at)
    return with_condition(status, SUCCEEDED, TRUE, RUN_SUCCEEDED, left, at)


def _strategy(status: RunStatus) -> StrategySpec:
    return status.staged_update_strategy_snapshot or StrategySpec(stages=())


def _failed(status: RunStatus, problem: str, at: Stamp) -> RunStatus:
    def fail(stage: StageStatus) -> StageStatus:
        if is_over(stage) or not has_begun(stage):
            return stage
        stage = with_condition(stage, PROGRESSING, FALSE, STAGE_FAILED, "", at)
        return replace(
            with_condition(stage, SUCCEEDED, FALSE, STAGE_FAILED, problem, at), end_time=at.now.replace(microsecond=0)
        )

    last = status.deletion_stage_status
    status = replace(
        status,
        stages_status=tuple(fail(stage) for stage in status.stages_status),
        deletion_stage_status=None if last is None else fail(last),
    )
    status = with_condition(status, PROGRESSING, FALSE, RUN_FAILED, problem, at)
    return with_condition(status, SUCCEEDED, FALSE, RUN_FAILED, problem, at)


# Stopping


def _stopped(seen: RunInput, status: RunStatus, builder: StepBuilder, at: Stamp) -> RunStatus:
    """What has begun is followed to its end; nothing else begins."""
    current = next((stage for stage in status.stages_status if not is_over(stage)), None)
    last = status.deletion_stage_status
    if current is not None and has_begun(current):
        clusters = tuple(builder.followed(one) if is_moving(one) else one for one in current.clusters)
        rested = _resting(replace(current, clusters=clusters), builder, at)
        status = replace(status, stages_status=tuple(rested if one is current else one for one in status.stages_status))
    elif current is None and last is not None and has_begun(last):
        rested = Clearing(seen, builder, _strategy(status), at).rested(last)
        status = replace(status, deletion_stage_status=_resting(rested, builder, at))
    if builder.moves and builder.stuck:
        return _stuck(seen, status, builder, at)
    if builder.moves:
        return with_condition(
            status, PROGRESSING, UNKNOWN, RUN_STOPPING, f"still moving: {listed(builder.moves, most=3)}", at
        )
    return with_condition(status, PROGRESSING, FALSE, RUN_STOPPED, "", at)


def _resting(stage: StageStatus, builder: StepBuilder, at: Stamp) -> StageStatus:
    if builder.moves:
        return with_condition(stage, PROGRESSING, UNKNOWN, STAGE_STOPPING, "", at)
    return with_condition(stage, PROGRESSING, FALSE, STAGE_STOPPED, "", at)


def holds(status: RunStatus) -> bool:
    """Whether a run that has not ended has the placement to itself: it has begun, and was not asked to stop.

    One that failed had made room, and waits for its turn when it is tried again.
    """
    stages = (*status.stages_status, *((status.deletion_stage_status,) if status.deletion_stage_status else ()))
    current = next((stage for stage in stages if not is_over(stage)), None)
    if current is None or find(status, PROGRESSING) is None:
        return False
    return has_begun(current) and reason_of(current, PROGRESSING) not in (STAGE_STOPPED, STAGE_STOPPING, STAGE_FAILED)


# Which of several runs moves a placement


def ahead_of(run: Run, runs: Iterable[Run], dialect: Dialect) -> str:
    """The run that has the placement, or is to have it, before this one; empty if it is this one's turn.

    One that was asked to stop makes room as soon as it says that it does, and not before: it may be asked to go on in
    the same moment, and would find that it was never stopped. What it began with may never arrive, and another is to
    mend it.
    """
    live = [one for one in runs if not has_ended(one.status) and one.metadata.deletion_timestamp is None]
    ready = [one for one in live if is_initialized(one.status)]
    wanted = [one for one in ready if wanted_state(one, dialect) is RunState.run]
    first = next((one for one in ready if holds(one.status)), wanted[0] if wanted else None)
    return "" if first is None or first.metadata.uid == run.metadata.uid else first.metadata.name

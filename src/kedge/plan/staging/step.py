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

from datetime import datetime
from typing import Final

from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, UNKNOWN
from kedge.api.dialect import Dialect
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
from kedge.api.twins import Run
from kedge.plan.staging.changing import changed, newcomers
from kedge.plan.staging.clearing import Clearing
from kedge.plan.staging.round import Broken, Round
from kedge.plan.staging.saying import (
    At,
    find,
    has_begun,
    has_ended,
    is_moving,
    is_over,
    reason_of,
    say,
    settled_at,
    spoken_of,
)
from kedge.plan.staging.seen import Seen, Step
from kedge.plan.staging.stages import Stages
from kedge.plan.text import first, listed

_SOON: Final = 0.001


def wanted_state(run: Run, dialect: Dialect) -> RunState:
    """What is wanted of a run; one that does not say runs, and in today's KubeFleet only gets ready."""
    default = RunState.initialize if dialect is Dialect.kubefleet else RunState.run
    return run.spec.state or default


def step(seen: Seen, now: datetime) -> Step:
    """What a run that is initialized does now. Pure: same observation, same step."""
    at = At(now, seen.run.metadata.generation)
    status = spoken_of(seen.run.status, at.generation)
    if has_ended(status):
        return Step(status=status)
    round_ = Round(seen, at, is_stopped=wanted_state(seen.run, seen.dialect) is RunState.stop)
    try:
        status = _taken(seen, status, round_, at)
    except Broken as failure:
        failed = _failed(status if failure.status is None else failure.status, str(failure), at)
        return Step(status=failed, accept=tuple(round_.accept))
    return Step(
        status=status,
        point=tuple(round_.point),
        remove=tuple(round_.remove),
        ask=tuple(round_.ask),
        withdraw=tuple(round_.withdraw),
        accept=tuple(round_.accept),
        look_again=max(_SOON, (min(round_.timers) - now).total_seconds()) if round_.timers else None,
    )


def _taken(seen: Seen, status: RunStatus, round_: Round, at: At) -> RunStatus:
    if seen.gone_for_good:
        raise Broken(seen.gone_for_good)
    match wanted_state(seen.run, seen.dialect):
        case RunState.initialize:
            return status
        case RunState.stop:
            return _stopped(seen, status, round_, at)
        case RunState.run if seen.ahead:
            why = f"run {seen.ahead} moves the placement: this one goes on when that has ended, is stopped or deleted"
            return say(status, PROGRESSING, FALSE, RUN_WAITING, f"{seen.run.metadata.name} waits: {why}", at)
        case _:
            return _advanced(seen, status, round_, at)


# Running


def _advanced(seen: Seen, status: RunStatus, round_: Round, at: At) -> RunStatus:
    """As far as it gets now: through clusters that are done, and stages that are over."""
    status, strategy = changed(seen, status), _strategy(status)
    stages, walk = list(status.stages_status), Stages(seen, round_, strategy, at)
    for number, stage in enumerate(stages):
        if is_over(stage):
            walk.keep(stage)
            continue
        try:
            stages[number] = walk.advance(stage)
        except Broken as failure:
            failure.status = _with(status, stages, number, failure.stage or stage)
            raise
        if not is_over(stages[number]):
            return _says(seen, replace(status, stages_status=tuple(stages)), round_, at)
    status = replace(status, stages_status=tuple(stages))
    last = Clearing(seen, round_, strategy, at, _done_at(status)).advance(status.deletion_stage_status)
    status = replace(status, deletion_stage_status=last)
    return _ended(seen, status, at) if is_over(last) else _says(seen, status, round_, at)


def _done_at(status: RunStatus) -> datetime | None:
    """When the last cluster was done; when the run began, if it had none."""
    began = find(status, INITIALIZED)
    done = [at for at in map(settled_at, status.stages_status) if at is not None]
    return max(done, default=began.last_transition_time if began is not None else None)


def _with(status: RunStatus, stages: list[StageStatus], number: int, stage: StageStatus) -> RunStatus:
    return replace(status, stages_status=(*stages[:number], stage, *stages[number + 1 :]))


def _says(seen: Seen, status: RunStatus, round_: Round, at: At) -> RunStatus:
    """What a run says that is under way."""
    name = seen.run.metadata.name
    if round_.stuck:
        return say(status, PROGRESSING, FALSE, RUN_STUCK, first(round_.stuck), at)
    if round_.moves:
        reason = RUN_PROGRESSING if seen.dialect is Dialect.kubefleet else RUN_STARTED
        return say(status, PROGRESSING, TRUE, reason, first(round_.remarks), at)
    return say(status, PROGRESSING, FALSE, RUN_WAITING, f"{name} waits: {first(round_.waits)}", at)


def _ended(seen: Seen, status: RunStatus, at: At) -> RunStatus:
    late = sorted(newcomers(seen, status))
    left = (
        f"{listed(late)} joined too late, or belongs to no stage: the next run brings the change there" if late else ""
    )
    status = say(status, PROGRESSING, FALSE, RUN_SUCCEEDED, "", at)
    return say(status, SUCCEEDED, TRUE, RUN_SUCCEEDED, left, at)


def _strategy(status: RunStatus) -> StrategySpec:
    return status.staged_update_strategy_snapshot or StrategySpec(stages=())


def _failed(status: RunStatus, problem: str, at: At) -> RunStatus:
    def fail(stage: StageStatus) -> StageStatus:
        if is_over(stage) or not has_begun(stage):
            return stage
        stage = say(stage, PROGRESSING, FALSE, STAGE_FAILED, "", at)
        return replace(say(stage, SUCCEEDED, FALSE, STAGE_FAILED, problem, at), end_time=at.now.replace(microsecond=0))

    last = status.deletion_stage_status
    status = replace(
        status,
        stages_status=tuple(fail(stage) for stage in status.stages_status),
        deletion_stage_status=None if last is None else fail(last),
    )
    status = say(status, PROGRESSING, FALSE, RUN_FAILED, problem, at)
    return say(status, SUCCEEDED, FALSE, RUN_FAILED, problem, at)


# Stopping


def _stopped(seen: Seen, status: RunStatus, round_: Round, at: At) -> RunStatus:
    """What has begun is followed to its end; nothing else begins."""
    current = next((stage for stage in status.stages_status if not is_over(stage)), None)
    last = status.deletion_stage_status
    if current is not None and has_begun(current):
        clusters = tuple(round_.followed(one) if is_moving(one) else one for one in current.clusters)
        rested = _resting(replace(current, clusters=clusters), round_, at)
        status = replace(status, stages_status=tuple(rested if one is current else one for one in status.stages_status))
    elif current is None and last is not None and has_begun(last):
        rested = Clearing(seen, round_, _strategy(status), at).rested(last)
        status = replace(status, deletion_stage_status=_resting(rested, round_, at))
    if round_.moves:
        return say(status, PROGRESSING, UNKNOWN, RUN_STOPPING, f"still moving: {listed(round_.moves, most=3)}", at)
    return say(status, PROGRESSING, FALSE, RUN_STOPPED, "", at)


def _resting(stage: StageStatus, round_: Round, at: At) -> StageStatus:
    if round_.moves:
        return say(stage, PROGRESSING, UNKNOWN, STAGE_STOPPING, "", at)
    return say(stage, PROGRESSING, FALSE, STAGE_STOPPED, "", at)


def holds(status: RunStatus) -> bool:
    """Whether a run that has not ended has the placement to itself: it has begun, and was not asked to stop."""
    stages = (*status.stages_status, *((status.deletion_stage_status,) if status.deletion_stage_status else ()))
    current = next((stage for stage in stages if not is_over(stage)), None)
    if current is None or find(status, PROGRESSING) is None:
        return False
    return has_begun(current) and reason_of(current, PROGRESSING) not in (STAGE_STOPPED, STAGE_STOPPING)

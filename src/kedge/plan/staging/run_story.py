"""Run story: where a run stands, stage by stage, each with the reason; from its own status alone. Also in sentences."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, UNKNOWN, condition_message, find_condition
from kedge.api.placement_kinds import Run
from kedge.api.reasons import (
    APPROVAL_GIVEN,
    CLUSTER_STARTED,
    INITIALIZED,
    PROGRESSING,
    ROLLED_BACK,
    RUN_FAILED,
    RUN_NOT_INITIALIZED,
    RUN_STOPPED,
    RUN_STUCK,
    RUN_SUCCEEDED,
    STAGE_STOPPING,
    SUCCEEDED,
    UPDATING_FAILED,
    UPDATING_SKIPPED,
    WAIT_ELAPSED,
)
from kedge.api.stage import StageTaskType
from kedge.api.staged_status import DELETE_STAGE, ClusterUpdateStatus, RunStatus, StageStatus
from kedge.plan.moving.wait import Wait
from kedge.plan.staging.conditions import (
    find,
    has_begun,
    has_condition,
    is_moving,
    is_over,
    is_rolled_back,
    is_settled,
    reason_of,
    settled_at,
)
from kedge.plan.staging.grouping import wait_of
from kedge.plan.staging.progress import current
from kedge.plan.staging.rollbacks import as_rolled_back, retried
from kedge.plan.staging.stages import granted
from kedge.plan.staging.wait_text import RunCode
from kedge.plan.state import State
from kedge.plan.text import first_few, listed, of_all, path_of

_NO_TIME: Final = datetime.min.replace(tzinfo=UTC)
"""Of what is said here and now: a story tells no times of conditions."""


class StageStory(Struct, frozen=True):
    """One stage: how many of its clusters are done, and what it waits for."""

    name: str
    state: State
    done: int
    clusters: int
    moving: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    why: str = ""
    until: datetime | None = None
    """When its wait is over, if it waits for time."""
    approved: tuple[str, ...] = ()
    """Who approved it, when and why."""
    waits: tuple[Wait, ...] = ()
    """What it waits for as data, if that was asked for."""


class RunStory(Struct, frozen=True):
    """Where a run stands."""

    kind: str
    namespace: str | None
    name: str
    placement: str
    index: str
    state: State
    why: str
    stages: tuple[StageStory, ...]
    waits: tuple[Wait, ...] = ()
    """What it waits for as data, if that was asked for."""
    doubt: str = ""
    """Why what is told of a run that has not ended may be old: the hub is not heard from."""

    @property
    def path(self) -> str:
        return path_of(self.namespace, self.name)

    @property
    def word(self) -> str:
        """Its state, as it is said of runs."""
        return "succeeded" if self.state is State.available else self.state.value

    @property
    def done(self) -> int:
        """How many clusters it is done with."""
        return sum(stage.done for stage in self.stages)

    @property
    def wanted(self) -> int:
        """How many clusters it has."""
        return sum(stage.clusters for stage in self.stages)

    @property
    def is_done(self) -> bool:
        return self.state is State.available

    @property
    def has_ended(self) -> bool:
        return self.state in (State.available, State.failed, State.rolled_back)


class ClusterStory(Struct, frozen=True):
    """A run on one cluster."""

    cluster: str
    stage: str
    state: State
    why: str = ""
    wait: Wait | None = None
    """What it waits for as data, while other clusters of its stage move."""


def tell_run(run: Run, rollback: Run | None = None, waits: tuple[Wait, ...] = ()) -> RunStory:
    """The story of a run. `rollback` is the run that takes it back, also if the hub has not said so of this one yet.

    `waits` is what it waits for (`run_waits`): that is what the stage it is in waits for.
    """
    before = replace(run, status=as_rolled_back(run, rollback, _NO_TIME)) if rollback is not None else run
    status, meta = retried(before), run.metadata  # who asks for that, and then looks, is not told of what was forgiven
    last = status.deletion_stage_status
    shown = (*status.stages_status, *((last,) if last is not None and last.clusters else ()))
    now = current(status)
    return RunStory(
        kind=run.resource.kind,
        namespace=meta.namespace,
        name=meta.name,
        placement=run.spec.placement_name,
        index=status.resource_snapshot_index_used or run.spec.resource_snapshot_index or "",
        state=_state(status),
        why=_why(status),
        stages=tuple(_stage(status, stage, waits if stage is now else ()) for stage in shown),
        waits=waits,
    )


def _state(status: RunStatus) -> State:
    if is_rolled_back(status):
        return State.rolled_back
    if reason_of(status, INITIALIZED) == RUN_NOT_INITIALIZED or reason_of(status, SUCCEEDED) == RUN_FAILED:
        return State.failed
    if reason_of(status, SUCCEEDED) == RUN_SUCCEEDED:
        return State.available
    said = find(status, PROGRESSING)
    if said is None:
        return State.waiting
    if said.reason == RUN_STOPPED or said.status == UNKNOWN:
        return State.paused
    if said.reason == RUN_STUCK:
        return State.paused if _is_stopping(status) else State.waiting
    return State.moving if said.status != FALSE else State.waiting


def _is_stopping(status: RunStatus) -> bool:
    stage = current(status)
    return stage is not None and reason_of(stage, PROGRESSING) == STAGE_STOPPING


def _why(status: RunStatus) -> str:
    if is_rolled_back(status):
        return condition_message(status.conditions, ROLLED_BACK)
    found = find(status, SUCCEEDED) or find(status, PROGRESSING) or find_condition(status.conditions, INITIALIZED)
    if found is not None and found.type == PROGRESSING and found.reason == RUN_FAILED:
        return "what failed is about to be tried once more"
    return found.message if found is not None else "it was not looked at yet"


def _stage(status: RunStatus, stage: StageStatus, waits: tuple[Wait, ...]) -> StageStory:
    said = find(stage, PROGRESSING)
    failed = tuple(one.cluster_name for one in stage.clusters if reason_of(one, SUCCEEDED) == UPDATING_FAILED)
    return StageStory(
        name=stage_name(stage),
        state=_stage_state(stage),
        done=sum(map(is_settled, stage.clusters)),
        clusters=len(stage.clusters),
        moving=tuple(one.cluster_name for one in stage.clusters if is_moving(one)),
        failed=failed,
        why="" if said is None or is_over(stage) else said.message or _slow(stage),
        until=None if is_over(stage) else _until(status, stage),
        approved=_approved(stage),
        waits=tuple(one for one in waits if one.code != RunCode.other_run),
    )


def stage_name(stage: StageStatus) -> str:
    """What a stage is called; the last one, in which clusters are cleared, has no name of its own."""
    return "(clearing)" if stage.stage_name == DELETE_STAGE else stage.stage_name


def _approved(stage: StageStatus) -> tuple[str, ...]:
    tasks = (*stage.before_stage_task_status, *stage.after_stage_task_status)
    said = (find(task, APPROVAL_GIVEN) for task in tasks)
    return tuple(one.message for one in said if one is not None and one.message)


def _slow(stage: StageStatus) -> str:
    """What its clusters say that have taken long enough to say something."""
    told = ((one.cluster_name, find(one, CLUSTER_STARTED)) for one in stage.clusters if is_moving(one))
    return first_few(f"{name} is not done: {said.message}" for name, said in told if said is not None and said.message)


def _stage_state(stage: StageStatus) -> State:
    if is_over(stage):
        return State.available
    if has_condition(stage, SUCCEEDED, FALSE):
        return State.failed
    if not has_begun(stage):
        return State.waiting
    said = find(stage, PROGRESSING)
    return State.moving if said is not None and said.status != FALSE else State.waiting


def _until(status: RunStatus, stage: StageStatus) -> datetime | None:
    strategy, since = status.staged_update_strategy_snapshot, settled_at(stage)
    if strategy is None or since is None or not all(map(is_settled, stage.clusters)):
        return None
    wanted = next((one for one in strategy.stages if one.name == stage.stage_name), None)
    pairs = zip(stage.after_stage_task_status, wanted.after_stage_tasks if wanted is not None else (), strict=False)
    waits = [
        task for told, task in pairs if task.type is StageTaskType.timed_wait and not has_condition(told, WAIT_ELAPSED)
    ]
    return since + wait_of(waits[0]) + timedelta(seconds=1) if waits else None


# In sentences


def explained_run(story: RunStory) -> list[str]:
    """Why a run is where it is: a sentence for the run, one for each stage, and what there is to do."""
    said = [f"{story.kind} {story.path} moves {story.placement} to revision {story.index or '?'}", story.word]
    why = "" if any(stage.why for stage in story.stages) else story.why
    doubt = [story.doubt] if story.doubt else []
    return [": ".join([*said, *([why] if why else [])]), *map(_stage_text, story.stages), *doubt, *_advice(story)]


def _stage_text(stage: StageStory) -> str:
    if not stage.clusters:
        return f"{stage.name}: no clusters"
    parts = [f"{of_all(stage.done, stage.clusters, 'cluster')} done"]
    parts += [f"{listed(stage.moving, most=10)} not done yet"] if stage.moving else []
    parts += [f"{listed(stage.failed, most=10)} failed"] if stage.failed else []
    parts += stage.approved
    return f"{stage.name}: {', '.join(parts)}" + (f": {stage.why}" if stage.why else "")


def _advice(story: RunStory) -> Iterable[str]:
    match story.state:
        case State.paused:
            yield f"It is stopped: `kedge resume {story.path}` lets it go on, `kedge rollback {story.path}` goes back."
        case State.failed if not story.stages:
            yield "It has not begun, and never will: correct what is wrong, and make a new run."
        case State.failed:
            yield (
                f"`kedge retry {story.path}` tries once more what failed, `kedge rollback {story.path}` brings its "
                "clusters back to what they had."
            )
        case State.rolled_back:
            yield "It is over: to bring the change out after all, make a new run."


def tell_cluster(run: Run, cluster: str) -> ClusterStory | None:
    """Where a run stands on one cluster; None if that is no part of it."""
    last = run.status.deletion_stage_status
    for stage in (*run.status.stages_status, *((last,) if last is not None else ())):
        for one in stage.clusters:
            if one.cluster_name == cluster:
                return ClusterStory(cluster, stage_name(stage), *_where(one), wait=_wait(run, stage, cluster))
    return None


def _wait(run: Run, stage: StageStatus, cluster: str) -> Wait | None:
    strategy = run.status.staged_update_strategy_snapshot
    wanted = next((one for one in strategy.stages if one.name == stage.stage_name), None) if strategy else None
    if wanted is None or not has_condition(stage, PROGRESSING):
        return None
    return granted(stage, wanted).waiting.get(cluster)


def clusters_of(run: Run) -> list[str]:
    """Every cluster that is part of a run, in their order."""
    last = run.status.deletion_stage_status
    stages = (*run.status.stages_status, *((last,) if last is not None else ()))
    return [one.cluster_name for stage in stages for one in stage.clusters]


def _where(cluster: ClusterUpdateStatus) -> tuple[State, str]:
    done, begun = find(cluster, SUCCEEDED), find(cluster, CLUSTER_STARTED)
    if done is not None and (done.status == TRUE or done.reason == UPDATING_SKIPPED):
        return State.available, done.message
    if done is not None:
        return State.failed, done.message
    if is_moving(cluster) and begun is not None:
        return State.moving, begun.message
    return State.waiting, "the run has not begun with it"


def explained_cluster(story: ClusterStory) -> str:
    """The same as a sentence."""
    word = {State.available: "done", State.moving: "not done yet", State.waiting: "waits"}.get(story.state, story.state)
    return f"{story.cluster}: stage {story.stage}: {word}" + (f": {story.why}" if story.why else "")

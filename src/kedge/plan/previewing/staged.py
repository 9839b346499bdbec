"""Staged: the stages of a run, as its status tells them in the end; times in seconds from when it was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from kedge.api.condition import TRUE, find_condition
from kedge.api.staged_status import RunStatus, StageStatus, StageTaskStatus
from kedge.api.twins import Run
from kedge.plan.previewing.course import Stage, Wait
from kedge.plan.staging.stories import tell_run

_BEGUN = ("ApprovalRequestCreated",)
_OVER = ("ApprovalRequestApproved", "WaitTimeElapsed")


def stages_of(status: RunStatus, began: datetime) -> tuple[Stage, ...]:
    """Every stage of a run in order, that of deleting last if it has clusters."""
    deleting = status.deletion_stage_status
    found = [*status.stages_status, *([deleting] if deleting is not None and deleting.clusters else [])]
    return tuple(_stage(one, began) for one in found)


def unfinished(runs: Iterable[Run]) -> str:
    """Why a run does not succeed, in its own words; empty if all do."""
    stories = ((run.metadata.name, tell_run(run)) for run in runs)
    return next((f"run {name}: {story.why}" for name, story in stories if not story.is_done), "")


def _stage(stage: StageStatus, began: datetime) -> Stage:
    return Stage(
        name=stage.stage_name,
        clusters=tuple(one.cluster_name for one in stage.clusters),
        begins=_since(began, stage.start_time),
        ends=_since(began, stage.end_time),
        waits=tuple(_waits(stage, began)),
    )


def _waits(stage: StageStatus, began: datetime) -> Iterator[Wait]:
    for when, tasks in (("before", stage.before_stage_task_status), ("after", stage.after_stage_task_status)):
        for task in tasks:
            yield Wait(f"{task.type} {when}", _at(task, _BEGUN, began), _at(task, _OVER, began))


def _at(task: StageTaskStatus, types: tuple[str, ...], began: datetime) -> float | None:
    for kind in types:
        found = find_condition(task.conditions, kind)
        if found is not None and found.status == TRUE:
            return _since(began, found.last_transition_time)
    return None


def _since(began: datetime, at: datetime | None) -> float | None:
    return None if at is None else max(0.0, (at - began).total_seconds())

"""Staged: the stages of a run, as its status tells them in the end; times in seconds from when it was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kedge.api.condition import TRUE, find_condition
from kedge.api.staged_status import RunStatus, StageStatus, StageTaskStatus
from kedge.plan.previewing.course import Stage, Wait

_BEGUN = ("ApprovalRequestCreated",)
_OVER = ("ApprovalRequestApproved", "WaitTimeElapsed")


def stages_of(status: RunStatus, began: datetime) -> tuple[Stage, ...]:
    """Every stage of a run in order, that of deleting last if it has clusters."""
    deleting = status.deletion_stage_status
    found = [*status.stages_status, *([deleting] if deleting is not None and deleting.clusters else [])]
    return tuple(_stage(one, began) for one in found)


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

"""Staged: the stages of a run, as its status tells them in the end; times in seconds from when it was asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from kedge.api.condition import TRUE, find_condition
from kedge.api.staged_status import RunStatus, StageStatus, StageTaskStatus
from kedge.api.twins import Placement, Run
from kedge.plan.placements import is_external
from kedge.plan.previewing.course import Stage, Wait
from kedge.plan.staging.progress import turns
from kedge.plan.staging.stories import tell_run
from kedge.plan.state import State
from kedge.plan.telling.places import Place
from kedge.plan.text import listed

_BEGUN = ("ApprovalRequestCreated",)
_OVER = ("ApprovalRequestApproved", "WaitTimeElapsed")


def stages_of(status: RunStatus, began: datetime) -> tuple[Stage, ...]:
    """Every stage of a run in order, that of deleting last if it has clusters."""
    deleting = status.deletion_stage_status
    found = [*status.stages_status, *([deleting] if deleting is not None and deleting.clusters else [])]
    return tuple(_stage(one, began) for one in found)


def not_brought(placement: Placement, places: Iterable[Place], runs: Iterable[Run], news: str = "") -> str:
    """Why a placement is not where staged update runs are to bring it; empty if it is, or they have nothing to do.

    `runs` are those that were not over in the beginning, `news` a revision that was not there yet.
    """
    stories = [(run.metadata.name, tell_run(run)) for run in runs]
    if failed := next((f"run {name}: {story.why}" for name, story in stories if not story.is_done), ""):
        return failed
    if stories or not is_external(placement):
        return ""
    known = list(places)
    if any(not place.index for place in known):
        return "no staged update run brings it anything"
    if broken := [place.cluster for place in known if place.state in (State.moving, State.failed)]:
        return f"{listed(broken)}: not available, and no staged update run changes that"
    return f"no staged update run brings it revision {news}" if news else ""


def turns_in(runs: Iterable[Run]) -> dict[str, str]:
    """What the clusters wait for that runs have not begun with."""
    return {name: said for run in runs for name, said in turns(run).items()}


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

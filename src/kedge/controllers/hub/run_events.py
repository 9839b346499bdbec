"""Run events: Events on a run that say what became of it and of its stages."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kedge.api.condition import TRUE, Condition
from kedge.api.placement_kinds import Run
from kedge.api.reasons import (
    INITIALIZED,
    NOTHING_BEFORE,
    PROGRESSING,
    ROLLBACK_STARTED,
    ROLLED_BACK,
    RUN_FAILED,
    RUN_INITIALIZED,
    RUN_NOT_INITIALIZED,
    RUN_STOPPED,
    RUN_STUCK,
    RUN_SUCCEEDED,
    RUN_WAITING,
    SUCCEEDED,
)
from kedge.api.staged_status import RunStatus, StageStatus
from kedge.kube.events import Recorder
from kedge.plan.staging.conditions import find, has_begun, is_over

_BAD = (RUN_NOT_INITIALIZED, RUN_STUCK, RUN_FAILED, NOTHING_BEFORE)
_REPORTED = (*_BAD, RUN_INITIALIZED, RUN_WAITING, RUN_STOPPED, RUN_SUCCEEDED)


class RunEvent(Struct, frozen=True):
    """One thing that happened."""

    reason: str
    message: str


class RunEvents:
    """Records Events on runs."""

    def __init__(self, events: Recorder) -> None:
        self._events = events

    def record(self, before: Run, after: Run) -> None:
        """What is new between two looks."""
        for event in run_events(before.status, after.status):
            record = self._events.warning if event.reason in _BAD else self._events.normal
            record(after, event.reason, event.message)


def run_events(before: RunStatus, after: RunStatus) -> Iterator[RunEvent]:
    """What happened between two statuses of a run, stages first."""
    old = {stage.stage_name: stage for stage in _stages(before)}
    for stage in _stages(after):
        yield from _stage_events(old.get(stage.stage_name), stage)
    for kind in (INITIALIZED, PROGRESSING, SUCCEEDED):
        found, earlier = find(after, kind), find(before, kind)
        if found is None or found.reason not in _REPORTED:
            continue
        is_repeated = kind == PROGRESSING and found.reason in (RUN_SUCCEEDED, RUN_FAILED)
        if not is_repeated and _reason_and_message(found) != _reason_and_message(earlier):
            yield RunEvent(found.reason, found.message or "the run has gone through all its stages")
    yield from _rollback_events(find(before, ROLLED_BACK), find(after, ROLLED_BACK))


def _rollback_events(before: Condition | None, after: Condition | None) -> Iterator[RunEvent]:
    """That a run was rolled back; and again whenever somebody changes its spec, who may want it to go on."""
    if after is None or (before is not None and before.observed_generation == after.observed_generation):
        return
    over = ": this run is over, and moves nothing any more" if after.reason == ROLLBACK_STARTED else ""
    yield RunEvent(after.reason, f"{after.message}{over}")


def _reason_and_message(said: Condition | None) -> tuple[str, str]:
    return ("", "") if said is None else (said.reason, said.message)


def _stage_events(before: StageStatus | None, after: StageStatus) -> Iterator[RunEvent]:
    name, count = after.stage_name, len(after.clusters)
    if after.start_time is not None and (before is None or before.start_time is None):
        yield RunEvent("StageUpdatingStarted", f"stage {name} begins with its {count} clusters")
    if is_over(after) and has_begun(after) and (before is None or not is_over(before)):
        found = find(after, SUCCEEDED)
        yield RunEvent(found.reason if found is not None and found.status == TRUE else "", f"stage {name} is over")


def _stages(status: RunStatus) -> Iterator[StageStatus]:
    yield from status.stages_status
    if status.deletion_stage_status is not None:
        yield status.deletion_stage_status

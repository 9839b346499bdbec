"""Verbs of runs: what stopping, resuming, retrying, rolling back and approving come to, by where the run stands.

    answer = answer_to(RunVerb.resume, run, rollback)

A verb does what it says (exit code 0), finds it done already (0), or refuses, says why and what to do instead (1). One
that refuses changes nothing. The whole table is in docs/staged.md.
"""

from __future__ import annotations

from enum import StrEnum

from kedge.api.condition import condition_message
from kedge.api.fleet import RETRY
from kedge.api.placement_kinds import Run
from kedge.api.reasons import INITIALIZED, ROLLED_BACK, RUN_FAILED, RUN_NOT_INITIALIZED, RUN_SUCCEEDED, SUCCEEDED
from kedge.api.staged import RunState
from kedge.plan.staging.conditions import is_initialized, is_rolled_back, reason_of
from kedge.plan.staging.rollbacks import failed_at, retried
from kedge.plan.staging.run_story import tell_run
from kedge.plan.text import moment, path_of
from kedge.plan.verbs import VerbAnswer, refused


class RunVerb(StrEnum):
    """What can be asked of a run."""

    approve = "approve"
    stop = "stop"
    resume = "resume"
    retry = "retry"
    rollback = "rollback"


class RunPhase(StrEnum):
    """Where a run stands, as far as verbs go."""

    waiting = "waiting to begin"
    initialize = "asked to initialize only"
    running = "running"
    stopped = "stopped"
    succeeded = "succeeded"
    failed = "failed"
    invalid = "failed to initialize"
    rolled_back = "rolled back"


_OVER = (RunPhase.succeeded, RunPhase.failed, RunPhase.invalid, RunPhase.rolled_back)
_BEGUN = (RunPhase.running, RunPhase.stopped, RunPhase.succeeded, RunPhase.failed, RunPhase.rolled_back)


def phase_of(run: Run, rollback: Run | None = None) -> RunPhase:
    """Where a run stands. `rollback` is the run that takes it back, which the hub may not have seen yet."""
    if rollback is not None or is_rolled_back(run.status):
        return RunPhase.rolled_back
    status = retried(run)
    if reason_of(status, INITIALIZED) == RUN_NOT_INITIALIZED:
        return RunPhase.invalid
    ended = {RUN_SUCCEEDED: RunPhase.succeeded, RUN_FAILED: RunPhase.failed}.get(reason_of(status, SUCCEEDED))
    if ended is not None:
        return ended
    if run.spec.state is RunState.stop:
        return RunPhase.stopped
    if run.spec.state is RunState.initialize:
        return RunPhase.initialize
    return RunPhase.running if is_initialized(status) else RunPhase.waiting


def answer_to(verb: RunVerb, run: Run, rollback: Run | None = None) -> VerbAnswer:
    """What comes of a verb."""
    phase = phase_of(run, rollback)
    if phase is RunPhase.rolled_back and verb is not RunVerb.rollback:
        return refused(_was_rolled_back(run, rollback))
    match verb:
        case RunVerb.approve:
            return VerbAnswer("")
        case RunVerb.stop:
            return _stop(run, phase)
        case RunVerb.resume:
            return _resume(run, phase)
        case RunVerb.retry:
            return _retry(run)
        case RunVerb.rollback:
            return _rollback(run, phase, rollback)


def _stop(run: Run, phase: RunPhase) -> VerbAnswer:
    path = _path(run)
    if phase in _OVER:
        return refused(_has_ended(run))
    if phase is RunPhase.initialize:
        return refused(f"{path} moves nothing: its state is Initialize, and `kedge resume {path}` makes that Run")
    if phase is RunPhase.stopped:
        return VerbAnswer(f"{path} is stopped already")
    said = f"{path} stops: what is on its way arrives, nothing else begins until `kedge resume {path}`"
    return VerbAnswer(said, {"spec": {"state": RunState.stop.value}})


def _resume(run: Run, phase: RunPhase) -> VerbAnswer:
    path = _path(run)
    if phase is RunPhase.failed:
        return refused(f"{_has_ended(run)}; `kedge retry {path}` tries once more what failed")
    if phase in _OVER:
        return refused(_has_ended(run))
    if phase in (RunPhase.running, RunPhase.waiting):
        return VerbAnswer(f"{path} is not stopped")
    return VerbAnswer(f"{path} goes on", {"spec": {"state": RunState.run.value}})


def _retry(run: Run) -> VerbAnswer:
    at = failed_at(run.status)
    if at is None:
        return refused(f"nothing of {_path(run)} has failed that could be tried again")
    said = f"{_path(run)} tries once more what had failed by {moment(at)}"
    return VerbAnswer(said, {"metadata": {"annotations": {RETRY: moment(at)}}})


def _rollback(run: Run, phase: RunPhase, rollback: Run | None) -> VerbAnswer:
    """An answer that is not refused and writes nothing, with a rollback there: then it is done already."""
    path, previous = _path(run), run.status.previous_resource_snapshot_index
    if rollback is not None:
        return VerbAnswer(f"{path} is rolled back already, by run {_path(rollback)}{_trouble(rollback)}")
    if phase not in _BEGUN:
        return refused(f"{path} has begun with no cluster: there is nothing to bring back")
    if previous is None:
        return refused(f"{path} does not say that its clusters had anything before it: there is nothing to go back to")
    return VerbAnswer(f"brings the clusters of {path} back to revision {previous}")


def _trouble(rollback: Run) -> str:
    """What is to be said of a rollback that has failed itself."""
    if phase_of(rollback) not in (RunPhase.failed, RunPhase.invalid):
        return ""
    path = _path(rollback)
    return f", which has failed: {tell_run(rollback).why}: see `kedge retry {path}`, or delete it to roll back anew"


def _was_rolled_back(run: Run, rollback: Run | None) -> str:
    by = f" by run {_path(rollback)}" if rollback is not None else f": {_message(run)}"
    look = f"; `kedge status {_path(rollback)}` shows how far that is" if rollback is not None else ""
    return f"{_path(run)} was rolled back{by}. It moves nothing any more: make a new run{look}"


def _message(run: Run) -> str:
    return condition_message(run.status.conditions, ROLLED_BACK)


def _has_ended(run: Run) -> str:
    return f"{_path(run)} has ended: {tell_run(run).why or 'it is done'}"


def _path(run: Run) -> str:
    return path_of(run.metadata.namespace, run.metadata.name)

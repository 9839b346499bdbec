"""The decisions of a Job: which pods to start and to stop, what to count, and when it is over.

Pure: same observation, same plan. As kube-controller-manager v1.36 decides, for Jobs without indexes.

A pod is counted once, whatever crashes in between, by three steps that each show in the API: its uid is written down as
uncounted, then it loses its finalizer, then it is added to the count. What was written down and has no finalizer any
more is what is to be added. Assumes that the observation shows the Job's own writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, Observed, find_condition

BACK_OFF, LONGEST_BACK_OFF = timedelta(seconds=10), timedelta(minutes=10)
_FINAL = ("Complete", "Failed")


class JobPod(Struct, frozen=True):
    """One pod of the Job."""

    uid: str
    name: str
    phase: str = "Pending"
    ready: bool = False
    terminating: bool = False
    tracked: bool = True  # has the finalizer: not counted yet
    ended: datetime | None = None
    restarts: int = 0

    @property
    def is_over(self) -> bool:
        return self.phase in ("Succeeded", "Failed")

    @property
    def is_active(self) -> bool:
        return not self.is_over and not self.terminating


class WantedJob(Struct, frozen=True):
    """What the Job should do."""

    parallelism: int = 1
    completions: int | None = 1
    backoff_limit: int = 6
    deadline: timedelta | None = None
    suspended: bool = False
    restarts_in_place: bool = False  # restartPolicy OnFailure: restarts count as failures
    replaces_only_failed: bool = False  # podReplacementPolicy Failed
    leaving: bool = False  # the Job is being deleted


class Progress(Struct, frozen=True):
    """The status of the Job."""

    active: int = 0
    ready: int = 0
    terminating: int = 0
    succeeded: int = 0
    failed: int = 0
    uncounted_succeeded: tuple[str, ...] = ()
    uncounted_failed: tuple[str, ...] = ()
    started: datetime | None = None
    completed: datetime | None = None
    conditions: tuple[Observed, ...] = ()

    @property
    def is_finished(self) -> bool:
        return any(one.type in _FINAL and one.status == TRUE for one in self.conditions)

    @property
    def uncounted(self) -> tuple[str, ...]:
        return self.uncounted_succeeded + self.uncounted_failed


class JobPlan(Struct, frozen=True):
    """What to do now, in this order: write the progress, delete `stop`, untrack, untrack and delete `drop`, create.

    `look_again` is the time at which something changes by itself.
    """

    progress: Progress
    create: int = 0
    stop: tuple[JobPod, ...] = ()
    untrack: tuple[JobPod, ...] = ()
    drop: tuple[JobPod, ...] = ()
    look_again: datetime | None = None


def plan(asked: WantedJob, before: Progress, tries: Iterable[JobPod], now: datetime) -> JobPlan:
    """What to do now. `tries` in the order in which surplus ones would be given up."""
    pods, now = tuple(tries), now.replace(microsecond=0)  # as fine as the API keeps it
    if before.is_finished:
        return JobPlan(before, untrack=_tracked(pods))
    counted = _add_up(before, pods)
    if counted.started is None and not asked.suspended:
        counted = replace(counted, started=now)
    noted = _note(asked, counted, pods)
    ending = _ending(asked, noted, pods, now)
    if ending is not None:
        return _end(noted, pods, ending, now)
    if asked.leaving:
        return JobPlan(_report(noted, pods), untrack=_tracked(pods))
    return _go_on(asked, noted, pods, now)


def _add_up(before: Progress, pods: Sequence[JobPod]) -> Progress:
    """What was noted and is tracked no longer is counted."""
    tracked = {one.uid for one in pods if one.tracked}
    succeeded = tuple(uid for uid in before.uncounted_succeeded if uid in tracked)
    failed = tuple(uid for uid in before.uncounted_failed if uid in tracked)
    return replace(
        before,
        succeeded=before.succeeded + len(before.uncounted_succeeded) - len(succeeded),
        failed=before.failed + len(before.uncounted_failed) - len(failed),
        uncounted_succeeded=succeeded,
        uncounted_failed=failed,
    )


def _note(asked: WantedJob, counted: Progress, pods: Sequence[JobPod]) -> Progress:
    """Pods that are over are noted, to be counted once they are tracked no longer."""
    new = [one for one in pods if one.tracked and one.uid not in counted.uncounted]
    succeeded = tuple(one.uid for one in new if one.phase == "Succeeded")
    failed = tuple(one.uid for one in new if _has_failed(asked, one))
    return replace(
        counted,
        uncounted_succeeded=counted.uncounted_succeeded + succeeded,
        uncounted_failed=counted.uncounted_failed + failed,
    )


def _has_failed(asked: WantedJob, one: JobPod) -> bool:
    """A pod that somebody deletes has failed, unless one waits to see how it ends."""
    if one.phase == "Failed":
        return True
    return one.terminating and one.phase != "Succeeded" and not asked.replaces_only_failed


def _ending(asked: WantedJob, noted: Progress, pods: Sequence[JobPod], now: datetime) -> Observed | None:
    """Why the Job is to end now."""
    for kind in ("SuccessCriteriaMet", "FailureTarget"):
        found = find_condition(noted.conditions, kind)
        if found is not None and found.status == TRUE:
            return found
    failed = noted.failed + len(noted.uncounted_failed)
    if failed > asked.backoff_limit or _restarted_too_often(asked, pods):
        return _condition("FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit", now)
    if _is_late(asked, noted, now):
        return _condition("FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline", now)
    return None


def _restarted_too_often(asked: WantedJob, pods: Sequence[JobPod]) -> bool:
    if not asked.restarts_in_place:
        return False
    restarts = sum(one.restarts for one in pods if not one.is_over)
    return restarts > 0 and restarts >= asked.backoff_limit


def _is_late(asked: WantedJob, noted: Progress, now: datetime) -> bool:
    due = _due(asked, noted)
    return due is not None and now >= due


def _due(asked: WantedJob, noted: Progress) -> datetime | None:
    if asked.deadline is None or asked.suspended or noted.started is None:
        return None
    return noted.started + asked.deadline


def _end(noted: Progress, pods: Sequence[JobPod], ending: Observed, now: datetime) -> JobPlan:
    """Stop what runs; when everything is counted and gone, say how it ended."""
    stop = tuple(one for one in pods if one.is_active)
    if ending.type == "FailureTarget":
        rest = tuple(one.uid for one in pods if one.tracked and one.uid not in noted.uncounted)
        noted = replace(noted, uncounted_failed=noted.uncounted_failed + rest)
    if ending not in noted.conditions:
        noted = replace(noted, conditions=(*noted.conditions, ending))
    progress = replace(_report(noted, pods), active=0, ready=0)
    terminating = progress.terminating + len(stop)
    if not terminating and not progress.uncounted and not _tracked(pods):
        return JobPlan(_finished(progress, ending, now))
    return JobPlan(replace(progress, terminating=terminating), stop=stop, untrack=_tracked(pods))


def _finished(progress: Progress, ending: Observed, now: datetime) -> Progress:
    kind = "Complete" if ending.type == "SuccessCriteriaMet" else "Failed"
    final = _condition(kind, ending.reason, ending.message, now)
    completed = now if kind == "Complete" else None
    return replace(progress, conditions=(*progress.conditions, final), completed=completed)


def _go_on(asked: WantedJob, noted: Progress, pods: Sequence[JobPod], now: datetime) -> JobPlan:
    active = [one for one in pods if one.is_active]
    wanted = _wanted(asked, noted, len(active))
    drop = tuple(active[: max(0, len(active) - wanted)])
    progress = _report(noted, [one for one in pods if one not in drop])
    progress = replace(progress, terminating=progress.terminating + len(drop))
    taken = progress.terminating if asked.replaces_only_failed else 0
    missing = 0 if drop else max(0, wanted - taken - len(active))
    wait = _back_off(pods, now) if missing else None
    create = 0 if wait else missing
    progress = replace(progress, active=progress.active + create)
    if _is_complete(asked, progress):
        reached = _condition(
            "SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods", now
        )
        return _end(progress, pods, reached, now)
    progress = _suspended(asked, progress, now)
    over = tuple(one for one in pods if one.tracked and one.uid in progress.uncounted)
    times = [one for one in (_due(asked, progress), wait) if one is not None]
    return JobPlan(progress, create=create, untrack=over, drop=drop, look_again=min(times, default=None))


def _wanted(asked: WantedJob, noted: Progress, active: int) -> int:
    """How many pods should run."""
    if asked.suspended:
        return 0
    succeeded = noted.succeeded + len(noted.uncounted_succeeded)
    if asked.completions is None:
        return active if succeeded else asked.parallelism
    return max(0, min(asked.parallelism, asked.completions - succeeded))


def _is_complete(asked: WantedJob, progress: Progress) -> bool:
    succeeded = progress.succeeded + len(progress.uncounted_succeeded)
    enough = succeeded > 0 if asked.completions is None else succeeded >= asked.completions
    return enough and progress.active == 0


def _back_off(pods: Sequence[JobPod], now: datetime) -> datetime | None:
    """Until when no pod is started, because the last ones failed."""
    good = max((one.ended for one in pods if one.phase == "Succeeded" and one.ended), default=None)
    bad = [one.ended for one in pods if one.phase == "Failed" and one.ended and (good is None or one.ended > good)]
    if not bad:
        return None
    until = max(bad) + min(BACK_OFF * 2 ** min(len(bad) - 1, 10), LONGEST_BACK_OFF)
    return until if until > now else None


def _suspended(asked: WantedJob, progress: Progress, now: datetime) -> Progress:
    """Say that it is suspended, or that it goes on. Its time starts anew when it does."""
    said = find_condition(progress.conditions, "Suspended")
    is_said = said is not None and said.status == TRUE
    if asked.suspended == is_said:
        return progress
    if asked.suspended:
        new, started = _condition("Suspended", "JobSuspended", "Job suspended", now), None
    else:
        new, started = _condition("Suspended", "JobResumed", "Job resumed", now, FALSE), now
    others = tuple(new if one.type == "Suspended" else one for one in progress.conditions)
    return replace(progress, started=started, conditions=others if said else (*others, new))


def _report(noted: Progress, pods: Sequence[JobPod]) -> Progress:
    active = [one for one in pods if one.is_active]
    return replace(
        noted,
        active=len(active),
        ready=sum(one.ready for one in active),
        terminating=sum(one.terminating and not one.is_over for one in pods),
    )


def _tracked(pods: Sequence[JobPod]) -> tuple[JobPod, ...]:
    return tuple(one for one in pods if one.tracked)


def _condition(kind: str, reason: str, message: str, now: datetime, status: str = TRUE) -> Observed:
    since = now.replace(microsecond=0)
    return Observed(type=kind, status=status, reason=reason, message=message, last_transition_time=since)

"""Folding: what the Works of one cluster say, as the conditions of the binding that asked for them.

    told = folded(works)                         # findings, up to the first that does not hold
    conditions = spoken(binding, told, now)      # with those of others kept, and true times

A Work's word counts only if it is about the Work as it is now. Conditions come in order, and end with the first that
does not hold: what follows it is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from kedge.api.binding import BindingStatus
from kedge.api.condition import FALSE, TRUE, Condition, find_condition, is_true
from kedge.api.placement_status import FailedPlacement
from kedge.api.reasons import (
    APPLIED,
    APPLY_IN_PROGRESS,
    AVAILABLE,
    DIFF_REPORTED,
    NO_OVERRIDE,
    NOT_ALL_TRACKABLE,
    OVERRIDDEN,
    OVERRIDDEN_FAILED,
    SYNC_FAILED,
    WORK_APPLIED,
    WORK_AVAILABLE,
    WORK_NOT_APPLIED,
    WORK_NOT_AVAILABLE,
    WORK_SYNCED,
    WORK_SYNCHRONIZED,
    WORK_UNTRACKABLE,
)
from kedge.api.twins import Binding
from kedge.api.work import Work, WorkResourceIdentifier
from kedge.plan.working.kept import failure

OURS: Final = frozenset((OVERRIDDEN, WORK_SYNCHRONIZED, APPLIED, AVAILABLE, DIFF_REPORTED))
"""The conditions of a binding that are said here; the others are a rollout's."""
MOST_FAILURES: Final = 100
_UNDERWAY: Final = (APPLY_IN_PROGRESS, WORK_APPLIED, WORK_NOT_AVAILABLE)
_SHOWN: Final = 3
_LONGEST: Final = 1024


class Finding(Struct, frozen=True):
    """One thing that can be said of a binding."""

    type: str
    status: str
    reason: str
    message: str
    since: datetime | None = None
    """When it came to be so, as the member tells it."""


class Told(Struct, frozen=True):
    """All that can be said of a binding, and the objects that are the cause."""

    findings: tuple[Finding, ...]
    failed: tuple[FailedPlacement, ...] = ()


def not_overridden(problem: str) -> Told:
    """The objects for this cluster cannot be made out."""
    return Told((Finding(OVERRIDDEN, FALSE, OVERRIDDEN_FAILED, cut(problem)),))


def not_synchronized(problem: str) -> Told:
    """The objects are known, but do not get to the member's namespace."""
    return Told((_NO_OVERRIDES, Finding(WORK_SYNCHRONIZED, FALSE, SYNC_FAILED, cut(problem))))


def moving() -> Told:
    """The Works are about to change: nothing that was said of them holds any more."""
    return Told((_NO_OVERRIDES,))


def folded(works: Sequence[Work], synchronized: str) -> Told:
    """What Works that are as they should be come to."""
    synced = Finding(WORK_SYNCHRONIZED, TRUE, WORK_SYNCED, cut(synchronized))
    failed = tuple(found for work in works if _answer(work, APPLIED) for found in failures(work))
    reported = list(_reported(works, failed))
    return Told((_NO_OVERRIDES, synced, *reported), failed[:MOST_FAILURES])


def _reported(works: Sequence[Work], failed: Sequence[FailedPlacement]) -> Iterable[Finding]:
    applied = _applied(works, failed)
    yield applied
    if applied.status == TRUE and (available := _available(works, failed)) is not None:
        yield available


def _applied(works: Sequence[Work], failed: Sequence[FailedPlacement]) -> Finding:
    if refusing := [work for work in works if _says(work, APPLIED, FALSE)]:
        causes = [found for found in failed if found.condition.type == APPLIED]
        return Finding(APPLIED, FALSE, WORK_NOT_APPLIED, _causes("not applied", causes, refusing, APPLIED))
    if silent := [work for work in works if not _says(work, APPLIED, TRUE)]:
        names = ", ".join(work.metadata.name for work in silent[:_SHOWN])
        return Finding(APPLIED, FALSE, APPLY_IN_PROGRESS, cut(f"The member has not reported yet on Work {names}"))
    times = (answer.last_transition_time for work in works if (answer := _answer(work, APPLIED)) is not None)
    return Finding(APPLIED, TRUE, WORK_APPLIED, "Every object is applied", max(times, default=None))


def _available(works: Sequence[Work], failed: Sequence[FailedPlacement]) -> Finding | None:
    if failing := [work for work in works if _says(work, AVAILABLE, FALSE)]:
        return Finding(AVAILABLE, FALSE, WORK_NOT_AVAILABLE, _causes("not available", failed, failing, AVAILABLE))
    answers = [_answer(work, AVAILABLE) for work in works]
    if any(answer is None or answer.status != TRUE for answer in answers):
        return None
    if any(answer is not None and answer.reason == NOT_ALL_TRACKABLE for answer in answers):
        return Finding(AVAILABLE, TRUE, WORK_UNTRACKABLE, "Of some objects it cannot be seen whether they work")
    return Finding(AVAILABLE, TRUE, WORK_AVAILABLE, "Every object is available")


def failures(work: Work) -> Iterable[FailedPlacement]:
    """The objects of a Work that are not applied, or do not work."""
    for found in work.status.manifest_conditions:
        condition = failure(found)
        if condition is not None:
            which = found.identifier
            yield FailedPlacement(
                group=which.group,
                version=which.version,
                kind=which.kind,
                namespace=which.namespace or None,
                name=which.name,
                condition=condition,
            )


def spoken(binding: Binding, told: Told, now: datetime, unsaid: BindingStatus | None = None) -> BindingStatus:
    """The status of a binding of which this is told: others' conditions kept, times those of true changes.

    `unsaid` is what there was to say last, if that was not written.
    """
    kept = tuple(condition for condition in binding.status.conditions if condition.type not in OURS)
    before = (unsaid or binding.status).conditions
    said = tuple(_condition(binding, finding, before, now) for finding in told.findings)
    return BindingStatus(conditions=(*kept, *said), failed_placements=told.failed)


def is_underway(binding: Binding, told: Told) -> bool:
    """Whether it only says how far a cluster has come that did not count as available before either.

    That a cluster has Works at all is more than that: removals elsewhere wait for it.
    """
    before = binding.status.conditions
    if find_condition(before, WORK_SYNCHRONIZED) is None:
        return False
    if is_true(before, AVAILABLE, generation=binding.metadata.generation):
        return False
    return told.findings[-1].reason in _UNDERWAY


def is_untracked(binding: Binding) -> bool:
    """Whether it counts as available after a time only, because nothing can be seen of its objects."""
    found = find_condition(binding.status.conditions, AVAILABLE)
    return found is not None and found.status == TRUE and found.reason == WORK_UNTRACKABLE


def name_of(which: WorkResourceIdentifier | FailedPlacement) -> str:
    """An object in a sentence: `Deployment shop/web`."""
    return f"{which.kind} {which.namespace}/{which.name}" if which.namespace else f"{which.kind} {which.name}"


def cut(message: str) -> str:
    """Not longer than a person will read."""
    return message if len(message) <= _LONGEST else message[: _LONGEST - 1] + "…"


def _condition(binding: Binding, finding: Finding, before: Iterable[Condition], now: datetime) -> Condition:
    return Condition(
        type=finding.type,
        status=finding.status,
        reason=finding.reason,
        message=finding.message,
        last_transition_time=_since(find_condition(before, finding.type), finding, now),
        observed_generation=binding.metadata.generation,
    )


def _since(old: Condition | None, finding: Finding, now: datetime) -> datetime:
    """Since when it is so. From seen to work to nothing to see is a change: a wait that begins with it begins anew.

    A member that says when counts if that was since we last knew otherwise; else its clock is not ours.
    """
    if old is None or old.status != finding.status:
        asked = old.last_transition_time if old is not None else now
        told = finding.since if finding.since is not None and asked <= finding.since <= now else now
        return told.replace(microsecond=0)
    if finding.reason == WORK_UNTRACKABLE and old.reason != WORK_UNTRACKABLE:
        return now.replace(microsecond=0)
    return old.last_transition_time


def _answer(work: Work, kind: str) -> Condition | None:
    """What the member says of the Work as it is now."""
    found = find_condition(work.status.conditions, kind)
    return found if found is not None and found.observed_generation == work.metadata.generation else None


def _says(work: Work, kind: str, status: str) -> bool:
    found = _answer(work, kind)
    return found is not None and found.status == status


def _causes(what: str, failed: Sequence[FailedPlacement], works: Sequence[Work], kind: str) -> str:
    """The objects that are the cause; of a member that names none, what it says of the whole."""
    if not failed:
        answers = [answer.message for work in works if (answer := _answer(work, kind)) is not None]
        return cut("; ".join(filter(None, answers)) or f"Some objects are {what}")
    named = "; ".join(_cause(what, found) for found in failed[:_SHOWN])
    more = len(failed) - _SHOWN
    return cut(f"{named}; and {more} more" if more > 0 else named)


def _cause(what: str, found: FailedPlacement) -> str:
    name, message = name_of(found), found.condition.message
    if message.startswith(name):
        return message
    return f"{name} is {what}: {message}" if message else f"{name} is {what}"


_NO_OVERRIDES: Final = Finding(OVERRIDDEN, TRUE, NO_OVERRIDE, "No override is specified for this cluster")

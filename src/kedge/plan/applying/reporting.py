"""Reporting: what a Work says of itself once a member has tried it.

Each manifest says whether it was applied and, if so, whether it works, at the generation the object has on the member.
The Work says the same of all of them, at its own generation; whether it works is only said once all is applied. A time
of transition is one: what stays as it was keeps its time, so that nothing is written when nothing changed. But a Work
is applied since its newest generation is: how long a change took to work can be told afterwards, also if nothing was
said in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.condition import FALSE, TRUE, Condition, find_condition, set_condition
from kedge.api.work import BackReportedStatus, ManifestCondition, WorkResourceIdentifier, WorkStatus
from kedge.plan.applying.manifests import Identity, identity_of
from kedge.plan.availability import Verdict

STATUS_TRIMMED: Final = "StatusTrimmed"
MOST: Final = 1_415_578
"""How many bytes a status may have before the members' own words are left out of it."""

_LONGEST: Final = 2048  # of what a server says: a status holds many
_SHORTEST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 5.0


class Result(Struct, frozen=True):
    """What came of one manifest.

    `uid` and `generation` are the object's, if it is there and ours. `verdict` is None unless it was applied. `retry`
    says that looking again may help though no event will come; `later` when, if that is known. `unsure` says that it
    may be there though nobody said so.
    """

    identifier: WorkResourceIdentifier
    applied: bool
    reason: str
    message: str
    uid: str = ""
    generation: int | None = None
    verdict: Verdict | None = None
    back_reported: BackReportedStatus | None = None
    retry: bool = False
    later: float | None = None
    unsure: bool = False

    @property
    def identity(self) -> Identity:
        return identity_of(self.identifier)


class _Said:
    """What was said before: in the same place, or of the same object in another."""

    def __init__(self, conditions: Iterable[ManifestCondition]) -> None:
        self._here = {one.identifier: one for one in conditions}
        self._anywhere = {identity_of(one.identifier): one for one in conditions}

    def of(self, result: Result) -> ManifestCondition | None:
        return self._here.get(result.identifier) or self._anywhere.get(result.identity)


def work_status(
    results: Sequence[Result], before: WorkStatus, generation: int, now: datetime, *, left_behind: str = ""
) -> WorkStatus:
    """The status of a Work. `left_behind` says what of an earlier one could not be removed."""
    known = _Said(before.manifest_conditions)
    manifests = tuple(_manifest(result, known.of(result), now) for result in results)
    status = WorkStatus(
        conditions=_conditions(results, before.conditions, generation, now, left_behind), manifest_conditions=manifests
    )
    return _trimmed(status, before, generation, now)


def _conditions(
    results: Sequence[Result], before: tuple[Condition, ...], generation: int, now: datetime, left_behind: str
) -> tuple[Condition, ...]:
    said = _applied(results, left_behind)
    about = tuple(condition for condition in before if condition.observed_generation == generation)
    applied = _since(about, _condition(reasons.APPLIED, said, generation, now))
    if applied.status == FALSE:
        return (applied,)
    return applied, _since(before, _condition(reasons.AVAILABLE, _available(results), generation, now))


def _applied(results: Sequence[Result], left_behind: str) -> tuple[str, str, str]:
    done = sum(result.applied for result in results)
    if done == len(results):
        return TRUE, reasons.ALL_APPLIED, left_behind or f"all {done} manifests are applied"
    first = next(result for result in results if not result.applied)
    message = f"{done} of {len(results)} manifests are applied; {first.identity}: {first.message}"
    return FALSE, reasons.SOME_NOT_APPLIED, _cut(message)


def _available(results: Sequence[Result]) -> tuple[str, str, str]:
    verdicts = [(result, result.verdict) for result in results if result.verdict is not None]
    waiting = [(result, verdict) for result, verdict in verdicts if not verdict.available]
    if waiting:
        message = f"{len(results) - len(waiting)} of {len(results)} manifests are available; {waiting[0][1].message}"
        return FALSE, reasons.SOME_NOT_AVAILABLE, _cut(message)
    untrackable = [result for result, verdict in verdicts if not verdict.trackable]
    if untrackable:
        message = f"whether {len(untrackable)} of {len(results)} manifests work cannot be known, the first being "
        return TRUE, reasons.NOT_ALL_TRACKABLE, _cut(message + str(untrackable[0].identity))
    return TRUE, reasons.ALL_AVAILABLE, f"all {len(results)} manifests are available"


def _manifest(result: Result, before: ManifestCondition | None, now: datetime) -> ManifestCondition:
    old = before.conditions if before else ()
    applied = (TRUE if result.applied else FALSE, result.reason, _cut(result.message))
    said = [_condition(reasons.APPLIED, applied, result.generation, now)]
    if result.verdict is not None:
        said.append(_condition(reasons.AVAILABLE, _availability(result.verdict), result.generation, now))
    conditions = tuple(_since(old, condition) for condition in said)
    return ManifestCondition(
        identifier=result.identifier,
        conditions=conditions,
        back_reported_status=_mirrored(result.back_reported, before),
    )


def _availability(verdict: Verdict) -> tuple[str, str, str]:
    if not verdict.available:
        return FALSE, reasons.MANIFEST_NOT_AVAILABLE, _cut(verdict.message)
    reason = reasons.MANIFEST_AVAILABLE if verdict.trackable else reasons.MANIFEST_NOT_TRACKABLE
    return TRUE, reason, _cut(verdict.message)


def _mirrored(new: BackReportedStatus | None, before: ManifestCondition | None) -> BackReportedStatus | None:
    """What the object says; if it said the same before, as of then."""
    old = before.back_reported_status if before else None
    return old if new and old and old.observed_status == new.observed_status else new


def _since(old: tuple[Condition, ...], new: Condition) -> Condition:
    """The condition, with the time since when it has had its status."""
    found = find_condition(set_condition(old, new), new.type)
    assert found is not None
    return found


def _condition(type_: str, said: tuple[str, str, str], generation: int | None, now: datetime) -> Condition:
    status, reason, message = said
    return Condition(
        type=type_,
        status=status,
        reason=reason,
        message=message,
        last_transition_time=now,
        observed_generation=generation or None,
    )


def _trimmed(status: WorkStatus, before: WorkStatus, generation: int, now: datetime) -> WorkStatus:
    """The status as large as a server takes it: without what the objects say of themselves, if need be."""
    if not any(one.back_reported_status for one in status.manifest_conditions) or _size(status) <= MOST:
        return status
    message = f"the status would have more than {MOST} bytes: what the objects say of themselves was left out"
    said = _condition(STATUS_TRIMMED, (TRUE, STATUS_TRIMMED, message), generation, now)
    bare = tuple(replace(one, back_reported_status=None) for one in status.manifest_conditions)
    return WorkStatus(conditions=(*status.conditions, _since(before.conditions, said)), manifest_conditions=bare)


def _size(status: WorkStatus) -> int:
    return len(msgspec.json.encode(status))


def _cut(message: str) -> str:
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…"


def refused_in(status: WorkStatus) -> set[Identity]:
    """What a Work says could not be applied."""
    return {
        identity_of(one.identifier)
        for one in status.manifest_conditions
        if (applied := find_condition(one.conditions, reasons.APPLIED)) is not None and applied.status == FALSE
    }


def wait_before_retry(results: Iterable[Result], status: WorkStatus, now: datetime) -> float | None:
    """Seconds until it is worth trying again what failed; None if an event will say.

    What has failed for long is tried less often, but often enough for somebody who has just put it right.
    """
    known = [result.later for result in results if result.later is not None]
    if not any(result.retry for result in results):
        return min(known, default=None)
    failing = find_condition(status.conditions, reasons.APPLIED)
    since = (now - failing.last_transition_time).total_seconds() if failing else 0.0
    return min([*known, min(_LONGEST_WAIT, max(_SHORTEST_WAIT, since / 4))])

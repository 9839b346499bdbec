"""Work status: what a Work reports once a member has tried to apply it, and how long to wait before trying again.

Each manifest reports whether it was applied and, if so, whether it is available, at the generation of the object on the
member. The Work reports the same for all of them, at its own generation. It reports Available only once everything is
applied. A condition that keeps its status keeps its time, so nothing is written if nothing changed. But Applied has the
time of the Work's newest generation: so it can be seen later how long a change took, even if nothing was reported in
between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.condition import FALSE, TRUE, Condition, find_condition, is_true, new_condition, set_condition
from kedge.api.reasons import APPLIED, AVAILABLE
from kedge.api.work import BackReportedStatus, ManifestCondition, WorkResourceIdentifier, WorkStatus
from kedge.plan.applying.manifests import DesiredObject, InvalidManifest, ObjectKey, object_key
from kedge.plan.availability import Verdict
from kedge.plan.text import cut

STATUS_TRIMMED: Final = "StatusTrimmed"
MAX_STATUS_BYTES: Final = 1_415_578
"""How many bytes a status may have before the back-reported statuses are left out."""

_MAX_MESSAGE: Final = 2048  # of one condition: a status holds many
_SHORTEST_WAIT: Final = 0.5
_LONGEST_WAIT: Final = 5.0


class ApplyResult(Struct, frozen=True):
    """What became of one manifest.

    `uid` and `generation` are the object's, if it exists and is ours. `verdict` is None unless it was applied. `retry`:
    trying again may help, and no event will say so. `retry_after`: in how many seconds, if that is known. `unsure`: it
    may exist although the server did not confirm it.
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
    retry_after: float | None = None
    unsure: bool = False

    @property
    def identity(self) -> ObjectKey:
        return object_key(self.identifier)


class _EarlierConditions:
    """The earlier conditions: at the same place, or of the same object at another."""

    def __init__(self, conditions: Iterable[ManifestCondition]) -> None:
        self._here = {one.identifier: one for one in conditions}
        self._anywhere = {object_key(one.identifier): one for one in conditions}

    def of(self, result: ApplyResult) -> ManifestCondition | None:
        return self._here.get(result.identifier) or self._anywhere.get(result.identity)


def work_status(
    results: Sequence[ApplyResult], before: WorkStatus, generation: int, now: datetime, *, left_behind: str = ""
) -> WorkStatus:
    """The status of a Work. `left_behind` says what of an earlier generation could not be removed."""
    known = _EarlierConditions(before.manifest_conditions)
    manifests = tuple(_manifest(result, known.of(result), now) for result in results)
    status = WorkStatus(
        conditions=_conditions(results, before.conditions, generation, now, left_behind), manifest_conditions=manifests
    )
    return _trimmed(status, before, generation, now)


def _conditions(
    results: Sequence[ApplyResult], before: tuple[Condition, ...], generation: int, now: datetime, left_behind: str
) -> tuple[Condition, ...]:
    outcome = _applied(results, left_behind)
    about = tuple(condition for condition in before if condition.observed_generation == generation)
    applied = _keeping_time(about, _condition(reasons.APPLIED, outcome, generation, now))
    if applied.status == FALSE:
        return (applied,)
    return applied, _keeping_time(before, _condition(reasons.AVAILABLE, _available(results), generation, now))


def _applied(results: Sequence[ApplyResult], left_behind: str) -> tuple[str, str, str]:
    done = sum(result.applied for result in results)
    if done == len(results):
        return TRUE, reasons.ALL_APPLIED, left_behind or f"all {done} manifests are applied"
    first = next(result for result in results if not result.applied)
    message = f"{done} of {len(results)} manifests are applied; {first.identity}: {first.message}"
    return FALSE, reasons.SOME_NOT_APPLIED, _cut(message)


def _available(results: Sequence[ApplyResult]) -> tuple[str, str, str]:
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


def _manifest(result: ApplyResult, before: ManifestCondition | None, now: datetime) -> ManifestCondition:
    old = before.conditions if before else ()
    applied = (TRUE if result.applied else FALSE, result.reason, _cut(result.message))
    new = [_condition(reasons.APPLIED, applied, result.generation, now)]
    if result.verdict is not None:
        new.append(_condition(reasons.AVAILABLE, _availability(result.verdict), result.generation, now))
    conditions = tuple(_keeping_time(old, condition) for condition in new)
    return ManifestCondition(
        identifier=result.identifier,
        conditions=conditions,
        back_reported_status=_back_reported(result.back_reported, before),
    )


def _availability(verdict: Verdict) -> tuple[str, str, str]:
    if not verdict.available:
        return FALSE, reasons.MANIFEST_NOT_AVAILABLE, _cut(verdict.message)
    reason = reasons.MANIFEST_AVAILABLE if verdict.trackable else reasons.MANIFEST_NOT_TRACKABLE
    return TRUE, reason, _cut(verdict.message)


def _back_reported(new: BackReportedStatus | None, before: ManifestCondition | None) -> BackReportedStatus | None:
    """The reported status; with its earlier time if it has not changed."""
    old = before.back_reported_status if before else None
    return old if new and old and old.observed_status == new.observed_status else new


def _keeping_time(old: tuple[Condition, ...], new: Condition) -> Condition:
    """The condition, with the time of its last transition."""
    found = find_condition(set_condition(old, new), new.type)
    assert found is not None
    return found


def _condition(type_: str, outcome: tuple[str, str, str], generation: int | None, now: datetime) -> Condition:
    status, reason, message = outcome
    return new_condition(type_, status, reason, message, now=now, generation=generation or None)


def _trimmed(status: WorkStatus, before: WorkStatus, generation: int, now: datetime) -> WorkStatus:
    """The status, without the back-reported statuses if it would be too large."""
    if not any(one.back_reported_status for one in status.manifest_conditions) or _size(status) <= MAX_STATUS_BYTES:
        return status
    message = (
        f"the status would have more than {MAX_STATUS_BYTES} bytes: what the objects say of themselves was left out"
    )
    trimmed = _condition(STATUS_TRIMMED, (TRUE, STATUS_TRIMMED, message), generation, now)
    bare = tuple(replace(one, back_reported_status=None) for one in status.manifest_conditions)
    return WorkStatus(
        conditions=(*status.conditions, _keeping_time(before.conditions, trimmed)), manifest_conditions=bare
    )


def _size(status: WorkStatus) -> int:
    return len(msgspec.json.encode(status))


def _cut(message: str) -> str:
    return cut(message, _MAX_MESSAGE)


def not_applied_in(status: WorkStatus) -> set[ObjectKey]:
    """The objects that a Work reports as not applied."""
    return {
        object_key(one.identifier)
        for one in status.manifest_conditions
        if (applied := find_condition(one.conditions, reasons.APPLIED)) is not None and applied.status == FALSE
    }


def wait_before_retry(results: Iterable[ApplyResult], status: WorkStatus, now: datetime) -> float | None:
    """Seconds until the next try of what failed; None if an event will say so.

    What has failed for long is tried less often, but often enough for a user who has just corrected it.
    """
    known = [result.retry_after for result in results if result.retry_after is not None]
    if not any(result.retry for result in results):
        return min(known, default=None)
    failing = find_condition(status.conditions, reasons.APPLIED)
    since = (now - failing.last_transition_time).total_seconds() if failing else 0.0
    return min([*known, min(_LONGEST_WAIT, max(_SHORTEST_WAIT, since / 4))])


# What has changed


def only_messages_differ(before: WorkStatus, after: WorkStatus) -> bool:
    """Whether two statuses differ in nothing but the messages of conditions."""
    return _without_messages(before) == _without_messages(after)


def is_becoming_available(before: WorkStatus, after: WorkStatus, generation: int) -> bool:
    """Whether all is applied and not yet available, and this generation was not reported as available before."""
    if is_true(before.conditions, AVAILABLE, generation=generation):
        return False
    return is_true(after.conditions, APPLIED) and not is_true(after.conditions, AVAILABLE)


def _without_messages(status: WorkStatus) -> tuple[tuple[Condition, ...], tuple[ManifestCondition, ...]]:
    manifests = (replace(one, conditions=_without_message(one.conditions)) for one in status.manifest_conditions)
    return _without_message(status.conditions), tuple(manifests)


def _without_message(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    return tuple(replace(one, message="") for one in conditions)


# Kinds that come with the Work that uses them


SERVED_WITHIN: Final = 10.0
"""Seconds after which an object that waits for its definition has failed."""

_RETRY_AFTER: Final = 0.2


def wait_for_definitions(
    read: Iterable[DesiredObject | InvalidManifest], results: Sequence[ApplyResult], age: float
) -> float | None:
    """Seconds to wait before reporting on a Work begun `age` seconds ago; None if there is nothing to wait for.

    That a definition is established is an event. That the member serves it follows soon, without an event.
    Until then its objects cannot be written, which is no failure.
    """
    read = tuple(read)
    kind_not_served = {
        (one.identifier.group, one.identifier.kind)
        for one in read
        if isinstance(one, InvalidManifest) and one.kind_not_served
    }
    defining = {
        one.identifier.ordinal
        for one in read
        if isinstance(one, DesiredObject) and _defined_kind(one) in kind_not_served
    }
    verdicts = [one.verdict for one in results if one.identifier.ordinal in defining and one.verdict is not None]
    left = SERVED_WITHIN - age
    if not verdicts or left <= 0:
        return None
    return min(left, _RETRY_AFTER) if all(verdict.available for verdict in verdicts) else left


def _defined_kind(one: DesiredObject) -> tuple[str, str] | None:
    """The group and kind that a definition defines."""
    if one.resource.plural != "customresourcedefinitions":
        return None
    spec = one.manifest.get("spec") or {}
    return spec.get("group", ""), (spec.get("names") or {}).get("kind", "")

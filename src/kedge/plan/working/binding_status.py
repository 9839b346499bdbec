"""Binding status: the conditions of a binding, from what the Works of its cluster report.

    report = report_from_works(works, synchronized)        # conditions, up to the first that is not True
    status = binding_status(binding, report, now)          # with those of others kept, and true transition times

What a Work reports counts only at its current generation. Conditions come in order, and end with the first that is not
True: what follows it is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.binding import BindingStatus
from kedge.api.condition import FALSE, TRUE, Condition, find_condition, is_true
from kedge.api.placement_kinds import Binding
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
from kedge.api.work import Work
from kedge.plan.findings import Finding
from kedge.plan.text import first_few, object_name
from kedge.plan.working.work_contents import failed_condition

OWN_TYPES: Final = frozenset((OVERRIDDEN, WORK_SYNCHRONIZED, APPLIED, AVAILABLE, DIFF_REPORTED))
"""The conditions of a binding that come from its Works; the others are the rollout's."""
MAX_FAILURES: Final = 100
_IN_PROGRESS: Final = (APPLY_IN_PROGRESS, WORK_APPLIED, WORK_NOT_AVAILABLE)
_MAX_NAMED: Final = 3


class WorkReport(Struct, frozen=True):
    """What the Works of a binding report, and the objects that failed."""

    findings: tuple[Finding, ...]
    failed: tuple[FailedPlacement, ...] = ()


def not_overridden(problem: str) -> WorkReport:
    """The manifests for this cluster cannot be determined."""
    return WorkReport((Finding(OVERRIDDEN, FALSE, OVERRIDDEN_FAILED, problem),))


def not_synchronized(problem: str) -> WorkReport:
    """The manifests are known, but the Works cannot be written."""
    return WorkReport((_NO_OVERRIDES, Finding(WORK_SYNCHRONIZED, FALSE, SYNC_FAILED, problem)))


def works_change() -> WorkReport:
    """The Works are about to change: what they reported no longer holds."""
    return WorkReport((_NO_OVERRIDES,))


def report_from_works(works: Sequence[Work], synchronized: str) -> WorkReport:
    """The report of Works that are as they should be."""
    synced = Finding(WORK_SYNCHRONIZED, TRUE, WORK_SYNCED, synchronized)
    failed = tuple(found for work in works if _current_condition(work, APPLIED) for found in failures(work))
    reported = list(_member_findings(works, failed))
    return WorkReport((_NO_OVERRIDES, synced, *reported), failed[:MAX_FAILURES])


def _member_findings(works: Sequence[Work], failed: Sequence[FailedPlacement]) -> Iterable[Finding]:
    applied = _applied(works, failed)
    yield applied
    if applied.status == TRUE and (available := _available(works, failed)) is not None:
        yield available


def _applied(works: Sequence[Work], failed: Sequence[FailedPlacement]) -> Finding:
    if refusing := [work for work in works if _has_status(work, APPLIED, FALSE)]:
        causes = [found for found in failed if found.condition.type == APPLIED]
        return Finding(APPLIED, FALSE, WORK_NOT_APPLIED, _causes("not applied", causes, refusing, APPLIED))
    if silent := [work for work in works if not _has_status(work, APPLIED, TRUE)]:
        names = ", ".join(work.metadata.name for work in silent[:_MAX_NAMED])
        return Finding(APPLIED, FALSE, APPLY_IN_PROGRESS, f"The member has not reported yet on Work {names}")
    times = (found.last_transition_time for work in works if (found := _current_condition(work, APPLIED)) is not None)
    return Finding(APPLIED, TRUE, WORK_APPLIED, "Every object is applied", max(times, default=None))


def _available(works: Sequence[Work], failed: Sequence[FailedPlacement]) -> Finding | None:
    if failing := [work for work in works if _has_status(work, AVAILABLE, FALSE)]:
        return Finding(AVAILABLE, FALSE, WORK_NOT_AVAILABLE, _causes("not available", failed, failing, AVAILABLE))
    reported = [_current_condition(work, AVAILABLE) for work in works]
    if any(found is None or found.status != TRUE for found in reported):
        return None
    if any(found is not None and found.reason == NOT_ALL_TRACKABLE for found in reported):
        return Finding(AVAILABLE, TRUE, WORK_UNTRACKABLE, "Of some objects it cannot be seen whether they work")
    return Finding(AVAILABLE, TRUE, WORK_AVAILABLE, "Every object is available")


def failures(work: Work) -> Iterable[FailedPlacement]:
    """The objects of a Work that are not applied or not available."""
    for found in work.status.manifest_conditions:
        condition = failed_condition(found)
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


def binding_status(
    binding: Binding, report: WorkReport, now: datetime, pending: BindingStatus | None = None
) -> BindingStatus:
    """The status of a binding with this report. Conditions of others are kept; times are those of true changes.

    `pending` is the status before this one, if it was not written yet.
    """
    kept = tuple(condition for condition in binding.status.conditions if condition.type not in OWN_TYPES)
    before = (pending or binding.status).conditions
    conditions = tuple(_condition(binding, finding, before, now) for finding in report.findings)
    return BindingStatus(conditions=(*kept, *conditions), failed_placements=report.failed)


def is_in_progress(binding: Binding, report: WorkReport) -> bool:
    """Whether it only reports progress of a cluster that was not available before either.

    That a cluster has Works at all is more than progress: removals elsewhere wait for it.
    """
    before = binding.status.conditions
    if find_condition(before, WORK_SYNCHRONIZED) is None:
        return False
    if is_true(before, AVAILABLE, generation=binding.metadata.generation):
        return False
    return report.findings[-1].reason in _IN_PROGRESS


def is_unobservable(binding: Binding) -> bool:
    """Whether it counts as available only after a time, because its objects report nothing."""
    found = find_condition(binding.status.conditions, AVAILABLE)
    return found is not None and found.status == TRUE and found.reason == WORK_UNTRACKABLE


def _condition(binding: Binding, finding: Finding, before: Iterable[Condition], now: datetime) -> Condition:
    since = _transition_time(find_condition(before, finding.type), finding, now)
    return replace(finding, since=since).condition(None, binding.metadata.generation, now)


def _transition_time(old: Condition | None, finding: Finding, now: datetime) -> datetime:
    """When the condition last changed. From observable to unobservable counts as a change: the wait starts again.

    The time that a member reports counts if it lies between the change before and now; else its clock is wrong.
    """
    if old is None or old.status != finding.status:
        earliest = old.last_transition_time if old is not None else now
        return finding.since if finding.since is not None and earliest <= finding.since <= now else now
    if finding.reason == WORK_UNTRACKABLE and old.reason != WORK_UNTRACKABLE:
        return now
    return old.last_transition_time


def _current_condition(work: Work, kind: str) -> Condition | None:
    """The condition of a Work at its current generation."""
    found = find_condition(work.status.conditions, kind)
    return found if found is not None and found.observed_generation == work.metadata.generation else None


def _has_status(work: Work, kind: str, status: str) -> bool:
    found = _current_condition(work, kind)
    return found is not None and found.status == status


def _causes(what: str, failed: Sequence[FailedPlacement], works: Sequence[Work], kind: str) -> str:
    """The objects that failed; if the member names none, what it reports of the whole Work."""
    if not failed:
        reported = [found.message for work in works if (found := _current_condition(work, kind)) is not None]
        return "; ".join(filter(None, reported)) or f"Some objects are {what}"
    return first_few((_cause(what, found) for found in failed), most=_MAX_NAMED)


def _cause(what: str, found: FailedPlacement) -> str:
    name, message = object_name(found.kind, found.namespace, found.name), found.condition.message
    if message.startswith(name):
        return message
    return f"{name} is {what}: {message}" if message else f"{name} is {what}"


_NO_OVERRIDES: Final = Finding(OVERRIDDEN, TRUE, NO_OVERRIDE, "No override is specified for this cluster")

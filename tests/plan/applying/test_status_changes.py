"""Wording: messages are words; statuses, reasons, generations, times and what objects say of themselves are not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.condition import Condition
from kedge.api.work import BackReportedStatus, ManifestCondition, WorkResourceIdentifier, WorkStatus
from kedge.plan.applying.work_status import is_becoming_available, only_messages_differ

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SAID = Condition("Available", "False", NOW, "NotYet", "1 of 3", 4)
MANIFEST = ManifestCondition(WorkResourceIdentifier(0, name="web"), (SAID,))
STATUS = WorkStatus(conditions=(SAID,), manifest_conditions=(MANIFEST,))


def _with(manifest: ManifestCondition | None = None, **changes: Any) -> WorkStatus:
    found = manifest or replace(MANIFEST, conditions=(replace(SAID, **changes),))
    return WorkStatus(conditions=(replace(SAID, **changes),), manifest_conditions=(found,))


def test_statuses_that_differ_in_messages_only() -> None:
    assert only_messages_differ(STATUS, _with(message="2 of 3"))


@pytest.mark.parametrize(
    "after",
    [
        _with(status="True"),
        _with(reason="Other"),
        _with(observed_generation=5),
        _with(last_transition_time=NOW + timedelta(seconds=1)),
        _with(replace(MANIFEST, back_reported_status=BackReportedStatus(NOW))),
        replace(STATUS, manifest_conditions=()),
        replace(STATUS, conditions=()),
    ],
    ids=["status", "reason", "generation", "time", "mirror", "an object less", "a condition less"],
)
def test_statuses_that_differ_in_more_than_messages(after: WorkStatus) -> None:
    assert not only_messages_differ(STATUS, after)


APPLIED, REFUSED = replace(SAID, type="Applied", status="True"), replace(SAID, type="Applied")
AVAILABLE = replace(SAID, status="True")
UNDERWAY = (APPLIED, SAID)


@pytest.mark.parametrize(
    ("before", "after", "wanted"),
    [
        ((), UNDERWAY, True),
        ((APPLIED, AVAILABLE), UNDERWAY, False),
        ((APPLIED, replace(AVAILABLE, observed_generation=3)), UNDERWAY, True),
        (UNDERWAY, UNDERWAY, True),
        ((REFUSED,), (APPLIED,), True),
        ((), (REFUSED,), False),
        ((), (APPLIED, AVAILABLE), False),
        (UNDERWAY, (APPLIED, AVAILABLE), False),
        ((APPLIED, AVAILABLE), (REFUSED,), False),
    ],
    ids=[
        "first placed",
        "no longer available",
        "a new generation",
        "other words",
        "applied at last",
        "refused",
        "available at once",
        "available",
        "changed and refused",
    ],
)
def test_only_a_generation_not_reported_available_is_becoming_available(
    before: tuple[Condition, ...], after: tuple[Condition, ...], wanted: bool
) -> None:
    assert is_becoming_available(WorkStatus(conditions=before), WorkStatus(conditions=after), generation=4) is wanted

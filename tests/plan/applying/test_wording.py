"""Wording: messages are words; statuses, reasons, generations, times and what objects say of themselves are not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.condition import Condition
from kedge.api.work import BackReportedStatus, ManifestCondition, WorkResourceIdentifier, WorkStatus
from kedge.plan.applying.wording import is_wording

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SAID = Condition("Available", "False", NOW, "NotYet", "1 of 3", 4)
MANIFEST = ManifestCondition(WorkResourceIdentifier(0, name="web"), (SAID,))
STATUS = WorkStatus(conditions=(SAID,), manifest_conditions=(MANIFEST,))


def _with(manifest: ManifestCondition | None = None, **changes: Any) -> WorkStatus:
    found = manifest or replace(MANIFEST, conditions=(replace(SAID, **changes),))
    return WorkStatus(conditions=(replace(SAID, **changes),), manifest_conditions=(found,))


def test_other_messages_are_words() -> None:
    assert is_wording(STATUS, _with(message="2 of 3"))


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
def test_anything_else_is_more_than_words(after: WorkStatus) -> None:
    assert not is_wording(STATUS, after)

"""Readiness: what counts as available, what as broken, and what is not known."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kedge.api import reasons
from kedge.api.condition import FALSE, TRUE
from kedge.plan.rolling.readiness import Around, Readiness, heads, judge
from plan.rolling.making import (
    AVAILABLE,
    IN_PROGRESS,
    NOT_APPLIED,
    NOT_AVAILABLE,
    NOT_SENT,
    NOTHING,
    NOW,
    UNTRACKABLE,
    Said,
    binding,
    scheduled,
    unscheduled,
)

AROUND = Around(NOW, timedelta(seconds=60), {"silent": "not heard of"}, frozenset({"left"}), frozenset({"parting"}))
PENDING: Said = {reasons.APPLIED: (FALSE, reasons.APPLY_PENDING)}
DIFFED: Said = {reasons.DIFF_REPORTED: (TRUE, "AllWorkHaveDiffReported")}
NOT_DIFFED: Said = {reasons.DIFF_REPORTED: (FALSE, "NotAllWorkHaveDiffReported")}
DIFFING: Said = {reasons.DIFF_REPORTED: (FALSE, "DiffReportInProgress")}
CONTRADICTORY: Said = {**NOT_APPLIED, reasons.AVAILABLE: (TRUE, reasons.WORK_AVAILABLE)}


@pytest.mark.parametrize(
    ("said", "how", "readiness"),
    [
        (AVAILABLE, {}, Readiness.available),
        (AVAILABLE, {"spoken_at": 2}, Readiness.underway),
        (AVAILABLE, {"deleting": True}, Readiness.leaving),
        (AVAILABLE, {"has": ""}, Readiness.empty),
        (NOT_AVAILABLE, {}, Readiness.broken),
        (NOT_AVAILABLE, {"since": 0}, Readiness.broken),
        (NOT_AVAILABLE, {"spoken_at": 2}, Readiness.underway),
        (NOT_APPLIED, {}, Readiness.broken),
        (NOT_SENT, {}, Readiness.broken),
        (CONTRADICTORY, {}, Readiness.broken),
        (IN_PROGRESS, {}, Readiness.underway),
        (IN_PROGRESS, {"since": 86400}, Readiness.underway),
        (PENDING, {}, Readiness.underway),
        (NOTHING, {}, Readiness.underway),
        (UNTRACKABLE, {"since": 60}, Readiness.available),
        (UNTRACKABLE, {"since": 59}, Readiness.unproven),
        (UNTRACKABLE, {"since": 3600, "spoken_at": 2}, Readiness.underway),
        (DIFFED, {}, Readiness.available),
        (NOT_DIFFED, {}, Readiness.broken),
        (DIFFING, {}, Readiness.underway),
    ],
)
def test_only_what_the_status_says_of_the_binding_as_it_is_counts(
    said: Said, how: dict[str, Any], readiness: Readiness
) -> None:
    assert judge(binding("a", said, **how), AROUND).readiness is readiness


@pytest.mark.parametrize(
    ("cluster", "readiness"),
    [("silent", Readiness.unreachable), ("left", Readiness.gone), ("parting", Readiness.leaving)],
)
@pytest.mark.parametrize("said", [AVAILABLE, NOT_AVAILABLE, NOTHING])
def test_of_a_cluster_that_cannot_be_asked_nothing_is_known(cluster: str, said: Said, readiness: Readiness) -> None:
    assert judge(binding(cluster, said), AROUND).readiness is readiness


def test_waiting_tells_when_it_is_over() -> None:
    assert judge(binding("a", UNTRACKABLE, since=50), AROUND).proven_at == NOW + timedelta(seconds=10)


@pytest.mark.parametrize("bindings", [(0, 1), (1, 0)])
def test_the_binding_that_was_there_first_speaks_for_its_cluster(bindings: tuple[int, int]) -> None:
    rows = [
        (binding("a", deleting=True, age=1), scheduled("a", suffix="2", age=9)),
        (unscheduled("b", age=1), scheduled("b", suffix="2", age=9)),
        (scheduled("c", age=9), scheduled("c", suffix="0", age=1)),
        (binding("d", age=9), binding("d", suffix="0", age=1)),
        (binding("e", suffix="0", age=9), binding("e", suffix="1", age=9)),
    ]
    units = [judge(row[number], AROUND) for row in rows for number in bindings]
    found = heads(units)
    assert [found[cluster].binding for cluster in "abcde"] == [row[0] for row in rows]

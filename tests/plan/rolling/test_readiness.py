"""Readiness: what counts as available, what as broken, and what is not known."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kedge.api import reasons
from kedge.api.condition import FALSE, TRUE
from kedge.plan.moving.unit import Proof
from kedge.plan.rolling.readiness import FleetFacts, judge, one_binding_per_cluster
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

FLEET = FleetFacts(NOW, timedelta(seconds=60), {"silent": "not heard of"}, frozenset({"left"}), frozenset({"parting"}))
PENDING: Said = {reasons.APPLIED: (FALSE, reasons.APPLY_PENDING)}
DIFFED: Said = {reasons.DIFF_REPORTED: (TRUE, "AllWorkHaveDiffReported")}
NOT_DIFFED: Said = {reasons.DIFF_REPORTED: (FALSE, "NotAllWorkHaveDiffReported")}
DIFFING: Said = {reasons.DIFF_REPORTED: (FALSE, "DiffReportInProgress")}
CONTRADICTORY: Said = {**NOT_APPLIED, reasons.AVAILABLE: (TRUE, reasons.WORK_AVAILABLE)}


@pytest.mark.parametrize(
    ("said", "how", "proof"),
    [
        (AVAILABLE, {}, Proof.proven),
        (AVAILABLE, {"spoken_at": 2}, Proof.pending),
        (AVAILABLE, {"deleting": True}, Proof.leaving),
        (AVAILABLE, {"has": ""}, Proof.nothing),
        (NOT_AVAILABLE, {}, Proof.failed),
        (NOT_AVAILABLE, {"since": 0}, Proof.failed),
        (NOT_AVAILABLE, {"spoken_at": 2}, Proof.pending),
        (NOT_APPLIED, {}, Proof.failed),
        (NOT_SENT, {}, Proof.failed),
        (CONTRADICTORY, {}, Proof.failed),
        (IN_PROGRESS, {}, Proof.pending),
        (IN_PROGRESS, {"since": 86400}, Proof.pending),
        (PENDING, {}, Proof.pending),
        (NOTHING, {}, Proof.pending),
        (UNTRACKABLE, {"since": 60}, Proof.proven),
        (UNTRACKABLE, {"since": 59}, Proof.untracked),
        (UNTRACKABLE, {"since": 3600, "spoken_at": 2}, Proof.pending),
        (DIFFED, {}, Proof.proven),
        (NOT_DIFFED, {}, Proof.failed),
        (DIFFING, {}, Proof.pending),
    ],
)
def test_only_what_the_status_says_of_the_binding_as_it_is_counts(
    said: Said, how: dict[str, Any], proof: Proof
) -> None:
    assert judge(binding("a", said, **how), FLEET).proof is proof


@pytest.mark.parametrize(
    ("cluster", "proof"),
    [("silent", Proof.unknown), ("left", Proof.gone), ("parting", Proof.leaving)],
)
@pytest.mark.parametrize("said", [AVAILABLE, NOT_AVAILABLE, NOTHING])
def test_of_a_cluster_that_cannot_be_asked_nothing_is_known(cluster: str, said: Said, proof: Proof) -> None:
    assert judge(binding(cluster, said), FLEET).proof is proof


def test_waiting_tells_when_it_is_over() -> None:
    assert judge(binding("a", UNTRACKABLE, since=50), FLEET).proven_at == NOW + timedelta(seconds=10)


@pytest.mark.parametrize("bindings", [(0, 1), (1, 0)])
def test_the_binding_that_was_there_first_speaks_for_its_cluster(bindings: tuple[int, int]) -> None:
    rows = [
        (binding("a", deleting=True, age=1), scheduled("a", suffix="2", age=9)),
        (unscheduled("b", age=1), scheduled("b", suffix="2", age=9)),
        (scheduled("c", age=9), scheduled("c", suffix="0", age=1)),
        (binding("d", age=9), binding("d", suffix="0", age=1)),
        (binding("e", suffix="0", age=9), binding("e", suffix="1", age=9)),
    ]
    units = [judge(row[number], FLEET) for row in rows for number in bindings]
    found = one_binding_per_cluster(units)
    assert [found[cluster].binding for cluster in "abcde"] == [row[0] for row in rows]

"""What a cluster may be acting on, by what it was asked for and what it reports."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.plan.aligning.ledger import NOTHING, Member, Report, Spec

FIRST, SECOND, THIRD = Spec(1, "v1", 4, 1), Spec(2, "v2", 4, 2), Spec(5, "v3", 6)


def member(*specs: Spec, report: Report = NOTHING, superseded: int = 0, **given: Any) -> Member:
    return Member("a", 4, "v2", specs, report, superseded=superseded, **given)


@pytest.mark.parametrize(("partition", "moved"), [(0, 4), (3, 1), (4, 0), (9, 0)])
def test_a_partition_keeps_pods_back(partition: int, moved: int) -> None:
    assert Spec(1, "v1", 4, partition=partition).moved == moved


@pytest.mark.parametrize(
    ("report", "proven"),
    [
        (Report(1, pods=4, updated=2, available=4), 2),
        (Report(1, pods=4, updated=2, available=3), 1),  # the other one may be of the updated ones
        (Report(1, pods=4, updated=2, available=1), 0),
        (Report(1, pods=4, updated=2, available=3, updated_available=2), 2),
        (Report(1, pods=4, updated=2, available=4, updated_available=0), 0),
    ],
)
def test_updated_pods_are_proven_by_their_own_count_or_if_there_are_not_enough_others(
    report: Report, proven: int
) -> None:
    assert report.proven == proven


@pytest.mark.parametrize(
    ("seq", "in_effect"),
    [
        (0, (FIRST, SECOND, THIRD)),
        (1, (FIRST, SECOND, THIRD)),
        (2, (SECOND, THIRD)),
        (3, (THIRD,)),
        (5, (THIRD,)),
        (9, (THIRD,)),  # it reports about what the ledger does not have: the last one counts
    ],
)
def test_all_specs_from_the_one_it_reports_about_may_be_in_effect(seq: int, in_effect: tuple[Spec, ...]) -> None:
    assert member(FIRST, SECOND, THIRD, report=Report(seq)).in_effect == in_effect


@pytest.mark.parametrize(
    ("seq", "pods", "lingering"),
    [(5, 5, (FIRST, SECOND)), (5, 6, ()), (2, 3, (FIRST,)), (2, 4, ()), (1, 0, ()), (9, 0, ())],
)
def test_earlier_specs_count_while_there_are_fewer_pods_than_asked_for(
    seq: int, pods: int, lingering: tuple[Spec, ...]
) -> None:
    report = Report(seq, pods=pods, updated=pods)
    assert member(FIRST, SECOND, THIRD, report=report).lingering == lingering
    assert member(FIRST, SECOND, THIRD, report=report, is_ordered=True).lingering == lingering


@pytest.mark.parametrize(
    ("updated", "partition", "is_ordered", "lingering"),
    [
        (3, 0, False, (FIRST,)),  # an old one may be on its way out since the spec before, and counted as available
        (4, 0, False, ()),
        (3, 1, False, ()),  # as many as are let through: no old one is to go
        (3, 0, True, ()),  # its controller deletes pods itself, and counts them no more
    ],
)
def test_earlier_specs_count_while_pods_are_replaced(
    updated: int, partition: int, lingering: tuple[Spec, ...], *, is_ordered: bool
) -> None:
    now = Spec(2, "v2", 4, 1, partition=partition)
    found = member(FIRST, now, report=Report(2, 4, updated, 4), is_ordered=is_ordered)
    assert found.lingering == lingering


def test_the_last_spec_is_the_one_that_was_written_last() -> None:
    assert member(FIRST, SECOND).last == SECOND
    assert member().last is None


@pytest.mark.parametrize(
    ("specs", "seq", "superseded", "expected"),
    [
        ((), 0, 0, True),
        ((FIRST,), 0, 0, False),
        ((FIRST,), 1, 0, True),
        ((FIRST, SECOND, THIRD), 2, 0, False),
        ((FIRST, SECOND, THIRD), 5, 0, True),
        ((FIRST, SECOND, THIRD), 1, 1, False),
        ((FIRST, SECOND, THIRD), 2, 1, True),
        ((FIRST, SECOND, THIRD), 1, 2, True),
        ((FIRST,), 0, 1, True),
    ],
)
def test_what_was_written_last_is_acknowledged_by_a_report_about_it(
    specs: tuple[Spec, ...], seq: int, superseded: int, *, expected: bool
) -> None:
    assert member(*specs, report=Report(seq), superseded=superseded).is_acknowledged is expected


def test_a_cluster_that_was_not_heard_yet_has_acknowledged_nothing() -> None:
    assert not member(FIRST).is_acknowledged


@pytest.mark.parametrize(
    ("seq", "template", "updated"), [(1, "v1", 0), (2, "v2", 3), (5, "v3", 0), (0, "", 0), (9, "", 0)]
)
def test_updated_pods_are_of_the_template_of_the_spec_that_is_reported_about(
    seq: int, template: str, updated: int
) -> None:
    found = member(FIRST, SECOND, THIRD, report=Report(seq, pods=4, updated=3))
    assert (found.reported_template, found.updated) == (template, updated)

"""Bounds: how few and how many pods one cluster may come to, kind by kind."""

from __future__ import annotations

import pytest

from kedge.plan.aligning.bounds import bounds
from kedge.plan.aligning.ledger import Member, Report, Spec


def ordered(report: Report, *specs: Spec, wanted: int = 3) -> Member:
    """A cluster whose pods have an order, as those of a StatefulSet."""
    return Member("a", wanted, "v2", specs, report, is_ordered=True)


@pytest.mark.parametrize(
    ("report", "fewest"),
    [
        (Report(1, pods=3, updated=3, available=3), 2),  # all are available: it takes one
        (Report(1, pods=3, updated=3, available=2), 1),  # the last may be one that works: it is taken all the same
        (Report(1, pods=3, updated=1, available=2), 1),  # which one is not available may have changed since
    ],
)
def test_a_kind_with_an_order_takes_the_next_pod_whether_or_not_others_are_available(
    report: Report, fewest: int
) -> None:
    member = ordered(report, Spec(1, "v1", 3, 1))
    assert bounds(member, (Spec(2, "v2", 3, 1),)).fewest == fewest


def test_a_kind_with_an_order_waits_for_the_pods_of_its_own_template() -> None:
    member = ordered(Report(2, pods=3, updated=1, available=2), Spec(2, "v2", 3, 1))
    assert bounds(member).fewest == 2


def test_broken_pods_of_a_release_that_was_stopped_are_the_last_ones() -> None:
    stopped = ordered(Report(2, pods=3, updated=1, available=2), Spec(2, "bad", 3, 1, partition=2))
    assert bounds(stopped, (Spec(3, "v2", 3, 1),)).fewest == 2
    assert bounds(stopped, (Spec(3, "bad", 2, 1, partition=2),)).fewest == 2  # to remove it costs nothing
    going_on = ordered(Report(2, pods=3, updated=1, available=2), Spec(2, "bad", 3, 1))
    assert bounds(going_on, (Spec(3, "v2", 3, 1),)).fewest == 1


@pytest.mark.parametrize(
    ("available", "partition", "fewest"),
    [
        (3, 0, 1),  # it may be replacing another one just now, and does not wait for that
        (2, 0, 1),  # that is the one it waits for
        (3, 2, 2),  # there are no others to replace
    ],
)
def test_a_kind_with_an_order_does_not_wait_for_what_another_template_has_begun(
    available: int, partition: int, fewest: int
) -> None:
    begun = ordered(Report(1, pods=3, updated=1, available=available), Spec(1, "v1", 3, 1, partition=partition))
    found = bounds(begun, (Spec(2, "v2", 3, 1, partition=2),))
    assert (found.fewest, found.unavailable) == (fewest, 1)


def test_a_kind_with_an_order_is_scaled_down_from_the_end_whether_or_not_others_work() -> None:
    member = ordered(Report(1, pods=3, updated=3, available=2), Spec(1, "v1", 3, 1))
    assert bounds(member, (Spec(2, "v1", 2, 1),)).fewest == 1
    unordered = Member("a", 3, "v1", (Spec(1, "v1", 3, 1),), Report(1, pods=3, updated=3, available=2))
    assert bounds(unordered, (Spec(2, "v1", 2, 1),)).fewest == 2


@pytest.mark.parametrize(
    ("pods", "fewest"),
    [
        (2, 1),  # by the spec before, a pod may be on its way out that is still counted
        (3, 2),  # it has got to what it is asked for
    ],
)
def test_a_spec_that_asks_for_more_pods_proves_nothing_before_they_are_there(pods: int, fewest: int) -> None:
    specs = Spec(5, "v2", 2, 1), Spec(6, "v2", 3, 1)
    member = Member("a", 4, "v2", specs, Report(6, pods=pods, available=2))
    assert bounds(member).fewest == bounds(member).steady == fewest


def test_a_pod_that_is_asked_for_and_not_there_yet_is_none_that_may_work() -> None:
    member = Member("a", 5, "v1", (Spec(1, "v1", 4, 1),), Report(1, pods=4, updated=4, available=2))
    assert bounds(member, (Spec(2, "v1", 5, 1),)).steady == 4


def test_pods_that_were_reported_as_broken_may_work_by_now() -> None:
    member = Member("a", 4, "v2", (Spec(1, "v1", 4, 0, 1),), Report(1, pods=4, updated=4, available=0))
    found = bounds(member, (Spec(2, "v2", 3, 0, 1),))
    assert (found.fewest, found.steady) == (0, 3)

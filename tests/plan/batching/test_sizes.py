"""How many pods each batch moves: KubeVela's tables, and what always holds."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kedge.api.numbers import IntOrPercent
from kedge.api.oam.rollout_plan import RolloutBatch, RolloutPlan
from kedge.plan.batching.sizes import (
    BadBatches,
    batches_of,
    default_batches,
    rollout_goals,
    scale_goals,
    target_size,
    target_sizes,
)


def made(*sizes: IntOrPercent) -> tuple[RolloutBatch, ...]:
    return tuple(RolloutBatch(replicas=size) for size in sizes)


P = made("20%", "40%", "30%", "10%")
N = made(1, 2, 4, 3)
M = made(1, "20%", "50%", 2)
R = made("20%", 2, 2, "50%")
O = made("140%", 1, "40%")  # noqa: E741  # as the reference calls it
NONE: tuple[RolloutBatch, ...] = ()


@pytest.mark.parametrize(
    ("batches", "original", "total", "index", "expected"),
    [
        (M, 0, 10, 0, 1),
        (M, 0, 10, 1, 3),
        (M, 0, 10, 2, 8),
        (M, 0, 10, 3, 10),
        (M, 2, 12, 0, 3),
        (M, 3, 13, 1, 6),
        (M, 4, 14, 2, 12),
        (M, 5, 15, 3, 15),
        (M, 10, 0, 0, 9),
        (M, 20, 5, 1, 16),
        (M, 30, 15, 2, 18),
        (M, 40, 10, 3, 10),
        (M, 2, 12, 4, 12),
        (M, 13, 3, 5, 3),
        (N, 16, 10, 0, 15),
        (P, 10, 10, 2, 10),
    ],
)
def test_the_size_after_each_batch(
    batches: Sequence[RolloutBatch], original: int, total: int, index: int, expected: int
) -> None:
    assert target_size(batches, original, total, index) == expected


@pytest.mark.parametrize(
    ("batches", "total", "goals"),
    [
        (M, 10, (1, 3, 8, 10)),
        (M, 12, (1, 4, 10, 12)),
        (M, 13, (1, 4, 11, 13)),
        (R, 10, (2, 4, 6, 10)),
        (R, 31, (7, 9, 11, 31)),
        (R, 100, (20, 22, 24, 100)),
        (N, 10, (1, 3, 7, 10)),
        (made("100%"), 0, (0,)),
        (made(0), 0, (0,)),  # KubeVela refuses it; a workload without pods can change its template, too
        (made("5%"), 7, (7,)),
    ],
)
def test_a_rollout_whose_batches_add_up(batches: Sequence[RolloutBatch], total: int, goals: tuple[int, ...]) -> None:
    assert rollout_goals(batches, total) == goals


@pytest.mark.parametrize(
    ("batches", "total"),
    [
        *((M, total) for total in (6, 20)),
        (R, 6),
        *((O, total) for total in (0, 1, 10, 100)),
        *((N, total) for total in (6, 11)),
        (NONE, 10),
        (P, 3),  # each is rounded up: 1 + 2 + 1 leaves nothing to the last one
        (made(3), 2),
        (made("100%", "0%"), 4),
        (made(1, 0), 0),
    ],
)
def test_a_rollout_whose_batches_do_not(batches: Sequence[RolloutBatch], total: int) -> None:
    with pytest.raises(BadBatches):
        rollout_goals(batches, total)


@pytest.mark.parametrize(
    ("batches", "original", "total"),
    [
        *((P, *sizes) for sizes in ((12, 12), (0, 0), (12, 22), (27, 7), (27, 0))),
        *((R, *sizes) for sizes in ((12, 32), (12, 22))),
        *((M, *sizes) for sizes in ((13, 26), (30, 42), (32, 20), (12, 0))),
        *((N, *sizes) for sizes in ((16, 26), (13, 3))),
        (made("50%"), 3, 3),
    ],
)
def test_a_scale_operation_whose_batches_add_up(batches: Sequence[RolloutBatch], original: int, total: int) -> None:
    goals = scale_goals(batches, original, total)
    assert goals == target_sizes(batches, original, total)
    assert goals[-1] == total


@pytest.mark.parametrize(
    ("batches", "original", "total"),
    [
        *((O, *sizes) for sizes in ((12, 115), (312, 15), (12, 12))),
        *((P, *sizes) for sizes in ((12, 15), (10, 7))),
        (R, 12, 17),
        *((M, *sizes) for sizes in ((13, 20), (42, 33))),
        *((N, *sizes) for sizes in ((16, 32), (13, 10), (16, 10))),
        (NONE, 3, 4),
    ],
)
def test_a_scale_operation_whose_batches_do_not(batches: Sequence[RolloutBatch], original: int, total: int) -> None:
    with pytest.raises(BadBatches):
        scale_goals(batches, original, total)


@pytest.mark.parametrize(
    ("batches", "total", "message"),
    [
        (NONE, 3, "the rollout has to have batches"),
        (made(2, 2, 1), 4, "the batches before the last one take 4 of 4 pods, which leaves none to the last one"),
        (made(2, 1), 4, "the last batch has 1 pod, but 2 are left to it: the batches do not add up"),
        (made("x", 1), 4, "rolloutBatches[0].replicas: 'x' is neither a number of at least 0 nor a percentage"),
        (made(1, -1), 4, "rolloutBatches[1].replicas: -1 is neither"),
    ],
)
def test_what_is_wrong_is_said(batches: Sequence[RolloutBatch], total: int, message: str) -> None:
    with pytest.raises(BadBatches) as refused:
        rollout_goals(batches, total)
    assert message in str(refused.value)


def test_what_is_wrong_with_a_scale_operation_is_said() -> None:
    with pytest.raises(BadBatches, match=r"change 3 pods, but only 2 are to change \(5 to 3\)"):
        scale_goals(made(3, 1), 5, 3)


@pytest.mark.parametrize(("size", "number", "expected"), [
    (8, 5, (1, 1, 2, 2, 2)), (4, 5, (0, 1, 1, 1, 1)), (9, 4, (2, 2, 2, 3)), (3, 1, (3,)), (0, 2, (0, 0)),
])  # fmt: skip
def test_batches_that_are_not_named_are_about_equal(size: int, number: int, expected: tuple[int, ...]) -> None:
    assert tuple(batch.replicas for batch in default_batches(size, number)) == expected


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (RolloutPlan(rollout_batches=M), M),
        (RolloutPlan(rollout_batches=M, num_batches=4), M),
        (RolloutPlan(num_batches=2), made(2, 3)),
        (RolloutPlan(), made(5)),
        (RolloutPlan(rollout_batches=()), made(5)),
        (RolloutPlan(num_batches=0), made(5)),
    ],
)
def test_the_batches_of_a_plan(plan: RolloutPlan, expected: tuple[RolloutBatch, ...]) -> None:
    assert batches_of(plan, 5) == expected


def test_pods_that_are_listed_are_counted() -> None:
    batches = (RolloutBatch(pod_list=("a", "b")), RolloutBatch(pod_list=("c",)))
    assert rollout_goals(batches, 3) == (2, 3)
    with pytest.raises(BadBatches, match="the last batch has 1 pod, but 2 are left"):
        rollout_goals(batches, 4)


def test_the_last_batch_may_leave_open_how_many_there_are() -> None:
    assert rollout_goals((RolloutBatch(replicas=2), RolloutBatch()), 5) == (2, 5)


shares = st.integers(0, 100).map(lambda share: f"{share}%")
sizes = st.lists(st.integers(0, 12) | shares, min_size=1, max_size=6)


@given(sizes, st.integers(0, 40))
def test_goals_of_a_rollout_only_grow_and_end_at_the_total(given_sizes: list[IntOrPercent], total: int) -> None:
    try:
        goals = rollout_goals(made(*given_sizes), total)
    except BadBatches:
        assume(False)
    assert list(goals) == sorted(goals)
    assert goals[-1] == total
    assert not total or all(goal < total for goal in goals[:-1])


@given(sizes, st.integers(0, 40), st.integers(0, 40))
def test_goals_of_a_scale_operation_only_go_one_way(given_sizes: list[IntOrPercent], original: int, total: int) -> None:
    try:
        goals = (original, *scale_goals(made(*given_sizes), original, total))
    except BadBatches:
        assume(False)
    assert list(goals) == sorted(goals, reverse=total < original)
    assert goals[-1] == total


@given(st.lists(shares, min_size=2, max_size=6), st.integers(1, 200))
def test_each_share_is_rounded_up_by_itself(given_shares: list[str], total: int) -> None:
    goals = (0, *target_sizes(made(*given_shares), 0, total))
    for share, before, goal in zip(given_shares[:-1], goals, goals[1:], strict=False):
        assert goal - before == ceil(int(share[:-1]) * total / 100)


@given(st.integers(0, 500), st.integers(1, 100))
def test_batches_that_are_not_named_always_add_up(size: int, number: int) -> None:
    batches = default_batches(size, number)
    found = [batch.replicas for batch in batches if isinstance(batch.replicas, int)]
    assert sum(found) == size
    assert len(found) == number
    assert found == sorted(found)
    assert max(found) - min(found) <= 1
    assert scale_goals(batches, 0, size)[-1] == size
    if size:
        assert rollout_goals(batches, size)[-1] == size

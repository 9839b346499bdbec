"""The batches of a plan in pods: fixed when it is verified; what may be spent at once; when the next pod may begin."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.oam.rollout_plan import RolloutBatch, RolloutPlan
from kedge.api.oam.rollout_status import PlannedBatch, RolloutStatus
from kedge.plan.batching.batches import back, batch_at, begun, current_batch, planned, replanned
from kedge.plan.batching.sizes import BadBatches
from kedge.plan.moving.budget import Budget
from plan.batching.making import DECREASE, INCREASE, NOW, R, plan_of, sized


def goals(batches: tuple[PlannedBatch, ...]) -> list[tuple[int, int]]:
    return [(one.replicas, one.goal) for one in batches]


@pytest.mark.parametrize(
    ("plan", "original", "total", "is_scale", "expected"),
    [
        (plan_of(*R), 10, 10, False, [(2, 2), (2, 4), (2, 6), (4, 10)]),
        (plan_of(*R), 4, 10, False, [(2, 2), (2, 4), (2, 6), (4, 10)]),
        (plan_of("25%", "100%"), 2, 10, True, [(2, 4), (6, 10)]),
        (plan_of("25%", "100%"), 10, 2, True, [(2, 8), (6, 2)]),
        (RolloutPlan(num_batches=3), 9, 8, False, [(2, 2), (3, 5), (3, 8)]),
        (RolloutPlan(num_batches=3), 1, 9, True, [(2, 3), (3, 6), (3, 9)]),
        (RolloutPlan(num_batches=2), 9, 1, True, [(4, 5), (4, 1)]),
        (RolloutPlan(), 3, 3, True, [(0, 3)]),
        (plan_of(2, 4), 6, 6, True, [(0, 6), (0, 6)]),
        (plan_of(2, 4), 0, 6, True, [(2, 2), (4, 6)]),
        (plan_of(2, 4), 6, 6, False, [(2, 2), (4, 6)]),
    ],
)
def test_the_plan_in_effect(
    plan: RolloutPlan, original: int, total: int, is_scale: bool, expected: list[tuple[int, int]]
) -> None:
    assert goals(planned(plan, original, total, is_scale=is_scale)) == expected


def test_a_plan_that_does_not_add_up_is_refused() -> None:
    with pytest.raises(BadBatches):
        planned(plan_of(5, 5, 1), 0, 10, is_scale=False)


@pytest.mark.parametrize(
    ("current", "plan", "expected"),
    [
        (0, plan_of(2, 3, "100%"), [2, 5, 10]),
        (0, plan_of(2, "100%"), [2, 10]),
        (1, plan_of(2, 2, 1, 1, 1, "100%"), [2, 4, 5, 6, 7, 10]),
        (3, plan_of(*R), [2, 4, 6, 10]),
        (1, plan_of(2, 3, "100%"), None),
        (0, plan_of(1, 3, "100%"), None),
        (1, plan_of(2, "100%"), None),
        (0, plan_of(9, 9, "100%"), None),
    ],
)
def test_only_batches_that_have_not_begun_can_be_changed(
    current: int, plan: RolloutPlan, expected: list[int] | None
) -> None:
    status = sized(plan_of(*R), 10, current_batch=current)
    if expected is None:
        with pytest.raises(BadBatches):
            replanned(plan, status, is_scale=False)
    else:
        assert [goal for _, goal in goals(replanned(plan, status, is_scale=False))] == expected


def test_a_scale_operation_is_planned_again_from_where_it_began() -> None:
    status = sized(plan_of("25%", "100%"), 2, 10, is_scale=True)
    assert goals(replanned(plan_of("25%", "50%", "100%"), status, is_scale=True)) == [(2, 8), (4, 4), (2, 2)]


BOUNDS: list[tuple[Any, ...]] = [
    # strategy, maxUnavailable, tolerated, the floor, the ceiling
    (None, None, 0, 10, 12),
    (INCREASE, 1, 1, 9, 12),
    (INCREASE, "25%", 3, 7, 12),
    (DECREASE, None, 0, 8, 10),
    (DECREASE, "10%", 1, 7, 10),
]


@pytest.mark.parametrize(("strategy", "share", "tolerated", "floor", "ceiling"), BOUNDS)
def test_what_a_batch_may_spend_at_once(strategy: Any, share: Any, tolerated: int, floor: int, ceiling: int) -> None:
    plan = plan_of(*R, strategy=strategy, max_unavailable=share)
    found = batch_at(plan, sized(plan, 10), 1, is_scale=False)
    assert (found.index, found.before, found.goal, found.total) == (1, 2, 4, 10)
    assert (found.tolerated, found.budget.must_stay_available, found.budget.most) == (tolerated, floor, ceiling)
    assert found.strategy is (strategy or INCREASE)
    assert found.spec is (plan.rollout_batches or ())[1]


def test_the_first_batch_begins_where_the_rollout_does() -> None:
    plan = plan_of("25%", "100%")
    assert batch_at(plan, sized(plan, 10, 2, is_scale=True), 0, is_scale=True).before == 2
    assert batch_at(plan, sized(plan, 10, 2), 0, is_scale=False).before == 0


def test_batches_that_the_plan_does_not_name_have_no_conditions() -> None:
    plan = RolloutPlan(num_batches=2)
    assert batch_at(plan, sized(plan, 4), 1, is_scale=False).spec == RolloutBatch()
    named = plan_of(2, "100%", max_unavailable=1)
    status = sized(named, 4)
    shorter = replace(named, rollout_batches=(named.rollout_batches or ())[:1])
    assert batch_at(shorter, status, 0, is_scale=False).tolerated == 1
    assert batch_at(shorter, status, 1, is_scale=False) == replace(
        batch_at(named, status, 1, is_scale=False), spec=RolloutBatch(), tolerated=0, budget=Budget(4, 0, 2)
    )


def test_pods_that_are_named_are_those_of_the_batch() -> None:
    plan = RolloutPlan(rollout_batches=(RolloutBatch(pod_list=("a", "b")), RolloutBatch(replicas="100%")))
    found = batch_at(plan, sized(plan, 4), 0, is_scale=False)
    assert (found.pods, found.goal) == (("a", "b"), 2)


def test_the_batch_that_rolls_now() -> None:
    plan = plan_of(*R)
    for current, index in ((0, 0), (2, 2), (3, 3), (4, 3), (9, 3)):
        status = sized(plan, 10, current_batch=current)
        assert current_batch(plan, status, is_scale=False) == batch_at(plan, status, index, is_scale=False)


def test_the_way_back_spends_as_much_as_the_largest_batch() -> None:
    plan = plan_of(1, 4, 2, "100%")
    for is_scale in (False, True):
        status = sized(plan, 10, 0, is_scale=is_scale)
        assert back(plan, status, is_scale=is_scale) == batch_at(plan, status, 1, is_scale=is_scale)


@pytest.mark.parametrize(
    ("asked", "unavailable"),
    [
        (plan_of(2, 1, 1, "100%", strategy=DECREASE), 6),
        (plan_of(2, 3, 3, "100%", strategy=DECREASE), 3),
        (plan_of(1, "100%", strategy=DECREASE), 8),
        (plan_of(9, 9, "100%", strategy=DECREASE), 8),
        (RolloutPlan(num_batches=10, rollout_strategy=DECREASE), 1),
    ],
)
def test_a_plan_that_is_not_in_effect_yet_bounds_the_way_back_if_its_batches_are_smaller(
    asked: RolloutPlan, unavailable: int
) -> None:
    status = sized(plan_of(8, "100%", strategy=DECREASE), 10)
    assert back(asked, status, is_scale=False).budget == Budget(10, unavailable)


@pytest.mark.parametrize(
    ("size", "interval", "after", "number", "next_at"),
    [
        (3, None, 0, 3, None),
        (3, 0, 0, 3, None),
        (3, 10, None, 3, None),
        (3, 10, 0, 1, 10),
        (3, 10, 9, 1, 10),
        (3, 10, 10, 2, 20),
        (3, 10, 20, 3, None),
        (3, 10, 999, 3, None),
        (1, 10, 0, 1, None),
        (0, 10, 0, 0, None),
        (-3, 10, 10, 2, 20),
    ],
)
def test_how_many_pods_of_a_batch_may_have_begun(
    size: int, interval: int | None, after: int | None, number: int, next_at: int | None
) -> None:
    plan = plan_of(4, "100%")
    batch = batch_at(plan, sized(plan, 9), 0, is_scale=False)
    batch = replace(batch, before=5, goal=5 + size, spec=RolloutBatch(instance_interval=interval))
    since = None if after is None else NOW - timedelta(seconds=after)
    until = since + timedelta(seconds=next_at) if since is not None and next_at is not None else None
    assert begun(batch, since, NOW) == (number, until)


def test_a_status_of_nothing_is_no_plan() -> None:
    with pytest.raises(IndexError):
        current_batch(plan_of(*R), RolloutStatus(), is_scale=False)

"""Budgets: the numbers a strategy comes to."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from kedge.api.dialect import Dialect
from kedge.api.rollout import RolloutStrategy
from kedge.api.scheduling import PlacementPolicy
from kedge.plan.rolling.budget import BadStrategy, Clusters, budget_of
from plan.rolling.making import binding, pick_fixed, pick_n, placement, scheduled, unscheduled


@pytest.mark.parametrize(
    ("unavailable", "surge", "target", "numbers"),
    [
        ("25%", "25%", 10, (3, 3, 7, 13)),
        ("25%", "25%", 3, (1, 1, 2, 4)),
        ("25%", "25%", 2, (1, 1, 1, 3)),
        ("25%", 2, 2, (1, 2, 1, 4)),
        ("100%", 0, 4, (4, 1, 0, 5)),
        (1, 1, 3, (1, 1, 2, 4)),
        ("7", "7", 3, (7, 7, 0, 10)),
        (0, 0, 3, (1, 1, 2, 4)),
        ("0%", "0%", 3, (1, 1, 2, 4)),
    ],
)
def test_percentages_round_up_and_nothing_counts_as_one(
    unavailable: Any, surge: Any, target: int, numbers: tuple[int, ...]
) -> None:
    spec = placement(max_unavailable=unavailable, max_surge=surge).spec
    found = budget_of(spec, Clusters(target, target), Dialect.seed)
    budget = found.budget
    assert (budget.max_unavailable, budget.max_surge, budget.must_stay_available, budget.most) == numbers


def test_that_nothing_counts_as_one_is_said() -> None:
    spec = placement(max_unavailable=0, max_surge="0%").spec
    said = budget_of(spec, Clusters(3, 3), Dialect.seed).remark
    assert said == "maxUnavailable is 0, which counts as 1; maxSurge is 0, which counts as 1"


def test_in_the_kubefleet_dialect_nothing_stays_nothing() -> None:
    found = budget_of(placement(max_unavailable=0, max_surge=0).spec, Clusters(3, 3), Dialect.kubefleet)
    assert (found.budget.max_unavailable, found.budget.max_surge, found.remark) == (0, 0, "")


@pytest.mark.parametrize(
    ("strategy", "dialect", "seconds"),
    [
        (None, Dialect.seed, 10),
        (None, Dialect.kubefleet, 60),
        (RolloutStrategy(), Dialect.seed, 60),
        (RolloutStrategy(), Dialect.kubefleet, 60),
    ],
)
def test_how_long_to_wait_where_nothing_can_be_seen(
    strategy: RolloutStrategy | None, dialect: Dialect, seconds: int
) -> None:
    found = budget_of(placement(strategy=strategy).spec, Clusters(10, 10), dialect)
    assert (found.period, found.budget.max_unavailable, found.budget.max_surge) == (timedelta(seconds=seconds), 3, 3)


@pytest.mark.parametrize("value", ["many", "-1", "3.5%", -1])
def test_what_is_no_number_is_named_with_its_field(value: Any) -> None:
    with pytest.raises(BadStrategy, match=r"spec\.strategy\.rollingUpdate\.maxSurge: .* neither a number"):
        budget_of(placement(max_surge=value).spec, Clusters(3, 3), Dialect.seed)


@pytest.mark.parametrize(
    ("policy", "target"),
    [(None, 3), (PlacementPolicy(), 3), (pick_n(7), 7), (pick_n(0), 0), (pick_fixed("a", "z"), 2)],
)
def test_how_many_clusters_are_wanted(policy: PlacementPolicy | None, target: int) -> None:
    assert budget_of(placement(policy).spec, Clusters(3, 3), Dialect.seed).target == target


def test_a_cluster_counts_once_however_many_bindings_it_has() -> None:
    bindings = [
        binding("a"),
        scheduled("b"),
        unscheduled("c"),
        binding("d", deleting=True),
        scheduled("d", suffix="2"),
    ]
    assert Clusters.of(bindings) == Clusters(picked=3, bound=4)


@pytest.mark.parametrize("policy", [pick_n(5), pick_fixed(*"abcde")])
@pytest.mark.parametrize(
    ("dialect", "unavailable", "numbers"),
    [
        (Dialect.seed, 1, (5, 3, 1, 2)),
        (Dialect.seed, "40%", (5, 3, 2, 1)),
        (Dialect.kubefleet, 1, (5, 5, 1, 4)),
        (Dialect.kubefleet, "40%", (5, 5, 2, 3)),
    ],
)
def test_what_could_not_be_picked_cannot_be_unavailable(
    policy: PlacementPolicy, dialect: Dialect, unavailable: Any, numbers: tuple[int, ...]
) -> None:
    found = budget_of(placement(policy, max_unavailable=unavailable).spec, Clusters(3, 3), dialect)
    budget = found.budget
    assert (found.target, budget.desired, budget.max_unavailable, budget.must_stay_available) == numbers

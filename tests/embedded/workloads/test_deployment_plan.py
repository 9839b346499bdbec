"""How large each ReplicaSet of a Deployment is to be next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.apps import Rolling, UpdateStrategy
from kedge.embedded.workloads.deployment_plan import Share, Sizes, budget_of, rescaled, rolling
from kedge.plan.moving.budget import Budget

START = datetime(2030, 1, 1, tzinfo=UTC)


def share(name: str, replicas: int, available: int | None = None, *, age: int = 0, most: int | None = None) -> Share:
    return Share(name, START - timedelta(hours=age), replicas, replicas if available is None else available, most)


@pytest.mark.parametrize(
    ("desired", "surge", "unavailable", "expected"),
    [
        (4, None, None, (1, 1)),
        (3, None, None, (1, 0)),
        (1, "25%", "25%", (1, 0)),
        (10, "25%", "25%", (3, 2)),
        (3, 0, 0, (0, 1)),
        (3, "0%", "10%", (0, 1)),
        (3, 0, "100%", (0, 3)),
        (2, 5, 5, (5, 2)),
        (0, "25%", "25%", (0, 0)),
        (0, 1, 1, (1, 0)),
    ],
)
def test_percentages_are_rounded_in_favour_of_the_pods_and_a_budget_of_nothing_lets_one_go(
    desired: int, surge: int | str | None, unavailable: int | str | None, expected: tuple[int, int]
) -> None:
    strategy = UpdateStrategy(rolling_update=Rolling(max_surge=surge, max_unavailable=unavailable))
    budget = budget_of(strategy, desired)
    assert (budget.max_surge, budget.max_unavailable) == expected


def test_recreate_allows_nothing_beside() -> None:
    assert budget_of(UpdateStrategy(type="Recreate"), 3) == Budget(3, 0, 0)


@pytest.mark.parametrize(
    ("budget", "new", "olds", "expected"),
    [
        pytest.param(Budget(3, 0, 1), share("new", 0), [share("old", 3)], {"new": 1}, id="grow by the surge"),
        pytest.param(Budget(3, 0, 1), share("new", 1, 0), [share("old", 3)], {}, id="wait for the new pod"),
        pytest.param(Budget(3, 0, 1), share("new", 1), [share("old", 3)], {"old": 2}, id="a new pod pays for an old"),
        pytest.param(Budget(3, 1, 0), share("new", 0), [share("old", 3)], {"old": 2}, id="shrink first without surge"),
        pytest.param(Budget(3, 1, 1), share("new", 3), [share("old", 1)], {"old": 0}, id="the last old pod"),
        pytest.param(Budget(3, 1, 1), share("new", 3), [], {}, id="done"),
        pytest.param(Budget(3, 1, 1), share("new", 5), [], {"new": 3}, id="more new pods than desired"),
        pytest.param(Budget(4, 1, 1), share("new", 1, 0), [share("old", 4, 2)], {"old": 3}, id="broken old pods go"),
        pytest.param(
            Budget(4, 2, 2),
            share("new", 2, 0),
            [share("b", 2, age=1), share("a", 2, age=2)],
            {"a": 0},
            id="the oldest first",
        ),
        pytest.param(
            Budget(4, 2, 1), share("new", 2, 0), [share("old", 3, 4)], {"old": 2}, id="a status that is behind"
        ),
    ],
)
def test_a_rolling_step(budget: Budget, new: Share, olds: Sequence[Share], expected: Sizes) -> None:
    assert rolling(new, olds, budget) == expected


@pytest.mark.parametrize(
    ("desired", "new", "olds", "expected"),
    [
        pytest.param(5, share("new", 3), [], {"new": 5}, id="one alone gets all"),
        pytest.param(5, share("new", 0), [share("old", 3)], {"old": 5}, id="one alone, even an old one"),
        pytest.param(5, None, [share("a", 0, age=2), share("b", 0, age=1)], {"b": 5}, id="the newest of empty ones"),
        pytest.param(3, None, [], {}, id="nobody there"),
        pytest.param(
            15, share("new", 5, 0, most=13), [share("old", 8, age=1, most=13)], {"old": 11, "new": 7}, id="upwards"
        ),
        pytest.param(
            5, share("new", 5, 0, most=13), [share("old", 8, age=1, most=13)], {"old": 5, "new": 3}, id="downwards"
        ),
        pytest.param(0, share("new", 2, 0, most=6), [share("old", 4, most=6)], {"new": 0, "old": 0}, id="to nothing"),
    ],
)
def test_everyone_keeps_a_part_of_the_whole_when_the_desired_number_changes(
    desired: int, new: Share | None, olds: Sequence[Share], expected: Sizes
) -> None:
    assert rescaled(new, olds, Budget(desired, 2, 3), saturated=False, rolling=True) == expected


def test_what_old_ones_have_is_too_much_once_the_new_one_has_all_it_needs() -> None:
    sizes = rescaled(share("new", 3), [share("old", 1)], Budget(3, 1, 1), saturated=True, rolling=True)
    assert sizes == {"old": 0}


# Whole rollouts


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Budget, tuple[Share, ...]]:
    """A budget, and ReplicaSets in any state, the new one last."""
    desired = draw(st.integers(0, 12))
    surge, unavailable = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    strategy = UpdateStrategy(rolling_update=Rolling(max_surge=surge, max_unavailable=unavailable))
    shares = []
    for number in range(draw(st.integers(1, 4))):
        replicas = draw(st.integers(0, 8))
        shares.append(share(f"set-{number}", replicas, draw(st.integers(0, replicas)), age=9 - number))
    return budget_of(strategy, desired), tuple(shares)


def resized(shares: Sequence[Share], sizes: Sizes) -> tuple[Share, ...]:
    """New pods are not available; of the pods to go, those that are not available go first."""
    return tuple(
        replace(one, replicas=sizes.get(one.name, one.replicas), available=min(one.sure, sizes.get(one.name, 99)))
        for one in shares
    )


def total(shares: Sequence[Share]) -> int:
    return sum(one.replicas for one in shares)


def available(shares: Sequence[Share]) -> int:
    return sum(one.sure for one in shares)


@given(worlds())
def test_no_step_takes_available_pods_below_the_budget_or_asks_for_more_than_it(
    world: tuple[Budget, tuple[Share, ...]],
) -> None:
    budget, shares = world
    after = resized(shares, rolling(shares[-1], shares[:-1], budget))
    surplus_of_new = max(0, shares[-1].replicas - budget.desired)
    assert total(after) <= max(total(shares), budget.most)
    assert available(after) >= min(available(shares), budget.must_stay_available) - surplus_of_new
    assert all(one.replicas >= 0 for one in after)


@given(worlds(), st.randoms(use_true_random=False))
def test_a_rollout_ends_whenever_pods_become_available_in_whatever_order(
    world: tuple[Budget, tuple[Share, ...]], chance: object
) -> None:
    budget, shares = world
    pick = getattr(chance, "choice")  # noqa: B009  # hypothesis' Random has no name to annotate it with
    for _ in range(200):
        sizes = rolling(shares[-1], shares[:-1], budget)
        shares = resized(shares, sizes)
        waiting = [one.name for one in shares if one.sure < one.replicas]
        if not sizes and not waiting:
            break
        if waiting:
            ready = pick(waiting)
            shares = tuple(replace(one, available=one.sure + (one.name == ready)) for one in shares)
    assert [one.replicas for one in shares] == [0] * (len(shares) - 1) + [budget.desired]


@given(worlds(), st.integers(0, 20))
def test_scaling_divides_exactly_what_is_allowed(world: tuple[Budget, tuple[Share, ...]], desired: int) -> None:
    budget, shares = world
    before = tuple(replace(one, most_before=max(budget.most, total(shares))) for one in shares)
    wanted = replace(budget, desired=desired, max_unavailable=min(budget.max_unavailable, desired))
    active = [one for one in before if one.replicas]
    after = resized(before, rescaled(before[-1], before[:-1], wanted, saturated=False, rolling=True))
    if len(active) > 1:
        assert total(after) == (wanted.most if desired else 0)
    else:
        assert total(after) == desired
    assert all(one.replicas >= 0 for one in after)

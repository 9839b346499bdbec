"""How many pods a PodDisruptionBudget lets go: a table, and what holds of every budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.numbers import IntOrPercent
from kedge.embedded.workloads.budgets import Count, count, needs_scale


@pytest.mark.parametrize(
    ("min_available", "max_unavailable", "pods", "scale", "healthy", "counted", "allowed"),
    [
        (2, None, 3, 0, 3, Count(3, 2, 3), 1),
        (2, None, 3, 0, 1, Count(3, 2, 1), 0),
        (0, None, 3, 0, 3, Count(3, 0, 3), 3),
        (2, None, 0, 0, 0, Count(0, 2, 0), 0),
        ("50%", None, 3, 3, 3, Count(3, 2, 3), 1),
        ("50%", None, 2, 3, 2, Count(3, 2, 2), 0),
        ("100%", None, 3, 3, 3, Count(3, 3, 3), 0),
        (None, 1, 3, 3, 3, Count(3, 2, 3), 1),
        (None, 1, 2, 3, 2, Count(3, 2, 2), 0),
        (None, 0, 3, 3, 3, Count(3, 3, 3), 0),
        (None, "30%", 4, 4, 4, Count(4, 2, 4), 2),
        (None, "100%", 3, 3, 3, Count(3, 0, 3), 3),
        (None, 5, 3, 3, 2, Count(3, 0, 2), 2),
        (None, 1, 0, 0, 0, Count(0, 0, 0), 0),
        (None, None, 3, 3, 3, Count(0, 0, 3), 0),
    ],
)
def test_what_a_budget_comes_to(
    min_available: IntOrPercent | None,
    max_unavailable: IntOrPercent | None,
    pods: int,
    scale: int,
    healthy: int,
    counted: Count,
    allowed: int,
) -> None:
    found = count(min_available, max_unavailable, pods=pods, scale=scale, healthy=healthy)
    assert (found, found.allowed) == (counted, allowed)


def test_only_a_share_needs_to_know_what_the_owners_want() -> None:
    assert [needs_scale(2, None), needs_scale("50%", None), needs_scale(None, 1), needs_scale(None, None)] == [
        False,
        True,
        True,
        False,
    ]


SHARES = st.one_of(st.integers(0, 12), st.integers(0, 100).map(lambda part: f"{part}%"))


@given(SHARES, st.booleans(), st.integers(0, 10), st.data())
def test_what_is_let_go_leaves_as_many_as_must_be_healthy(
    share: IntOrPercent, of_max: bool, pods: int, data: st.DataObject
) -> None:
    healthy = data.draw(st.integers(0, pods))
    found = count(None if of_max else share, share if of_max else None, pods=pods, scale=pods, healthy=healthy)
    assert 0 <= found.allowed <= healthy
    assert found.allowed == 0 or healthy - found.allowed >= found.desired_healthy
    assert found.desired_healthy >= 0

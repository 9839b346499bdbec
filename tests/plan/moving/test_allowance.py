"""A second budget, in which every unit has a price of its own."""

from __future__ import annotations

import pytest

from kedge.plan.moving.allowance import Allowance

SPENT = Allowance(5, {"a": 2, "b": 1}, {"cheap": 2, "dear": 3})


@pytest.mark.parametrize(("key", "expected"), [("cheap", True), ("dear", False), ("free", True)])
def test_a_unit_may_be_moved_if_its_price_is_left(key: str, expected: bool) -> None:
    assert SPENT.admits(key) is expected


def test_what_costs_nothing_may_always_be_moved_and_is_not_charged() -> None:
    full = SPENT.charged("dear", "c")
    assert full.admits("free")
    assert full.charged("free", "a") == full


def test_a_price_is_added_to_what_a_place_holds() -> None:
    assert SPENT.charged("cheap", "a").held == {"a": 4, "b": 1}
    assert SPENT.charged("cheap", "c").held == {"a": 2, "b": 1, "c": 2}

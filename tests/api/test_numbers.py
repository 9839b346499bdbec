"""Numbers that may be percentages."""

from fractions import Fraction
from math import ceil, floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.numbers import IntOrPercent, resolve


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        (0, 10, 0, 0),
        (3, 10, 3, 3),
        (30, 10, 30, 30),
        ("3", 10, 3, 3),
        ("25%", 2, 1, 0),
        ("25%", 3, 1, 0),
        ("25%", 4, 1, 1),
        ("25%", 5, 2, 1),
        ("25%", 0, 0, 0),
        ("0%", 10, 0, 0),
        ("100%", 7, 7, 7),
        ("150%", 3, 5, 4),
        ("1%", 1, 1, 0),
        ("33%", 100, 33, 33),
    ],
)
def test_a_value_comes_to_a_number_rounded_up_or_down(value: IntOrPercent, total: int, up: int, down: int) -> None:
    assert (resolve(value, total, round_up=True), resolve(value, total, round_up=False)) == (up, down)


@pytest.mark.parametrize("value", [-1, "-1", "", "%", "25 %", " 25%", "25%%", "2.5%", "-25%", "quarter", "٢٥%", "٣"])
def test_anything_else_is_refused_by_name(value: IntOrPercent) -> None:
    with pytest.raises(ValueError, match="neither a number of at least 0 nor a percentage"):
        resolve(value, 10, round_up=True)


@given(st.integers(0, 1000), st.integers(0, 10**6))
def test_rounding_is_exact(percent: int, total: int) -> None:
    share = Fraction(percent * total, 100)
    assert resolve(f"{percent}%", total, round_up=True) == ceil(share)
    assert resolve(f"{percent}%", total, round_up=False) == floor(share)

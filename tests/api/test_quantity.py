"""Quantities: exact, and printed as Kubernetes prints them."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.numbers import Quantity


@pytest.mark.parametrize(
    ("text", "amount", "printed"),
    [
        ("0", "0", "0"),
        ("100m", "0.1", "100m"),
        ("0.1", "0.1", "100m"),
        (".5", "0.5", "500m"),
        ("5.", "5", "5"),
        ("1500m", "1.5", "1500m"),
        ("1000", "1000", "1k"),
        ("1500", "1500", "1500"),
        ("100000", "100000", "100k"),
        ("2M", "2000000", "2M"),
        ("1E", "1000000000000000000", "1E"),
        ("1Ki", "1024", "1Ki"),
        ("1Gi", "1073741824", "1Gi"),
        ("1024Mi", "1073741824", "1Gi"),
        ("1.5Gi", "1610612736", "1536Mi"),
        ("0.5Ki", "512", "512"),
        ("0.5Mi", "524288", "512Ki"),
        ("1e3", "1000", "1e3"),
        ("12E6", "12000000", "12e6"),
        ("1.5e3", "1500", "1500"),
        ("1e-3", "0.001", "1e-3"),
        ("-1Gi", "-1073741824", "-1Gi"),
        ("+2", "2", "2"),
        ("1n", "0.000000001", "1n"),
        ("1u", "0.000001", "1u"),
        ("0.0000000001", "0.000000001", "1n"),
        ("-0.0000000001", "-0.000000001", "-1n"),
        ("0Gi", "0", "0"),
    ],
)
def test_a_text_means_an_amount_and_prints_in_its_units(text: str, amount: str, printed: str) -> None:
    quantity = Quantity.parse(text)
    assert quantity.amount == Decimal(amount)
    assert str(quantity) == printed


def test_a_plain_number_on_the_wire_is_a_quantity() -> None:
    assert Quantity.parse(4) == Quantity.parse("4")


@pytest.mark.parametrize(
    "text", ["", "1.5GB", "Gi", "1 Gi", "1g", "1e", "1.2.3", "--1", "1K", "0x10", "NaN", "Infinity", "1_000"]
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        Quantity.parse(text)


@pytest.mark.parametrize("text", ["1e999999999", "1e200", "9" * 120])
def test_what_is_too_much_is_refused_at_once(text: str) -> None:
    with pytest.raises(ValueError, match="too much"):
        Quantity.parse(text)


def test_equal_amounts_are_equal_however_written() -> None:
    assert Quantity.parse("1Ki") == Quantity.parse("1024") == Quantity.parse("1.024e3")
    assert len({Quantity.parse("1Ki"), Quantity.parse("1024")}) == 1
    assert Quantity.parse("1") != 1


def test_quantities_are_ordered_by_amount() -> None:
    texts = ["1Gi", "900M", "1G", "100m", "-1", "1Ki", "1k"]
    assert sorted(texts, key=Quantity.parse) == ["-1", "100m", "1k", "1Ki", "900M", "1G", "1Gi"]


@pytest.mark.parametrize(
    ("left", "right", "total", "difference"),
    [
        ("100m", "900m", "1", "-800m"),
        ("1Gi", "512Mi", "1536Mi", "512Mi"),
        ("1Gi", "1", "1073741825", "1073741823"),
        ("0", "1Gi", "1Gi", "-1Gi"),
        ("1", "1Gi", "1073741825", "-1073741823"),
    ],
)
def test_sums_are_exact_and_keep_the_units_of_the_first(left: str, right: str, total: str, difference: str) -> None:
    assert str(Quantity.parse(left) + Quantity.parse(right)) == total
    assert str(Quantity.parse(left) - Quantity.parse(right)) == difference


AMOUNTS = st.decimals(-(10**15), 10**15, places=9, allow_nan=False, allow_infinity=False)
QUANTITIES = st.builds(
    lambda amount, unit: Quantity.parse(f"{amount:f}{unit}"), AMOUNTS, st.sampled_from(["", "m", "k", "Ki", "Gi", "e3"])
)


@given(QUANTITIES)
def test_what_is_printed_reads_back_the_same(quantity: Quantity) -> None:
    assert Quantity.parse(str(quantity)) == quantity
    assert str(Quantity.parse(str(quantity))) == str(quantity)


@given(QUANTITIES, QUANTITIES)
def test_adding_loses_nothing(left: Quantity, right: Quantity) -> None:
    assert left + right - right == left
    assert left + right == right + left

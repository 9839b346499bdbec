"""Numbers as Kubernetes writes them: percentages (`25%`), and quantities (`100m`, `1Gi`, `1e3`).

A number that may be a percentage is an int or a string on the wire, and here too: a field holds what the user wrote;
`resolve` says what it comes to.

A quantity is exact: amounts are decimals, never floats. It prints as Kubernetes does: the largest unit that needs no
fraction, in the family of units the amount was written in. Refuses (ValueError) what is not a quantity.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from enum import Enum
from functools import total_ordering
from typing import Final, TypeAlias

from msgspec import Struct

IntOrPercent: TypeAlias = int | str

_PERCENT: Final = re.compile(r"([0-9]+)%")
_TEXT: Final = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?")
_BINARY: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_UNIT_OF: Final = {power: unit for unit, power in _DECIMAL.items()}
_FINEST: Final = Decimal(1).scaleb(-9)
_EXACT: Final = Context(prec=100)


def resolve(value: IntOrPercent, total: int, *, round_up: bool) -> int:
    """What a value comes to, out of a total.

    Percentages are of the total and may exceed it. A number written as text counts as the number, since the patterns
    in use admit it. Refuses (ValueError) negative numbers and anything else.
    """
    if isinstance(value, int) and value >= 0:
        return value
    text = str(value)
    if text.isascii() and text.isdecimal():
        return int(text)
    percent = _PERCENT.fullmatch(text)
    if percent is None:
        raise ValueError(f"{value!r} is neither a number of at least 0 nor a percentage such as '25%'")
    share = int(percent[1]) * total
    return -(-share // 100) if round_up else share // 100


class Units(Enum):
    """Families of units."""

    decimal = "decimal"
    binary = "binary"
    exponent = "exponent"


@total_ordering
class Quantity(Struct, frozen=True):
    """An amount, and the family of units it prints in. Equal amounts are equal, however written."""

    amount: Decimal
    units: Units = Units.decimal

    @classmethod
    def parse(cls, text: str | int) -> Quantity:
        """The quantity a text means. Finer than a billionth is rounded away from zero, as Kubernetes does."""
        match = _TEXT.fullmatch(str(text))
        if match is None:
            raise ValueError(
                f"{text!r} is not a quantity: write a number, perhaps with a unit, such as 100m, 1Gi or 1e3"
            )
        try:
            return cls(*_meaning(Decimal(match[1]), match[2] or ""))
        except ArithmeticError as error:
            raise ValueError(f"{text!r} is too much to be a quantity") from error

    def __add__(self, other: Quantity) -> Quantity:
        """The sum, in this one's units; zero takes on the other's."""
        return Quantity(_EXACT.add(self.amount, other.amount), self.units if self.amount else other.units)

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(_EXACT.subtract(self.amount, other.amount), self.units if self.amount else other.units)

    def __eq__(self, other: object) -> bool:
        return self.amount == other.amount if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: Quantity) -> bool:
        return self.amount < other.amount

    def __hash__(self) -> int:
        return hash(self.amount)

    def __str__(self) -> str:
        if not self.amount:
            return "0"
        whole = self.amount == self.amount.to_integral_value()
        if self.units is Units.binary and whole and abs(self.amount) >= 1024:
            return _binary(int(self.amount))
        digits, power = _thousands(self.amount)
        if self.units is Units.exponent:
            return f"{digits}e{power}" if power else str(digits)
        return f"{digits}{_UNIT_OF[power]}"


def _meaning(number: Decimal, suffix: str) -> tuple[Decimal, Units]:
    if suffix.endswith("i"):
        return _fine(_EXACT.multiply(number, Decimal(1024) ** _BINARY.index(suffix))), Units.binary
    if suffix in _DECIMAL:
        return _fine(_EXACT.scaleb(number, _DECIMAL[suffix])), Units.decimal
    return _fine(_EXACT.scaleb(number, int(suffix[1:]))), Units.exponent


def _fine(amount: Decimal) -> Decimal:
    rounding = ROUND_CEILING if amount > 0 else ROUND_FLOOR
    return amount.quantize(_FINEST, rounding, _EXACT).normalize(_EXACT)


def _binary(amount: int) -> str:
    step = 0
    while amount % 1024 == 0 and step < len(_BINARY) - 1:
        amount, step = amount // 1024, step + 1
    return f"{amount}{_BINARY[step]}"


def _thousands(amount: Decimal) -> tuple[int, int]:
    """The amount as a whole number of the largest power of a thousand that divides it."""
    digits, power = int(amount.scaleb(9, _EXACT)), -9
    while digits % 1000 == 0 and power < 18:
        digits, power = digits // 1000, power + 3
    return digits, power

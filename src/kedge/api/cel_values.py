"""Values of CEL beside those that JSON has, and how values are compared.

Integers, floats, texts, bytes, lists, dicts, booleans and None stand for themselves. What compares pays for every part
it looks at: a list can hold itself many times over, and be endless to who goes through it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from kedge.api.cel_budget import Budget, Failed
from kedge.api.times import parse_duration

NO_OVERLOAD: Final = "no such overload"
TIMESTAMP: Final = "google.protobuf.Timestamp"
DURATION: Final = "google.protobuf.Duration"
SECOND: Final = 1_000_000_000
_FIRST, _LAST = -62_135_596_800, 253_402_300_799  # seconds from 1970
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)


class Uint(int):
    """A number without a sign."""


class Timestamp(Struct, frozen=True, order=True):
    """A moment, in nanoseconds since 1970."""

    nanoseconds: int

    @property
    def moment(self) -> datetime:
        return _EPOCH + timedelta(microseconds=self.nanoseconds // 1000)


class Duration(Struct, frozen=True, order=True):
    """A span of time, in nanoseconds."""

    nanoseconds: int


class TypeName(Struct, frozen=True):
    """A type, as `type(x)` and `int` name it."""

    name: str


class Optional(Struct, frozen=True):
    """A value that may not be there."""

    held: tuple[Any, ...] = ()

    @property
    def value(self) -> Any:
        if not self.held:
            raise Failed("optional.none() dereference")
        return self.held[0]


_TYPES: Final[dict[type, str]] = {
    bool: "bool",
    Uint: "uint",
    int: "int",
    float: "double",
    str: "string",
    bytes: "bytes",
    list: "list",
    dict: "map",
    type(None): "null_type",
    Timestamp: TIMESTAMP,
    datetime: TIMESTAMP,
    Duration: DURATION,
    timedelta: DURATION,
    TypeName: "type",
    Optional: "optional_type",
}
NUMBERS: Final = frozenset({"int", "uint", "double"})
ORDERED: Final = frozenset({"bool", "string", "bytes", TIMESTAMP, DURATION})


def type_of(value: Any) -> str:
    """The name of a value's type."""
    found = _TYPES.get(type(value))
    if found is None:
        raise no_overload()
    return found


def no_overload() -> Failed:
    return Failed(NO_OVERLOAD)


def text_of(value: Any) -> str:
    """A value that has to be a text."""
    if not isinstance(value, str):
        raise no_overload()
    return value


def equal(budget: Budget, one: Any, other: Any) -> bool:
    """Whether two values are the same. Numbers are compared by what they are worth, other types are never alike."""
    kind, other_kind = type_of(one), type_of(other)
    if kind != other_kind:
        budget.spend(1)
        return kind in NUMBERS and other_kind in NUMBERS and bool(one == other)
    if kind in ("string", "bytes"):
        budget.spend_on_text(min(len(one), len(other)))
        return bool(one == other)
    budget.spend(1)
    if kind == "list":
        return len(one) == len(other) and all(equal(budget, a, b) for a, b in zip(one, other, strict=True))
    if kind == "map":
        return len(one) == len(other) and all(key in other and equal(budget, one[key], other[key]) for key in one)
    if kind == "optional_type":
        return equal(budget, list(one.held), list(other.held))
    return bool(one == other)


def before(budget: Budget, one: Any, other: Any, holds: Callable[[Any, Any], Any]) -> bool:
    """Whether the order of two values is this one; only what has an order is compared."""
    kind, other_kind = type_of(one), type_of(other)
    if not (kind in NUMBERS and other_kind in NUMBERS) and not (kind == other_kind and kind in ORDERED):
        raise no_overload()
    budget.spend_on_text(min(len(one), len(other)) if kind in ("string", "bytes") else 0)
    return bool(holds(one, other))


def whole(value: int) -> int:
    """An integer, which must fit 64 bits."""
    if not -(2**63) <= value < 2**63:
        raise Failed("integer overflow")
    return value


def unsigned(value: int) -> Uint:
    if not 0 <= value < 2**64:
        raise Failed("unsigned integer overflow")
    return Uint(value)


def truncated(one: int, other: int) -> int:
    """The quotient, rounded towards zero."""
    found = abs(one) // abs(other)
    return found if (one < 0) == (other < 0) else -found


def moment(nanoseconds: int) -> Timestamp:
    """A moment, which must be in the years 1 to 9999."""
    if not _FIRST <= nanoseconds // SECOND <= _LAST:
        raise Failed("timestamp overflow")
    return Timestamp(nanoseconds)


def parse_timestamp(text: str) -> Timestamp:
    """A moment as RFC 3339 writes it."""
    found, refused = _MOMENT.fullmatch(text[:64]), Failed("String to Timestamp conversion failed")
    if found is None:
        raise refused
    try:
        at = datetime.fromisoformat(found[1] + found[3])
    except ValueError:
        raise refused from None
    seconds = (at - _EPOCH) // timedelta(seconds=1)
    return Timestamp(seconds * SECOND + int((found[2] or "0").ljust(9, "0")))


def parse_span(text: str) -> Duration:
    """A span as Go writes it: 1h30m."""
    try:
        return Duration(round(parse_duration(text[:64]).total_seconds() * SECOND))
    except (ValueError, OverflowError):
        raise Failed("String to Duration conversion failed") from None

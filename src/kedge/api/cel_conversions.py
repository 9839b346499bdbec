"""Conversions: from one type of CEL to another, and the parts of moments and spans of time.

Time zones are given as offsets (`+02:00`), or are UTC.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any, Final

from kedge.api.cel_budget import Budget, Failed
from kedge.api.cel_texts import Function
from kedge.api.cel_values import (
    SECOND,
    Duration,
    Timestamp,
    Uint,
    moment,
    no_overload,
    parse_span,
    parse_timestamp,
    text_of,
    truncated,
    type_of,
    unsigned,
    whole,
)


def _to_int(budget: Budget, value: Any) -> int:
    match type_of(value):
        case "int" | "uint":
            return whole(int(value))
        case "double" if math.isfinite(value):
            return whole(int(value))
        case "string":
            return whole(_number(budget, value))
        case "google.protobuf.Timestamp":
            return int(value.nanoseconds // SECOND)
        case "double":
            raise Failed("integer overflow")
    raise no_overload()


def _to_uint(budget: Budget, value: Any) -> Uint:
    match type_of(value):
        case "int" | "uint":
            return unsigned(int(value))
        case "double" if math.isfinite(value):
            return unsigned(int(value))
        case "string":
            return unsigned(_number(budget, value))
        case "double":
            raise Failed("unsigned integer overflow")
    raise no_overload()


def _number(budget: Budget, text: str) -> int:
    budget.spend_on_text(len(text))
    digits = text.removeprefix("-")
    if len(digits) > 20 or not (digits.isascii() and digits.isdigit()):
        raise Failed("cannot convert string to int")
    return int(text)


def _to_double(budget: Budget, value: Any) -> float:
    match type_of(value):
        case "int" | "uint" | "double":
            return float(value)
        case "string":
            budget.spend_on_text(len(value))
            try:
                return float(value[:400].replace("_", "?"))
            except ValueError:
                raise Failed("cannot convert string to double") from None
    raise no_overload()


def _to_string(budget: Budget, value: Any) -> str:
    match type_of(value):
        case "string":
            return str(value)
        case "bool":
            return "true" if value else "false"
        case "int" | "uint":
            return str(int(value))
        case "double":
            return str(int(value)) if value == value // 1 and abs(value) < 1e21 else repr(value)
        case "bytes":
            budget.spend_on_text(len(value))
            try:
                return bytes(value).decode()
            except UnicodeDecodeError:
                raise Failed("invalid UTF-8 bytes value") from None
        case "google.protobuf.Timestamp":
            return _moment_text(value)
        case "google.protobuf.Duration":
            return f"{_decimal(value.nanoseconds)}s"
    raise no_overload()


def _moment_text(value: Timestamp) -> str:
    fraction = value.nanoseconds % SECOND
    shown = f".{fraction:09}".rstrip("0") if fraction else ""
    return f"{value.moment:%Y-%m-%dT%H:%M:%S}{shown}Z"


def _decimal(nanoseconds: int) -> str:
    sign, left = ("-", -nanoseconds) if nanoseconds < 0 else ("", nanoseconds)
    seconds, fraction = divmod(left, SECOND)
    return f"{sign}{seconds}" + (f".{fraction:09}".rstrip("0") if fraction else "")


def _to_bytes(budget: Budget, value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    budget.spend_on_text(len(text_of(value)))
    return str(value).encode()


def _to_bool(_: Budget, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    found = {"true": True, "True": True, "TRUE": True, "t": True, "1": True}
    found |= {"false": False, "False": False, "FALSE": False, "f": False, "0": False}
    if text_of(value) not in found:
        raise Failed("cannot convert string to bool")
    return found[value]


def _to_timestamp(_: Budget, value: Any) -> Timestamp:
    if isinstance(value, Timestamp):
        return value
    return moment(value * SECOND) if type_of(value) == "int" else parse_timestamp(text_of(value))


def _to_duration(_: Budget, value: Any) -> Duration:
    if isinstance(value, Duration):
        return value
    return Duration(whole(value * SECOND)) if type_of(value) == "int" else parse_span(text_of(value))


# Time


def _part(read: Callable[[datetime], int]) -> Function:
    def get(_: Budget, value: Any, zone: str = "UTC") -> int:
        if not isinstance(value, Timestamp):
            raise no_overload()
        return read(value.moment.astimezone(_zone(zone)))

    return get


def _zone(text: str) -> timezone:
    if text in ("UTC", "Z", ""):
        return timezone(timedelta(0))
    hours, _, minutes = text_of(text).removeprefix("-").removeprefix("+").partition(":")
    if not (len(text) <= 6 and hours.isdecimal() and minutes.isdecimal() and int(hours) < 24 and int(minutes) < 60):
        raise Failed("unknown time zone: give an offset such as +02:00")
    offset = timedelta(hours=int(hours), minutes=int(minutes))
    return timezone(-offset if text.startswith("-") else offset)


def _time(read: Callable[[datetime], int], per: int) -> Function:
    """Of a moment a part of it; of a span all of it, in this unit."""
    of_moment = _part(read)

    def get(budget: Budget, value: Any, zone: str = "UTC") -> int:
        if isinstance(value, Duration):
            return truncated(value.nanoseconds, per)
        return int(of_moment(budget, value, zone))

    return get


CONVERSIONS: Final[dict[str, dict[int, Function]]] = {
    "int": {1: _to_int},
    "uint": {1: _to_uint},
    "double": {1: _to_double},
    "string": {1: _to_string},
    "bytes": {1: _to_bytes},
    "bool": {1: _to_bool},
    "timestamp": {1: _to_timestamp},
    "duration": {1: _to_duration},
    "getFullYear": dict.fromkeys((1, 2), _part(lambda at: at.year)),
    "getMonth": dict.fromkeys((1, 2), _part(lambda at: at.month - 1)),
    "getDayOfYear": dict.fromkeys((1, 2), _part(lambda at: at.timetuple().tm_yday - 1)),
    "getDayOfMonth": dict.fromkeys((1, 2), _part(lambda at: at.day - 1)),
    "getDate": dict.fromkeys((1, 2), _part(lambda at: at.day)),
    "getDayOfWeek": dict.fromkeys((1, 2), _part(lambda at: at.isoweekday() % 7)),
    "getHours": dict.fromkeys((1, 2), _time(lambda at: at.hour, 3600 * SECOND)),
    "getMinutes": dict.fromkeys((1, 2), _time(lambda at: at.minute, 60 * SECOND)),
    "getSeconds": dict.fromkeys((1, 2), _time(lambda at: at.second, SECOND)),
    "getMilliseconds": dict.fromkeys((1, 2), _time(lambda at: at.microsecond // 1000, SECOND // 1000)),
}
"""By name, and by the number of arguments."""

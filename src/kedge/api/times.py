"""Times as Kubernetes writes them: durations (`1h30m`, `300ms`), and moments with exactly six digits after the second.

Some annotations hold durations as Prometheus writes them (`1d`, `1w`, `1h30m`): `parse_prometheus_duration`.

Fields hold the text, so that a `1h` the user wrote stays `1h`. Reading a duration is exact down to the microsecond;
what is finer is cut off. Refuses (ValueError) what Go's parser refuses, such as a number without a unit.

Lease and Event want moments with their fraction: kube-apiserver refuses such a field without it, and a moment on the
full second would be written without one. That is a failure once in a million renewals, and at every one in simulated
time.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

Duration: TypeAlias = str

_NANOSECONDS: Final = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,  # the Greek letter; the line above has the micro sign
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART: Final = re.compile(r"(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(ns|us|µs|μs|ms|s|m|h)")
_WHOLE: Final = re.compile(rf"([-+]?)((?:{_PART.pattern})+)")
_MOST: Final = 2**63 - 1
PROMETHEUS_UNITS: Final = {
    "y": timedelta(days=365),
    "w": timedelta(days=7),
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}
"""Units of Prometheus, the largest first."""
_PROMETHEUS: Final = re.compile("".join(rf"(?:([0-9]+){unit})?" for unit in PROMETHEUS_UNITS))
_MOST_MICROSECONDS: Final = _MOST // 1_000
MicroTime: TypeAlias = str


class DurationTooLong(ValueError):
    """A duration that is well formed, and longer than Go can count."""


def parse_duration(text: Duration) -> timedelta:
    """How long a text means."""
    if text.lstrip("+-") == "0" and len(text) <= 2:
        return timedelta()
    whole = _WHOLE.fullmatch(text)
    nanoseconds = sum(_nanoseconds(part) for part in _PART.finditer(text)) if whole else _MOST + 1
    if whole is None or nanoseconds > _MOST:
        raise ValueError(f"{text!r} is not a duration: write numbers with units, such as 1h30m, 1.5h or 300ms")
    length = timedelta(microseconds=nanoseconds // 1_000)
    return -length if whole[1] == "-" else length


def _nanoseconds(part: re.Match[str]) -> int:
    whole, fraction, bare_fraction, unit = part.groups()
    digits = fraction or bare_fraction or ""
    each = _NANOSECONDS[unit]
    part_of_one: int = 10 ** len(digits)
    return int(whole or 0) * each + int(digits or 0) * each // part_of_one


def parse_prometheus_duration(text: str) -> timedelta:
    """How long a text means to Prometheus: whole numbers, each unit at most once, from years down to milliseconds."""
    if text == "0":
        return timedelta()
    found = _PROMETHEUS.fullmatch(text)
    problem = f"{text!r} is not a duration: write whole numbers with units, such as 1d, 1w or 1h30m"
    if not text or found is None:
        raise ValueError(problem)
    parts = zip(found.groups(), PROMETHEUS_UNITS.values(), strict=True)
    microseconds = sum(_count(digits or "") * (unit // timedelta(microseconds=1)) for digits, unit in parts)
    if microseconds > _MOST_MICROSECONDS:
        raise DurationTooLong(problem)
    return timedelta(microseconds=microseconds)


def _count(digits: str) -> int:
    """The number these digits mean. Of more than 20 only 20 count: they are too many of any unit."""
    return int(digits.lstrip("0")[:20] or 0)  # Python refuses to read thousands of digits


def format_duration(length: timedelta) -> Duration:
    """The text Go prints: `1h0m0s`, `1m30s`, `1.5s`, `300ms`, `0s`."""
    microseconds = length // timedelta(microseconds=1)
    sign, microseconds = ("-", -microseconds) if microseconds < 0 else ("", microseconds)
    if microseconds >= 1_000_000:
        return sign + _clock(microseconds)
    if microseconds >= 1_000:
        return f"{sign}{_decimal(microseconds, 3)}ms"
    return f"{sign}{microseconds}µs" if microseconds else "0s"


def _clock(microseconds: int) -> str:
    minutes, rest = divmod(microseconds, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{head}{_decimal(rest, 6)}s"


def _decimal(number: int, places: int) -> str:
    """A number with its point moved left, without trailing zeros."""
    whole, fraction = divmod(number, 10**places)
    return f"{whole}.{fraction:0{places}}".rstrip("0").rstrip(".")


def format_micro_time(moment: datetime) -> MicroTime:
    """A moment for the wire. Assumes that it knows its time zone."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_micro_time(text: MicroTime) -> datetime:
    """The moment a text means. Refuses (ValueError) one without a time zone."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone: end it with Z")
    return moment.astimezone(UTC)

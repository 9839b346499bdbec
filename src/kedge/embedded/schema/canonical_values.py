"""Canonical values: quantities, times and base64 as kube-apiserver reads them and writes them again.

A quantity is in the largest unit without a fraction (`0.5` is `500m`), a time in UTC, base64 with its padding. Each
function raises ValueError with kube-apiserver's words for what cannot be parsed. Results are cached, since the same
texts recur.

Not as there: `+1`, `1.` and `12E6`, which kube-apiserver keeps as written, become `1`, `1` and `12e6`.
"""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from kedge.api.numbers import Quantity

_LOOSE = re.compile(r"[+-]?[0-9.]+[eEinumkKMGTP]*[-+]?[0-9]*")
_NO_QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
_NO_SUFFIX = "unable to parse quantity's suffix"
_MOST_BINARY = 2**63 - 1  # binary amounts end here, and no others do

_DATE_TIME = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)")
_ZONE = re.compile(r"Z|([+-])(\d\d):(\d\d)")
_SECONDS = "2006-01-02T15:04:05Z07:00"
_MICROS = "2006-01-02T15:04:05.000000Z07:00"
_PARTS = (
    ("2006", r"\d{4}"),
    ("-", "-"),
    ("01", r"\d\d"),
    ("-", "-"),
    ("02", r"\d\d"),
    ("T", "T"),
    ("15", r"\d\d"),
    (":", ":"),
    ("04", r"\d\d"),
    (":", ":"),
    ("05", r"\d\d"),
)
_BOUNDS = (("month", 1, 12), ("day", 1, 31), ("hour", 0, 23), ("minute", 0, 59), ("second", 0, 59))
_NEVER = "0001-01-01T00:00:00Z"

_BASE64 = re.compile(r"[A-Za-z0-9+/]*")


@lru_cache(maxsize=4096)
def canonical_quantity(text: str) -> str:
    """A quantity in canonical form."""
    trimmed = text.strip()
    try:
        found = Quantity.parse(trimmed)
    except ValueError:
        loose = _LOOSE.fullmatch(trimmed) and trimmed.count(".") < 2
        raise ValueError(_NO_SUFFIX if loose else _NO_QUANTITY) from None
    if found.amount > _MOST_BINARY and "i" in trimmed:
        return str(_MOST_BINARY)
    return str(found)


@lru_cache(maxsize=4096)
def canonical_time(text: str) -> str:
    """A time to the second; empty if it is the time that stands for none."""
    moment, end = _date_time(text, _SECONDS)
    fraction = re.compile(r"[.,]\d+").match(text, end)
    moment -= _zone(text, fraction.end() if fraction else end, _SECONDS)
    written = moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
    return "" if written == _NEVER else written


@lru_cache(maxsize=4096)
def canonical_micro_time(text: str) -> str:
    """A time to the microsecond, all of whose digits must be there; empty if it stands for none."""
    moment, end = _date_time(text, _MICROS)
    fraction = re.compile(r"\.(\d{6})").match(text, end)
    if fraction is None:
        raise _unread(text, _MICROS, text[end:], ".000000")
    moment -= _zone(text, fraction.end(), _MICROS)
    written = moment.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    return "" if f"{written}Z" == _NEVER else f"{written}.{fraction[1]}Z"


def canonical_base64(text: str) -> str:
    """Bytes in base64: lines may be broken, padding must be there."""
    if "\n" in text or "\r" in text:
        text = text.replace("\n", "").replace("\r", "")
    good = _BASE64.match(text)
    end = good.end() if good else 0
    missing = -end % 4
    if missing == 3 or text[end:] != "=" * missing:
        raise ValueError(f"illegal base64 data at input byte {_first_bad(text, end, missing)}")
    # Bits behind the last byte are dropped by decoding; only then does it matter to do it.
    return base64.b64encode(base64.b64decode(text)).decode() if missing else text


def _first_bad(text: str, end: int, missing: int) -> int:
    if end == len(text):
        return end - end % 4  # where the unfinished four begin
    if text[end] != "=" or missing in (0, 3):
        return end
    return end + min(missing, len(text[end:]) - len(text[end:].lstrip("=")))


def _date_time(text: str, layout: str) -> tuple[datetime, int]:
    match = _DATE_TIME.match(text)
    if match is None:
        raise _misread(text, layout)
    year, *rest = (int(part) for part in match.groups())
    for value, (name, least, most) in zip(rest, _BOUNDS, strict=True):
        if not least <= value <= most:
            raise ValueError(f'parsing time "{text}": {name} out of range')
    try:
        month, day, hour, minute, second = rest
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC), match.end()
    except ValueError:
        raise ValueError(f'parsing time "{text}": day out of range') from None


def _zone(text: str, at: int, layout: str) -> timedelta:
    match = _ZONE.match(text, at)
    if match is None:
        raise _unread(text, layout, text[at:], "Z07:00")
    if match.end() < len(text):
        raise ValueError(f'parsing time "{text}": extra text: "{text[match.end() :]}"')
    if match[0] == "Z":
        return timedelta()
    if int(match[2]) > 24:
        raise ValueError(f'parsing time "{text}": time zone offset hour out of range')
    ahead = timedelta(hours=int(match[2]), minutes=int(match[3]))
    return ahead if match[1] == "+" else -ahead


def _misread(text: str, layout: str) -> ValueError:
    """Which part of a time could not be read."""
    at = 0
    for part, pattern in _PARTS:
        found = re.compile(pattern).match(text, at)
        if found is None:
            return _unread(text, layout, text[at:], part)
        at = found.end()
    raise AssertionError(f"{text} reads as a time")


def _unread(text: str, layout: str, rest: str, part: str) -> ValueError:
    return ValueError(f'parsing time "{text}" as "{layout}": cannot parse "{rest}" as "{part}"')

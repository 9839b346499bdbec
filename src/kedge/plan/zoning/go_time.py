"""Go time: moments as annotations carry them (RFC 3339), and as Go prints them in messages.

parse_rfc3339("2024-05-01T10:00:00Z")    ->  printed as  2024-05-01 10:00:00 +0000 UTC
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})"
)


def parse_rfc3339(text: str) -> datetime:
    """The moment a text means, in its own time zone. Refuses (ValueError) what is not RFC 3339.

    What is finer than a microsecond is cut off.
    """
    if not _RFC3339.fullmatch(text):
        raise ValueError(f"{text!r} is not a time: write it as in 2024-05-01T10:00:00Z")
    return datetime.fromisoformat(text)


def print_moment(at: datetime) -> str:
    """As Go prints it: `2024-05-01 10:00:00 +0000 UTC`. Assumes that it knows its time zone."""
    offset = f"{at:%z}"
    fraction = f".{at.microsecond:06}".rstrip("0") if at.microsecond else ""
    zone = "UTC" if offset == "+0000" else offset
    return f"{at.year:04}-{at:%m-%d %H:%M:%S}{fraction} {offset} {zone}"

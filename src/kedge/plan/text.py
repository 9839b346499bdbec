"""Text: numbers, names, times and lists as people read them. Shared by every message of the plans."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

_ELLIPSIS: Final = "…"


def counted(number: int, noun: str) -> str:
    """`1 cluster`, `2 clusters`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def of_all(number: int, whole: int, noun: str) -> str:
    """`1 of 1 cluster`, `0 of 3 clusters`."""
    return f"{number} of {counted(whole, noun)}"


def listed(names: Iterable[str], most: int = 5) -> str:
    """`a`, `a and b`, `a, b and c`, `a, b and 7 more`."""
    found = list(names)
    if len(found) > most:
        return f"{', '.join(found[:most])} and {len(found) - most} more"
    return " and ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)


def first_few(sentences: Iterable[str], most: int = 3) -> str:
    """The first few of many sentences, as one: `a; b; c; and 4 more`."""
    found = list(sentences)
    more = f"; and {len(found) - most} more" if len(found) > most else ""
    return "; ".join(found[:most]) + more


def cut(message: str, longest: int) -> str:
    """The message, cut to this many characters if it is longer."""
    return message if len(message) <= longest else f"{message[: longest - 1]}{_ELLIPSIS}"


def path_of(namespace: str | None, name: str) -> str:
    """`name`, or `namespace/name`: what users call an object by."""
    return f"{namespace}/{name}" if namespace else name


def object_name(kind: str, namespace: str | None, name: str) -> str:
    """An object in a sentence: `Deployment shop/web`."""
    return f"{kind} {path_of(namespace, name)}"


def moment(at: datetime) -> str:
    """A time, to the second: `2026-03-01T12:00:00Z`."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def natural(name: str) -> tuple[tuple[bool, int, str], ...]:
    """To sort by: `cluster-2` comes before `cluster-10`."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts)


def age(past: timedelta) -> str:
    """As kubectl shows it: `45s`, `3m`, `26h`, `4d`."""
    seconds = max(0, int(past.total_seconds()))
    for size, letter in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= 2 * size:
            return f"{seconds // size}{letter}"
    return f"{seconds}s"

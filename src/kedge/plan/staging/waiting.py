"""Waiting: the words for what a run waits for."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

_NAMED = 3


def moment(at: datetime) -> str:
    """A time as people write it."""
    return f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def first(sentences: Iterable[str], most: int = _NAMED) -> str:
    """The first few of many sentences, as one."""
    found = list(sentences)
    more = f"; and {len(found) - most} more" if len(found) > most else ""
    return "; ".join(found[:most]) + more

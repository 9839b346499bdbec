"""Clock: the wall-clock, injected.

Durations come from the running event loop (`loop.time()`); only timestamps that people or other machines read come
from here. Virtual time replaces both at once.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What time it is, in UTC."""

    def now(self) -> datetime: ...


class SystemClock:
    """The machine's clock: the only place that reads it."""

    def now(self) -> datetime:
        return datetime.now(UTC)

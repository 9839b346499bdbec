"""Throttle: how many seconds a controller still waits before it does something about a key.

    throttle = Throttle(0.2)
    if wait := throttle.wait(key):           # a debounce: due 0.2 s after the first call for this key
        return Outcome.again(after=wait)
    throttle.reset(key)

    throttle.restart(key)                    # a minimum distance: nothing for 0.2 s from now
    throttle.remaining(key)

Each controller has one for each of its delays, named after what waits. What is remembered here may be lost at any
time: then something is done sooner or waits anew, and nothing else.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Hashable
from typing import Final

from msgspec import Struct

_NO_TIME: Final = 0.001  # seconds: sums of times are not exact, and a wait of nothing would not end


class _Pending(Struct, frozen=True):
    """Since when a key waits, and since when for this value; in the loop's time."""

    value: Hashable
    first: float
    since: float
    seconds: float


class Throttle:
    """One delay of one controller, for each of its keys."""

    def __init__(self, seconds: float, *, at_most: float = math.inf) -> None:
        """A key waits for `seconds`, and `at_most` times that if its wait begins again before it ends: then for nothing
        more, until its value has stayed the same for that long."""
        self.seconds = seconds
        self._at_most = at_most
        self._pending: dict[Hashable, _Pending] = {}

    def wait(self, key: Hashable, value: Hashable = None, *, seconds: float | None = None) -> float:
        """Seconds until this value of a key has stayed the same for long enough; 0 if it has.

        Starts to wait if the key does not, and begins again if the value is another one. `seconds` replaces the
        usual time.
        """
        now, seconds = asyncio.get_running_loop().time(), self.seconds if seconds is None else seconds
        before = self._pending.get(key)
        is_on = before is not None and now < before.since + before.seconds - _NO_TIME
        first = before.first if before is not None and is_on else now
        since = before.since if before is not None and before.value == value else now
        pending = self._pending[key] = _Pending(value, first, since, seconds)
        return self._left(pending, now)

    def restart(self, key: Hashable, seconds: float | None = None) -> None:
        """Let a key wait from now on."""
        now = asyncio.get_running_loop().time()
        before = self._pending.get(key)
        first = before.first if before is not None else now
        self._pending[key] = _Pending(None, first, now, self.seconds if seconds is None else seconds)

    def remaining(self, key: Hashable) -> float:
        """Seconds that a key still waits; 0 if it does not, or no longer."""
        pending = self._pending.get(key)
        if pending is None:
            return 0.0
        left = self._left(pending, asyncio.get_running_loop().time())
        if not left:
            del self._pending[key]
        return left

    def reset(self, key: Hashable) -> None:
        """Forget that a key waits."""
        self._pending.pop(key, None)

    def clear(self) -> None:
        self._pending.clear()

    def _left(self, pending: _Pending, now: float) -> float:
        due = min(pending.since + pending.seconds, pending.first + self._at_most * pending.seconds)
        return due - now if due - now > _NO_TIME else 0.0

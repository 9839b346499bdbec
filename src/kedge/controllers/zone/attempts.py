"""Attempts: what was tried for a rollout group, and when it may be tried again.

Only a cache: if it is lost, things are tried sooner than needed, and told once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Final, TypeAlias

from msgspec import Struct

from kedge.plan.moving.wait import Wait

NO_TIME: Final = 0.001
"""Seconds that are as good as over: sums of times are not exact, and who wakes a little early would sleep again."""
Key: TypeAlias = tuple[str, Hashable]
"""What was tried, and for what."""


class Attempt(Struct, frozen=True):
    """The last time that something was tried: with what value, how often that failed, and what came of it."""

    value: Hashable
    at: float
    until: float
    failures: int = 0
    waits: tuple[Wait, ...] = ()


class Attempts:
    """The attempts of one group."""

    def __init__(self) -> None:
        self._last: dict[Key, Attempt] = {}

    def last(self, key: Key) -> Attempt | None:
        return self._last.get(key)

    def remaining(self, key: Key, value: Hashable, *, changed: float = 0.0) -> float:
        """Seconds before it may be tried again; with another value than the last time, `changed` after that."""
        last = self._last.get(key)
        if last is None:
            return 0.0
        until = last.until if last.value == value else min(last.until, last.at + changed)
        left = until - asyncio.get_running_loop().time()
        return left if left > NO_TIME else 0.0

    def note(
        self, key: Key, value: Hashable, seconds: Callable[[int], float], *, failed: bool, waits: tuple[Wait, ...] = ()
    ) -> None:
        """It was tried now. `seconds` is how long to wait after so many failures before this one."""
        now, last = asyncio.get_running_loop().time(), self._last.get(key)
        before = last.failures if last is not None and last.value == value else 0
        self._last[key] = Attempt(value, now, now + seconds(before), before + 1 if failed else 0, waits)

    def forget(self, key: Key) -> None:
        self._last.pop(key, None)

    def keep(self, objects: frozenset[Hashable]) -> None:
        """Forget what was tried for anything else."""
        self._last = {key: one for key, one in self._last.items() if key[1] in objects}

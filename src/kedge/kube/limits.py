"""Limits: the rate limit of a client, its retries, and exponential backoff.

A `Limiter` is a token bucket that many flows share. While tokens are short, flows take turns, so that a busy
controller cannot starve a quiet one; within a flow, first come is first served. `Retry` decides after which answers a
request is retried, and when: never a write that may have been carried out.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque

from msgspec import Struct

from kedge.kube.errors import ApiError, KubeError, TooManyRequests, Unreachable

SAFE = ("GET", "HEAD")


class Limiter:
    """At most `rate` requests a second over time, `burst` at once. A rate of 0 is no limit."""

    def __init__(self, rate: float = 100.0, burst: int = 200) -> None:
        self.rate = rate
        self.burst = burst
        self._tokens = float(burst)
        self._filled_at: float | None = None
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def try_acquire(self) -> bool:
        """Take a token, if one is free and nobody waits."""
        if self.rate <= 0:
            return True
        self._fill(asyncio.get_running_loop().time())
        if self._waiting or self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    async def acquire(self, flow: str) -> None:
        """Wait for a token for this flow."""
        if self.try_acquire():
            return
        loop = asyncio.get_running_loop()
        granted = loop.create_future()
        self._waiting.setdefault(flow, deque()).append(granted)
        self._wake_later(loop)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._tokens += 1  # given, but not used
            raise

    def _fill(self, now: float) -> None:
        since = now - (now if self._filled_at is None else self._filled_at)
        self._tokens = min(float(self.burst), self._tokens + since * self.rate)
        self._filled_at = now

    def _wake_later(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is None and self._waiting:
            self._timer = loop.call_later(max(0.0, (1 - self._tokens) / self.rate), self._wake, loop)

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        self._timer = None
        self._fill(loop.time())
        # A hair less than a whole token counts: timers may fire a rounding error early.
        while self._waiting and self._tokens >= 1 - 1e-6:
            if self._give_next():
                self._tokens -= 1
        self._wake_later(loop)

    def _give_next(self) -> bool:
        """Give the next flow a token and move it to the back. False if nobody there waits any more."""
        flow = next(iter(self._waiting))
        turns = self._waiting.pop(flow)
        granted = turns.popleft()
        if turns:
            self._waiting[flow] = turns
        if granted.done():
            return False
        granted.set_result(None)
        return True


class BackoffSteps(Struct, frozen=True):
    """Waits of an exponential backoff: `first`, then twice as long each time, up to `longest`."""

    first: float
    longest: float

    def after(self, failures: int, rng: random.Random) -> float:
        """A random part of the step, at least half: callers that failed together should not retry together."""
        step: float = min(self.longest, self.first * 2.0 ** min(failures, 64))
        return step * rng.uniform(0.5, 1.0)


class Retry(Struct, frozen=True):
    """When to retry a request, with `attempts` in total."""

    attempts: int = 5
    wait: BackoffSteps = BackoffSteps(first=0.1, longest=30.0)

    def delay(self, error: KubeError, attempt: int, rng: random.Random) -> float | None:
        """Seconds to wait before the next attempt (the first is 1), or None to give up."""
        if attempt >= self.attempts or not may_repeat(error):
            return None
        backoff = self.wait.after(attempt - 1, rng)
        asked = error.retry_after if isinstance(error, ApiError) else None
        # What the server asks for is a minimum; spreading it out keeps its clients from coming back all at once.
        return backoff if asked is None else min(asked, self.wait.longest) + backoff * rng.random()


def may_repeat(error: KubeError) -> bool:
    """Whether sending the request again can help, and cannot do it twice."""
    safe = error.request.method in SAFE
    if isinstance(error, Unreachable):
        return safe or not error.maybe_done
    if isinstance(error, TooManyRequests):
        return True
    if isinstance(error, ApiError) and error.code >= 500:
        return safe or error.retry_after is not None
    return False


class Backoff:
    """Growing pauses for something that is tried for ever. A success resets it."""

    def __init__(self, rng: random.Random, wait: BackoffSteps) -> None:
        self._rng = rng
        self._wait = wait
        self._failures = 0

    def next(self) -> float:
        """The next pause."""
        self._failures += 1
        return self._wait.after(self._failures - 1, self._rng)

    def reset(self) -> None:
        self._failures = 0

"""Reachability: whether an API server can be reached, since when, and if not, why.

Requests `/version` from time to time, and at once after a hint of trouble (a watch that broke, for example). Never
ends by itself, whatever the server does. A single failure does not make a failing cluster; a second one does.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct

from kedge.kube.clock import Clock
from kedge.kube.transport import ConnectionFailed, Request, Transport

Phase: TypeAlias = Literal["connecting", "connected", "failing"]
log = logging.getLogger(__name__)
_VERSION = Request("GET", "/version")


class State(Struct, frozen=True):
    """Whether one server can be reached."""

    phase: Phase
    since: datetime
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.phase}: {self.reason}" if self.reason else self.phase


class Probe(Struct, frozen=True):
    """How often to probe, how long to wait for an answer, and how many failures in a row count as failing.

    A failing server is probed more often: much may wait for it.
    """

    every: float = 10.0
    while_failing: float = 3.0
    timeout: float = 5.0
    failures: int = 2


class Reachability:
    """Keeps `state` true to what the server does."""

    def __init__(
        self, name: str, transport: Transport, *, clock: Clock, rng: random.Random, probe: Probe | None = None
    ) -> None:
        self.state = State("connecting", clock.now())
        self._name = name
        self._transport = transport
        self._clock = clock
        self._rng = rng
        self._probe = probe or Probe()
        self._failures = 0
        self._check_soon = False
        self._current_pause: _Pause | None = None
        self._handlers: list[Callable[[State], None]] = []

    def on_state(self, handler: Callable[[State], None]) -> None:
        """Tell this handler of every state from now on."""
        self._handlers.append(handler)

    def check_now(self) -> None:
        """Something happened that may mean another state: probe at once."""
        self._check_soon = True
        if self._current_pause is not None:
            self._current_pause.end_soon()

    async def run(self) -> None:
        """Probe again and again, until cancelled."""
        while True:
            self._check_soon = False
            self._update(await self._probe_once())
            await self._pause()

    async def _probe_once(self) -> str:
        """What is wrong; empty if nothing is."""
        try:
            response = await self._transport.send(_VERSION, timeout=self._probe.timeout)
        except ConnectionFailed as error:
            return str(error)
        if response.status == 401:
            return "401: the server does not know who we are: check the credentials"
        return f"the server answers {response.status}" if response.status >= 500 else ""

    def _update(self, problem: str) -> None:
        self._failures = self._failures + 1 if problem else 0
        if not problem:
            self._set_state("connected", "")
        elif self.state.phase != "connected" or self._failures >= self._probe.failures:
            self._set_state("failing", problem)
        else:
            self._check_soon = True  # a single failure: probe again soon

    def _set_state(self, phase: Phase, reason: str) -> None:
        before = self.state
        if (before.phase, before.reason) == (phase, reason):
            return
        since = before.since if before.phase == phase else self._clock.now()
        self.state = State(phase, since, reason)
        if before.phase != phase:
            level = logging.WARNING if reason else logging.INFO
            log.log(level, "cluster %s is %s", self._name, self.state, extra={"cluster": self._name})
        for handler in self._handlers:
            handler(self.state)

    async def _pause(self) -> None:
        """Wait for the next probe, or for `check_now`; at least half a second, so that hints cannot cause a storm."""
        shortest = 0.5 * self._rng.uniform(1.0, 1.5)
        every = self._probe.while_failing if self.state.phase == "failing" else self._probe.every
        self._current_pause = pause = _Pause(shortest, every * self._rng.uniform(0.9, 1.1))
        if self._check_soon:
            pause.end_soon()
        try:
            await pause.over
        finally:
            self._current_pause = None
            pause.timer.cancel()


class _Pause:
    """A pause that may be cut short. One timer: there is a pause every few seconds, for ever."""

    def __init__(self, shortest: float, longest: float) -> None:
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._soonest = now + shortest
        self._due = now + max(shortest, longest)
        self.timer = self._loop.call_at(self._due, self._end)
        self.over: asyncio.Future[None] = self._loop.create_future()

    def end_soon(self) -> None:
        """End as soon as allowed."""
        if self._soonest < self._due:
            self.timer.cancel()
            self._due = self._soonest
            self.timer = self._loop.call_at(self._due, self._end)

    def _end(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

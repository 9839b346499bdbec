"""Reach: whether an API server can be reached, since when, and if not, why.

Asks for `/version` from time to time, and at once when someone has a doubt (a watch that broke, say). Never ends by
itself, whatever the server does. One failure out of the blue is not yet a failing cluster; a second one is.
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
    """How things stand with one server."""

    phase: Phase
    since: datetime
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.phase}: {self.reason}" if self.reason else self.phase


class Probe(Struct, frozen=True):
    """How often to ask, how long to wait for an answer, and how many failures in a row are one too many.

    One that fails is asked more often: much may wait for it.
    """

    every: float = 10.0
    while_failing: float = 3.0
    timeout: float = 5.0
    failures: int = 2


class Reach:
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
        self._doubted = False
        self._rest: _Rest | None = None
        self._handlers: list[Callable[[State], None]] = []

    def on_state(self, handler: Callable[[State], None]) -> None:
        """Tell this handler of every state from now on."""
        self._handlers.append(handler)

    def doubt(self) -> None:
        """Something happened that may mean another state: ask at once."""
        self._doubted = True
        if self._rest is not None:
            self._rest.hurry()

    async def run(self) -> None:
        """Ask, again and again, until cancelled."""
        while True:
            self._doubted = False
            self._judge(await self._ask())
            await self._pause()

    async def _ask(self) -> str:
        """What is wrong, or nothing."""
        try:
            response = await self._transport.send(_VERSION, timeout=self._probe.timeout)
        except ConnectionFailed as error:
            return str(error)
        if response.status == 401:
            return "401: the server does not know who we are: see to the credentials"
        return f"the server answers {response.status}" if response.status >= 500 else ""

    def _judge(self, problem: str) -> None:
        self._failures = self._failures + 1 if problem else 0
        if not problem:
            self._become("connected", "")
        elif self.state.phase != "connected" or self._failures >= self._probe.failures:
            self._become("failing", problem)
        else:
            self._doubted = True  # one failure out of the blue: see whether it was one

    def _become(self, phase: Phase, reason: str) -> None:
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
        """Rest until the next turn, or until there is a doubt; half a second at least, so that doubts cannot storm."""
        shortest = 0.5 * self._rng.uniform(1.0, 1.5)
        every = self._probe.while_failing if self.state.phase == "failing" else self._probe.every
        self._rest = rest = _Rest(shortest, every * self._rng.uniform(0.9, 1.1))
        if self._doubted:
            rest.hurry()
        try:
            await rest.over
        finally:
            self._rest = None
            rest.timer.cancel()


class _Rest:
    """A pause of so many seconds, which may be cut short. One timer: there is a rest every few seconds, for ever."""

    def __init__(self, shortest: float, longest: float) -> None:
        self._loop = asyncio.get_running_loop()
        now = self._loop.time()
        self._soonest = now + shortest
        self._due = now + max(shortest, longest)
        self.timer = self._loop.call_at(self._due, self._end)
        self.over: asyncio.Future[None] = self._loop.create_future()

    def hurry(self) -> None:
        """Be over as soon as may be."""
        if self._soonest < self._due:
            self.timer.cancel()
            self._due = self._soonest
            self.timer = self._loop.call_at(self._due, self._end)

    def _end(self) -> None:
        if not self.over.done():
            self.over.set_result(None)

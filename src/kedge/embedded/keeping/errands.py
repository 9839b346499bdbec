"""Errands: small things to do soon, each once.

    errands = Errands(do, running=lambda: server.running, delay=lambda: rng.uniform(0.001, 0.01))
    errands.start()
    errands.add(key)      # do(key) is called a little later, in the loop; adding it again meanwhile changes nothing

`do` computes and returns at once. If it gives a number, the key comes back after so many seconds. Before `start`, after
`stop`, and while nothing is running, errands are kept and not done.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
_LOOK_AGAIN = 0.1  # while the server is down


class Errands(Generic[Key]):
    """What is to be done, in the order it came."""

    def __init__(
        self, do: Callable[[Key], float | None], *, running: Callable[[], bool], delay: Callable[[], float]
    ) -> None:
        self._do = do
        self._running = running
        self._delay = delay
        self._due: dict[Key, None] = {}
        self._later: dict[Key, asyncio.TimerHandle] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._turn: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Do what was added, and what will be."""
        self._loop = asyncio.get_running_loop()
        self._plan(self._delay())

    def stop(self) -> None:
        """Do nothing more."""
        self._loop = None
        for handle in (*self._later.values(), *((self._turn,) if self._turn else ())):
            handle.cancel()
        self._due.update(dict.fromkeys(self._later))
        self._later.clear()
        self._turn = None

    def add(self, key: Key) -> None:
        """Something to do soon."""
        if handle := self._later.pop(key, None):
            handle.cancel()
        self._due[key] = None
        if self._loop is not None:
            self._plan(self._delay())

    def _plan(self, seconds: float) -> None:
        if self._turn is None and self._due and self._loop is not None:
            self._turn = self._loop.call_later(seconds, self._go)

    def _go(self) -> None:
        self._turn = None
        if not self._running():
            self._plan(_LOOK_AGAIN)
            return
        due, self._due = self._due, {}
        for key in due:
            again = self._do(key)
            if again is not None and key not in self._due and self._loop is not None:
                self._later[key] = self._loop.call_later(again, self._back, key)
        self._plan(self._delay())

    def _back(self, key: Key) -> None:
        del self._later[key]
        self.add(key)

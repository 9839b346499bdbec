"""Delayed set: keys to be handled soon, each once.

    pending = DelayedSet(handle, running=lambda: server.running, delay=lambda: rng.uniform(0.001, 0.01))
    pending.start()
    pending.add(key)      # handle(key) is called a little later, in the loop; adding it again meanwhile changes nothing

`handle` computes and returns at once. If it returns a number, the key is added again after so many seconds. Before
`start`, after `stop`, and while the server is down, keys are kept and not handled.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

Key = TypeVar("Key")
_RETRY_SECONDS = 0.1  # while the server is down


class DelayedSet(Generic[Key]):
    """Keys to be handled, in the order they were added."""

    def __init__(
        self, handle: Callable[[Key], float | None], *, running: Callable[[], bool], delay: Callable[[], float]
    ) -> None:
        self._handle = handle
        self._running = running
        self._delay = delay
        self._due: dict[Key, None] = {}
        self._delayed: dict[Key, asyncio.TimerHandle] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Handle what was added and what will be."""
        self._loop = asyncio.get_running_loop()
        self._schedule(self._delay())

    def stop(self) -> None:
        """Handle nothing more."""
        self._loop = None
        for handle in (*self._delayed.values(), *((self._timer,) if self._timer else ())):
            handle.cancel()
        self._due.update(dict.fromkeys(self._delayed))
        self._delayed.clear()
        self._timer = None

    def add(self, key: Key) -> None:
        """Handle this key soon."""
        if handle := self._delayed.pop(key, None):
            handle.cancel()
        self._due[key] = None
        if self._loop is not None:
            self._schedule(self._delay())

    def _schedule(self, seconds: float) -> None:
        if self._timer is None and self._due and self._loop is not None:
            self._timer = self._loop.call_later(seconds, self._handle_due)

    def _handle_due(self) -> None:
        self._timer = None
        if not self._running():
            self._schedule(_RETRY_SECONDS)
            return
        due, self._due = self._due, {}
        for key in due:
            again = self._handle(key)
            if again is not None and key not in self._due and self._loop is not None:
                self._delayed[key] = self._loop.call_later(again, self._add_again, key)
        self._schedule(self._delay())

    def _add_again(self, key: Key) -> None:
        del self._delayed[key]
        self.add(key)

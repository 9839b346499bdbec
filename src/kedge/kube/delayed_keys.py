"""Delayed keys: keys that become due at a later time, each once, on one timer.

A key becomes due at the earliest time it was scheduled for, and only then. Time is the event loop's. Keys that are due
together come in the order they were scheduled.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class DelayedKeys(Generic[K]):
    """Calls `on_due` with each key when it is due. O(log n) to schedule, O(1) to cancel."""

    def __init__(self, on_due: Callable[[K], None]) -> None:
        self._on_due = on_due
        self._loop = asyncio.get_running_loop()
        self._entries: dict[K, tuple[float, int, K]] = {}
        self._heap: list[tuple[float, int, K]] = []  # of _entries; also those replaced since
        self._sequence = 0
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0  # of the timer; not every loop's handles tell (uvloop's do not, if they are due at once)

    def __len__(self) -> int:
        return len(self._entries)

    def schedule(self, key: K, due: float) -> None:
        """Make the key due at this time, or earlier if it was scheduled earlier."""
        held = self._entries.get(key)
        if held is not None and held[0] <= due:
            return
        self._sequence += 1
        entry = self._entries[key] = (due, self._sequence, key)
        heapq.heappush(self._heap, entry)
        self._drop_replaced()
        self._set_timer()

    def cancel(self, key: K) -> None:
        """The key is not due any more."""
        self._entries.pop(key, None)

    def clear(self) -> None:
        self._entries.clear()
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _drop_replaced(self) -> None:
        # Replaced entries would otherwise stay until they are due. Rebuilding at half keeps the cost at O(1) each.
        if len(self._heap) > 64 and len(self._heap) > 2 * len(self._entries):
            self._heap = [entry for entry in self._heap if self._entries.get(entry[2]) is entry]
            heapq.heapify(self._heap)

    def _set_timer(self) -> None:
        if not self._heap:
            return
        due = self._heap[0][0]
        if self._timer is None or due < self._due:
            if self._timer is not None:
                self._timer.cancel()
            self._due = due
            self._timer = self._loop.call_at(due, self._fire)

    def _fire(self) -> None:
        # A loop may call a shade early, by its clock's resolution.
        now = max(self._loop.time(), self._due)
        self._timer = None
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            key = entry[2]
            if self._entries.get(key) is entry:
                del self._entries[key]
                self._on_due(key)
        self._set_timer()

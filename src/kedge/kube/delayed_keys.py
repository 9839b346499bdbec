"""Delays: keys that wait for a time, each once, on one timer.

Promises that a key rings at the earliest time it was put for, and then only. Time is the event loop's; keys due
together ring in the order they were put.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Delays(Generic[K]):
    """Calls `ring` with each key when its time has come. O(log n) to put, O(1) to take back."""

    def __init__(self, ring: Callable[[K], None]) -> None:
        self._ring = ring
        self._loop = asyncio.get_running_loop()
        self._entries: dict[K, tuple[float, int, K]] = {}
        self._heap: list[tuple[float, int, K]] = []  # of _entries; also those overtaken since
        self._sequence = 0
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0  # of the timer; not every loop's handles tell (uvloop's do not, if they are due at once)

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, key: K, due: float) -> None:
        """Have the key ring at `due`, or earlier if it was to."""
        held = self._entries.get(key)
        if held is not None and held[0] <= due:
            return
        self._sequence += 1
        entry = self._entries[key] = (due, self._sequence, key)
        heapq.heappush(self._heap, entry)
        self._sweep()
        self._arm()

    def drop(self, key: K) -> None:
        """The key need not ring any more."""
        self._entries.pop(key, None)

    def clear(self) -> None:
        self._entries.clear()
        self._heap.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self) -> None:
        # Overtaken entries would otherwise stay until their time comes; rebuilding at half keeps the cost O(1) each.
        if len(self._heap) > 64 and len(self._heap) > 2 * len(self._entries):
            self._heap = [entry for entry in self._heap if self._entries.get(entry[2]) is entry]
            heapq.heapify(self._heap)

    def _arm(self) -> None:
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
                self._ring(key)
        self._arm()

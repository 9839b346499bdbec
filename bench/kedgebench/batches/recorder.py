"""Recorder: the pods of one namespace at each instant, and whether there are ever too few or too many.

It knows nothing of whoever releases them. The floor is of ready pods, the ceiling of all that are not terminating.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from statistics import median

from kedge.api.pods import Pod
from kedgebench.pod_watch import image_of, is_ready

PATIENCE = 300.0


class Recorder:
    """Judges at every change, once it is told to."""

    def __init__(self, floor: int, ceiling: int) -> None:
        self._floor = floor
        self._ceiling = ceiling
        self._pods: dict[str, tuple[str, bool]] = {}  # by name: the image, and whether it is ready
        self._news = asyncio.Event()
        self._waits: list[float] = []
        self._last_change = 0.0
        self.wrong: list[str] = []
        self.judges = False

    @property
    def count(self) -> int:
        """How many pods there are."""
        return len(self._pods)

    def ready(self, image: str = "") -> int:
        """How many are ready, of one image if one is given."""
        return sum(ready for found, ready in self._pods.values() if image in ("", found))

    def is_settled(self, image: str, pods: int) -> bool:
        """Whether there are so many pods, all ready and of this image."""
        return self.count == pods and self.ready(image) == pods

    async def until(self, holds: Callable[[], bool]) -> float:
        """Until something holds; gives when it was first seen to."""
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._news.clear()
                await self._news.wait()
        return time.perf_counter()

    def take_decision_time(self) -> float | None:
        """Seconds from the last pod that became ready to the first one that goes: the median since last asked."""
        found, self._waits = self._waits, []
        return median(found) if found else None

    def see(self, pod: Pod, *, is_gone: bool) -> None:
        name = pod.metadata.name
        if is_gone or pod.metadata.deletion_timestamp is not None:
            went = self._pods.pop(name, None) is not None
            self._note_going() if went else None
        else:
            became_ready = is_ready(pod) and not self._pods.get(name, ("", False))[1]
            self._pods[name] = (image_of(pod), is_ready(pod))
            self._last_change = time.perf_counter() if became_ready else self._last_change
        if self.judges:
            self._judge()
        self._news.set()

    def _note_going(self) -> None:
        if self._last_change:
            self._waits.append(time.perf_counter() - self._last_change)
            self._last_change = 0.0

    def _judge(self) -> None:
        if (ready := self.ready()) < self._floor:
            self.wrong.append(f"{ready} pods are ready: fewer than {self._floor}")
        if self.count > self._ceiling:
            self.wrong.append(f"{self.count} pods are there: more than {self._ceiling}")

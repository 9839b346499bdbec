"""Recorder: watches pods itself, judges whether a group keeps its promises, and notes what happened when.

It knows nothing of the operator. A pod that is missing, terminating or not ready is unavailable.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median

from kedge.api.pods import Pod
from kedgebench.pod_watch import image_of, is_ready

PATIENCE = 300.0


class Recorder:
    """The pods of some zones at each instant. Each group is a sequence of zones."""

    def __init__(self, groups: Sequence[Sequence[str]], pods: int, at_once: int) -> None:
        self._groups = groups
        self._zones = [zone for group in groups for zone in group]
        self._wanted = pods
        self._at_once = at_once
        self._ready: dict[str, dict[str, str]] = {zone: {} for zone in self._zones}  # by zone and name: the image
        self._news = asyncio.Event()
        self._waits: list[float] = []
        self._last_ready = 0.0
        self.wrong: list[str] = []
        self.judges = False

    async def until(self, holds: Callable[[], bool]) -> float:
        """Until something holds; gives when it was first seen to."""
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._news.clear()
                await self._news.wait()
        return time.perf_counter()

    def is_ready(self, image: str = "") -> bool:
        """Whether all pods are there and ready, with that image if one is given."""
        return all(self._count(zone, image) == self._wanted for zone in self._zones)

    def ready_names(self, zone: str) -> list[str]:
        return sorted(self._ready[zone])

    def take_decision_time(self) -> float | None:
        """Seconds from the last pod that became ready to the next one that is deleted: the median since last asked."""
        found, self._waits = self._waits, []
        return median(found) if found else None

    def see(self, pod: Pod, *, is_gone: bool) -> None:
        name = pod.metadata.name
        zone = name.rpartition("-")[0]
        if zone not in self._ready:
            return
        was_ready, ready_now = name in self._ready[zone], not is_gone and is_ready(pod)
        if ready_now:
            self._ready[zone][name] = image_of(pod)
        else:
            self._ready[zone].pop(name, None)
        if was_ready != ready_now:
            self._note(is_ready=ready_now)

    def _note(self, *, is_ready: bool) -> None:
        now = time.perf_counter()
        if is_ready:
            self._last_ready = now
        elif self._last_ready:
            self._waits.append(now - self._last_ready)
            self._last_ready = 0.0
        if self.judges:
            self.wrong += [text for group in self._groups if (text := self._problem(group))]
        self._news.set()

    def _problem(self, group: Sequence[str]) -> str:
        lacking = self._lacking(group)
        is_wrong = len(lacking) > 1 or any(count > self._at_once for count in lacking.values())
        return f"unavailable: {lacking}" if is_wrong else ""

    def _lacking(self, group: Sequence[str]) -> Mapping[str, int]:
        return {zone: count for zone in group if (count := self._wanted - self._count(zone))}

    def _count(self, zone: str, image: str = "") -> int:
        found = self._ready[zone].values()
        return sum(not image or one == image for one in found)

"""Meter: the CPU time this process used, in all its threads, user and system."""

from __future__ import annotations

import cProfile
import time


class Meter:
    """Runs from its making to `stop`, and takes the profile, if there is one, meanwhile.

    `cpu` and `wall` are seconds.
    """

    def __init__(self, profile: cProfile.Profile | None = None) -> None:
        self.cpu = 0.0
        self.wall = 0.0
        self._wall = time.perf_counter()
        self._cpu = time.process_time()
        self._profile = profile
        if profile is not None:
            profile.enable()

    @property
    def so_far(self) -> float:
        """Seconds of CPU time until now."""
        return time.process_time() - self._cpu

    def stop(self) -> None:
        if self._profile is not None:
            self._profile.disable()
        self.cpu = self.so_far
        self.wall = time.perf_counter() - self._wall

"""Marks: the two objects whose changes frame what is measured of a watch.

A change of START begins the measured phase (anew, if it comes again), a change of END ends it. A watch tells of changes
in order, so what is counted between them is what was changed between them.
"""

from __future__ import annotations

from collections.abc import Callable

from kedgebench.meter import Meter

START = "a-start"
END = "z-end"


class Marks:
    """Counts the changes between the marks, and the CPU time they took."""

    def __init__(self, started: Callable[[], None], meter: Callable[[], Meter] = Meter) -> None:
        self.events = 0
        self.meter = Meter()
        self._started = started
        self._new_meter = meter
        self._counting = False

    def saw(self, name: str) -> bool:
        """A watch told of a change of this object; True if that was the last."""
        if name == START:
            self._started()
            self._counting = True
            self.events = 0
            self.meter = self._new_meter()
        elif name == END:
            if self._counting:
                self.meter.stop()
                return True
        else:
            self.events += 1
        return False

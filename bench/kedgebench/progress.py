"""Progress: what the run is at, on stderr, so that stdout holds the results alone."""

from __future__ import annotations

import sys
import time


class Progress:
    """Says what happens now: on one line where somebody looks on, else a line for each kind of thing."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._last = ""

    def say(self, what: str) -> None:
        text = f"[{self.elapsed:4.0f} s] {what}"
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
        elif (kind := what.partition(":")[0]) != self._last:
            self._last = kind
            print(text, file=sys.stderr, flush=True)

    def end(self) -> None:
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._begun

"""Repairs: how often to put back what somebody on the member keeps changing.

The first few times at once; if it goes on, later each time, so that two who disagree do not wear out the member. Kept
in memory only: after a restart the first few times are at once again.
"""

from __future__ import annotations

import asyncio
from typing import Final

from msgspec import Struct

from kedge.plan.applying.manifests import ObjectKey

AT_ONCE: Final = 3
LONGEST: Final = 120.0
_FORGOTTEN_AFTER: Final = 300.0  # seconds without a repair; longer than LONGEST, or a dispute would never grow old


class Repaired(Struct, frozen=True):
    """How often an object was put back, and when last (in the loop's time)."""

    times: int
    last: float


class Repairs:
    """What was put back on one member of late."""

    def __init__(self) -> None:
        self._of: dict[ObjectKey, Repaired] = {}

    def wait(self, identity: ObjectKey) -> float:
        """Seconds until this object may be put back."""
        found = self._of.get(identity)
        if found is None or found.times < AT_ONCE:
            return 0.0
        pause: float = min(LONGEST, 2.0 ** (found.times - AT_ONCE))
        return max(0.0, found.last + pause - asyncio.get_running_loop().time())

    def are_disputed(self, identity: ObjectKey) -> bool:
        """Whether somebody keeps changing this object."""
        self._forget_old()
        found = self._of.get(identity)
        return found is not None and found.times >= AT_ONCE

    def next_look(self, identity: ObjectKey) -> float:
        """Seconds until something is to be done or said about a disputed object, if nothing happens."""
        last = self._of[identity].last if identity in self._of else 0.0
        quiet = last + _FORGOTTEN_AFTER - asyncio.get_running_loop().time()
        return self.wait(identity) or max(1.0, quiet)

    def note(self, identity: ObjectKey) -> None:
        """It was put back."""
        self._forget_old()
        times = self._of[identity].times if identity in self._of else 0
        self._of[identity] = Repaired(times + 1, asyncio.get_running_loop().time())

    def _forget_old(self) -> None:
        since = asyncio.get_running_loop().time() - _FORGOTTEN_AFTER
        if any(found.last < since for found in self._of.values()):
            self._of = {identity: found for identity, found in self._of.items() if found.last >= since}

"""Missing kinds: what a cluster does not serve, said once for all of them, and what to do about it.

A cluster that was never prepared lacks every kind a role needs. Each of them is asked for again until it is served;
that is no news, so it is said once, and again only if more are missing, or none any more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final

from kedge.api.resource import Resource

TOGETHER: Final = 1.0  # seconds in which those that are missing are found
SHOWN: Final = 3
log = logging.getLogger(__name__)


class MissingKinds:
    """Of one cluster."""

    def __init__(self, cluster: str, advice: str, find: Callable[[], Iterable[Resource]]) -> None:
        """`find` gives the kinds that are missing now."""
        self._cluster = cluster
        self._advice = advice
        self._find = find
        self._said: tuple[str, ...] = ()
        self._due: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Something changed: see in a moment what is missing, and say so."""
        if self._due is None and (self._said or any(True for _ in self._find())):
            self._due = asyncio.get_running_loop().call_later(TOGETHER, self._say)

    def close(self) -> None:
        if self._due is not None:
            self._due.cancel()

    def _say(self) -> None:
        self._due = None
        before, self._said = self._said, tuple(sorted({str(resource) for resource in self._find()}))
        if set(self._said) - set(before):
            log.error("%s", sentence(self._cluster, self._said, self._advice))
        elif before and not self._said:
            log.info("%s serves all kinds that are needed now", self._cluster)


def sentence(cluster: str, missing: tuple[str, ...], advice: str = "") -> str:
    """What is missing, and what to do about it."""
    kinds = "1 kind that is" if len(missing) == 1 else f"{len(missing)} kinds that are"
    named = ", ".join(missing[:SHOWN]) + (", …" if len(missing) > SHOWN else "")
    what_to_do = f": {advice}" if advice else ""
    return f"{cluster} does not serve {kinds} needed ({named}), and waits until it does{what_to_do}"

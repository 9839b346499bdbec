"""Zone claims: which zone of a group is being scaled down by this process. At most one of each group.

Whoever comes second gets a claim that says who holds the group, and holds nothing itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

_Key: TypeAlias = tuple[str, str, str]


class Claim:
    """One zone's claim on its group. `held_by` is who has it instead; empty if this one does."""

    def __init__(self, held_by: str = "") -> None:
        self.held_by = held_by
        self._kept: asyncio.Task[None] | None = None

    def keep_until(self, task: asyncio.Task[None]) -> None:
        """Release the group when this task ends, not when the block does."""
        self._kept = task

    @property
    def kept(self) -> asyncio.Task[None] | None:
        return self._kept


class ZoneClaims:
    """The claims of one process. A zone without a group only stands in its own way."""

    def __init__(self) -> None:
        self._held: dict[_Key, str] = {}

    @contextmanager
    def claim(self, namespace: str, group: str, name: str) -> Iterator[Claim]:
        """The claim of a zone, for as long as the block runs, or what it is kept for."""
        key = (namespace, group, "" if group else name)
        claim = Claim(self._held.get(key, ""))
        if claim.held_by:
            yield claim
            return
        self._held[key] = name
        try:
            yield claim
        finally:
            if claim.kept is None:
                del self._held[key]
            else:
                claim.kept.add_done_callback(lambda _: self._held.pop(key, None))

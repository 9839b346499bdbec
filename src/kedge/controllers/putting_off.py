"""Putting off: news that nobody acts on wait a moment, until what matters more is done and more of them can be told.

What is remembered here may be lost at any time: then news wait anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable
from typing import Final

_NO_TIME: Final = 0.001  # seconds: sums of times are not exact, and a wait of nothing would not end


class PuttingOff:
    """Of the things one controller tells of."""

    def __init__(self, seconds: float) -> None:
        """News wait so long from the moment the first of them is there."""
        self.seconds = seconds
        self._since: dict[Hashable, float] = {}

    def left(self, what: Hashable) -> float:
        """In how many seconds the news of this are to be told; 0 if now."""
        now = asyncio.get_running_loop().time()
        left = self._since.setdefault(what, now) + self.seconds - now
        return left if left > _NO_TIME else 0.0

    def told(self, what: Hashable) -> None:
        """There are no news of this any more, or nobody to tell."""
        self._since.pop(what, None)

    def clear(self) -> None:
        self._since.clear()

"""Waiting: until a server says that something holds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

PATIENCE = 300.0


async def until_so(holds: Callable[[], Awaitable[bool]], *, every: float) -> float:
    """Ask again and again; gives when it held."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if await holds():
                return time.perf_counter()
            await asyncio.sleep(every)

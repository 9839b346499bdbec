"""Waiting for a condition instead of for a time."""

import asyncio
from collections.abc import Callable


async def until(condition: Callable[[], object], within: float = 20.0) -> None:
    """Wait until the condition holds; fail if that takes too long."""
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.005)

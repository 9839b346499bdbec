"""Waiting for a condition instead of for a time."""

import asyncio
from collections.abc import Awaitable, Callable


async def until(condition: Callable[[], object], within: float = 60.0) -> None:
    """Wait until the condition holds; fail if that takes too long."""
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.005)


async def until_so(condition: Callable[[], Awaitable[object]], within: float = 60.0) -> None:
    """The same for a condition that has to ask."""
    async with asyncio.timeout(within):
        while not await condition():
            await asyncio.sleep(0.02)

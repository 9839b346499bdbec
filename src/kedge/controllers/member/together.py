"""Together: several things at once, but not too many; all of them end before the first that failed is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

T = TypeVar("T")
AT_ONCE: Final = 8


async def together(things: Iterable[Callable[[], Awaitable[T]]], at_once: int = AT_ONCE) -> list[T]:
    """What comes of each, in order. What is cancelled before its turn was never begun."""
    gate = asyncio.Semaphore(at_once)

    async def one(thing: Callable[[], Awaitable[T]]) -> T:
        async with gate:
            return await thing()

    ended = await asyncio.gather(*(one(thing) for thing in things), return_exceptions=True)
    for end in ended:
        if isinstance(end, BaseException):
            raise end
    return [end for end in ended if not isinstance(end, BaseException)]

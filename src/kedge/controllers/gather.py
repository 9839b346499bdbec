"""Gather: several requests at the same time, but not too many."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeVar

from kedge.kube.errors import Conflict

T = TypeVar("T")
AT_MOST: Final = 16


async def gather(calls: Iterable[Callable[[], Awaitable[T]]], *, at_most: int = AT_MOST) -> list[T]:
    """The results of all calls, in order; at most so many run at the same time.

    One that fails does not stop the others. Its error is raised when all have ended: a `Conflict`, which only means
    to look again, comes after any other. A call that is cancelled before its turn was never begun.
    """
    turns = asyncio.Semaphore(at_most)

    async def one(call: Callable[[], Awaitable[T]]) -> T:
        async with turns:
            return await call()

    results = await asyncio.gather(*map(one, calls), return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    if errors:
        raise min(errors, key=lambda error: isinstance(error, Conflict))
    return [result for result in results if not isinstance(result, BaseException)]

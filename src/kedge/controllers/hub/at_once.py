"""At once: several writes of one placement at the same time, but not too many."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, TypeAlias

from kedge.kube.errors import Conflict

AT_ONCE: Final = 16
Write: TypeAlias = Callable[[], Awaitable[object]]


async def all_of(writes: Iterable[Write]) -> None:
    """Make all writes, some at once. One that fails does not keep the others back; then it is raised."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(write: Write) -> None:
        async with turn:
            await write()

    results = await asyncio.gather(*map(one, writes), return_exceptions=True)
    errors = [result for result in results if isinstance(result, BaseException)]
    # That someone else was faster only means to look again; anything else is to be known.
    errors.sort(key=lambda error: isinstance(error, Conflict))
    if errors:
        raise errors[0]

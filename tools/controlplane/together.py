"""Together: several coroutines at once, all of them finished when it ends, well or badly.

Unlike `asyncio.gather`, nothing goes on in the background after an error; unlike a bare `TaskGroup`, what is
raised is the first error itself, which says what is wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import TypeVar

T = TypeVar("T")


async def together(work: Iterable[Coroutine[object, object, T]]) -> list[T]:
    """The results, in order; at the first error the others are cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in work]
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return [task.result() for task in tasks]

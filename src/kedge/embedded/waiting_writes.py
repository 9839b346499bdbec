"""Waiting writes: writes are coroutines, because webhooks may be asked in the middle of one; nothing else waits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from kedge.embedded.request_info import RequestInfo
from kedge.embedded.store import StaleVersion

Result = TypeVar("Result")


def at_once(result: Coroutine[Any, Any, Result]) -> Result:
    """What a coroutine comes to that waits for nothing, as one does that asks no webhook."""
    try:
        result.send(None)
    except StopIteration as done:
        found: Result = done.value
        return found
    result.close()
    raise RuntimeError("a request that asks no webhook waits for something")


async def with_newest(write: Callable[[RequestInfo], Awaitable[Result]], info: RequestInfo) -> Result:
    """Carry out a write. If its object changed while webhooks were asked, begin again with the newest state."""
    while True:
        try:
            return await write(info)
        except StaleVersion:
            continue

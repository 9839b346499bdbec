"""Pending calls: calls to others that may take long, so that a worker of a controller does not wait for them.

    outcome = await calls.result(key, partial(ask, url), wake, server="hooks.example.com")
    if outcome is None:                      # it takes longer: `wake` is called when it has ended
        return Outcome.done

A call that ends within a second gives its result at once. A longer one goes on in the background, and its key is woken;
asked again, it gives the result, once. So somebody who does not answer costs only those who ask them: at most 16
calls to one server are under way, further ones wait for their turn.

What is remembered here may be lost at any time: then a call is made again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")
PER_SERVER: Final = 16
PATIENCE: Final = 1.0
"""Seconds that a worker waits for a call itself."""
_KEPT: Final = 1000


class PendingCalls(Generic[T]):
    """Calls, each with a key."""

    def __init__(self, *, patience: float = PATIENCE, per_server: int = PER_SERVER, kept: int = _KEPT) -> None:
        """Of results that nobody asks for any more, only so many are kept."""
        self._patience = patience
        self._per_server = per_server
        self._kept = kept
        self._tasks: dict[Hashable, asyncio.Task[T]] = {}
        self._turns: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    async def result(
        self, key: Hashable, call: Callable[[], Awaitable[T]], wake: Callable[[], None], *, server: str = ""
    ) -> T | None:
        """What came of the call with this key, which is made if it is not under way; None if it has not ended yet."""
        task = self._tasks.get(key)
        if task is None:
            task = self._begin(key, call, server)
            await asyncio.wait({task}, timeout=self._patience)
            if not task.done():
                task.add_done_callback(lambda ended: None if ended.cancelled() else wake())
        if not task.done():
            return None
        self._tasks.pop(key, None)
        return task.result()

    async def close(self) -> None:
        """End all calls."""
        tasks, self._tasks = list(self._tasks.values()), {}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin(self, key: Hashable, call: Callable[[], Awaitable[T]], server: str) -> asyncio.Task[T]:
        ended = [known for known, task in self._tasks.items() if task.done()]
        for known in ended[: max(0, len(ended) - self._kept + 1)]:
            del self._tasks[known]
        task = self._tasks[key] = asyncio.create_task(self._in_turn(call, server))
        return task

    async def _in_turn(self, call: Callable[[], Awaitable[T]], server: str) -> T:
        turns = self._turns.setdefault(server, asyncio.Semaphore(self._per_server))
        async with turns:
            return await call()

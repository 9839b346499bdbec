"""A loop whose time jumps to the next timer instead of passing."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Skip(selectors.SelectSelector):
    loop: VirtualLoop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("every task waits, and no timer is set: nothing would ever happen again")
        self.loop.skip(max(0.0, timeout))
        return super().select(0)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs like asyncio's own, but sleeps take no time."""

    def __init__(self) -> None:
        self._virtual_now = 0.0
        selector = _Skip()
        selector.loop = self
        super().__init__(selector)

    def time(self) -> float:
        return self._virtual_now

    def skip(self, seconds: float) -> None:
        self._virtual_now += seconds


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end in virtual time; tasks left behind fail the test."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(_alone(work))


async def _alone(work: Coroutine[Any, Any, T]) -> T:
    result = await work
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, f"tasks left behind: {left}"
    return result

"""Gather: in order, not too many at once, to the end of all; and nothing begins whose turn does not come."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from kedge.controllers.gather import gather
from support.virtual import run


class Things:
    """Notes what was begun and what ended."""

    def __init__(self) -> None:
        self.begun: list[int] = []
        self.ended: list[int] = []
        self.most = 0

    async def one(self, number: int, fails: bool = False) -> int:
        self.begun.append(number)
        self.most = max(self.most, len(self.begun) - len(self.ended))
        await asyncio.sleep(1.0 / (number + 1))
        self.ended.append(number)
        if fails:
            raise ValueError(number)
        return number

    def some(self, count: int, failing: int = -1) -> list[Callable[[], Awaitable[int]]]:
        return [partial(self.one, number, number == failing) for number in range(count)]


def test_all_come_out_in_order_and_only_some_are_underway_at_once() -> None:
    things = Things()
    assert run(gather(things.some(20), at_most=3)) == list(range(20))
    assert things.most == 3


def test_all_end_before_the_first_that_failed_is_told() -> None:
    things = Things()
    with pytest.raises(ValueError, match="4"):
        run(gather(things.some(9, failing=4), at_most=2))
    assert sorted(things.ended) == list(range(9))


def test_what_is_cancelled_before_its_turn_was_never_begun() -> None:
    things = Things()

    async def main() -> None:
        working = asyncio.create_task(gather(things.some(9), at_most=2))
        await asyncio.sleep(0.1)
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
        await asyncio.sleep(10.0)

    run(main())
    assert (things.begun, things.ended) == ([0, 1], [])

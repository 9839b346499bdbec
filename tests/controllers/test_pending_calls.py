"""Pending calls: short ones are answered at once, long ones in the background, and one server holds up no other."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from kedge.controllers.pending_calls import PendingCalls
from support.virtual import run


class Server:
    """Answers after so many seconds, and counts."""

    def __init__(self) -> None:
        self.calls = self.most_at_once = self._under_way = 0

    async def answer(self, seconds: float) -> int:
        self.calls += 1
        self._under_way += 1
        self.most_at_once = max(self.most_at_once, self._under_way)
        try:
            await asyncio.sleep(seconds)
        finally:
            self._under_way -= 1
        return self.calls


def asleep() -> None:
    raise AssertionError("nobody is to be woken")


def test_a_short_call_gives_its_result_at_once_and_the_next_is_another_call() -> None:
    async def main() -> None:
        calls, server = PendingCalls[int](), Server()
        assert await calls.result("a", partial(server.answer, 0.9), asleep) == 1
        assert await calls.result("a", partial(server.answer, 0.9), asleep) == 2

    run(main())


def test_a_long_call_goes_on_and_wakes_and_then_gives_its_result_once() -> None:
    async def main() -> None:
        calls, server, woken = PendingCalls[int](), Server(), asyncio.Event()
        start = asyncio.get_running_loop().time()
        assert await calls.result("a", partial(server.answer, 30), woken.set) is None
        assert await calls.result("a", partial(server.answer, 30), asleep) is None
        assert asyncio.get_running_loop().time() - start == pytest.approx(1)
        await woken.wait()
        assert asyncio.get_running_loop().time() - start == pytest.approx(30)
        assert await calls.result("a", partial(server.answer, 0), asleep) == 1
        assert await calls.result("a", partial(server.answer, 0), asleep) == 2

    run(main())


def test_a_worker_that_is_cancelled_does_not_end_the_call() -> None:
    async def main() -> None:
        calls, server = PendingCalls[int](), Server()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await calls.result("a", partial(server.answer, 2), asleep)
        await asyncio.sleep(5)
        assert await calls.result("a", partial(server.answer, 0), asleep) == 1

    run(main())


def test_a_server_that_hangs_holds_up_no_other() -> None:
    async def main() -> None:
        calls, bad, good = PendingCalls[int](patience=0.1), Server(), Server()
        for number in range(40):
            assert await calls.result(number, partial(bad.answer, 1000), asleep, server="bad") is None
        assert bad.most_at_once == 16
        assert await calls.result("good", partial(good.answer, 0), asleep, server="good") == 1
        await calls.close()

    run(main())


def test_all_have_their_turn() -> None:
    async def main() -> None:
        calls, server, woken = PendingCalls[int](patience=0.1, per_server=2), Server(), list[int]()
        for number in range(6):
            await calls.result(number, partial(server.answer, 10), partial(woken.append, number), server="s")
        await asyncio.sleep(100)
        assert woken == [0, 1, 2, 3, 4, 5]
        assert server.most_at_once == 2

    run(main())


def test_an_error_is_raised_to_who_asks() -> None:
    async def broken() -> int:
        raise ValueError("broken")

    async def main() -> None:
        with pytest.raises(ValueError, match="broken"):
            await PendingCalls[int]().result("a", broken, asleep)

    run(main())


def test_results_that_nobody_asks_for_are_forgotten() -> None:
    async def main() -> None:
        calls, server, woken = PendingCalls[int](patience=0.1, kept=3), Server(), asyncio.Event()
        for number in range(10):
            assert await calls.result(number, partial(server.answer, 1), woken.set) is None
            await asyncio.sleep(2)
        kept = [await calls.result(number, partial(server.answer, 0), asleep) for number in (7, 8, 9, 0)]
        assert kept == [8, 9, 10, 11]

    run(main())


def test_closing_ends_all_calls_and_wakes_nobody() -> None:
    async def main() -> None:
        calls, server = PendingCalls[int](), Server()
        await calls.result("a", partial(server.answer, 1000), asleep)
        await calls.close()
        assert await calls.result("a", partial(server.answer, 0), asleep) == 2

    run(main())

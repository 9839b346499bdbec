"""Turns are fair, the rate holds, and pauses grow; in virtual time."""

import asyncio
import random

import pytest

from kedge.kube.limits import Backoff, BackoffSteps, Limiter
from support.virtual import run


def now() -> float:
    return asyncio.get_running_loop().time()


def test_a_burst_goes_at_once_and_the_rest_at_the_rate() -> None:
    async def story() -> list[float]:
        limiter = Limiter(rate=10, burst=5)
        times: list[float] = []

        async def ask() -> None:
            await limiter.acquire("a")
            times.append(now())

        await asyncio.gather(*(ask() for _ in range(10)))
        return times

    times = run(story())
    assert times[:5] == [0.0] * 5
    assert times[5:] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5], abs=1e-3)


def test_nobody_goes_at_once_before_those_who_wait() -> None:
    async def story() -> list[bool]:
        limiter = Limiter(rate=10, burst=1)
        took = [limiter.try_acquire(), limiter.try_acquire()]
        waiting = [asyncio.create_task(limiter.acquire("a")) for _ in range(2)]
        await asyncio.sleep(0.15)  # one of the two has had its turn
        took.append(limiter.try_acquire())
        await asyncio.gather(*waiting)
        await asyncio.sleep(0.1)
        return [*took, limiter.try_acquire()]

    assert run(story()) == [True, False, False, True]


def test_a_busy_flow_does_not_starve_a_quiet_one() -> None:
    async def story() -> int:
        limiter = Limiter(rate=10, burst=1)
        order: list[str] = []

        async def ask(flow: str) -> None:
            await limiter.acquire(flow)
            order.append(flow)

        busy = [asyncio.create_task(ask("busy")) for _ in range(100)]
        await asyncio.sleep(0)
        await ask("quiet")
        await asyncio.gather(*busy)
        return order.index("quiet")

    assert run(story()) <= 3


def test_who_gives_up_waiting_does_not_cost_a_turn() -> None:
    async def story() -> float:
        limiter = Limiter(rate=1, burst=1)
        await limiter.acquire("a")
        waiting = [asyncio.create_task(limiter.acquire("a")) for _ in range(5)]
        await asyncio.sleep(0.1)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await limiter.acquire("a")
        return now()

    assert run(story()) == pytest.approx(1.0, abs=0.01)


def test_no_rate_is_no_limit() -> None:
    async def story() -> float:
        limiter = Limiter(rate=0)
        for _ in range(1000):
            await limiter.acquire("a")
        return now()

    assert run(story()) == 0.0


def test_pauses_grow_to_the_longest_and_start_anew() -> None:
    backoff = Backoff(random.Random(1), BackoffSteps(first=1.0, longest=8.0))
    pauses = [backoff.next() for _ in range(6)]
    for pause, step in zip(pauses, [1, 2, 4, 8, 8, 8], strict=True):
        assert step / 2 <= pause <= step
    backoff.reset()
    assert backoff.next() <= 1.0

"""Clocks and chance: what they show and draw is of the seed and the time alone."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from kedge.simulate.clock import START, JumpingClock, Jumps, LoopClock
from kedge.simulate.loop import run
from kedge.simulate.seeded_random import SeededRandom


def test_a_clock_follows_the_loop() -> None:
    async def later() -> timedelta:
        clock = LoopClock(asyncio.get_running_loop())
        await asyncio.sleep(90)
        return clock.now() - START

    assert run(later()) == timedelta(seconds=90)


async def shown(seed: int, looks: list[float], jumps: Jumps) -> list[float]:
    """How far off a clock is at these times."""
    loop = asyncio.get_running_loop()
    true = LoopClock(loop)
    clock = JumpingClock(true, loop, rng=Random(seed), jumps=jumps)
    off = []
    for at in looks:
        await asyncio.sleep(at - loop.time())
        off.append((clock.now() - true.now()).total_seconds())
    return off


def test_a_clock_that_jumps_goes_both_ways() -> None:
    off = run(shown(1, [float(at) for at in range(0, 86_400, 600)], Jumps(per_hour=2.0, most=100.0)))
    assert min(off) < -50
    assert max(off) > 50
    assert all(-100 <= seconds <= 100 for seconds in off)


@given(st.integers(0, 99), st.lists(st.floats(0, 7200), min_size=1, max_size=20))
def test_what_it_shows_does_not_depend_on_how_often_it_is_asked(seed: int, looks: list[float]) -> None:
    jumps = Jumps(per_hour=10.0)
    looks = sorted(looks)
    assert run(shown(seed, looks, jumps))[-1] == run(shown(seed, looks[-1:], jumps))[0]


def test_a_calm_clock_stays_as_far_off_as_it_is() -> None:
    async def calmed() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        clock = JumpingClock(LoopClock(loop), loop, rng=Random(1), jumps=Jumps(per_hour=60.0))
        await asyncio.sleep(3600)
        clock.jump(5.0)
        clock.end_faults()
        before = clock.off
        await asyncio.sleep(3600)
        clock.now()
        return before, clock.off

    before, after = run(calmed())
    assert before == after != 0


def test_the_same_name_gives_the_same_numbers_and_another_others() -> None:
    assert SeededRandom(1).random_for("a", 2).random() == SeededRandom(1).random_for("a", 2).random()
    names: list[tuple[str | int, ...]] = [("a", "b"), ("a b",), ("ab",), ("b", "a"), (), ("a",)]
    assert len({SeededRandom(1).number_for(*name) for name in names}) == len(names)
    assert SeededRandom(1).number_for("a") != SeededRandom(2).number_for("a")


def test_numbers_are_the_same_in_every_process() -> None:
    assert f"{SeededRandom(7).number_for('loop'):016x}" == "e20549c7aee943f7"

"""Throttle: a key waits from its first call on, a changed value begins again, and keys do not wait for one another."""

from __future__ import annotations

import asyncio

import pytest

from kedge.controllers.throttle import Throttle
from support.virtual import run


def test_a_key_waits_from_its_first_call_on_and_anew_once_reset() -> None:
    async def main() -> None:
        throttle = Throttle(0.3)
        assert throttle.wait("a") == 0.3
        await asyncio.sleep(0.2)
        assert 0 < throttle.wait("a") < 0.11
        assert throttle.wait("b") == pytest.approx(0.3)
        await asyncio.sleep(0.2)
        assert throttle.wait("a") == throttle.wait("a") == 0.0
        assert throttle.wait("b") > 0.0
        throttle.reset("a")
        assert throttle.wait("a") == pytest.approx(0.3)
        throttle.clear()
        assert throttle.wait("b") == pytest.approx(0.3)
        throttle.reset("never heard of")

    run(main())


def test_a_wait_ends_however_its_times_add_up() -> None:
    async def main() -> None:
        for number in range(1000):
            throttle = Throttle(0.1 + number / 7919)
            await asyncio.sleep(number / 977)
            await asyncio.sleep(throttle.wait("a"))
            assert throttle.wait("a") == 0.0

    run(main())


def test_another_value_begins_again_but_not_for_ever() -> None:
    async def main() -> None:
        throttle = Throttle(1.0, at_most=3)
        assert throttle.wait("a", "one") == 1.0
        await asyncio.sleep(0.8)
        assert throttle.wait("a", "one") == pytest.approx(0.2)
        assert throttle.wait("a", "two") == pytest.approx(1.0)
        await asyncio.sleep(0.8)
        assert throttle.wait("a", "three") == pytest.approx(1.0)
        await asyncio.sleep(0.8)
        assert throttle.wait("a", "four") == pytest.approx(0.6)
        await asyncio.sleep(0.6)
        assert throttle.wait("a", "five") == 0.0

    run(main())


def test_a_restarted_key_waits_from_then_on_and_for_as_long_as_it_is_told() -> None:
    async def main() -> None:
        throttle = Throttle(1.0)
        assert throttle.remaining("a") == 0.0
        throttle.restart("a")
        await asyncio.sleep(0.5)
        assert throttle.remaining("a") == pytest.approx(0.5)
        throttle.restart("a", 3.0)
        assert throttle.remaining("a") == pytest.approx(3.0)
        assert throttle.remaining("b") == 0.0
        await asyncio.sleep(3.0)
        assert throttle.remaining("a") == 0.0

    run(main())


def test_a_key_that_is_restarted_all_the_time_waits_at_most_so_many_times_its_time() -> None:
    async def main() -> None:
        throttle = Throttle(1.0, at_most=2)
        for left in (1.0, 1.0, 1.0, 0.5):
            throttle.restart("a")
            assert throttle.remaining("a") == pytest.approx(left)
            await asyncio.sleep(0.5)
        assert throttle.remaining("a") == 0.0
        throttle.restart("a")
        assert throttle.remaining("a") == pytest.approx(1.0)

    run(main())

"""Putting off: news wait from the first of them on, and those of one thing not for those of another."""

from __future__ import annotations

import asyncio

import pytest

from kedge.controllers.putting_off import PuttingOff
from support.virtual import run


def test_news_wait_from_the_first_of_them_and_anew_once_told() -> None:
    async def main() -> None:
        off = PuttingOff(0.3)
        assert off.left("a") == 0.3
        await asyncio.sleep(0.2)
        assert 0 < off.left("a") < 0.11
        assert off.left("b") == pytest.approx(0.3)
        await asyncio.sleep(0.2)
        assert off.left("a") == off.left("a") == 0.0
        assert off.left("b") > 0.0
        off.told("a")
        assert off.left("a") == pytest.approx(0.3)
        off.clear()
        assert off.left("b") == pytest.approx(0.3)
        off.told("never heard of")

    run(main())


def test_a_wait_ends_however_its_times_add_up() -> None:
    async def main() -> None:
        for number in range(1000):
            off = PuttingOff(0.1 + number / 7919)
            await asyncio.sleep(number / 977)
            await asyncio.sleep(off.left("a"))
            assert off.left("a") == 0.0

    run(main())

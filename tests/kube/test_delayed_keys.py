"""Delayed keys are due on every event loop there is, also for what is due at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from kedge.kube.delayed_keys import DelayedKeys

LOOPS: list[Callable[[], asyncio.AbstractEventLoop]] = [asyncio.new_event_loop, uvloop.new_event_loop]


@pytest.mark.parametrize("new_loop", LOOPS, ids=["asyncio", "uvloop"])
def test_what_is_overdue_rings_and_so_does_what_comes_after(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def ring() -> list[str]:
        loop = asyncio.get_running_loop()
        rung: list[str] = []
        all_rung = loop.create_future()

        def hear(key: str) -> None:
            rung.append(key)
            if len(rung) == 3:
                all_rung.set_result(None)

        delayed = DelayedKeys(hear)
        delayed.schedule("overdue", loop.time() - 1)
        delayed.schedule("now", loop.time())
        delayed.schedule("soon", loop.time() + 0.01)
        async with asyncio.timeout(20):
            await all_rung
        return rung

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(ring()) == ["overdue", "now", "soon"]

"""Observing: what a step is decided on was so when the rollout was read."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kedge.controllers.batch.observing import BatchRolloutObserver, Current
from kedge.kube.queue import Key
from kedge.plan.batching.steps import BatchRolloutInput
from support.virtual import run


class SlowRead(BatchRolloutObserver):
    """Everything is there at once, but for the rollout itself."""

    def __init__(self, seconds: float) -> None:
        nothing = cast("Any", None)
        super().__init__(nothing, nothing, nothing, nothing, nothing, clock=nothing)
        self._seconds = seconds
        self.looked: list[float] = []

    async def _read(self, current: Current) -> Current:
        await asyncio.sleep(self._seconds)
        return current

    async def observe(self, key: Key, current: Current) -> BatchRolloutInput:
        self.looked.append(asyncio.get_running_loop().time())
        return cast("BatchRolloutInput", len(self.looked))


@pytest.mark.parametrize(("seconds", "looks"), [(0.5, 1), (6.0, 2)])
def test_if_the_rollout_is_told_late_its_pods_are_looked_at_again(seconds: float, looks: int) -> None:
    """One may have died meanwhile: then no other one may be taken away."""

    async def main() -> None:
        observer = SlowRead(seconds)
        rollout = SimpleNamespace(metadata=SimpleNamespace(resource_version="1"))
        found = await observer.look(Key("", "shop", "web"), Current(rollout, None))
        assert found is not None
        assert cast("Any", found[1]) == looks
        assert asyncio.get_running_loop().time() - observer.looked[-1] < 1.0

    run(main())

"""Many who evict pods at the same time, for a long time: at every moment the budget is kept, judged from the pods."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from kedge.api.pods import Pod
from kedge.kube.errors import Conflict, NotFound
from kedge.plan.zoning.pods import is_running_and_ready
from support.budget_bed import NAMESPACE, NUMBERED, BudgetBed, play

SHORTS = [f"{letter}-{number}" for letter in "abc" for number in range(3)]
EVICTORS = 6
ROUNDS = 8


class Storm:
    """Pods that are evicted, and come back after a while."""

    def __init__(self, here: BudgetBed, rng: Random) -> None:
        self._here = here
        self._rng = rng
        self.evicted = 0

    async def evictor(self) -> None:
        for _ in range(ROUNDS):
            await self._evict(self._rng.choice(SHORTS))
            await asyncio.sleep(self._rng.uniform(0, 8))

    async def _evict(self, short: str) -> None:
        try:
            meta = (await self._here.pod(short)).metadata
            found = await self._here.evict(short)
            if not found.allowed or found.warnings:
                return
            await asyncio.sleep(self._rng.uniform(0, 3))
            await self._here.client.delete(Pod, meta.name, NAMESPACE, uid=meta.uid, grace_seconds=0)
        except (NotFound, Conflict):
            return  # another one was faster
        self.evicted += 1
        await self._come_back(short)

    async def _come_back(self, short: str) -> None:
        await asyncio.sleep(self._rng.uniform(0, 5))
        await self._here.add_pod(short, ready=False)
        for ready in (False, True):
            await asyncio.sleep(self._rng.uniform(0, 3))
            with suppress(NotFound):  # evicted again: it was not ready anyway
                await self._here.say_of_pod(short, ready=ready)


async def away(here: BudgetBed) -> set[str]:
    """The pods that are missing or not ready now."""
    pods = (await here.client.list(Pod, NAMESPACE)).items
    there = {pod.metadata.name for pod in pods if is_running_and_ready(pod)}
    return {short for short in SHORTS if f"ingester-zone-{short}" not in there}


async def storm(here: BudgetBed, seed: int, judge: Any) -> None:
    rain = Storm(here, Random(seed))
    working = asyncio.gather(*(rain.evictor() for _ in range(EVICTORS)))
    while not working.done():
        judge(await away(here))
        await asyncio.sleep(0.05)
    await working
    assert rain.evicted > 3


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("most", [1, 2])
def test_at_every_moment_pods_of_one_zone_are_away_at_most(most: int, seed: int) -> None:
    def judge(gone: set[str]) -> None:
        assert len({short[0] for short in gone}) <= 1, gone
        assert len(gone) <= most, gone

    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=most)
        await storm(here, seed, judge)

    play(scene)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("most", [1, 2])
def test_at_every_moment_so_many_of_a_partition_are_away_at_most(most: int, seed: int) -> None:
    def judge(gone: set[str]) -> None:
        assert max(Counter(short[2] for short in gone).values(), default=0) <= most, gone

    async def scene(here: BudgetBed) -> None:
        await here.set_budget(maxUnavailable=most, podNamePartitionRegex=NUMBERED)
        await storm(here, seed, judge)

    play(scene)

"""`kedge align` beside a modelled Karmada: story 1 and its bad days, all pods of all members counted at all times."""

from __future__ import annotations

import asyncio

import pytest

from controllers.align.align_bed import SHOP
from controllers.align.beside_bed import BesideBed, beside_bed
from controllers.align.recorder import PodRecorder
from kedge.api.apps import Deployment
from support.virtual import run
from support.waiting import until

TWO = {"cluster-1": 4, "cluster-2": 6}


def image(name: str) -> dict[str, object]:
    return {"template": {"spec": {"containers": [{"name": "app", "image": name}]}}}


async def counted_release(here: BesideBed, *images: str, apart: float = 0.0) -> PodRecorder:
    """Release these, one after the other, until the last runs everywhere; gives who counted all pods meanwhile."""
    recorder = PodRecorder()
    async with recorder.following(here.members, SHOP):
        await until(lambda: len(recorder.active) == 10)
        recorder.forget()
        for name in images:
            await here.edit(Deployment, image(name))
            await asyncio.sleep(apart)
        await until(lambda: recorder.ready_images() == [images[-1]] * 10, 600)
    return recorder


@pytest.mark.parametrize("tells_seq", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_story_1_a_deployment_that_karmada_divides_rolls_as_one(seed: int, *, tells_seq: bool) -> None:
    async def body() -> None:
        async with beside_bed(*TWO, seed=seed, tells_seq=tells_seq) as here:
            await here.propagate(TWO)
            await here.until_images(*["app:1"] * 10)
            counted = await counted_release(here, "app:2")
            assert counted.fewest >= 8
            assert counted.most <= 11

    run(body())


def test_without_it_karmada_takes_away_what_each_cluster_allows() -> None:
    async def body() -> None:
        async with beside_bed(*TWO, aligned=False) as here:
            await here.propagate(TWO)
            await here.until_images(*["app:1"] * 10)
            counted = await counted_release(here, "app:2")
            assert counted.fewest < 8

    run(body())

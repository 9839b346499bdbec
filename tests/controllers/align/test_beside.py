"""`kedge align` beside a modelled Karmada: story 1 and its bad days; all pods are counted at every moment."""

from __future__ import annotations

import asyncio

import pytest

from controllers.align.beside_bed import BesideBed, beside_bed
from kedge.api.apps import Deployment
from support.virtual import run

TWO = {"cluster-1": 4, "cluster-2": 6}


def image(name: str) -> dict[str, object]:
    return {"template": {"spec": {"containers": [{"name": "app", "image": name}]}}}


async def counted_release(here: BesideBed, *images: str, apart: float = 0.0) -> None:
    """Release these, one after the other, until the last runs everywhere; all pods are counted meanwhile."""
    counting = asyncio.create_task(here.count())
    for name in images:
        await here.edit(Deployment, image(name))
        await asyncio.sleep(apart)
    await here.until_images(*[images[-1]] * 10)
    counting.cancel()


@pytest.mark.parametrize("tells_seq", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_story_1_a_deployment_that_karmada_divides_rolls_as_one(seed: int, *, tells_seq: bool) -> None:
    async def body() -> None:
        async with beside_bed(*TWO, seed=seed, tells_seq=tells_seq) as here:
            await here.propagate(TWO)
            await here.until_images(*["app:1"] * 10)
            await counted_release(here, "app:2")
            assert here.fewest >= 8
            assert here.most <= 11

    run(body())


def test_without_it_karmada_takes_away_what_each_cluster_allows() -> None:
    async def body() -> None:
        async with beside_bed(*TWO, aligned=False) as here:
            await here.propagate(TWO)
            await here.until_images(*["app:1"] * 10)
            await counted_release(here, "app:2")
            assert here.fewest < 8

    run(body())

"""Both stories of the proposal on embedded servers: all pods of all members counted at every moment."""

from __future__ import annotations

import asyncio

from controllers.align.align_bed import STORY, align_bed
from kedge.api.apps import Deployment
from kedge.api.kruise import CloneSet
from support.virtual import run

NEW = {"template": {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}}


def test_a_deployment_divided_over_two_clusters_rolls_as_one() -> None:
    async def body() -> None:
        async with align_bed("cluster-1", "cluster-2") as here:
            await here.deploy(Deployment, {"cluster-1": 4, "cluster-2": 6}, strategy=STORY)
            await here.until_images(*["app:1"] * 10)
            counting = asyncio.create_task(here.count())
            await here.edit(Deployment, NEW)
            await here.until_images(*["app:2"] * 10)
            counting.cancel()
            assert here.fewest >= 8
            assert here.most <= 11

    run(body())


def test_a_clone_set_with_a_partition_stops_there() -> None:
    async def body() -> None:
        async with align_bed("cluster-1", "cluster-2") as here:
            await here.deploy(CloneSet, {"cluster-1": 3, "cluster-2": 7}, updateStrategy={"maxUnavailable": 2})
            await here.until_images(*["app:1"] * 10)
            counting = asyncio.create_task(here.count())
            await here.edit(CloneSet, {**NEW, "updateStrategy": {"partition": 4, "maxUnavailable": 2}})
            await here.until_images(*["app:1"] * 4, *["app:2"] * 6)
            await asyncio.sleep(60)
            counting.cancel()
            assert here.fewest >= 8
            assert here.most <= 10
            assert here.most_updated == 6
            await here.edit(CloneSet, {"updateStrategy": {"partition": 0}})
            await here.until_images(*["app:2"] * 10)

    run(body())

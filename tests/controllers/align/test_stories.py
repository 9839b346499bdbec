"""Both stories of the proposal on embedded servers: all pods of all members counted at every moment."""

from __future__ import annotations

import asyncio

from controllers.align.align_bed import SHOP, STORY, AlignBed, align_bed
from kedge.api.apps import Deployment
from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.works import Work
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
            await _until_counted(here, 10)
            binding = await here.hub.get(ResourceBinding, "demo-deployment", SHOP)
            assert [(one.cluster_name, one.health) for one in binding.status.aggregated_status] == [
                ("cluster-1", "Healthy"),
                ("cluster-2", "Healthy"),
            ]

    run(body())


async def _until_counted(here: AlignBed, updated: int) -> None:
    """Until the Deployment on the hub shows the pods of all members, and that they have seen it."""
    async with asyncio.timeout(60):
        while True:
            found = await here.hub.get(Deployment, "demo", SHOP)
            if found.status.updated_replicas == updated and found.status.available_replicas == updated:
                assert found.status.observed_generation == found.metadata.generation
                return
            await asyncio.sleep(0.1)


def test_a_binding_that_is_deleted_takes_its_pods_along() -> None:
    async def body() -> None:
        async with align_bed("cluster-1", "cluster-2") as here:
            await here.deploy(Deployment, {"cluster-1": 1, "cluster-2": 2})
            await here.until_images(*["app:1"] * 3)
            await here.hub.delete(ResourceBinding, "demo-deployment", SHOP)
            await here.until_images()
            assert (await here.hub.list(Work)).items == ()
            assert (await here.hub.list(ResourceBinding)).items == ()

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

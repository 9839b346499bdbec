"""Rollouts in batches on an embedded server, in virtual time: what is written, said and left behind."""

from __future__ import annotations

import asyncio

import pytest

from controllers.batch.batch_bed import SHOP, Bed, bed
from kedge.api.apps import Deployment
from kedge.api.oam.rollouts import RolloutTrait
from kedge.api.resource import Resource
from kedge.kube.codec import untyped
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from support.virtual import run

R = [{"replicas": one} for one in ("20%", 2, 2, "50%")]


def test_a_release_moves_batch_by_batch() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.deployment("v1", 10)
            await here.deployment("v2", 0, "app:2")
            await here.trait("v2", "v1", rolloutBatches=R)
            found = await here.until_state("rolloutSucceed")
            assert await here.sizes() == {"v1": 0, "v2": 10}
            assert [one.goal for one in found.status.batches] == [2, 4, 6, 10]
            assert found.status.upgraded_replicas == found.status.upgraded_ready_replicas == 10
            assert await here.events("RolloutVerified") == ["10 pods in 4 batches, to 2, 4, 6, 10"]

    run(body())


def test_it_stops_at_the_partition_and_goes_on_when_that_is_raised() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.deployment("v1", 10)
            await here.deployment("v2", 0, "app:2")
            await here.trait("v2", "v1", rolloutBatches=R, batchPartition=0)
            found = await here.until_state("rollingInBatches", "batchReady")
            await asyncio.sleep(60)
            assert await here.sizes() == {"v1": 8, "v2": 2}
            assert found.status.message.startswith("batch 0 is the last one that may roll, of 4")
            await here.edit({"rolloutPlan": {"batchPartition": 3}})
            await here.until_state("rolloutSucceed")
            assert await here.sizes() == {"v1": 0, "v2": 10}

    run(body())


def test_a_bad_release_stops_after_its_first_batch_and_says_so() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.deployment("v1", 10)
            await here.deployment("v2", 0, "app:bad")
            await here.trait("v2", "v1", rolloutBatches=R)
            await asyncio.sleep(300)
            found = await here.get()
            assert await here.sizes() == {"v1": 10, "v2": 2}
            assert "0 of 2 pods of Deployment shop/v2 are available" in found.status.message

    run(body())


def test_a_plan_that_cannot_be_carried_out_fails_once_and_an_edit_mends_it() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.deployment("v1", 4)
            await here.deployment("v2", 0, "app:2")
            await asyncio.sleep(30)  # so that it waits for nothing before it fails
            await here.trait("v2", "v1", targetSize=2)
            found = await here.until_state("rolloutFailed")
            assert found.status.failure == "target size `2` less than source size `4`"
            await asyncio.sleep(60)
            assert (await here.get()).metadata.resource_version == found.metadata.resource_version
            await here.edit({"rolloutPlan": {"targetSize": 4}})
            await here.until_state("rolloutSucceed")
            assert await here.sizes() == {"v1": 0, "v2": 4}

    run(body())


async def _halfway(here: Bed) -> None:
    await here.deployment("v1", 10)
    await here.deployment("v2", 0, "app:2")
    await here.trait("v2", "v1", rolloutBatches=R, batchPartition=1, revertOnDelete=True)
    await here.until_state("rollingInBatches", "batchReady")
    await here.until(lambda: _are(here, {"v1": 6, "v2": 4}))


async def _are(here: Bed, sizes: dict[str, int]) -> bool:
    return {name: size for name, size in (await here.sizes()).items() if name in sizes} == sizes


def test_what_came_while_a_rollout_waited_for_another_one_stays_when_it_is_taken_back() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.deployment("v1", 4)
            for name in ("v2", "v3"):
                await here.deployment(name, 0, f"app:{name[1:]}")
            await here.trait("v2", "v1", name="first", paused=True)
            await here.until_state("rollingInBatches", name="first")
            await here.trait("v3", "v2", targetSize=4, numBatches=2, batchPartition=0, revertOnDelete=True)
            await here.until_state("verifyingSpec")
            await here.edit({"rolloutPlan": {"paused": False}}, name="first")
            await here.until_state("rollingInBatches", "batchReady")
            await here.until(lambda: _are(here, {"v1": 0, "v2": 2, "v3": 2}))
            await here.client.delete(RolloutTrait, "web", SHOP)
            await here.until(lambda: _are(here, {"v2": 4, "v3": 0}))
            await asyncio.sleep(60)
            assert await here.images() == ["app:2"] * 4

    run(body())


def test_another_target_midway_starts_from_all_old_revisions() -> None:
    async def body() -> None:
        async with bed() as here:
            await _halfway(here)
            await here.deployment("v3", 0, "app:3")
            ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "v3"}
            await here.edit({"targetRef": ref, "rolloutPlan": {"batchPartition": 0}})
            await here.until(lambda: _are(here, {"v3": 2}))
            await asyncio.sleep(30)
            sizes = await here.sizes()
            assert sizes["v3"] == 2
            assert sizes["v1"] + sizes["v2"] == 8
            await here.edit({"rolloutPlan": {"batchPartition": 3}})
            await here.until_state("rolloutSucceed")
            assert await here.sizes() == {"v1": 0, "v2": 0, "v3": 10}

    run(body())


def test_an_old_revision_that_somebody_deletes_midway_does_not_hold_up_the_next_rollout() -> None:
    async def body() -> None:
        async with bed() as here:
            await _halfway(here)
            await here.client.delete(Deployment, "v1", SHOP)
            await here.deployment("v3", 0, "app:3")
            v2, v3 = ({"apiVersion": "apps/v1", "kind": "Deployment", "name": one} for one in ("v2", "v3"))
            await here.edit({"targetRef": v3, "sourceRef": [v2], "rolloutPlan": {"batchPartition": 3}})
            await here.until_state("rolloutSucceed")
            assert await here.sizes() == {"v2": 0, "v3": 10}

    run(body())


def test_back_midway() -> None:
    async def body() -> None:
        async with bed() as here:
            await _halfway(here)
            ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "v1"}
            await here.edit({"targetRef": ref, "rolloutPlan": {"batchPartition": 3}})
            await here.until_state("rolloutSucceed")
            assert await here.sizes() == {"v1": 10, "v2": 0}

    run(body())


def test_back_midway_to_what_was_rolled_out_before() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.deployment("v1", 4)
            await here.deployment("v2", 0, "app:2")
            await here.deployment("v3", 0, "app:bad")
            await here.trait("v2", "v1", numBatches=2)
            await here.until_state("rolloutSucceed")
            await here.edit({"targetRef": {"name": "v3"}})
            await here.until_state("rollingInBatches", "batchInRolling")
            await here.edit({"targetRef": {"name": "v2"}})
            await here.until_state("rolloutSucceed")
            assert await here.sizes() == {"v1": 0, "v2": 4, "v3": 0}

    run(body())


def test_a_rollout_that_begins_anew_after_a_failure_still_knows_what_was_before_the_first_attempt() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.deployment("v1", 4)
            await here.deployment("v2", 0, "app:bad")
            await here.trait("v2", "v1", numBatches=2, revertOnDelete=True, progressDeadlineSeconds=60)
            await here.until_state("rolloutFailed")
            assert await here.sizes() == {"v1": 4, "v2": 2}
            again = MergePatch({"metadata": {"annotations": {"kedge.dev/retry": "1"}}})
            await here.client.patch(RolloutTrait, "web", again, SHOP)
            found = await here.until_state("rollingInBatches")
            assert (found.status.target_before, [one.name for one in found.status.sources]) == (0, ["v1"])
            await here.client.delete(RolloutTrait, "web", SHOP)
            await here.until_images(v1=4)

            async def is_back() -> bool:
                return await here.sizes() == {"v1": 4, "v2": 0}

            await here.until(is_back)

    run(body())


@pytest.mark.parametrize("strategy", ["IncreaseFirst", "DecreaseFirst"])
def test_a_target_that_is_written_paused_gets_no_pods_but_those_of_a_batch(strategy: str) -> None:
    async def body() -> None:
        async with bed() as here:
            await here.deployment("v1", 10)
            await here.until_images(v1=10)
            await here.deployment("v2", 10, "app:2", paused=True)
            await here.trait("v2", "v1", rolloutStrategy=strategy, rolloutBatches=R, batchPartition=0)
            found = await here.until_state("rollingInBatches", "batchReady")
            assert await here.sizes() == {"v1": 8, "v2": 2}
            assert found.status.target_before == 0
            await here.edit({"rolloutPlan": {"batchPartition": None}})
            await here.until_state("rolloutSucceed")
            assert await here.sizes() == {"v1": 0, "v2": 10}

    run(body())


@pytest.mark.parametrize("replicas", [0, 1, 5])
def test_a_first_target_that_is_written_paused_is_deployed_batch_by_batch(replicas: int) -> None:
    async def body() -> None:
        async with bed() as here:
            await here.deployment("v1", replicas, paused=True)
            await here.trait("v1", targetSize=5, rolloutBatches=[{"replicas": 2}, {"replicas": 3}], batchPartition=0)
            await here.until_state("rollingInBatches", "batchReady")
            await here.until_images(v1=2)
            await here.edit({"rolloutPlan": {"batchPartition": 1}})
            await here.until_state("rolloutSucceed")
            await here.until_images(v1=5)

    run(body())


def test_deleted_midway_it_is_taken_back() -> None:
    async def body() -> None:
        async with bed() as here:
            await _halfway(here)
            await here.client.delete(RolloutTrait, "web", SHOP)

            async def is_gone() -> bool:
                try:
                    await here.get()
                except NotFound:
                    return True
                return False

            await here.until(is_gone)
            assert await here.sizes() == {"v1": 10, "v2": 0}
            left = (await here.client.list(Deployment, SHOP)).items
            assert all("kedge.dev/rolled-by" not in one.metadata.annotations for one in left)

    run(body())


def test_an_operator_of_one_namespace_is_done_with_a_rollout_that_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    async def body() -> None:
        async with bed(namespaces=(SHOP,)) as here:
            await here.deployment("v1", 2)
            await here.deployment("v2", 0, "app:2")
            await here.trait("v2", "v1", numBatches=2)
            await here.until_state("rolloutSucceed")
            caplog.clear()
            await here.client.delete(RolloutTrait, "web", SHOP)
            await asyncio.sleep(60)

    run(body())
    assert [one.getMessage() for one in caplog.records if one.name == "kedge.kube.controller"] == []


def test_paused_it_stands_still() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.deployment("v1", 4)
            await here.deployment("v2", 0, "app:2")
            await here.trait("v2", "v1", numBatches=2, paused=True)
            await here.until_state("rollingInBatches")
            await asyncio.sleep(60)
            assert await here.sizes() == {"v1": 4, "v2": 0}
            paused = [one.status for one in (await here.get()).status.conditions if one.type == "BatchPaused"]
            assert paused == ["True"]
            await here.client.patch(RolloutTrait, "web", MergePatch({"spec": {"rolloutPlan": {"paused": False}}}), SHOP)
            await here.until_state("rolloutSucceed")

    run(body())


HPA = untyped(Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"))


async def _hpa(here: Bed) -> None:
    scaled = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "v1"}
    spec = {"scaleTargetRef": scaled, "minReplicas": 2, "maxReplicas": 9}
    await here.client.create(HPA, {"metadata": {"name": "web", "namespace": SHOP}, "spec": spec})


def test_an_autoscaler_of_the_same_workload_holds_the_rollout_until_it_is_gone() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.deployment("v1", 4)
            await here.deployment("v2", 0, "app:2")
            await _hpa(here)
            await here.trait("v2", "v1", numBatches=2)
            await here.until_state("initializing")
            await asyncio.sleep(60)
            assert "HorizontalPodAutoscaler shop/web sets the replicas" in (await here.get()).status.message
            assert await here.sizes() == {"v1": 4, "v2": 0}
            await here.client.delete(HPA, "web", SHOP)
            await here.until_state("rolloutSucceed")

    run(body())


def test_an_autoscaler_that_is_taken_over_scales_the_target_in_the_end() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.deployment("v1", 4)
            await here.deployment("v2", 0, "app:2")
            await _hpa(here)
            await here.trait("v2", "v1", numBatches=2, onAutoscaler="TakeOver")
            await here.until_state("rolloutSucceed")
            found = await here.client.get(HPA, "web", SHOP)
            assert found["spec"]["scaleTargetRef"]["name"] == "v2"
            assert (await here.get()).status.remembered == ()

    run(body())

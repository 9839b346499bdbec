"""Rollouts that another controller began: their status says how far they got, but not by which batches."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from controllers.batch.batch_bed import SHOP, Bed, bed
from controllers.batch.revision_bed import revisions
from kedge.api.kruise import CloneSet
from kedge.api.oam.rollouts import Rollout, RolloutTrait
from kedge.kube.patches import MergePatch
from support.virtual import run

WEB = "apps/v1/Deployment/v2"


def status(rolling: str, batch: str = "batchInRolling", **said: Any) -> dict[str, Any]:
    """As KubeVela writes it."""
    counts = {"currentBatch": 0, "upgradedReplicas": 0, "upgradedReadyReplicas": 0, "rolloutTargetSize": 8}
    return {"rollingState": rolling, "batchRollingState": batch, **counts, **said}


async def _begin(here: Bed, old: int, new: int, said: dict[str, Any], **plan: Any) -> None:
    """A rollout that somebody else brought to here. It is paused until its status is there."""
    await here.deployment("v1", old)
    await here.deployment("v2", new, image="app:2")
    await here.until_images(v1=old, v2=new)
    await here.trait("v2", "v1", **plan, paused=True)
    await asyncio.sleep(5)
    forgotten = {"batches": None, "targetWorkload": None, "sources": None, "desiredSize": None, "lastTarget": None}
    change = MergePatch({"status": forgotten | said})
    await here.client.patch(RolloutTrait, "web", change, SHOP, subresource="status")
    await here.edit({"rolloutPlan": {"paused": None}})


@pytest.mark.parametrize("named", ["", WEB], ids=["no-target", "target"])
@pytest.mark.parametrize(
    ("rolling", "batch"),
    [
        ("verifyingSpec", "batchInitializing"),
        ("initializing", "batchInitializing"),
        ("rollingInBatches", "batchInRolling"),
        ("rollingInBatches", "batchVerifyFailed"),
        ("rollingInBatches", "batchReady"),
        ("finalising", "batchReady"),
        ("rolloutAbandoning", "batchInitializing"),
        ("rolloutAbandoned", "batchInitializing"),
    ],
)
def test_it_begins_anew_and_succeeds_only_when_the_pods_have_moved(
    rolling: str, batch: str, named: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def body() -> None:
        async with bed() as here:
            await _begin(here, 8, 0, status(rolling, batch, lastTarget=named), numBatches=2)
            found = await here.until_state("rolloutSucceed")
            assert [one.goal for one in found.status.batches] == [4, 8]
            assert await here.sizes() == {"v1": 0, "v2": 8}
            await here.until_images(v2=8)
            assert await here.events("RolloutAdopted") == [
                "another controller began it: it begins again, from what its pods show"
            ]

    run(body())
    assert not [one for one in caplog.records if one.levelno >= logging.ERROR]


@pytest.mark.parametrize("size", [8, 0], ids=["its-size", "no-size"])
def test_halfway_what_has_moved_counts_and_no_pod_is_lost(size: int) -> None:
    async def body() -> None:
        async with bed() as here:
            said = status("rollingInBatches", "batchReady", currentBatch=1, upgradedReplicas=4, rolloutTargetSize=size)
            await _begin(here, 4, 4, said, numBatches=4, batchPartition=1)
            found = await here.until_state("rollingInBatches", "batchReady")
            await asyncio.sleep(60)
            found = await here.get()
            assert (found.status.current_batch, found.status.rollout_target_size) == (1, 8)
            assert await here.sizes() == {"v1": 4, "v2": 4}
            await here.edit({"rolloutPlan": {"batchPartition": 3}})
            await here.until_state("rolloutSucceed")
            assert await here.sizes() == {"v1": 0, "v2": 8}

    run(body())


def test_one_that_has_ended_stays_as_it_ended() -> None:
    async def body() -> None:
        async with bed() as here:
            for state in ("rolloutSucceed", "rolloutFailed"):
                await here.client.create(RolloutTrait, _trait(state.lower()))
                change = MergePatch({"status": status(state, "batchReady", batches=None, currentBatch=1)})
                await here.client.patch(RolloutTrait, state.lower(), change, SHOP, subresource="status")
            await asyncio.sleep(120)
            for state in ("rolloutSucceed", "rolloutFailed"):
                assert (await here.get(state.lower())).status.rolling_state == state

    run(body())


def _trait(name: str) -> dict[str, Any]:
    ref = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "v2"}
    spec = {"targetRef": ref, "rolloutPlan": {"targetSize": 8, "paused": True}}
    return {"metadata": {"name": name, "namespace": SHOP}, "spec": spec}


def test_a_workload_in_place_goes_on_from_the_pods_that_have_moved() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.workload(CloneSet, replicas=5)
            await here.until_images(v1=5)
            template = {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}
            frozen = {"template": template, "updateStrategy": {"partition": 3}}
            await here.client.patch(CloneSet, "web", MergePatch({"spec": frozen}), SHOP)
            await here.until_images(v1=3, v2=2)
            await here.trait("web", kind="CloneSet", numBatches=5, paused=True)
            await asyncio.sleep(5)
            said = {"batches": None, "targetWorkload": None, "sources": None}
            said |= status("rollingInBatches", "batchReady", currentBatch=1, rolloutTargetSize=5, upgradedReplicas=2)
            await here.client.patch(RolloutTrait, "web", MergePatch({"status": said}), SHOP, subresource="status")
            await here.edit({"rolloutPlan": {"paused": None}})
            await here.until_state("rolloutSucceed")
            await here.until_images(v2=5)

    run(body())


def test_a_rollout_of_revisions_finds_all_that_runs_of_the_component() -> None:
    async def body() -> None:
        async with revisions(1, 2) as there:
            await there.rollout("web-v1", targetSize=8)
            await there.until_succeeded("web-v1", 8)
            await there.to("web-v2", numBatches=4, batchPartition=1)
            await there.until_sizes(v1=4, v2=4)
            await there.until_state("rollingInBatches", "batchReady")
            await there.to(paused=True)
            await asyncio.sleep(5)
            said = status("rollingInBatches", "batchReady", currentBatch=1, upgradedReplicas=4)
            forgotten = {"batches": None, "targetWorkload": None, "sources": None, "desiredSize": None}
            await there.client.patch(
                Rollout, "web", MergePatch({"status": forgotten | said}), SHOP, subresource="status"
            )
            await there.to(paused=None)
            await asyncio.sleep(60)
            assert await there.sizes() == {"web-v1": 4, "web-v2": 4}
            await there.to(batchPartition=3)
            await there.until_succeeded("web-v2", 8)

    run(body())

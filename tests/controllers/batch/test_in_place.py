"""Rollouts of workloads that change in place, and of those that are only scaled, on an embedded server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.batch.batch_bed import SHOP, Bed, bed
from kedge.api.apps import DaemonSet, Deployment, StatefulSet
from kedge.api.kruise import CloneSet
from kedge.api.oam.rollouts import RolloutTrait
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from support.virtual import run

KINDS: dict[str, tuple[type[Any], dict[str, Any], dict[str, Any]]] = {
    "StatefulSet": (
        StatefulSet,
        {"replicas": 5, "serviceName": "web", "podManagementPolicy": "Parallel"},
        {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 5}}},
    ),
    "CloneSet": (CloneSet, {"replicas": 5}, {"updateStrategy": {"paused": True}}),
    "DaemonSet": (DaemonSet, {}, {"updateStrategy": {"type": "OnDelete"}}),
}
PODS = {"StatefulSet": 5, "CloneSet": 5, "DaemonSet": 3}


async def _release(here: Bed, kind: str, image: str = "app:2") -> None:
    of, _, frozen = KINDS[kind]
    template = {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}
    await here.client.patch(of, "web", MergePatch({"spec": {**template, **frozen}}), SHOP)


@pytest.mark.parametrize("kind", KINDS)
def test_a_release_moves_batch_by_batch_in_place(kind: str) -> None:
    async def body() -> None:
        of, spec, _ = KINDS[kind]
        async with bed() as here:
            await here.workload(of, **spec)
            await here.until_images(v1=PODS[kind])
            await _release(here, kind)
            await here.trait("web", "web", kind=kind, rolloutBatches=_batches(kind), batchPartition=0)
            await here.until_images(v1=PODS[kind] - 2, v2=2)
            await here.until_state("rollingInBatches", "batchReady")
            await asyncio.sleep(60)
            assert (await here.images()).count("app:2") == 2
            await here.edit({"rolloutPlan": {"batchPartition": 1}})
            await here.until_state("rolloutSucceed")
            await here.until_images(v2=PODS[kind])

    run(body())


def _batches(kind: str) -> list[dict[str, Any]]:
    return [{"replicas": 2}, {"replicas": PODS[kind] - 2}]


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_release_stops_in_its_first_batch(kind: str) -> None:
    async def body() -> None:
        of, spec, _ = KINDS[kind]
        async with bed() as here:
            await here.workload(of, **spec)
            await here.until_images(v1=PODS[kind])
            await _release(here, kind, "app:bad")
            await here.trait("web", "web", kind=kind, rolloutBatches=_batches(kind))
            await asyncio.sleep(300)
            assert (await here.images()).count("app:1") >= PODS[kind] - 2
            found = await here.get()
            assert found.status.current_batch == 0
            assert "are available" in found.status.message

    run(body())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("has_size", [False, True], ids=["no-size", "its-size"])
def test_a_workload_that_is_named_alone_is_changed_in_place_batch_by_batch(kind: str, has_size: bool) -> None:
    async def body() -> None:
        of, spec, _ = KINDS[kind]
        size: dict[str, Any] = {"targetSize": PODS[kind]} if has_size else {}
        async with bed() as here:
            await here.workload(of, **spec)
            await here.until_images(v1=PODS[kind])
            await _release(here, kind)
            await here.trait("web", kind=kind, rolloutBatches=_batches(kind), batchPartition=0, **size)
            await here.until_images(v1=PODS[kind] - 2, v2=2)
            found = await here.until_state("rollingInBatches", "batchReady")
            assert found.status.upgraded_ready_replicas == 2
            await here.edit({"rolloutPlan": {"batchPartition": 1}})
            found = await here.until_state("rolloutSucceed")
            assert found.status.upgraded_ready_replicas == PODS[kind]
            await here.until_images(v2=PODS[kind])

    run(body())


@pytest.mark.parametrize("kind", ["StatefulSet", "CloneSet"])
def test_a_workload_that_is_named_alone_is_tried_again_and_given_back_after_a_failure(kind: str) -> None:
    async def body() -> None:
        of, spec, _ = KINDS[kind]
        async with bed() as here:
            await here.workload(of, **spec)
            await here.until_images(v1=5)
            await _release(here, kind, "app:bad")
            await here.trait("web", kind=kind, numBatches=5, progressDeadlineSeconds=30, revertOnDelete=True)
            await here.until_state("rolloutFailed")
            assert (await here.images()).count("app:1") >= 4
            await _note(here, {"kedge.dev/retry": "again"})
            await here.until_state("rollingInBatches")
            await here.client.delete(RolloutTrait, "web", SHOP)
            await here.until_images(v1=5)

    run(body())


def test_a_daemon_set_that_an_earlier_rollout_left_frozen_is_never_deleted() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.workload(DaemonSet)
            await here.until_images(v1=3)
            await _release(here, "DaemonSet", "app:bad")
            failing: dict[str, Any] = {"numBatches": 3, "progressDeadlineSeconds": 30}
            await here.trait("web", kind="DaemonSet", **failing)
            await here.until_state("rolloutFailed")
            await here.client.delete(RolloutTrait, "web", SHOP)
            await here.until(lambda: _is_gone(here))
            await here.trait("web", kind="DaemonSet", revertOnDelete=True, **failing)
            await here.until_state("rolloutFailed")
            await _note(here, {"kedge.dev/retry": "again"})
            await here.until_state("rollingInBatches")
            uid = (await here.client.get(DaemonSet, "web", SHOP)).metadata.uid
            await here.client.delete(RolloutTrait, "web", SHOP)
            await here.until(lambda: _is_gone(here))
            await here.until_images(v1=3)
            assert (await here.client.get(DaemonSet, "web", SHOP)).metadata.uid == uid

    run(body())


async def _is_gone(here: Bed) -> bool:
    try:
        await here.get()
    except NotFound:
        return True
    return False


async def _note(here: Bed, annotations: dict[str, str]) -> None:
    await here.client.patch(RolloutTrait, "web", MergePatch({"metadata": {"annotations": annotations}}), SHOP)


@pytest.mark.parametrize("kind", ["StatefulSet", "CloneSet"])
def test_a_workload_that_is_named_alone_is_scaled_when_all_its_pods_run_its_template(kind: str) -> None:
    async def body() -> None:
        of, spec, _ = KINDS[kind]
        async with bed() as here:
            await here.workload(of, **spec)
            await here.until_images(v1=5)
            await here.trait("web", kind=kind, targetSize=7)
            await here.until_state("rolloutSucceed")
            await here.until_images(v1=7)
            await here.edit({"rolloutPlan": {"targetSize": 3}})
            await here.until_images(v1=3)
            await here.until_state("rolloutSucceed")

    run(body())


@pytest.mark.parametrize("kind", ["StatefulSet", "CloneSet"])
def test_old_pods_are_not_scaled(kind: str) -> None:
    async def body() -> None:
        of, spec, _ = KINDS[kind]
        async with bed() as here:
            await here.workload(of, **spec)
            await here.until_images(v1=5)
            await _release(here, kind)
            await here.trait("web", kind=kind, targetSize=7)
            found = await here.until_state("rolloutFailed")
            assert "is attempting to scale" in found.status.failure
            assert await here.images() == ["app:1"] * 5

    run(body())


def test_a_paused_deployment_with_old_pods_is_not_scaled_before_they_are_gone() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.deployment("v1", 5)
            await here.until_images(v1=5)
            template = {"spec": {"containers": [{"name": "app", "image": "app:2"}]}}
            await here.client.patch(
                Deployment, "v1", MergePatch({"spec": {"template": template, "paused": True}}), SHOP
            )
            await here.trait("v1", targetSize=7)
            await asyncio.sleep(300)
            found = (await here.get()).status
            assert (found.rolling_state, found.upgraded_ready_replicas) == ("verifyingSpec", 0)
            assert "0 of 5 pods are updated" in found.message
            await here.client.patch(Deployment, "v1", MergePatch({"spec": {"paused": None}}), SHOP)
            await here.until_state("rolloutSucceed")
            await here.until_images(v2=7)

    run(body())


def test_a_deployment_is_scaled_batch_by_batch() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.deployment("v1", 2)
            await here.trait("v1", targetSize=8, rolloutBatches=[{"replicas": 2}, {"replicas": 4}], batchPartition=0)
            await here.until_state("rollingInBatches", "batchReady")
            assert await here.sizes() == {"v1": 4}
            await here.edit({"rolloutPlan": {"batchPartition": 1}})
            await here.until_state("rolloutSucceed")
            assert await here.sizes() == {"v1": 8}

    run(body())

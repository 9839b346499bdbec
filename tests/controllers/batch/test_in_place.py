"""Rollouts of workloads that change in place, and of those that are only scaled, on an embedded server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.batch.batch_bed import SHOP, Bed, bed
from kedge.api.apps import DaemonSet, StatefulSet
from kedge.api.kruise import CloneSet
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

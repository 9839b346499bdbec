"""Kinds that a cluster may do without: one line in the log while they are missing, and followed when they come."""

from __future__ import annotations

import asyncio
import logging

import pytest

from controllers.batch.batch_bed import SHOP, bed
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.crd import crd
from kedge.api.kruise import KRUISE_KINDS, CloneSet
from kedge.api.oam.rollouts import ROLLOUT_KINDS
from kedge.api.resource import Resource
from kedge.kube.codec import untyped
from support.virtual import run

WITHOUT_KRUISE = tuple(crd(kind) for kind in ROLLOUT_KINDS)
KRUISE = tuple(crd(kind) for kind in KRUISE_KINDS)
SCALED_OBJECTS = {
    "metadata": {"name": "scaledobjects.keda.sh"},
    "spec": {
        "group": "keda.sh",
        "scope": "Namespaced",
        "names": {"kind": "ScaledObject", "plural": "scaledobjects"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def test_what_is_not_installed_is_one_line_for_all(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def body() -> None:
        async with bed(definitions=WITHOUT_KRUISE) as here:
            await here.deployment("v1", 2)
            await here.deployment("v2", 0, "app:2")
            await here.trait("v2", "v1", numBatches=2)
            await here.until_state("rolloutSucceed")
            await asyncio.sleep(120)

    run(body())
    said = [(one.levelname, one.getMessage()) for one in caplog.records if "clonesets" in one.getMessage()]
    kinds = "clonesets.apps.kruise.io, scaledobjects.keda.sh"
    words = f"cluster does not serve 2 kinds that are optional ({kinds}), and follows them as soon as it does"
    assert said == [("INFO", words)]


def test_a_workload_whose_kind_is_installed_later_is_rolled_out() -> None:
    async def body() -> None:
        async with bed(definitions=WITHOUT_KRUISE) as here:
            await here.trait("web", "web", kind="CloneSet", numBatches=2)
            await asyncio.sleep(30)
            assert (await here.get()).status.message == "CloneSet shop/web does not exist"
            for definition in KRUISE:
                await here.client.create(CustomResourceDefinition, definition)
            await asyncio.sleep(30)
            await here.workload(CloneSet, replicas=4)
            await here.until_state("rolloutSucceed")

    run(body())


def test_an_autoscaler_whose_kind_is_installed_midway_stops_the_next_batch() -> None:
    async def body() -> None:
        async with bed(definitions=WITHOUT_KRUISE) as here:
            await here.deployment("v1", 4)
            await here.deployment("v2", 0, "app:2")
            await here.trait("v2", "v1", numBatches=2, batchPartition=0)
            await here.until_state("rollingInBatches", "batchReady")
            await here.client.create(CustomResourceDefinition, SCALED_OBJECTS)
            await asyncio.sleep(30)
            kind = untyped(Resource("keda.sh", "v1alpha1", "ScaledObject", "scaledobjects"))
            scaled = {"metadata": {"name": "web"}, "spec": {"scaleTargetRef": {"name": "v2"}}}
            await here.client.create(kind, scaled, SHOP)
            await here.edit({"rolloutPlan": {"batchPartition": 1}})
            await asyncio.sleep(30)
            assert "ScaledObject shop/web sets the replicas" in (await here.get()).status.message
            assert await here.sizes() == {"v1": 2, "v2": 2}
            await here.client.delete(kind, "web", SHOP)
            await here.until_state("rolloutSucceed")

    run(body())

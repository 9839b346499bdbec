"""Rollouts as traits of components: from a change of a Component to pods, on an embedded server, in virtual time.

The controller of Components makes revisions, that of ApplicationConfigurations gives them to the trait, and the rollout
moves the workloads.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.batch.app_bed import SHOP, AppBed, app_bed
from controllers.batch.revision_bed import workload
from kedge.api.apps import ControllerRevision, Deployment, StatefulSet
from kedge.api.oam.components import ApplicationConfiguration, Component
from kedge.api.oam.rollouts import Rollout, RolloutTrait
from kedge.kube.codec import untyped
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch
from kedge.plan.batching.autoscalers import HPA
from support.virtual import run

HALVES = [{"replicas": "50%"}, {"replicas": "50%"}]
KINDS: dict[str, Any] = {"Rollout": Rollout, "RolloutTrait": RolloutTrait}


async def _component(here: AppBed, number: int, kind: str = "Deployment") -> None:
    """Create the Component, or change it."""
    spec = {"workload": workload(number, kind)}
    try:
        live = await here.raw(Component)
    except NotFound:
        await here.client.create(Component, {"metadata": {"name": "web", "namespace": SHOP}, "spec": spec})
    else:
        await here.client.patch(Component, "web", MergePatch({"spec": spec}), SHOP, uid=live["metadata"]["uid"])


def _trait(kind: str, **plan: Any) -> dict[str, Any]:
    return {"apiVersion": "standard.oam.dev/v1alpha1", "kind": kind, "spec": {"rolloutPlan": plan}}


async def _configured(here: AppBed, *traits: dict[str, Any]) -> None:
    spec = {"components": [{"componentName": "web", "traits": [{"trait": one} for one in traits]}]}
    try:
        await here.raw(ApplicationConfiguration, "conf")
    except NotFound:
        await here.client.create(
            ApplicationConfiguration, {"metadata": {"name": "conf", "namespace": SHOP}, "spec": spec}
        )
    else:
        await here.edit(ApplicationConfiguration, spec, "conf")


def test_a_trait_moves_a_component_from_revision_to_revision_and_keeps_the_old_one_without_pods() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _component(here, 1)
            await _configured(here, _trait("RolloutTrait", targetSize=4))
            await here.until_images(v1=4)
            await here.until_state(RolloutTrait, "rolloutSucceed")
            await _configured(here, _trait("RolloutTrait", targetSize=4, rolloutBatches=HALVES, batchPartition=0))
            await _component(here, 2)
            await here.until_images(v1=2, v2=2)
            await asyncio.sleep(60)
            assert await here.sizes() == {"web-v1": 2, "web-v2": 2}
            spec = (await here.raw(RolloutTrait))["spec"]
            assert spec["targetRef"]["name"] == "web-v2"
            assert [one["name"] for one in spec["sourceRef"]] == ["web-v1"]
            await _configured(here, _trait("RolloutTrait", targetSize=4, rolloutBatches=HALVES))
            await here.until_state(RolloutTrait, "rolloutSucceed")
            await here.until_sizes({"web-v1": 0, "web-v2": 4})

    run(body())


@pytest.mark.parametrize("kind", KINDS)
def test_a_third_revision_midway_takes_all_old_ones_as_one_pool(kind: str) -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _component(here, 1)
            await _configured(here, _trait(kind, targetSize=4))
            await here.until_images(v1=4)
            await here.until_state(KINDS[kind], "rolloutSucceed")
            await _configured(here, _trait(kind, targetSize=4, rolloutBatches=HALVES, batchPartition=0))
            await _component(here, 2)
            await here.until_images(v1=2, v2=2)
            await _component(here, 3)
            await here.until(lambda: _is_target(here, KINDS[kind], "web-v3"))
            await _configured(here, _trait(kind, targetSize=4, rolloutBatches=HALVES))
            await here.until_images(v3=4)
            await here.until_state(KINDS[kind], "rolloutSucceed")
            left = {"web-v1": 0, "web-v2": 0} if kind == "RolloutTrait" else {}
            await here.until_sizes({**left, "web-v3": 4})

    run(body())


async def _is_target(here: AppBed, kind: Any, revision: str) -> bool:
    status = (await here.raw(kind)).get("status", {})
    return revision in (status.get("lastTargetRevision", ""), status.get("lastTarget", "").rpartition("/")[2])


@pytest.mark.parametrize("kind", KINDS)
def test_a_stateful_set_is_frozen_until_the_rollout_moves_it(kind: str) -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _component(here, 1, "StatefulSet")
            await _configured(here, _trait(kind, targetSize=4))
            await here.until_images(v1=4)
            await here.until_state(KINDS[kind], "rolloutSucceed")
            await _configured(here, _trait(kind, targetSize=4, rolloutBatches=HALVES, batchPartition=0))
            await _component(here, 2, "StatefulSet")
            await here.until_images(v1=2, v2=2)
            await asyncio.sleep(60)
            await here.until_images(v1=2, v2=2)
            await _configured(here, _trait(kind, targetSize=4, rolloutBatches=HALVES))
            await here.until_images(v2=4)
            await here.until_state(KINDS[kind], "rolloutSucceed")
            meta = (await here.raw(StatefulSet))["metadata"]
            assert not {"kedge.dev/rolled-by", "kedge.dev/strategy-before"} & set(meta.get("annotations", {}))

    run(body())


@pytest.mark.parametrize("kind", KINDS)
def test_a_rollout_takes_over_a_component_that_ran_without_one(kind: str) -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _component(here, 1)
            await _configured(here)
            await here.until_images(v1=1)
            await _configured(here, _trait(kind, targetSize=3, rolloutBatches=[{"replicas": 1}, {"replicas": 2}]))
            await here.until_state(KINDS[kind], "rolloutSucceed")
            await _component(here, 2)
            await here.until_images(v2=3)
            await here.until_state(KINDS[kind], "rolloutSucceed")

    run(body())


def test_workloads_stay_when_only_the_trait_goes() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _component(here, 1)
            await _configured(here, _trait("Rollout", targetSize=3))
            await here.until_images(v1=3)
            await here.until_state(Rollout, "rolloutSucceed")
            await _configured(here)
            await here.until(lambda: here.is_gone(Rollout))
            await asyncio.sleep(60)
            await here.until_images(v1=3)
            await here.delete(ApplicationConfiguration, "conf")
            await here.until_images()

    run(body())


def test_a_rollout_and_an_autoscaler_among_the_traits_are_refused() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _component(here, 1)
            scaler = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": {"maxReplicas": 5}}
            await _configured(here, _trait("RolloutTrait", targetSize=2), scaler)

            async def is_refused() -> bool:
                conditions = (await here.raw(ApplicationConfiguration, "conf")).get("status", {}).get("conditions", [])
                return any("which both set its replicas" in one["message"] for one in conditions)

            await here.until(is_refused)
            assert await here.sizes() == {}
            assert list((await here.client.list(untyped(HPA), SHOP)).items) == []

    run(body())


# Traits that somebody wrote by hand


async def _by_hand(here: AppBed, target: str, *sources: str, **plan: Any) -> None:
    spec = {"targetRef": _ref(target), "sourceRef": [_ref(one) for one in sources], "rolloutPlan": plan}
    await here.client.create(RolloutTrait, {"metadata": {"name": "web", "namespace": SHOP}, "spec": spec})


def _ref(name: str) -> dict[str, str]:
    return {"apiVersion": "apps/v1", "kind": "ControllerRevision", "name": name}


def test_a_trait_by_hand_waits_for_its_revisions() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _by_hand(here, "web-v1", targetSize=2)
            await here.until_message(RolloutTrait, "ControllerRevision shop/web-v1 does not exist")
            await _component(here, 1)
            await here.until_images(v1=2)
            await here.until_state(RolloutTrait, "rolloutSucceed")
            await here.edit(RolloutTrait, {"targetRef": _ref("web-v2"), "sourceRef": [_ref("web-v1")]})
            await _component(here, 2)
            await here.until_images(v2=2)
            await here.until_sizes({"web-v1": 0, "web-v2": 2})
            await here.delete(RolloutTrait)
            await asyncio.sleep(60)
            assert await here.sizes() == {"web-v1": 0, "web-v2": 2}

    run(body())


def test_a_trait_reads_no_object_that_is_not_a_workload() -> None:
    async def body() -> None:
        async with app_bed() as here:
            await _component(here, 1)
            await here.until(lambda: _exists(here, "web-v1"))
            spec = {
                "targetRef": _ref("web-v1"),
                "sourceRef": [{"apiVersion": "v1", "kind": "Secret", "name": "password"}],
                "rolloutPlan": {"targetSize": 2},
            }
            await here.client.create(RolloutTrait, {"metadata": {"name": "web", "namespace": SHOP}, "spec": spec})
            found = await here.until_state(RolloutTrait, "rolloutFailed")
            assert "are not of the same kind" in found["failure"]
            assert await here.is_gone(Deployment, "web-v1")

    run(body())


async def _exists(here: AppBed, revision: str) -> bool:
    return not await here.is_gone(ControllerRevision, revision)

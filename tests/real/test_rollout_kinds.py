"""Rollouts of component revisions on a real control plane, judged by whoever watches the pods themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from controlplane.cluster import Cluster
from kedge.api.apps import ControllerRevision, Deployment, StatefulSet
from kedge.api.oam.components import ApplicationConfiguration, Component
from kedge.api.oam.rollouts import Rollout, RolloutTrait
from kedge.kube.codec import untyped
from real.component_shop import HALVES, PODS, Shop, open_shop
from support.waiting import until_so

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
async def shop(full_cluster: Cluster) -> AsyncIterator[Shop]:
    async with open_shop(full_cluster, floor=PODS, ceiling=PODS + PODS // 2) as found:
        yield found


@pytest.mark.core
async def test_the_life_of_a_component(shop: Shop) -> None:
    for number in range(1, 6):
        await shop.component(number)
    await shop.rollout("web-v1", targetSize=PODS)
    await shop.until_in("web-v1", "rolloutSucceed")
    await shop.until_pods(v1=PODS)
    shop.recorder.judges = True
    await shop.to("web-v2", rolloutBatches=HALVES, batchPartition=0)
    await shop.until_in("web-v2", "rollingInBatches", "batchReady")
    await until_so(lambda: shop.are({"web-v1": 3, "web-v2": 3}))
    await shop.to("web-v3", batchPartition=1)
    await shop.until_in("web-v3", "rolloutSucceed")
    await until_so(lambda: shop.are({"web-v3": PODS}))
    await shop.to("web-v2")
    await shop.until_in("web-v2", "rolloutSucceed")
    await until_so(lambda: shop.are({"web-v2": PODS}))
    assert shop.recorder.wrong == []
    shop.recorder.judges = False
    await shop.to(targetSize=4)
    await until_so(lambda: shop.are({"web-v2": 4}))
    await shop.until_in("web-v2", "rolloutSucceed")
    shop.recorder.floor, shop.recorder.ceiling = 4, 6
    await shop.until_pods(v2=4)
    shop.recorder.judges = True
    await shop.to("web-v4")
    await shop.until_in("web-v4", "rolloutSucceed")
    await shop.to("web-v5", batchPartition=0)
    await shop.until_in("web-v5", "rollingInBatches", "batchReady")
    assert await shop.sizes() == {"web-v4": 2, "web-v5": 2}
    await shop.to(batchPartition=1)
    await shop.until_in("web-v5", "rolloutSucceed")
    await until_so(lambda: shop.are({"web-v5": 4}))
    assert shop.recorder.wrong == []
    shop.recorder.judges = False
    await shop.client.delete(Rollout, "web", shop.namespace)
    await until_so(lambda: shop.is_gone(Rollout))
    await until_so(lambda: shop.are({}), within=60)


async def test_scaling_needs_no_batches(shop: Shop) -> None:
    await shop.component(1)
    await shop.rollout("web-v1", targetSize=1)
    for size in (5, 2, 0, 3):
        await shop.to(targetSize=size)
        await shop.until_pods(v1=size)
        await shop.until_in("web-v1", "rolloutSucceed")
        assert await shop.sizes() == {"web-v1": size}
    spec = (await shop.client.get(Rollout, "web", shop.namespace)).spec
    assert spec.rollout_plan.rollout_batches is None


async def test_a_rollout_that_is_deleted_midway_leaves_its_pods_also_without_its_revisions(shop: Shop) -> None:
    for number in (1, 2):
        await shop.component(number)
    await shop.rollout("web-v1", targetSize=PODS)
    await shop.until_in("web-v1", "rolloutSucceed")
    await shop.to("web-v2", rolloutBatches=HALVES, batchPartition=0)
    await shop.until_in("web-v2", "rollingInBatches", "batchReady")
    await shop.until_pods(v1=3, v2=3)
    shop.recorder.judges = True
    await shop.client.delete(Component, "web", shop.namespace)
    await until_so(lambda: shop.is_gone(ControllerRevision, "web-v2"))
    await shop.client.delete(Rollout, "web", shop.namespace)
    await until_so(lambda: shop.is_gone(Rollout))
    await shop.until_pods(v1=3, v2=3)
    for name in ("web-v1", "web-v2"):
        meta = (await shop.client.get(untyped(Deployment.resource), name, shop.namespace))["metadata"]
        assert "ownerReferences" not in meta
        assert "kedge.dev/rolled-by" not in meta["annotations"]
    assert shop.recorder.wrong == []


async def _half_way_in_place(shop: Shop) -> None:
    """A StatefulSet, whose pods are replaced one by one."""
    for number in (1, 2):
        await shop.component(number, "StatefulSet")
    await shop.rollout("web-v1", targetSize=PODS)
    await shop.until_in("web-v1", "rolloutSucceed")
    await shop.until_pods(v1=PODS)
    shop.recorder.floor, shop.recorder.ceiling, shop.recorder.judges = PODS - 1, PODS, True
    await shop.to("web-v2", rolloutBatches=HALVES, batchPartition=0)
    await shop.until_in("web-v2", "rollingInBatches", "batchReady")
    await shop.until_pods(v1=3, v2=3)


async def test_a_stateful_set_goes_forward_holds_and_goes_back(shop: Shop) -> None:
    await _half_way_in_place(shop)
    await shop.to("web-v1", batchPartition=1)
    await shop.until_in("web-v1", "rolloutSucceed")
    await shop.until_pods(v1=PODS, v2=0)
    found = await shop.client.get(untyped(StatefulSet.resource), "web", shop.namespace)
    assert found["metadata"]["labels"]["app.oam.dev/revision"] == "web-v1"
    assert shop.recorder.wrong == []


@pytest.mark.parametrize("reverts", [True, False])
async def test_a_stateful_set_whose_rollout_is_deleted_midway_is_taken_back_or_stays(shop: Shop, reverts: bool) -> None:
    await _half_way_in_place(shop)
    await shop.to(revertOnDelete=reverts)
    await shop.client.delete(Rollout, "web", shop.namespace)
    await until_so(lambda: shop.is_gone(Rollout), within=90)
    await shop.until_pods(v1=PODS if reverts else 3, v2=0 if reverts else 3)
    found = await shop.client.get(untyped(StatefulSet.resource), "web", shop.namespace)
    assert "kedge.dev/rolled-by" not in found["metadata"]["annotations"]
    assert found["spec"]["updateStrategy"]["rollingUpdate"]["partition"] == (0 if reverts else 3)
    assert shop.recorder.wrong == []


async def test_a_trait_moves_a_component_when_it_changes(shop: Shop) -> None:
    await shop.component(1)
    plan = {"targetSize": PODS, "rolloutBatches": HALVES}
    trait = {"apiVersion": "standard.oam.dev/v1alpha1", "kind": "RolloutTrait", "spec": {"rolloutPlan": plan}}
    configured = {"components": [{"componentName": "web", "traits": [{"trait": trait}]}]}
    await shop.create(ApplicationConfiguration, "conf", configured)
    await shop.until_pods(v1=PODS)

    async def has_succeeded() -> bool:
        status = (await shop.client.get(RolloutTrait, "web", shop.namespace)).status
        return status.rolling_state == "rolloutSucceed"

    await until_so(has_succeeded)
    shop.recorder.judges = True
    await shop.component(2)
    await shop.until_pods(v1=0, v2=PODS)
    await until_so(lambda: shop.are({"web-v1": 0, "web-v2": PODS}))
    await until_so(has_succeeded)
    assert shop.recorder.wrong == []

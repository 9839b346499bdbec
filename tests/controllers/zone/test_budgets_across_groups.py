"""Disruption budgets that select StatefulSets of several rollout groups, or of none; in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from controllers.zone.group_bed import SHOP, A, B, C, bed
from kedge.api.apps import StatefulSet
from kedge.api.crd import crd
from kedge.api.zones import ZONE_KINDS
from support.virtual import run

DEFINITIONS = [crd(kind) for kind in ZONE_KINDS]  # here: it reads files


@pytest.mark.parametrize("group", ["store-gateway", ""], ids=["another group", "no group"])
def test_a_zone_of_the_budget_that_is_down_keeps_pods_of_another_group_until_it_is_back(group: str) -> None:
    async def body() -> None:
        async with bed(definitions=DEFINITIONS) as here:
            await here.create(A)
            await here.create(C)
            await here.create(B, group=group, image="app:bad", updateStrategy={"type": "RollingUpdate"})
            await here.set_budget()
            await here.until_runs("app:1", A, C)
            await here.release("app:2", A)
            said = await here.until_said("RolloutWaits", A, "ZoneAwarePodDisruptionBudget")
            assert "2 pods not ready in ingester-zone-b" in said or "1 pod not ready, 1 pod unknown" in said
            await asyncio.sleep(600)
            assert await here.images(A) == ["app:1", "app:1"]
            assert await here.events("DeletingPods") == []
            await here.client.delete(StatefulSet, B, SHOP)
            await here.until_runs("app:2", A)

    run(body())


def test_zones_in_groups_of_their_own_are_rolled_out_one_pod_of_the_budget_at_a_time() -> None:
    async def body() -> None:
        async with bed(definitions=DEFINITIONS) as here:
            away: list[int] = []
            await here.create(A, group="a")
            await here.create(B, group="b")
            await here.set_budget()
            await here.until_runs("app:1", A, B)
            await here.release("app:2", A, B)

            async def is_done() -> bool:
                images = [await here.images(name) for name in (A, B)]
                away.append(sum(2 - len(found) for found in images))
                return images == [["app:2"] * 2] * 2

            await here.until(is_done)
            assert max(away) == 1

    run(body())

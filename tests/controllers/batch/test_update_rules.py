"""How a rollout may be changed: the same rows for the CRD, the webhook and a controller whose users get past both."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.batch.batch_bed import SHOP, Bed, bed
from controllers.batch.test_bad_input import OPEN
from kedge.api import wire
from kedge.api.oam.rollouts import RolloutTrait
from kedge.embedded.json_patch import merge_patch
from kedge.kube.codec import untyped
from kedge.kube.patches import MergePatch
from kedge.plan.batching.rollout_rules import rollout_update_problems
from support.update_rows import BATCHES, PARTITION, REST, ROWS, Update, sizes, status_in, trait, wrong_answers
from support.virtual import run

TRAITS = untyped(RolloutTrait.resource)
SAID = (BATCHES, PARTITION, REST)
"""What webhook and CRD say in the same words."""
FIXED = "rolloutStrategy, rolloutWebhooks and traffic cannot be changed while the rollout is under way"
HOOK = {"type": "post-batch-rollout", "name": "tests", "url": "http://tests.example.com/run"}


def test_the_crd_takes_what_may_change_and_refuses_the_rest_with_the_reason() -> None:
    async def body() -> None:
        async with bed() as here:
            assert await wrong_answers(here.client, SHOP) == {}

    run(body())


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_the_webhook_refuses_the_same(row: Update) -> None:
    before: Any = {**trait("web", SHOP), "status": status_in(row.state)}
    after: Any = merge_patch(before, {"spec": row.change})
    old, new = (wire.read_plain(one, RolloutTrait) for one in (before, after))
    said = [str(problem) for problem in rollout_update_problems(old, new)]
    assert bool(said) == bool(row.refused)
    if row.refused in SAID:
        assert row.refused in said[0]


async def _halfway(here: Bed) -> None:
    await here.deployment("v1", 10)
    await here.deployment("v2", 0, "app:2")
    await here.trait("v2", "v1", rolloutBatches=sizes(2, 2, 4, 2), batchPartition=1)
    await here.until_state("rollingInBatches", "batchReady")
    await here.until(lambda: _has(here, 4))


async def _has(here: Bed, pods: int) -> bool:
    return (await here.sizes())["v2"] == pods and (await here.get()).status.batch_rolling_state == "batchReady"


async def _edit(here: Bed, **plan: Any) -> None:
    await here.client.patch(TRAITS, "web", MergePatch({"spec": {"rolloutPlan": plan}}), SHOP)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"batchPartition": 0}, "batch 1 is the last one that may roll, of 4"),
        (
            {"rolloutBatches": sizes(1, 3, 4, 2), "batchPartition": 3},
            "only batches after batch 1 can be changed: it has begun",
        ),
        ({"rolloutBatches": sizes(2, 8), "batchPartition": 3}, "only batches after batch 1 can be changed"),
        ({"rolloutBatches": sizes(2, 2, 4, 4), "batchPartition": 3}, "the batches do not add up"),
        ({"batchPartition": -1}, "the rollout plan has to be positive"),
        ({"rolloutStrategy": "DecreaseFirst", "batchPartition": 3}, FIXED),
        ({"rolloutWebhooks": [HOOK], "batchPartition": 3}, FIXED),
    ],
)
def test_past_both_the_controller_holds_moves_nothing_back_and_goes_on_when_it_is_corrected(
    change: dict[str, Any], said: str
) -> None:
    async def body() -> None:
        async with bed(definitions=OPEN) as here:
            await _halfway(here)
            await _edit(here, **change)
            await asyncio.sleep(120)
            assert said in (await here.get()).status.message
            assert await here.sizes() == {"v1": 6, "v2": 4}
            kept = {"rolloutStrategy": None, "rolloutWebhooks": None}
            await _edit(here, rolloutBatches=sizes(2, 2, 3, 3), batchPartition=3, **kept)
            found = await here.until_state("rolloutSucceed")
            assert [one.goal for one in found.status.batches] == [2, 4, 7, 10]
            assert await here.sizes() == {"v1": 0, "v2": 10}

    run(body())


def test_a_batch_that_is_another_one_before_it_has_rolled_rolls_as_it_is_asked_for_now() -> None:
    """So it is, too, for one that was asked for another target and back while nobody looked."""

    async def body() -> None:
        async with bed(definitions=OPEN) as here:
            await here.deployment("v1", 10)
            await here.deployment("v2", 0, "app:2")
            await here.trait("v2", "v1", rolloutBatches=sizes(10), paused=True)
            await here.until_state("rollingInBatches", "batchInitializing")
            await _edit(here, rolloutBatches=sizes(2, 8), batchPartition=0, paused=False)
            await here.until_state("rollingInBatches", "batchReady")
            assert await here.sizes() == {"v1": 8, "v2": 2}
            assert [one.goal for one in (await here.get()).status.batches] == [2, 10]
            await _edit(here, batchPartition=1)
            await here.until_state("rolloutSucceed")
            assert await here.sizes() == {"v1": 0, "v2": 10}

    run(body())


def test_past_both_a_reference_to_elsewhere_holds_it_midway_and_everything_is_given_back_when_it_is_deleted() -> None:
    async def body() -> None:
        async with bed(definitions=OPEN) as here:
            await _halfway(here)
            elsewhere = {"spec": {"targetRef": {"namespace": "bank"}, "rolloutPlan": {"revertOnDelete": True}}}
            await here.client.patch(TRAITS, "web", MergePatch(elsewhere), SHOP)
            await _edit(here, batchPartition=3)
            await asyncio.sleep(60)
            assert "spec.targetRef.namespace: can only be the namespace" in (await here.get()).status.message
            assert await here.sizes() == {"v1": 6, "v2": 4}
            await here.client.delete(RolloutTrait, "web", SHOP)
            await here.until(lambda: _back(here))

    run(body())


async def _back(here: Bed) -> bool:
    return await here.sizes() == {"v1": 10, "v2": 0} and not (await here.client.list(RolloutTrait, SHOP)).items

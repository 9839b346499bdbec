"""Rollout groups on an embedded server: what is written and said, and what is not; in virtual time."""

from __future__ import annotations

import asyncio
import logging

import pytest

from controllers.zone.group_bed import SHOP, A, B, bed
from kedge.api.apps import StatefulSet
from kedge.api.pods import Pod
from kedge.api.zones import MAX_UNAVAILABLE, PAUSED
from support.virtual import run

FAILED = "rollout_operator_group_reconciles_failed_total"
LAST = "rollout_operator_last_successful_group_reconcile_timestamp_seconds"


def test_a_release_is_rolled_out_said_and_named_in_the_status() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.create(B)
            await here.until_runs("app:1", A, B)
            await here.release("app:2", A, B)
            await here.until_runs("app:2", A, B)
            assert "to update to revision ingester-zone-a-" in (await here.until_said("DeletingPods", A))
            await here.until_said("RolloutComplete", B, "all 2 pods run revision ingester-zone-b-")
            for name in (A, B):
                status = (await here.client.get(StatefulSet, name, SHOP)).status
                assert status.current_revision == status.update_revision

    run(body())


def test_a_group_at_rest_writes_nothing() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.create(B)
            await here.release("app:bad", A, B)
            await here.until_said("RolloutWaits", A, "ImagePullBackOff")
            await asyncio.sleep(60)
            before = list(here.transport.writes)
            await asyncio.sleep(3600)
            assert here.transport.writes == before

    run(body())


def test_a_bad_release_stops_says_why_and_its_fix_arrives() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.create(B)
            await here.until_runs("app:1", A, B)
            await here.release("app:bad", A, B)
            said = await here.until_said("RolloutWaits", B, "all pods of the other zones have to be ready")
            assert "ingester-zone-a-0 (ImagePullBackOff) is not ready" in said
            assert await here.images(B) == ["app:1", "app:1"]
            await here.release("app:3", A, B)
            await here.until_runs("app:3", A, B)

    run(body())


def test_a_zone_that_is_scaled_down_in_order_while_two_pods_are_broken_gets_there_with_the_next_release() -> None:
    """The StatefulSet itself waits for the lower one before it removes the upper one, and never removes that."""

    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.create(B)
            await here.until_runs("app:1", A, B)
            await here.annotate(A, PAUSED, "true")
            await here.release("app:bad", A)
            for pod in (f"{A}-1", f"{A}-0"):  # they come back with the bad image
                await here.client.delete(Pod, pod, SHOP)
                await asyncio.sleep(30)
            await here.annotate(A, PAUSED, None)
            await here.patch(A, {"spec": {"replicas": 0}})
            await asyncio.sleep(600)
            assert len((await here.client.list(Pod, SHOP, labels={"app": A})).items) == 2
            await here.release("app:3", A, B)
            await here.until_runs("app:3", B)
            assert (await here.client.list(Pod, SHOP, labels={"app": A})).items == ()

    run(body())


def test_a_group_with_another_update_strategy_is_left_alone_and_says_so() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.create(B, updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 2}})
            await here.until_runs("app:1", A, B)
            await here.release("app:2", A)
            said = await here.until_said("RolloutWaits", A)
            assert "StatefulSet ingester-zone-b has RollingUpdate update strategy while OnDelete is expected" in said
            assert await here.images(A) == ["app:1", "app:1"]

    run(body())


@pytest.mark.parametrize("value", ["xxx", "0", "-1", "300%", "", "9" * 300])
def test_a_limit_that_cannot_be_read_counts_as_one_and_is_said_once(value: str) -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.annotate(A, MAX_UNAVAILABLE, value)
            await here.until_runs("app:1", A)
            await here.release("app:2", A)
            await here.until_runs("app:2", A)
            said = await here.events("InvalidMaxUnavailable")
            assert len(said) == 1
            assert "expected a positive integer or a percentage" in said[0]
            assert all("deleting 1 pod," in text for text in await here.events("DeletingPods"))

    run(body())


def test_a_paused_zone_waits_and_the_others_go_on() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.create(B)
            await here.until_runs("app:1", A, B)
            await here.annotate(A, PAUSED, "true")
            await here.release("app:2", A, B)
            await here.until_runs("app:2", B)
            await here.until_said("RolloutWaits", A, "it is paused")
            assert await here.images(A) == ["app:1", "app:1"]
            await here.annotate(A, PAUSED, None)
            await here.until_runs("app:2", A)

    run(body())


def test_groups_of_one_name_in_two_namespaces_do_not_wait_for_each_other() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.create(A, namespace="other")
            await here.until_runs("app:1", A)
            await here.until_runs("app:1", A, namespace="other")
            await here.release("app:bad", A)
            await here.until_said("RolloutWaits", A)
            await here.release("app:2", A, namespace="other")
            await here.until_runs("app:2", A, namespace="other")

    run(body())


def test_a_group_with_another_update_strategy_counts_as_failed_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.create(B)
            await here.until_runs("app:1", A, B)
            await here.patch(B, {"spec": {"updateStrategy": {"type": "RollingUpdate"}}})
            await asyncio.sleep(10)
            failures, success = (
                here.metric(FAILED, rollout_group="ingester"),
                here.metric(LAST, rollout_group="ingester"),
            )
            await asyncio.sleep(600)
            assert here.metric(LAST, rollout_group="ingester") == success
            assert (here.metric(FAILED, rollout_group="ingester") or 0) >= (failures or 0) + 5, "an alert sees it"
            await here.patch(B, {"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}})
            await asyncio.sleep(10)
            assert (here.metric(LAST, rollout_group="ingester") or 0) > (success or 0)

    run(body())
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert f"{A}: StatefulSet {B} has RollingUpdate update strategy while OnDelete is expected, skipping reconcile" in (
        errors
    )


def test_a_group_at_rest_is_looked_at_again_so_that_no_alert_takes_it_for_stuck() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.until_runs("app:1", A)
            await asyncio.sleep(600)
            before, asked = here.metric(LAST, rollout_group="ingester"), len(here.transport.writes)
            for _ in range(10):
                await asyncio.sleep(301)
                now = here.metric(LAST, rollout_group="ingester")
                assert (now or 0) > (before or 0)
                before = now
            assert len(here.transport.writes) == asked

    run(body())


def test_metrics_of_a_group_go_with_its_last_statefulset() -> None:
    async def body() -> None:
        async with bed() as here:
            total = "rollout_operator_group_reconciles_total"
            await here.create(A)
            await here.create(A, namespace="other")
            await here.until_runs("app:1", A)
            assert (here.metric(total, rollout_group="ingester") or 0) > 0
            assert here.metric("rollout_operator_group_reconciles_failed_total", rollout_group="ingester") == 0
            await here.client.delete(StatefulSet, A, SHOP)
            await asyncio.sleep(60)
            assert here.metric(total, rollout_group="ingester") is not None
            await here.client.delete(StatefulSet, A, "other")
            await asyncio.sleep(60)
            assert here.metric(total, rollout_group="ingester") is None

    run(body())


def test_every_pod_is_deleted_in_the_version_that_was_seen() -> None:
    async def body() -> None:
        async with bed() as here:
            await here.create(A)
            await here.until_runs("app:1", A)
            await here.release("app:2", A)
            await here.until_runs("app:2", A)
            assert [sorted(one) for one in here.transport.preconditions] == [["resourceVersion", "uid"]] * 2
            promoted = [write for write in here.transport.writes if write.startswith("PUT")]
            assert promoted == [f"PUT /apis/apps/v1/namespaces/{SHOP}/statefulsets/{A}/status"]

    run(body())


def test_two_reconciles_of_a_group_are_as_far_apart_as_asked_for() -> None:
    async def body() -> None:
        async with bed(interval=5.0) as here:
            await here.create(A)
            await here.until_runs("app:1", A)
            before = here.metric("rollout_operator_group_reconciles_total", rollout_group="ingester") or 0
            began = asyncio.get_running_loop().time()
            await here.release("app:2", A)
            await here.until_runs("app:2", A)
            seconds = asyncio.get_running_loop().time() - began
            after = here.metric("rollout_operator_group_reconciles_total", rollout_group="ingester") or 0
            assert after - before <= seconds / 5 + 1
            assert seconds > 5

    run(body())

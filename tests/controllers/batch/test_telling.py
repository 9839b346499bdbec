"""What a rollout tells people, on an embedded server, in virtual time: events, notifications, what is wrong with it."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controllers.batch.batch_bed import SHOP, Bed, bed
from controllers.batch.test_bad_input import OPEN, TRAITS
from kedge.api.core import Event
from kedge.kube.connect.outbound import Answer, Call
from kedge.kube.patches import MergePatch
from kedge.notifications.config import parse
from kedge.notifications.dispatcher import Dispatcher
from kedge.notifications.receivers import prepare
from support.stage import LoopClock
from support.virtual import run


async def _two(here: Bed, image: str = "app:2") -> None:
    await here.deployment("v1", 4)
    await here.deployment("v2", 0, image)


def test_a_wait_is_told_once_however_long_it_takes() -> None:
    """D15: KubeVela told of a pause every five seconds."""

    async def body() -> None:
        async with bed() as here:
            await _two(here)
            await here.trait("v2", "v1", numBatches=2, batchPartition=0)
            await here.until_state("rollingInBatches", "batchReady")
            await here.edit({"rolloutPlan": {"paused": True}})
            await asyncio.sleep(3600)
            found = [one for one in (await here.client.list(Event, SHOP)).items if one.reason == "WaitsForPaused"]
            assert [(one.message, one.count) for one in found] == [("it is paused", 1)]

    run(body())


class Hook:
    """Whoever is to be notified: refuses for a while, then accepts."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.accepted: list[dict[str, Any]] = []

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        if self.refusals:
            self.refusals -= 1
            return Answer(503)
        self.accepted.append(json.loads(call.body))
        return Answer(202)

    async def close(self) -> None:
        """There is nothing to close."""


CONFIG = """
source: https://shop.example.com
receivers:
- name: on-call
  webhook: {url: "https://on-call.example.com/"}
  events: {types: [Warning], kinds: [RolloutTrait]}
"""


def test_a_rollout_that_fails_is_notified_once_and_waits_for_nobody() -> None:
    async def body() -> None:
        hook = Hook(refusals=3)
        receivers = prepare(parse(CONFIG))(hook, LoopClock())
        async with Dispatcher(receivers, rng=Random(3), registry=CollectorRegistry()) as dispatcher:
            async with bed(observer=dispatcher) as here:
                await _two(here, "app:bad")
                await here.trait("v2", "v1", numBatches=2, progressDeadlineSeconds=30)
                await here.until_state("rolloutFailed")
                await asyncio.sleep(600)
            (event,) = hook.accepted
            assert event["subject"] == f"RolloutTrait/{SHOP}/web"
            assert event["data"]["reason"] == "RolloutFailed"
            said = event["data"]["message"]
            assert said.startswith(
                "batch 0 was not available within 30 s: 0 of 2 pods of Deployment shop/v2 are available"
            )

    run(body())


def test_a_status_that_nobody_knows_is_said_and_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """D11: KubeVela's controller ended with all its rollouts. Here CRDs refuse it; these have no rules."""

    async def body() -> None:
        async with bed(definitions=OPEN) as here:
            await _two(here)
            await here.trait("v2", "v1", numBatches=2, batchPartition=0)
            await here.until_state("rollingInBatches", "batchReady")
            await _set_state(here, "somewhere")
            for name in ("w1", "w2"):
                await here.deployment(name, 2 if name == "w1" else 0)
            await here.trait("w2", "w1", name="other", numBatches=2)
            await here.until_state("rolloutSucceed", name="other")
            await asyncio.sleep(60)
            assert (await here.sizes())["v2"] == 2
            assert "web cannot be read" in caplog.text
            await _set_state(here, "rollingInBatches")
            await here.edit({"rolloutPlan": {"batchPartition": 1}})
            await here.until_state("rolloutSucceed")
            assert (await here.sizes())["v2"] == 4

    run(body())


async def _set_state(here: Bed, state: str) -> None:
    await here.client.patch(TRAITS, "web", MergePatch({"status": {"rollingState": state}}), SHOP, subresource="status")

"""Whom rollouts in batches ask outside of the cluster: webhooks, and a Prometheus. Both have bad days."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import msgspec

from kedge.kube.connect.outbound import Answer, Call, OutboundFailed

HOOK = "https://hooks.example.com"
PROMETHEUS = "http://prometheus.example.com:9090"
HOOKS = ("initialize-rollout", "pre-batch-rollout", "post-batch-rollout", "finalize-rollout")


class Outside:
    """Answers everybody, and remembers to whom it said yes."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.failing = 0.0
        self.refusing = 0.0
        self.agreed: set[tuple[str, str, str, int]] = set()
        """Rollout, target, type and batch of each call of a webhook that was answered with yes."""
        self.measured = float("-inf")
        """When a metric was last found to be in its range."""

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        await asyncio.sleep(self._rng.choice([0.0, 0.01, 1.0]))
        if self._rng.random() < self.failing:
            return await self._fail(call, timeout)
        if call.url.startswith(PROMETHEUS):
            return self._measure()
        if self._rng.random() < self.refusing:
            return Answer(403, b"not today")
        asked: dict[str, Any] = msgspec.json.decode(call.body)
        target = asked["target"].rpartition("/")[2]
        self.agreed.add((asked["uid"], target, asked["type"], asked.get("batch", -1)))
        return Answer(200, b"ok")

    async def _fail(self, call: Call, timeout: float) -> Answer:
        if self._rng.random() < 0.3:
            await asyncio.sleep(timeout * 2)
        if self._rng.random() < 0.5:
            raise OutboundFailed(f"{call}: no answer within {timeout:g} s")
        return Answer(500, b"later")

    def _measure(self) -> Answer:
        is_good = self._rng.random() >= self.failing + self.refusing
        if is_good:
            self.measured = asyncio.get_running_loop().time()
        value = [{"metric": {}, "value": [0, "1" if is_good else self._rng.choice(["0", "NaN"])]}]
        found = {"status": "success", "data": {"resultType": "vector", "result": value}}
        return Answer(200, msgspec.json.encode(found))

    async def close(self) -> None:
        """There is nothing to close."""


def webhooks() -> list[dict[str, str]]:
    """One at every point of a rollout."""
    return [{"type": one, "name": one, "url": HOOK} for one in HOOKS]


def metric_template(namespace: str) -> dict[str, Any]:
    provider = {"type": "prometheus", "address": PROMETHEUS}
    return {"metadata": {"name": "success", "namespace": namespace}, "spec": {"provider": provider, "query": "success"}}


def metrics(failure_limit: int) -> list[dict[str, Any]]:
    """One, which has to be 1."""
    ref = {"kind": "MetricTemplate", "name": "success"}
    found = {"name": "success", "interval": "5s", "metricsRange": {"min": 1}, "templateRef": ref}
    return [{**found, "failureLimit": failure_limit}]

"""What stands between batches beside the pods: webhooks, metrics and traffic, on an embedded server in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
from yarl import URL

from controllers.batch.batch_bed import SHOP, Bed, bed
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.crd import crd
from kedge.api.metric_template import MetricTemplate
from kedge.api.oam.rollouts import RolloutTrait
from kedge.api.resource import Resource
from kedge.kube.codec import untyped
from kedge.kube.connect.outbound import Answer, Call
from support.virtual import run

HOOK = "https://hooks.example.com/secret-path"
TEMPLATES = crd(MetricTemplate)
INGRESS = untyped(Resource("networking.k8s.io", "v1", "Ingress", "ingresses"))
WEIGHT = "nginx.ingress.kubernetes.io/canary-weight"


class World:
    """Answers for everybody outside, and notes what was asked."""

    def __init__(self, answer: Callable[[Call], Answer]) -> None:
        self.calls: list[Call] = []
        self._answer = answer

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        self.calls.append(call)
        await asyncio.sleep(0.01)
        return self._answer(call)

    async def close(self) -> None:
        """There is nothing to close."""

    def bodies(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(call.body) for call in self.calls]


async def _two_revisions(here: Bed, replicas: int = 4) -> None:
    await here.deployment("v1", replicas)
    await here.deployment("v2", 0, "app:2")


def _hooks(*types: str) -> list[dict[str, str]]:
    return [{"type": one, "name": one, "url": HOOK} for one in types]


EVERY_POINT = ("initialize-rollout", "pre-batch-rollout", "post-batch-rollout", "finalize-rollout")


def test_webhooks_are_asked_once_at_every_point() -> None:
    async def body() -> None:
        world = World(lambda _: Answer(200))
        async with bed(world) as here:
            await _two_revisions(here)
            await here.trait("v2", "v1", numBatches=2, rolloutWebhooks=_hooks(*EVERY_POINT))
            await here.until_state("rolloutSucceed")
            phases = [one["phase"] for one in world.bodies()]
            batch = ["batchInitializing", "batchFinalizing"]
            assert phases == ["initializing", *batch, *batch, "finalising"]
            assert len({one["id"] for one in world.bodies()}) == len(phases)

    run(body())


def test_a_webhook_that_refuses_fails_the_rollout_before_the_batch_and_says_who() -> None:
    async def body() -> None:
        world = World(lambda _: Answer(403, b"not today"))
        async with bed(world) as here:
            await _two_revisions(here)
            await here.trait("v2", "v1", numBatches=2, rolloutWebhooks=_hooks("pre-batch-rollout"))
            found = await here.until_state("rolloutFailed")
            assert "webhook pre-batch-rollout refused before batch 0" in found.status.failure
            assert "secret-path" not in str(found.status)
            assert await here.sizes() == {"v1": 4, "v2": 0}

    run(body())


def test_a_webhook_that_fails_is_asked_again_with_the_same_id() -> None:
    async def body() -> None:
        answers = iter([500, 503, 200, 200])
        world = World(lambda _: Answer(next(answers)))
        async with bed(world) as here:
            await _two_revisions(here)
            await here.trait("v2", "v1", numBatches=2, rolloutWebhooks=_hooks("pre-batch-rollout"))
            await here.until_state("rolloutSucceed")
            ids = [one["id"] for one in world.bodies()]
            assert ids[0] == ids[1] == ids[2] != ids[3]

    run(body())


def _prometheus(values: Callable[[], str]) -> Callable[[Call], Answer]:
    def answer(call: Call) -> Answer:
        assert URL(call.url).path == "/api/v1/query"
        result = [{"metric": {}, "value": [0, values()]}]
        return Answer(
            200, msgspec.json.encode({"status": "success", "data": {"resultType": "vector", "result": result}})
        )

    return answer


async def _with_metric(here: Bed, **metric: Any) -> None:
    await here.client.create(CustomResourceDefinition, TEMPLATES)
    await asyncio.sleep(5)
    provider = {"type": "prometheus", "address": "http://prometheus.example.com:9090"}
    spec = {"provider": provider, "query": 'sum(rate(requests{app="{{ target }}"}[{{ interval }}]))'}
    await here.client.create(MetricTemplate, {"metadata": {"name": "success", "namespace": SHOP}, "spec": spec})
    await _two_revisions(here)
    ref = {"apiVersion": "flagger.app/v1beta1", "kind": "MetricTemplate", "name": "success"}
    wanted = {"name": "success", "interval": "10s", "metricsRange": {"min": "0.99"}, "templateRef": ref, **metric}
    await here.trait("v2", "v1", numBatches=2, canaryMetric=[wanted])


def test_a_metric_in_its_range_lets_the_rollout_go_on() -> None:
    async def body() -> None:
        world = World(_prometheus(lambda: "0.995"))
        async with bed(world) as here:
            await _with_metric(here, count=2)
            found = await here.until_state("rolloutSucceed")
            assert [(one.batch, one.successful) for one in found.status.metrics] == [(0, 2), (1, 2)]
            assert len(world.calls) == 4

    run(body())


def test_a_metric_out_of_its_range_fails_the_rollout_after_the_batch() -> None:
    async def body() -> None:
        async with bed(World(_prometheus(lambda: "0.5"))) as here:
            await _with_metric(here)
            found = await here.until_state("rolloutFailed")
            assert "metric success" in found.status.failure
            assert await here.sizes() == {"v1": 2, "v2": 2}

    run(body())


def test_a_metric_without_data_is_never_success() -> None:
    async def body() -> None:
        async with bed(World(_prometheus(lambda: "NaN"))) as here:
            await _with_metric(here)
            await asyncio.sleep(300)
            found = await here.get()
            assert found.status.rolling_state == "rollingInBatches"
            assert found.status.current_batch == 0
            assert "success" in found.status.message

    run(body())


async def _with_traffic(here: Bed, **plan: Any) -> None:
    backend = {"service": {"name": "web-v2", "port": {"number": 80}}}
    paths = [{"path": "/", "pathType": "Prefix", "backend": backend}]
    annotations = {"nginx.ingress.kubernetes.io/canary": "true", WEIGHT: "0"}
    spec = {"ingressClassName": "nginx", "rules": [{"host": "shop.example.com", "http": {"paths": paths}}]}
    meta = {"name": "web-canary", "namespace": SHOP, "annotations": annotations}
    await here.client.create(INGRESS, {"metadata": meta, "spec": spec})
    await _two_revisions(here)
    traffic = {
        "provider": "nginx",
        "routeRef": {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "web-canary"},
        "sourceService": "web-v1",
        "targetService": "web-v2",
    }
    await here.trait("v2", "v1", numBatches=2, traffic=traffic, **plan)


async def _weight(here: Bed) -> str:
    found = await here.client.get(INGRESS, "web-canary", SHOP)
    return str(found["metadata"]["annotations"].get(WEIGHT))


def test_traffic_follows_the_batches() -> None:
    async def body() -> None:
        async with bed() as here:
            await _with_traffic(here, batchPartition=0)
            await here.until_state("rollingInBatches", "batchReady")
            assert await _weight(here) == "50"
            await here.edit({"rolloutPlan": {"batchPartition": 1}})
            await here.until_state("rolloutSucceed")
            assert await _weight(here) == "100"

    run(body())


def test_traffic_is_given_back_when_the_rollout_is_deleted_midway() -> None:
    async def body() -> None:
        async with bed() as here:
            await _with_traffic(here, batchPartition=0, revertOnDelete=True)
            await here.until_state("rollingInBatches", "batchReady")
            await here.client.delete(RolloutTrait, "web", SHOP)
            await here.until(lambda: _is_gone(here))
            assert await _weight(here) == "0"
            assert await here.sizes() == {"v1": 4, "v2": 0}

    run(body())


def test_a_route_that_is_gone_does_not_keep_a_rollout_from_being_deleted_and_that_is_said() -> None:
    async def body() -> None:
        async with bed() as here:
            await _with_traffic(here, batchPartition=0)
            await here.until_state("rollingInBatches", "batchReady")
            await here.client.delete(INGRESS, "web-canary", SHOP)
            await here.client.delete(RolloutTrait, "web", SHOP)
            await here.until(lambda: _is_gone(here))
            assert await here.events("RolloutIncomplete") == [
                "Ingress shop/web-canary is gone: its weights are not given back"
            ]

    run(body())


async def _is_gone(here: Bed) -> bool:
    return not (await here.client.list(RolloutTrait, SHOP)).items

"""Requests that were meant for another cluster."""

from __future__ import annotations

import json

import pytest
from aiohttp import ClientSession, web
from prometheus_client import CollectorRegistry

from kedge.kube.cluster_validation import MOST_LABELS, ClusterValidation, ValidationMetrics
from kedge.kube.health import Address, served

INVALID = "rollout_operator_server_invalid_cluster_validation_label_requests_total"
PROD = ClusterValidation(
    "prod", excluded_paths=("admission/no-downscale",), excluded_user_agents=("^kube-probe/", "curl")
)
WRONG = 'rejected request with wrong cluster validation label "dev" - it should be one of [prod]'
EMPTY = "rejected request with empty cluster validation label - it should be one of [prod]"


@pytest.mark.parametrize(
    ("path", "label", "agent", "problem"),
    [
        ("/admission/pod-eviction", "prod", "", ""),
        ("/admission/pod-eviction", "dev", "", WRONG),
        ("/admission/pod-eviction", "", "", EMPTY),
        ("/admission/no-downscale", "", "", ""),
        ("/prefix/admission/no-downscale", "dev", "", ""),
        ("/metrics", "", "", ""),
        ("/ready", "dev", "", ""),
        ("/healthz", "", "", ""),
        ("/readyz", "", "", ""),
        ("/debug/pprof", "", "", ""),
        ("/debug/pprof/heap", "", "", ""),
        ("/", "", "", EMPTY),
        ("/other", "", "kube-probe/1.34", ""),
        ("/other", "", "my kube-probe/1.34", EMPTY),
        ("/other", "dev", "libcurl", ""),
    ],
)
def test_a_request_must_name_this_cluster_unless_it_is_excluded(
    path: str, label: str, agent: str, problem: str
) -> None:
    assert PROD.problem(path, label, agent) == problem


async def asked(validation: ClusterValidation, registry: CollectorRegistry, **headers: str) -> tuple[int, str]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="answered")

    app = web.Application(middlewares=[validation.middleware(ValidationMetrics(registry))])
    app.router.add_get("/thing", answer)
    async with served(app, Address(port=0)) as url, ClientSession(headers=headers) as session:
        response = await session.get(f"{url}/thing")
        return response.status, await response.text()


async def test_a_wrong_request_is_refused_and_counted() -> None:
    registry = CollectorRegistry()
    status, text = await asked(PROD, registry, **{"X-Cluster": "dev"})
    assert (status, json.loads(text)) == (511, {"cluster_validation_error_message": WRONG})
    labels = {"protocol": "http", "method": "/thing", "cluster_validation_label": "prod",
              "request_cluster_validation_label": "dev"}  # fmt: skip
    assert registry.get_sample_value(INVALID, labels) == 1


async def test_a_right_request_is_answered() -> None:
    assert await asked(PROD, CollectorRegistry(), **{"X-Cluster": "prod"}) == (200, "answered")


async def test_soft_validation_only_counts() -> None:
    registry = CollectorRegistry()
    assert await asked(ClusterValidation("prod", soft=True), registry) == (200, "answered")
    labels = {"protocol": "http", "method": "/thing", "cluster_validation_label": "prod",
              "request_cluster_validation_label": ""}  # fmt: skip
    assert registry.get_sample_value(INVALID, labels) == 1


def test_a_stranger_cannot_make_any_number_of_series() -> None:
    registry = CollectorRegistry()
    metrics = ValidationMetrics(registry)
    for number in range(3 * MOST_LABELS):
        metrics.invalid("/thing", "prod", f"stranger-{number}")
    (family,) = registry.collect()
    assert len([sample for sample in family.samples if sample.name == INVALID]) <= MOST_LABELS + 1

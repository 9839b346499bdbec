"""Traffic on a real API server: an HTTPRoute of a small definition, and a canary Ingress."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from controlplane.cluster import Cluster
from controlplane.pytest_plugin import SECONDS_FOR_A_REAL_TEST
from kedge.api.oam.rollout_plan import TrafficProvider
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.errors import Conflict, NotFound
from kedge.kube.patches import MergePatch
from kedge.plan.traffic.routes import MANAGER
from support.fleets import CRDS
from support.routes import (
    HTTP_ROUTES,
    INGRESSES,
    WEIGHT,
    canary,
    gateway_accepts,
    http_route,
    http_route_definition,
    traffic,
    weights,
)
from support.traffic_play import TrafficPlay
from support.waiting import until_so

pytestmark = [pytest.mark.real, pytest.mark.timeout(SECONDS_FOR_A_REAL_TEST)]

GATEWAY, ISTIO, NGINX = TrafficProvider.gateway_api, TrafficProvider.istio, TrafficProvider.nginx


@pytest.fixture
async def client(bare_cluster: Cluster) -> AsyncIterator[Client]:
    client = Client(HttpsTransport(await asyncio.to_thread(load, [bare_cluster.kubeconfig])))
    yield client
    await client.close()


@pytest.fixture
async def namespace(bare_cluster: Cluster) -> str:
    return await bare_cluster.fresh_namespace()


@pytest.fixture
async def http_routes(client: Client) -> AsyncIterator[None]:
    definition = http_route_definition("v1", "v1beta1")
    await client.create(CRDS, definition)
    await until_so(lambda: _serves(client))
    yield
    with suppress(NotFound):
        await client.delete(CRDS, definition["metadata"]["name"])


async def _serves(client: Client) -> bool:
    with suppress(NotFound):
        await client.list(HTTP_ROUTES)
        return True
    return False


@pytest.mark.usefixtures("http_routes")
async def test_an_http_route_is_shifted_accepted_and_given_back(client: Client, namespace: str) -> None:
    made = await client.create(HTTP_ROUTES, http_route(namespace))
    played = TrafficPlay(client, namespace, traffic(GATEWAY, "web"), SystemClock())
    assert "it has not reported on the route yet" in await played.shift(30)
    shifted = await client.get(HTTP_ROUTES, "web", namespace)
    assert weights(shifted) == [[70, 30], [100, 70, 30], [7]]
    assert MANAGER in {one["manager"] for one in shifted["metadata"]["managedFields"]}
    await gateway_accepts(client, namespace)
    assert await played.shift(30) == ""
    assert "it has not reported Accepted of the present weights yet" in await played.shift(60)
    await gateway_accepts(client, namespace)
    assert await played.shift(60) == ""
    assert "is not in effect yet" in await played.restore()
    await gateway_accepts(client, namespace)
    assert await played.restore() == ""
    assert (await client.get(HTTP_ROUTES, "web", namespace))["spec"] == made["spec"]


async def test_a_canary_ingress_is_shifted_corrected_and_given_back(client: Client, namespace: str) -> None:
    made = await client.create(INGRESSES, canary(namespace))
    played = TrafficPlay(client, namespace, traffic(NGINX, "web-canary"), SystemClock())
    assert await played.shift(30) == ""
    change = MergePatch({"metadata": {"annotations": {WEIGHT: "5", "team": "other"}}})
    for _ in range(3):
        await client.patch(INGRESSES, "web-canary", change, namespace, manager="argocd-controller")
        told = await played.shift(30)
    assert told.startswith(f"argocd-controller sets the weights of Ingress {namespace}/web-canary, too")
    shifted = await client.get(INGRESSES, "web-canary", namespace)
    assert shifted["metadata"]["annotations"][WEIGHT] == "30"
    assert await played.restore() == ""
    back = await client.get(INGRESSES, "web-canary", namespace)
    assert back["metadata"]["annotations"] == {**made["metadata"]["annotations"], "team": "other"}
    assert back["spec"] == made["spec"]
    with pytest.raises(Conflict):
        await played.routes.write(made, {"metadata": {"annotations": {WEIGHT: "1"}}})


async def test_a_kind_that_is_not_served_and_a_route_that_is_missing_are_told_apart(
    client: Client, namespace: str
) -> None:
    istio = TrafficPlay(client, namespace, traffic(ISTIO, "web"), SystemClock())
    assert await istio.shift(30) == (
        "VirtualService web: virtualservices.networking.istio.io are not served: install what defines them"
    )
    nginx = TrafficPlay(client, namespace, traffic(NGINX, "web-canary"), SystemClock())
    assert await nginx.shift(30) == "there is no Ingress web-canary: create it"

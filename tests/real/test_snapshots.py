"""Snapshots on a real hub: what a real API server adds to objects, and when it serves a new kind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from controlplane.plane import ControlPlane
from controlplane.pytest_plugin import SECONDS_FOR_A_REAL_TEST
from kedge.api.apps import Deployment
from kedge.api.core import Namespace
from kedge.api.crds import crds
from kedge.api.placement_kinds import CLUSTER
from kedge.api.resource import Resource
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.codec import untyped
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from support.fleets import CRDS
from support.snapping import SHOP, Bench, start
from support.waiting import until_so

pytestmark = [pytest.mark.real, pytest.mark.timeout(SECONDS_FOR_A_REAL_TEST)]

DEFINITIONS = crds()
BIG_WIDGETS = Resource("example.com", "v1", "BigWidget", "bigwidgets", namespaced=False)
WEB: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "app", "image": "app:1"}]},
        },
    },
}


@asynccontextmanager
async def real_bench(plane: ControlPlane) -> AsyncIterator[Bench]:
    cluster = await plane.start("hub", only=("namespace-controller", "serviceaccount-controller"))
    config = await asyncio.to_thread(load, [cluster.kubeconfig])
    client = Client(HttpsTransport(config), limiter=Limiter(rate=0))
    for definition in DEFINITIONS:
        await client.create(CRDS, definition)
    await until_so(lambda: _serves(client))
    async with Manager(clock=SystemClock(), rng=Random(1), grace=1.0) as manager:
        hub = await manager.connect("hub", HttpsTransport(config))
        bench = Bench(client, start(manager, hub, CLUSTER), hub, CLUSTER)
        running = asyncio.create_task(manager.run(signals=False))
        yield bench
        manager.stop()
        await running
    await client.close()


async def _serves(client: Client) -> bool:
    found = (await client.list(CRDS)).items
    said = [one for item in found for one in item.get("status", {}).get("conditions") or ()]
    return [(one["type"], one["status"]) for one in said].count(("Established", "True")) == len(DEFINITIONS)


async def test_a_namespace_its_changes_and_a_new_kind(own_plane: ControlPlane) -> None:
    async with real_bench(own_plane) as hub:
        await hub.client.create(Namespace, {"metadata": {"name": "shop"}})
        await hub.client.create(Deployment, WEB)
        await hub.place(SHOP)
        await hub.until_indexes([0], within=60.0)
        await asyncio.sleep(2.0)  # the hub's own ConfigMap and account in the namespace are no news
        assert await hub.indexes() == [0]
        namespace, web = (await hub.newest())["spec"]["selectedResources"]
        assert namespace["metadata"] == {"name": "shop", "labels": {"kubernetes.io/metadata.name": "shop"}}
        assert web["metadata"] == WEB["metadata"]
        assert "status" not in web
        assert web["spec"]["progressDeadlineSeconds"] == 600

        await hub.keep("a", "1")
        await hub.until_indexes([0, 1], within=60.0)

        await hub.place({"group": "example.com", "version": "v1", "kind": "BigWidget"}, name="widgets")
        await asyncio.sleep(0.5)
        assert "does not serve" in await hub.problem("widgets")
        await hub.client.create(CRDS, _definition())
        await hub.until_indexes([0], "widgets", within=60.0)
        await hub.client.create(untyped(BIG_WIDGETS), {"metadata": {"name": "w"}, "spec": {}})
        await hub.until_indexes([0, 1], "widgets", within=60.0)
        assert not hub.hub.problems()


def _definition() -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {"name": "bigwidgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"kind": "BigWidget", "plural": "bigwidgets"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }

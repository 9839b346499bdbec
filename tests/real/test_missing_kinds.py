"""A kind that a real server does not serve is known to be missing, followed when it comes, and missed when it goes."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest

from controlplane.cluster import Cluster
from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.resource import Resource
from kedge.kube.codec import untyped
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.manager import Manager
from support.waiting import until

CRDS = untyped(CustomResourceDefinition.resource)
GROUP = "missing.example.com"
WIDGETS = untyped(Resource(GROUP, "v1", "Widget", "widgets", namespaced=False))


def definition() -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    names = {"kind": "Widget", "plural": "widgets"}
    spec = {"group": GROUP, "scope": "Cluster", "names": names, "versions": versions}
    return {"metadata": {"name": f"widgets.{GROUP}"}, "spec": spec}


async def test_a_kind_that_comes_and_goes(bare_cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    transport = HttpsTransport(await asyncio.to_thread(load, [bare_cluster.kubeconfig]))
    async with Manager(rng=Random(1)) as manager:
        hub = await manager.connect("hub", transport, if_missing="`kedge crds` prints them")
        widgets = hub.cache(WIDGETS)
        running = asyncio.create_task(manager.run(signals=False))
        await until(lambda: "hub does not serve 1 kind that is needed (widgets.missing.example.com)" in caplog.text, 30)
        assert widgets.kind_is_missing
        await hub.client.create(CRDS, definition())
        await until(lambda: widgets.is_synced and not widgets.kind_is_missing, 60)
        await hub.client.delete(CRDS, f"widgets.{GROUP}")
        await until(lambda: widgets.kind_is_missing, 60)
        manager.stop()
        await running
    assert [
        record for record in caplog.records if "watching widgets.missing.example.com: 404" in record.getMessage()
    ] == []

"""The CRD of rollouts holds to the rules of the seed for changes on a real API server, without any webhook."""

from __future__ import annotations

import asyncio

import pytest

from controlplane.cluster import Cluster, KubectlError
from kedge.kube.client import Client
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter
from real.test_batches import DEFINITIONS
from support.update_rows import PARTITION, UNDER_WAY, create, wrong_answers


@pytest.mark.core
async def test_what_may_change_is_taken_and_what_may_not_is_refused_with_the_reason(full_cluster: Cluster) -> None:
    await full_cluster.kubectl("apply", "--server-side", "-f", "-", input=DEFINITIONS)
    connection = await asyncio.to_thread(load, [full_cluster.kubeconfig])
    client = Client(HttpsTransport(connection), limiter=Limiter(rate=0))
    namespace = await full_cluster.fresh_namespace("updates")
    assert await wrong_answers(client, namespace) == {}
    await client.close()


async def test_kubectl_shows_the_reason(full_cluster: Cluster) -> None:
    await full_cluster.kubectl("apply", "--server-side", "-f", "-", input=DEFINITIONS)
    connection = await asyncio.to_thread(load, [full_cluster.kubeconfig])
    client = Client(HttpsTransport(connection), limiter=Limiter(rate=0))
    namespace = await full_cluster.fresh_namespace("updates")
    name = await create(client, namespace, UNDER_WAY)
    await client.close()
    lowered = '{"spec":{"rolloutPlan":{"batchPartition":0}}}'
    with pytest.raises(KubectlError, match=PARTITION):
        await full_cluster.kubectl(
            "patch", "rollouttrait", name, "--namespace", namespace, "--type=merge", "--patch", lowered
        )

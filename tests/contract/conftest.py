"""`api`: every test here runs twice, on the embedded server and on a real kube-apiserver."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random

import pytest

from contract.backend import NAMESPACES, Api
from controlplane.cluster import Cluster
from controlplane.pytest_plugin import SECONDS_FOR_A_REAL_TEST
from kedge.embedded.callers import Caller
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.keeping.keeper import Keeper
from kedge.embedded.server import Server
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.connect.config import load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.limits import Limiter, Retry
from kedge.kube.transport import Transport

_REAL = (pytest.mark.real, pytest.mark.timeout(SECONDS_FOR_A_REAL_TEST))


@pytest.fixture(params=["embedded", pytest.param("real", marks=_REAL)])
def real_cluster(request: pytest.FixtureRequest) -> Cluster | None:
    """The real cluster to hold to the contract; None stands for the embedded server."""
    if request.param == "embedded":
        return None
    found: Cluster = request.getfixturevalue("bare_cluster")  # not in an async fixture: starting it blocks
    return found


@pytest.fixture
async def api(real_cluster: Cluster | None) -> AsyncIterator[Api]:
    client = _client(await _to_real(real_cluster) if real_cluster else _to_embedded())
    yield Api(client, await _namespace(client, real_cluster))
    await client.close()


@pytest.fixture(params=["embedded", pytest.param("real", marks=_REAL)])
def kept_cluster(request: pytest.FixtureRequest) -> Cluster | None:
    """The same for a cluster whose controllers run."""
    if request.param == "embedded":
        return None
    found: Cluster = request.getfixturevalue("full_cluster")
    return found


@pytest.fixture
async def kept(kept_cluster: Cluster | None) -> AsyncIterator[Api]:
    """An API whose house is kept: garbage is collected, namespaces are furnished and emptied."""
    if kept_cluster:
        client = _client(await _to_real(kept_cluster))
        yield Api(client, await _namespace(client, kept_cluster))
        await client.close()
        return
    server = Server(clock=SystemClock(), rng=Random(1))
    keeper = Keeper(server, rng=Random(3))
    keeper.start()
    client = _client(_transport_to(server))
    yield Api(client, await _namespace(client, None))
    keeper.stop()
    await client.close()


async def _to_real(cluster: Cluster) -> Transport:
    return HttpsTransport(await asyncio.to_thread(load, [cluster.kubeconfig]))


def _to_embedded() -> Transport:
    return _transport_to(Server(clock=SystemClock(), rng=Random(1)))


def _transport_to(server: Server) -> Transport:
    return InProcessTransport(server, rng=Random(2), caller=Caller())


def _client(transport: Transport) -> Client:
    return Client(transport, limiter=Limiter(rate=0), retry=Retry(attempts=1))


async def _namespace(client: Client, cluster: Cluster | None) -> str:
    if cluster:
        return await cluster.fresh_namespace()
    made = await client.create(NAMESPACES, {"metadata": {"generateName": "contract-"}})
    return str(made["metadata"]["name"])

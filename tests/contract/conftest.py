"""`api`: every test here runs twice, on the embedded server and on a real kube-apiserver."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random

import pytest

from contract.backend import NAMESPACES, Api
from contract.webhooks import Hooked, Webhook
from kedge.embedded.certificates import ServingCertificate
from kedge.embedded.cluster import BackgroundControllers
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.request_info import Caller
from kedge.embedded.server import Server
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.connect.outbound import HttpOutbound, Outbound
from kedge.kube.limits import Limiter, Retry
from kedge.kube.transport import Transport
from support.recording.api import RealApi

_BACKENDS = ["embedded", pytest.param("real", marks=pytest.mark.recorded)]


@pytest.fixture(params=_BACKENDS)
def real_api(request: pytest.FixtureRequest) -> RealApi | None:
    """The real server to hold to the contract; None stands for the embedded one."""
    if request.param == "embedded":
        return None
    found: RealApi = request.getfixturevalue("bare_api")  # not in an async fixture: starting it blocks
    return found


@pytest.fixture
async def api(real_api: RealApi | None) -> AsyncIterator[Api]:
    outbound = HttpOutbound()
    client = _client(await real_api.transport() if real_api else _to_embedded(outbound))
    yield Api(client, await _namespace(client, real_api))
    await client.close()
    await outbound.close()


@pytest.fixture(scope="session")
def serving_certificate() -> ServingCertificate:
    return ServingCertificate(SystemClock().now())


@pytest.fixture
async def hooked(api: Api, real_api: RealApi | None, serving_certificate: ServingCertificate) -> AsyncIterator[Hooked]:
    """The same with admission webhooks."""
    webhook = Webhook(serving_certificate)
    await webhook.open()
    found = Hooked(api, real_api, webhook)
    yield found
    await found.close()
    await webhook.close()


@pytest.fixture(params=_BACKENDS)
def kept_api(request: pytest.FixtureRequest) -> RealApi | None:
    """The same for a cluster whose controllers run."""
    if request.param == "embedded":
        return None
    found: RealApi = request.getfixturevalue("full_api")
    return found


@pytest.fixture
async def kept(kept_api: RealApi | None) -> AsyncIterator[Api]:
    """An API whose house is kept: garbage is collected, namespaces are furnished and emptied."""
    if kept_api:
        client = _client(await kept_api.transport())
        yield Api(client, await _namespace(client, kept_api))
        await client.close()
        return
    server = Server(clock=SystemClock(), rng=Random(1))
    controllers = BackgroundControllers(server, rng=Random(3))
    controllers.start()
    client = _client(_transport_to(server))
    yield Api(client, await _namespace(client, None))
    controllers.stop()
    await client.close()


def _to_embedded(outbound: Outbound) -> Transport:
    return _transport_to(Server(clock=SystemClock(), rng=Random(1), outbound=outbound))


def _transport_to(server: Server) -> Transport:
    return InProcessTransport(server, rng=Random(2), caller=Caller())


def _client(transport: Transport) -> Client:
    return Client(transport, limiter=Limiter(rate=0), retry=Retry(attempts=1))


async def _namespace(client: Client, real: RealApi | None) -> str:
    if real:
        return await real.fresh_namespace()
    made = await client.create(NAMESPACES, {"metadata": {"generateName": "contract-"}})
    return str(made["metadata"]["name"])

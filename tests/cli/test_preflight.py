"""What a role says when what it needs is not there yet."""

from __future__ import annotations

import random

import pytest

from kedge.api.core import Namespace
from kedge.cli.processes import make_namespace
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.server import Server
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from support.tiny import Tiny


def a_client() -> Client:
    server = Server(clock=SystemClock(), rng=random.Random(1))
    return Client(InProcessTransport(server, rng=random.Random(1)))


async def test_the_namespace_of_the_lease_is_made_once() -> None:
    client = a_client()
    for _ in range(2):
        await make_namespace(client, "fleet-system")
    assert (await client.get(Namespace, "fleet-system")).metadata.name == "fleet-system"


async def test_a_server_that_is_not_there_keeps_nobody_from_starting(caplog: pytest.LogCaptureFixture) -> None:
    server = Tiny()
    server.down = True
    client = Client(server)
    await make_namespace(client, "fleet-system")
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []

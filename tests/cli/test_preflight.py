"""What a role says when what it needs is not there yet."""

from __future__ import annotations

import random

import pytest

from kedge.api.apiextensions import CustomResourceDefinition
from kedge.api.core import Namespace
from kedge.api.crds import crds
from kedge.cli.preflight import look_at_hub, look_at_member, make_namespace
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.server import Server
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from support.tiny import Tiny

CRDS = crds()  # reads our own sources, which must not happen while a loop runs


def a_client() -> Client:
    server = Server(clock=SystemClock(), rng=random.Random(1))
    return Client(InProcessTransport(server, rng=random.Random(1)))


async def test_a_cluster_that_is_no_hub_is_told_what_makes_it_one(caplog: pytest.LogCaptureFixture) -> None:
    await look_at_hub(a_client())
    assert "knows no MemberCluster" in caplog.text
    assert "`kedge install hub | kubectl apply -f -`" in caplog.text


async def test_a_cluster_that_is_no_member_is_told_what_makes_it_one(caplog: pytest.LogCaptureFixture) -> None:
    await look_at_member(a_client(), "cluster-1")
    assert "`kedge install member cluster-1 | kubectl apply -f -`" in caplog.text


async def test_of_a_cluster_that_has_what_it_needs_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    client = a_client()
    for definition in CRDS:
        await client.create(CustomResourceDefinition, definition)
    await look_at_hub(client)
    await look_at_member(client, "cluster-1")
    assert caplog.text == ""


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
    await look_at_hub(client)
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []

"""What an operator says of its options."""

from __future__ import annotations

import asyncio
from pathlib import Path
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.server import Server
from kedge.kube.client import Client
from kedge.kube.cluster import Cluster
from kedge.operator_role import OperatorOptions, WebhookOptions, Webhooks
from support.stage import LoopClock

CERTIFICATE, KEY = Path("tls.crt"), Path("tls.key")
HINT = "will not be read: switch the self-signed certificate off to use"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        pytest.param(
            WebhookOptions(cert_file=CERTIFICATE, key_file=KEY),
            [f"the certificate is self-signed, so tls.crt and tls.key {HINT} them"],
            id="both",
        ),
        pytest.param(
            WebhookOptions(key_file=KEY),
            [f"the certificate is self-signed, so tls.key {HINT} it"],
            id="one of them",
        ),
        pytest.param(WebhookOptions(), [], id="no files"),
        pytest.param(WebhookOptions(self_signed=False, cert_file=CERTIFICATE, key_file=KEY), [], id="they are used"),
    ],
)
def test_files_that_a_self_signed_certificate_leaves_unused_are_named(
    options: WebhookOptions, said: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    async def made() -> None:
        clock, rng = LoopClock(), Random(1)
        client = Client(InProcessTransport(Server(clock=clock, rng=rng), rng=rng))
        whole = OperatorOptions(namespace="mimir", webhooks=options)
        Webhooks(Cluster("one", client, clock=clock, rng=rng), whole, {}, clock, rng, CollectorRegistry())
        await client.close()

    asyncio.run(made())
    assert [record.getMessage() for record in caplog.records if record.name == "kedge.operator_role"] == said

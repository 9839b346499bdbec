"""Renewals while the webhook server is called over real sockets: all parts together.

Two replicas with their own servers, an API that both use, and callers as kube-apiserver is one: each call trusts what
the webhook configuration says at that moment, and makes a new connection. Every certificate is made old, so that the
next renewal is due at once.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from random import Random

from aiohttp import web
from prometheus_client import CollectorRegistry

from controllers.zone.certificate_bed import NAMESPACE, webhook
from kedge.admission.certificate import CertificateRequest, GeneratedCertificate, elliptic, generate
from kedge.admission.tls_server import ShownCertificate, serve
from kedge.api.admission import ValidatingWebhookConfiguration
from kedge.api.core import Namespace
from kedge.api.zones import INJECT_CA, INJECT_NAMESPACE
from kedge.controllers.zone.ca_bundles import CaBundles
from kedge.controllers.zone.certificate_secret import CertificateSecret
from kedge.controllers.zone.certificates import Certificates
from kedge.embedded.cluster import EmbeddedCluster
from kedge.kube.client import Client
from kedge.kube.clock import SystemClock
from kedge.kube.codec import untyped
from kedge.kube.connect.outbound import Call, HttpOutbound, OutboundFailed
from kedge.kube.health import Address
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from support.waiting import until

HOOKS = untyped(ValidatingWebhookConfiguration.resource)
OLD = timedelta(minutes=43)  # due after 40 of them, and used at the latest after 49
LIFE = timedelta(hours=1)
RENEWALS = 2


class Server:
    """One replica: where it serves, and which certificates it has shown."""

    def __init__(self) -> None:
        self.url = ""
        self.shown: list[bytes] = []


async def made_old(names: tuple[str, ...], now: datetime) -> GeneratedCertificate:
    """A certificate whose renewal is due as soon as it is made."""
    return generate(CertificateRequest(names, expiration=LIFE), now - OLD, new_key=elliptic)


@asynccontextmanager
async def replica(cluster: EmbeddedCluster, number: int) -> AsyncIterator[Server]:
    one, clock, shown = Server(), SystemClock(), ShownCertificate(CollectorRegistry())

    async def show(pair: object) -> None:
        await shown.show(pair)  # type: ignore[arg-type]
        one.shown.append(pair.certificate)  # type: ignore[attr-defined]

    async with Manager(clock=clock, rng=Random(number), grace=1.0) as manager:
        running = asyncio.create_task(manager.run(signals=False))
        api = await manager.connect("here", cluster.transport(), limiter=Limiter(rate=0))
        secret = CertificateSecret(api.client, NAMESPACE, "certificate")
        bundles = CaBundles(api, namespaces=[NAMESPACE], registry=CollectorRegistry(), secret=secret)
        certificates = Certificates(
            api,
            secret,
            names=("127.0.0.1",),
            clock=clock,
            rng=Random(number),
            generate=made_old,
            show=show,
            bundles=bundles,
            read_every=0.1,
            known_after=1.5,  # longer than a call may take between reading the bundle and the handshake
        )
        manager.add_controller(certificates.controller)
        manager.add_controller(bundles.controller)
        async with serve(_application(), Address("127.0.0.1", 0), shown) as one.url:
            yield one
        manager.stop()
        await running


def _application() -> web.Application:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="allowed")

    app = web.Application()
    app.router.add_post("/admission/x", answer)
    return app


class Caller:
    """Calls one replica again and again, and keeps what went wrong."""

    def __init__(self, client: Client, server: Server) -> None:
        self._client = client
        self._server = server
        self.stopped = False
        self.answered = 0
        self.failed: list[str] = []

    async def call(self, *, kept: bool) -> None:
        outbound = HttpOutbound(environ={})
        while not self.stopped:
            found = await self._client.get(HOOKS, "hook")
            ca = b64decode(found["webhooks"][0]["clientConfig"]["caBundle"])
            try:
                answer = await outbound.fetch(Call("POST", f"{self._server.url}/admission/x", ca=ca), timeout=30)
            except OutboundFailed as error:
                self.failed.append(str(error))
            else:
                self.answered += answer.body == b"allowed"
            if not kept:
                await outbound.close()
        await outbound.close()


async def test_no_call_fails_while_certificates_are_renewed() -> None:
    cluster = EmbeddedCluster("here", clock=SystemClock(), rng=Random(1))
    cluster.start()
    client = Client(cluster.transport(), limiter=Limiter(rate=0))
    await client.create(Namespace, {"metadata": {"name": NAMESPACE}})
    labels = {INJECT_CA: "true", INJECT_NAMESPACE: NAMESPACE}
    body = {"metadata": {"name": "hook", "labels": labels}, "webhooks": [webhook("hook")]}
    await client.create(HOOKS, body)
    try:
        async with replica(cluster, 1) as one, replica(cluster, 2) as other:
            await _until_injected(client)
            callers = [Caller(client, server) for server in (one, other)]
            tasks = [asyncio.create_task(each.call(kept=kept)) for each in callers for kept in (True, False)]
            await until(lambda: all(len(set(each.shown)) > RENEWALS for each in (one, other)), within=120)
            for each in callers:
                each.stopped = True
            await asyncio.gather(*tasks)
        assert [each.failed for each in callers] == [[], []]
        assert all(each.answered > RENEWALS for each in callers)
    finally:
        await client.close()
        cluster.stop()


async def _until_injected(client: Client) -> None:
    async with asyncio.timeout(60):
        while not (await client.get(HOOKS, "hook"))["webhooks"][0]["clientConfig"].get("caBundle"):
            await asyncio.sleep(0.02)

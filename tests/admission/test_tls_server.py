"""A server over TLS whose certificate is exchanged while it is called, on real sockets."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest
import uvloop
from aiohttp import web
from prometheus_client import CollectorRegistry

from kedge.admission.certificate import GeneratedCertificate
from kedge.admission.tls_server import ShownCertificate, serve
from kedge.kube.clock import SystemClock
from kedge.kube.connect.outbound import Call, HttpOutbound, OutboundFailed
from kedge.kube.connect.tls import TlsRefused
from kedge.kube.health import Address
from kedge.plan.zoning.certificate import ServingPair, read_pair
from support import certificates

ANY_PORT = Address("127.0.0.1", 0)


def made() -> GeneratedCertificate:
    return certificates.made("127.0.0.1", at=SystemClock().now())


def pair_of(one: GeneratedCertificate) -> ServingPair:
    return read_pair(one.certificate, one.key)


def application() -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        await asyncio.sleep(0.002)
        return web.Response(text="yes")

    app = web.Application()
    app.router.add_get("/", answer)
    return app


@asynccontextmanager
async def serving(*first: GeneratedCertificate) -> AsyncIterator[tuple[str, ShownCertificate]]:
    shown = ShownCertificate(CollectorRegistry())
    for one in first:
        await shown.show(pair_of(one))
    async with serve(application(), ANY_PORT, shown) as url:
        yield url, shown


def trusting(ca: bytes) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=ca.decode())


async def peer_certificate(url: str, ca: bytes) -> bytes:
    """The certificate that a new connection gets, from a client that names no server."""
    port = int(url.rpartition(":")[2])
    context = await asyncio.to_thread(trusting, ca)
    context.check_hostname = False
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="")
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    return ssl.DER_cert_to_PEM_cert(found).encode()


async def test_new_connections_get_the_new_certificate() -> None:
    old, new = made(), made()
    async with serving(old) as (url, shown):
        assert await peer_certificate(url, old.ca) == old.certificate
        await shown.show(pair_of(new))
        assert await peer_certificate(url, new.ca) == new.certificate
        with pytest.raises(ssl.SSLCertVerificationError):
            await peer_certificate(url, old.ca)


async def test_a_connection_with_the_old_certificate_is_answered_and_then_closed() -> None:
    old, new = made(), made()
    async with serving(old) as (url, shown), aiohttp.ClientSession() as session:
        context = await asyncio.to_thread(trusting, old.ca + new.ca)
        async with session.get(url, ssl=context) as first:
            assert "Connection" not in first.headers
        await shown.show(pair_of(new))
        async with session.get(url, ssl=context) as second:
            assert (second.status, second.headers["Connection"]) == (200, "close")
        async with session.get(url, ssl=context) as third:
            assert "Connection" not in third.headers


def test_callers_never_fail_while_certificates_are_exchanged_on_either_loop() -> None:
    asyncio.run(exchanged_under_load())
    uvloop.run(exchanged_under_load())


async def exchanged_under_load() -> None:
    """New connections and kept ones, under load, over many exchanges."""
    every = [made() for _ in range(6)]
    bundle = b"".join(one.ca for one in every)
    stop, answered, failed = asyncio.Event(), [0, 0], list[str]()

    async def keep_calling(url: str, kept: bool) -> None:
        outbound = HttpOutbound(environ={})
        while not stop.is_set():
            headers = {} if kept else {"Connection": "close"}
            try:
                answer = await outbound.fetch(Call("GET", url + "/", headers, ca=bundle), timeout=20)
                assert answer.body == b"yes"
                answered[kept] += 1
            except OutboundFailed as error:
                failed.append(str(error))
            if not kept:
                await outbound.close()
        await outbound.close()

    async with serving(every[0]) as (url, shown), asyncio.TaskGroup() as callers:
        for number in range(6):
            callers.create_task(keep_calling(url, number % 2 == 0))
        for one in every * 4:
            before = list(answered)
            await shown.show(pair_of(one))
            while answered[0] < before[0] + 3 or answered[1] < before[1] + 3:
                await asyncio.sleep(0.005)
        stop.set()
    assert failed == []


async def test_the_server_waits_for_its_first_certificate() -> None:
    shown, one = ShownCertificate(CollectorRegistry()), made()
    entered = asyncio.create_task(_enter(shown))
    await asyncio.sleep(0.05)
    assert not entered.done()
    assert not shown.is_ready
    await shown.show(pair_of(one))
    assert (await entered).startswith("https://127.0.0.1:")


async def _enter(shown: ShownCertificate) -> str:
    async with serve(application(), ANY_PORT, shown) as url:
        return url


async def test_a_certificate_that_OpenSSL_refuses_changes_nothing() -> None:
    old, new = made(), made()
    async with serving(old) as (url, shown):
        broken = ServingPair(new.certificate, old.key, (), certificates.NOW, certificates.NOW)
        with pytest.raises(TlsRefused, match="do not belong together"):
            await shown.show(broken)
        assert await peer_certificate(url, old.ca) == old.certificate


async def test_old_versions_of_TLS_are_refused_and_the_end_is_a_metric(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    shown, one = ShownCertificate(registry), made()
    await shown.show(pair_of(one))
    assert shown.listening_context().minimum_version == ssl.TLSVersion.TLSv1_2
    ends = registry.get_sample_value("kedge_serving_certificate_expiry_timestamp_seconds")
    assert ends == pair_of(one).not_after.timestamp()
    assert ends > datetime.now(UTC).timestamp()

"""TLS server: serves an aiohttp application with a certificate that may be exchanged while it runs.

    shown = ShownCertificate(registry)
    await shown.show(pair)                                   # again whenever there is a new one
    async with serve(app, Address("0.0.0.0", 8443), shown) as url:
        ...

Promises that an exchange breaks no connection. A handshake takes the certificate that is shown at its beginning, never
half of two. Connections that began with an older one get their answers, are told to close with the next one, and their
clients come back to the new certificate. Keys are in a file for OpenSSL only while it reads them (`kube.connect.tls`).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web
from prometheus_client import CollectorRegistry, Gauge

from kedge.kube.connect import tls
from kedge.kube.connect.credentials import ClientCertificate
from kedge.kube.health import Address
from kedge.plan.zoning.certificate import ServingPair

KEEP_ALIVE: Final = 180.0
"""Seconds that a connection may be idle."""
SHUTDOWN: Final = 10.0
"""Seconds that requests in progress may take when the server ends."""


class ShownCertificate:
    """The certificate that new connections get."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._context: ssl.SSLContext | None = None
        self._there = asyncio.Event()
        self._expiry = Gauge(
            "kedge_serving_certificate_expiry_timestamp_seconds",
            "When the certificate of the webhook server ends",
            registry=registry,
        )

    async def show(self, pair: ServingPair) -> None:
        """Show this certificate from now on. Raises `TlsRefused` if OpenSSL does not take it."""
        self._context = await asyncio.to_thread(_context, pair)
        self._expiry.set(pair.not_after.timestamp())
        self._there.set()

    async def ready(self) -> None:
        """Wait until there is one."""
        await self._there.wait()

    @property
    def is_ready(self) -> bool:
        return self._context is not None

    def listening_context(self) -> ssl.SSLContext:
        """A context that gives every connection the one that is current when the connection begins.

        The certificate of a context that is in use cannot be exchanged in one step: a connection that begins in
        between would have the new certificate and the old key.
        """
        context = _bare_context()
        context.sni_callback = self._choose  # called for every connection, also for one that names no server
        return context

    def is_current(self, connection: ssl.SSLObject) -> bool:
        """Whether a connection began with the certificate that is shown now."""
        return connection.context is self._context

    def _choose(self, connection: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        if self._context is not None:
            connection.context = self._context


@asynccontextmanager
async def serve(app: web.Application, address: Address, shown: ShownCertificate) -> AsyncIterator[str]:
    """Listen until the context is left; gives the URL. Waits for a first certificate.

    Raises OSError if the address cannot be had. The application must not have been started.
    """
    await shown.ready()
    app.on_response_prepare.append(_closing_outdated(shown))
    runner = web.AppRunner(
        app, access_log=None, handle_signals=False, shutdown_timeout=SHUTDOWN, keepalive_timeout=KEEP_ALIVE
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, address.host, address.port, ssl_context=shown.listening_context(), backlog=512)
        await site.start()
        host, port = runner.addresses[0][:2]
        yield f"https://{f'[{host}]' if ':' in host else host}:{port}"
    finally:
        await runner.cleanup()


def _closing_outdated(shown: ShownCertificate) -> Callable[[web.Request, web.StreamResponse], Awaitable[None]]:
    async def prepare(request: web.Request, response: web.StreamResponse) -> None:
        connection = request.transport.get_extra_info("ssl_object") if request.transport is not None else None
        if connection is not None and not shown.is_current(connection):
            response.headers["Connection"] = "close"
            response.force_close()

    return prepare


def _context(pair: ServingPair) -> ssl.SSLContext:
    context = _bare_context()
    tls.show(context, ClientCertificate(pair.certificate, pair.key))
    return context


def _bare_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context

"""Certificates, servers and a proxy on loopback, for tests over real sockets."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kedge.kube.connect import tls
from kedge.kube.connect.connection import Connection
from kedge.kube.connect.credentials import ClientCertificate, Credentials, FixedCredentials
from kedge.kube.connect.https import HttpsTransport

A_DAY = timedelta(days=1)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Connected = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Authority:
    """A certificate authority, in memory."""

    def __init__(self, name: str = "an authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        self._certificate = self._sign(self._key, self._name, datetime.now(UTC) + A_DAY, ca=True)
        self.pem = self._certificate.public_bytes(serialization.Encoding.PEM)

    def server(self, *names: str, ends: datetime | None = None) -> ClientCertificate:
        """A server's certificate and key, for names or addresses."""
        return self._pair("server", names, ends)

    def client(self, user: str, *, ends: datetime | None = None) -> ClientCertificate:
        """A user's certificate and key."""
        return self._pair(user, (), ends)

    def _pair(self, name: str, names: tuple[str, ...], ends: datetime | None) -> ClientCertificate:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(key, _named(name), ends or datetime.now(UTC) + A_DAY, names)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return ClientCertificate(certificate.public_bytes(serialization.Encoding.PEM), private)

    def _sign(
        self,
        key: ec.EllipticCurvePrivateKey,
        name: x509.Name,
        ends: datetime,
        names: tuple[str, ...] = (),
        *,
        ca: bool = False,
    ) -> x509.Certificate:
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(min(ends, datetime.now(UTC)) - A_DAY)
            .not_valid_after(ends)
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName([_general(n) for n in names]), critical=False)
        return builder.sign(self._key, hashes.SHA256())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def serving(pair: ClientCertificate, *, clients: bytes | None = None, optional: bool = False) -> ssl.SSLContext:
    """A server's context. With `clients`, whoever connects needs a certificate of that authority, or may have one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.show(context, pair)
    if clients is not None:
        context.load_verify_locations(cadata=clients.decode())
        context.verify_mode = ssl.CERT_OPTIONAL if optional else ssl.CERT_REQUIRED
    return context


@asynccontextmanager
async def api(handler: Handler, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A server that answers every request with the handler; its URL."""
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        yield f"{'https' if context else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def raw(connected: Connected, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A server that does with each connection whatever the test wants; its URL."""
    tasks: set[asyncio.Task[None]] = set()

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await connected(reader, writer)
            async with asyncio.timeout(1):
                writer.close()
                await writer.wait_closed()
        writer.transport.abort()

    server = await asyncio.start_server(served, "127.0.0.1", 0, ssl=context)
    try:
        yield f"{'https' if context else 'http'}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)


@contextmanager
def blunt(context: ssl.SSLContext) -> Iterator[str]:
    """A server in a thread that answers with the user's name, and says in TLS why it lets someone not in; its URL.

    asyncio's own servers hang up without a word.
    """
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=_serve_bluntly, args=(listener, context))
    thread.start()
    try:
        yield f"https://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
        listener.close()


def _serve_bluntly(listener: socket.socket, context: ssl.SSLContext) -> None:
    with suppress(OSError):
        while True:
            accepted, _ = listener.accept()
            with accepted, context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False) as secured:
                secured.settimeout(5)
                try:
                    secured.do_handshake()
                except ssl.SSLError:
                    socket.socket.recv(secured, 2**16)  # unread, what the client sent would turn the end into a reset
                    continue
                secured.recv(2**16)
                name = user_of(secured.getpeercert()).encode()
                secured.sendall(
                    b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(name) + name
                )


def user_of(certificate: Mapping[str, Any] | None) -> str:
    """The name in a certificate, as ssl shows it; nothing if there is none."""
    parts = (certificate or {}).get("subject", ())
    return next((str(value) for part in parts for key, value in part if key == "commonName"), "")


class Tunnel:
    """An HTTP proxy that only knows CONNECT, and remembers what it was asked."""

    def __init__(self, status: str = "200 OK") -> None:
        self.status = status
        self.heads: list[str] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        writer.write(f"HTTP/1.1 {self.status}\r\ncontent-length: 0\r\n\r\n".encode())
        if not self.status.startswith("200"):
            await writer.drain()
            return
        host, _, port = head.split()[1].rpartition(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(port))
        try:
            await asyncio.wait(
                [
                    asyncio.create_task(_pass_on(reader, far_writer)),
                    asyncio.create_task(_pass_on(far_reader, writer)),
                ],
                return_when=asyncio.FIRST_COMPLETED,
            )
        finally:
            far_writer.transport.abort()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def transport_to(
    server: str, ca: bytes | None = None, credentials: Credentials | None = None, **more: object
) -> AsyncIterator[HttpsTransport]:
    """A transport, closed in the end."""
    made = HttpsTransport(Connection(server, ca=ca, credentials=credentials or FixedCredentials(), **more))  # type: ignore[arg-type]
    try:
        yield made
    finally:
        await made.close()

"""HTTPS: the transport over sockets.

    transport = HttpsTransport(config.load())
    answer = await transport.send(Request("GET", "/version"), timeout=10)

Promises what `Transport` does, and: a 401 leads to a fresh identity where there is one, and to one more try; new
certificates take effect for new connections; no redirect is followed, no cookie kept, no write sent again otherwise.
Credentials that cannot be had are a `ConnectionFailed` too. Assumes that paths are already in the form that goes over
the wire. One transport belongs to one event loop.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

from yarl import URL

from kedge import __version__
from kedge.kube.connect import failures, tls
from kedge.kube.connect.connection import Connection, shown
from kedge.kube.connect.credentials import ClientCertificate, CredentialsFailed, Identity
from kedge.kube.connect.dialer import Route
from kedge.kube.connect.failures import FAILURES
from kedge.kube.connect.http_answer import decompressed
from kedge.kube.connect.http_connection import HttpRequest
from kedge.kube.connect.line_stream import LineStream
from kedge.kube.connect.pool import Pool, PooledAnswer, Pools
from kedge.kube.connect.request_head import RequestHeads
from kedge.kube.connect.tls import TlsRefused
from kedge.kube.transport import ConnectionFailed, Request, Response, Stream

USER_AGENT = f"kedge/{__version__}"
_EXPECTED = (*FAILURES, CredentialsFailed, TlsRefused)


class HttpsTransport:
    """Sends requests to the API server of a connection."""

    def __init__(
        self,
        connection: Connection,
        *,
        connections: int = 0,
        keep_alive: float = 55.0,
        user_agent: str = USER_AGENT,
        before_send: Callable[[Request], None] | None = None,
    ) -> None:
        """At most `connections` at once (0: no limit, since watches hold theirs); idle ones live `keep_alive` s.

        `before_send` is called when a request is about to be written to its connection; what it raises, `send`
        raises, and the request is not sent (`Election.guard`).
        """
        self._connection = connection
        self._connections = connections
        self._keep_alive = keep_alive
        acting = connection.impersonate.headers() if connection.impersonate else ()
        self._server = URL(connection.server)
        self._proxy = URL(connection.proxy) if connection.proxy else None
        self._heads = RequestHeads(self._server, (("User-Agent", user_agent), *acting), self._proxy)
        self._before_send = before_send
        self._pools = Pools(self._new_pool)

    def __repr__(self) -> str:
        return f"HttpsTransport({shown(self._connection.server)})"

    async def send(self, request: Request, *, timeout: float) -> Response:
        try:
            answer = await self._ask(request, "gzip", timeout)
            reply = answer.reply
            body = decompressed(reply.body, reply.headers) if "content-encoding" in reply.headers else reply.body
        except _EXPECTED as error:
            raise self._failed(error, timeout) from error
        return Response(reply.status, body, reply.headers)

    def stream(self, request: Request, *, timeout: float, silence: float) -> AbstractAsyncContextManager[Stream]:
        return self._stream(request, timeout, silence)

    async def close(self) -> None:
        """End every connection, and with it every stream."""
        await self._pools.close()

    @asynccontextmanager
    async def _stream(self, request: Request, timeout: float, silence: float) -> AsyncIterator[Stream]:
        try:
            answer = await self._ask(request, "identity", timeout, silence)
        except _EXPECTED as error:
            raise self._failed(error, timeout) from error
        try:
            yield HttpsStream(answer)
        finally:
            answer.leave()

    async def _ask(self, request: Request, encoding: str, timeout: float, silence: float | None = None) -> PooledAnswer:
        """The answer to a request; if our identity was refused and there is a fresh one, the answer to that."""
        deadline = asyncio.get_running_loop().time() + timeout
        identity = self._connection.credentials.held() or await self._identity(deadline)
        try:
            answer = await self._ask_as(identity, request, encoding, deadline, silence)
        except (*FAILURES, TlsRefused) as error:
            if not (isinstance(error, TlsRefused) or failures.certificate_refused(error)):
                raise
            fresh = await self._other_than(identity, deadline)
            if fresh is None:
                raise
            return await self._ask_as(fresh, request, encoding, deadline, silence)
        if answer.reply.status != 401:
            return answer
        try:
            fresh = await self._other_than(identity, deadline)
        except BaseException:
            answer.leave()
            raise
        if fresh is None:
            return answer
        answer.leave()
        return await self._ask_as(fresh, request, encoding, deadline, silence)

    async def _identity(self, deadline: float) -> Identity:
        with failures.before_sending:
            async with asyncio.timeout_at(deadline):
                return await self._connection.credentials.identity()

    async def _other_than(self, refused: Identity, deadline: float) -> Identity | None:
        """A fresh identity, if there is one."""
        if not self._connection.credentials.refused(refused):
            return None
        fresh = await self._identity(deadline)
        return fresh if fresh != refused else None

    def _ask_as(
        self, identity: Identity, request: Request, encoding: str, deadline: float, silence: float | None
    ) -> Coroutine[None, None, PooledAnswer]:
        asked = HttpRequest(
            request.method,
            self._heads.write(request, encoding, identity.authorization),
            request.body,
            partial(self._before_send, request) if self._before_send else None,
        )
        incoming = None if silence is None else LineStream(silence)
        pool = self._pools.current_for(identity.certificate)
        if pool is None:
            return self._ask_anew(identity.certificate, asked, deadline, incoming)
        return pool.ask(asked, deadline, incoming)

    async def _ask_anew(
        self, certificate: ClientCertificate | None, asked: HttpRequest, deadline: float, incoming: LineStream | None
    ) -> PooledAnswer:
        """The same through a pool that is still to be made."""
        with failures.before_sending:
            async with asyncio.timeout_at(deadline):
                pool = await self._pools.with_certificate(certificate)
        return await pool.ask(asked, deadline, incoming)

    async def _new_pool(self, certificate: ClientCertificate | None) -> Pool:
        told = self._connection
        context: ssl.SSLContext | None = None
        if "https" in (self._server.scheme, self._proxy and self._proxy.scheme):
            context = await asyncio.to_thread(tls.context, told.ca, insecure=told.insecure, certificate=certificate)
        route = Route(self._server, context, told.tls_server_name, self._proxy)
        return Pool(certificate, route, connections=self._connections, keep_alive=self._keep_alive)

    def _failed(self, error: Exception, timeout: float) -> ConnectionFailed:
        if isinstance(error, (CredentialsFailed, TlsRefused)):
            return ConnectionFailed(str(error), sent=False)
        why = failures.explain(error, timeout=timeout, ca_given=self._connection.ca is not None)
        return ConnectionFailed(f"{shown(self._connection.server)}: {why}", sent=not failures.never_sent(error))


class HttpsStream:
    """A stream over a socket."""

    def __init__(self, answer: PooledAnswer) -> None:
        assert answer.incoming is not None
        self._incoming = answer.incoming
        self.status = answer.reply.status
        self.headers: Mapping[str, str] = answer.reply.headers

    async def read(self) -> bytes:
        return await self._incoming.read()

    async def lines(self) -> AsyncIterator[bytes]:
        while lines := await self._incoming.some():
            for line in lines:
                yield line

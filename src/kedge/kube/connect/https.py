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
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from urllib.parse import quote

from yarl import URL

from kedge import __version__
from kedge.kube.connect import failures, tls
from kedge.kube.connect.connection import Connection, shown
from kedge.kube.connect.credentials import ClientCertificate, CredentialsFailed, Identity
from kedge.kube.connect.failures import FAILURES
from kedge.kube.connect.pool import Answer, Headers, Pool, Pools
from kedge.kube.connect.tls import TlsRefused
from kedge.kube.transport import ConnectionFailed, Request, Response, Stream

USER_AGENT = f"kedge/{__version__}"
_EXPECTED = (*FAILURES, CredentialsFailed, TlsRefused)
_SAFE = "/:@!$&'()*+,;=~%"


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
        self._headers = (("User-Agent", user_agent), *acting)
        self._before_send = before_send
        self._pools = Pools(self._new_pool)

    def __repr__(self) -> str:
        return f"HttpsTransport({shown(self._connection.server)})"

    async def send(self, request: Request, *, timeout: float) -> Response:
        try:
            async with asyncio.timeout(timeout):
                answer = await self._ask(request, "gzip")
                try:
                    body = await answer.response.read()
                finally:
                    await answer.leave()
        except _EXPECTED as error:
            raise self._failed(error, timeout) from error
        return Response(answer.response.status, body, lowered(answer.response.headers.items()))

    def stream(self, request: Request, *, timeout: float, silence: float) -> AbstractAsyncContextManager[Stream]:
        return self._stream(request, timeout, silence)

    async def close(self) -> None:
        """End every connection, and with it every stream."""
        await self._pools.close()

    @asynccontextmanager
    async def _stream(self, request: Request, timeout: float, silence: float) -> AsyncIterator[Stream]:
        try:
            async with asyncio.timeout(timeout):
                answer = await self._ask(request, "identity")
        except _EXPECTED as error:
            raise self._failed(error, timeout) from error
        try:
            yield HttpsStream(answer, silence)
        finally:
            await answer.leave()

    async def _ask(self, request: Request, encoding: str) -> Answer:
        """The answer to a request; if our identity was refused and there is a fresh one, the answer to that."""
        identity = await self._identity()
        try:
            answer = await self._ask_as(identity, request, encoding)
        except (*FAILURES, TlsRefused) as error:
            if not (isinstance(error, TlsRefused) or failures.certificate_refused(error)):
                raise
            fresh = await self._other_than(identity)
            if fresh is None:
                raise
            return await self._ask_as(fresh, request, encoding)
        if answer.response.status != 401:
            return answer
        try:
            fresh = await self._other_than(identity)
        except BaseException:
            await answer.leave()
            raise
        if fresh is None:
            return answer
        await answer.leave()
        return await self._ask_as(fresh, request, encoding)

    async def _identity(self) -> Identity:
        with failures.before_sending:
            return await self._connection.credentials.identity()

    async def _other_than(self, refused: Identity) -> Identity | None:
        """A fresh identity, if there is one."""
        if not self._connection.credentials.refused(refused):
            return None
        fresh = await self._identity()
        return fresh if fresh != refused else None

    async def _ask_as(self, identity: Identity, request: Request, encoding: str) -> Answer:
        with failures.before_sending:
            pool = await self._pools.with_certificate(identity.certificate)
        return await pool.ask(
            request.method,
            self._url(request),
            self._headers_for(identity, request, encoding),
            request.body,
            self._connection.tls_server_name,
            partial(self._before_send, request) if self._before_send else None,
        )

    def _url(self, request: Request) -> URL:
        query = "&".join([f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in request.query])
        path = quote(request.path, safe=_SAFE)
        return URL(f"{self._connection.server}{path}{'?' if query else ''}{query}", encoded=True)

    def _headers_for(self, identity: Identity, request: Request, encoding: str) -> Headers:
        headers = [*self._headers, ("Accept", request.accept), ("Accept-Encoding", encoding)]
        if request.body:
            headers.append(("Content-Type", request.content_type))
        if identity.authorization is not None:
            headers.append(("Authorization", identity.authorization))
        return headers

    async def _new_pool(self, certificate: ClientCertificate | None) -> Pool:
        told = self._connection
        context: ssl.SSLContext | None = None
        if "https:" in (told.server[:6], (told.proxy or "")[:6]):
            context = await asyncio.to_thread(tls.context, told.ca, insecure=told.insecure, certificate=certificate)
        return Pool(
            certificate,
            context,
            connections=self._connections,
            keep_alive=self._keep_alive,
            proxy=told.proxy,
        )

    def _failed(self, error: Exception, timeout: float) -> ConnectionFailed:
        if isinstance(error, (CredentialsFailed, TlsRefused)):
            return ConnectionFailed(str(error), sent=False)
        why = failures.explain(error, timeout=timeout, ca_given=self._connection.ca is not None)
        return ConnectionFailed(f"{shown(self._connection.server)}: {why}", sent=not failures.never_sent(error))


class HttpsStream:
    """A stream over a socket."""

    def __init__(self, answer: Answer, silence: float) -> None:
        self._content = answer.response.content
        self._silence = silence
        self.status = answer.response.status
        self.headers: Mapping[str, str] = lowered(answer.response.headers.items())

    async def read(self) -> bytes:
        parts: list[bytes] = []
        while part := await self._part():
            parts.append(part)
        return b"".join(parts)

    async def lines(self) -> AsyncIterator[bytes]:
        # Parts as they come from the socket, split in one go: as cheap as `readline` without a time-out per line, and
        # no line is too long for it.
        begun: list[bytes] = []
        while part := await self._part():
            first, *rest = part.split(b"\n")
            begun.append(first)
            if not rest:
                continue
            yield b"".join(begun)
            begun = [rest.pop()]
            for line in rest:
                yield line
        if any(begun):
            raise ConnectionFailed("the stream ended in the middle of a line", sent=True)

    async def _part(self) -> bytes:
        """What has come since; nothing at the end."""
        try:
            async with asyncio.timeout(self._silence):
                return await self._content.readany()
        except TimeoutError as error:
            raise ConnectionFailed(f"silent for {self._silence:g} s", sent=True) from error
        except FAILURES as error:
            why = failures.explain(error, timeout=self._silence)
            raise ConnectionFailed(why, sent=True) from error


def lowered(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers by their names in lower case; what comes more than once is joined, as HTTP allows."""
    names: dict[str, str] = {}
    for given, value in headers:
        name = given.lower()
        names[name] = f"{names[name]}, {value}" if name in names else value
    return names

"""Pools: the connections to one server, apart by the client certificate they were made with.

A certificate belongs to a connection, not to a request; so a new certificate means a new pool. The old one is used for
nothing new, drops what is idle, and ends with its last request.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterable
from io import BytesIO

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from yarl import URL

from kedge.kube.connect.credentials import ClientCertificate
from kedge.kube.connect.failures import Connector, Unanswered, last_look
from kedge.kube.transport import ConnectionFailed

Headers = Iterable[tuple[str, str]]
Check = Callable[[], None]
_NO_LIMIT = aiohttp.ClientTimeout(total=None, sock_connect=None)  # deadlines are the callers' affair
_PART = 2**16
_LARGE = 2**20  # above this, aiohttp warns of bodies given as bytes


class Answer:
    """An answer whose head is there. Whoever has it must leave it."""

    __slots__ = ("_pool", "response")

    def __init__(self, pool: Pool, response: aiohttp.ClientResponse) -> None:
        self._pool = pool
        self.response = response

    async def leave(self) -> None:
        self.cut()
        await self._pool.left(self)

    def cut(self) -> None:
        cut(self.response)


class Pool:
    """Sends requests over connections it keeps."""

    def __init__(
        self,
        certificate: ClientCertificate | None,
        context: ssl.SSLContext | None,
        *,
        connections: int,
        keep_alive: float,
        proxy: str | None,
    ) -> None:
        """To be made where the event loop runs, and closed there."""
        self.certificate = certificate
        self._session = aiohttp.ClientSession(
            connector=Connector(
                ssl=True if context is None else context, limit=connections, keepalive_timeout=keep_alive
            ),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=_NO_LIMIT,
            proxy=proxy,
        )
        self._busy = 0
        self._answers: set[Answer] = set()
        self._retired = False

    @property
    def closed(self) -> bool:
        return self._session.closed

    async def ask(
        self,
        method: str,
        url: URL,
        headers: Headers,
        body: bytes,
        server_name: str | None,
        check: Check | None = None,
    ) -> Answer:
        """Send a request, and have its answer as soon as its head is there. Leave the answer when done.

        `check` may refuse, by raising, up to the last moment: when there is a connection, and nothing written to it.
        """
        self._busy += 1
        checked = CheckedBody(body, check) if check and body else None
        looking = last_look.set(check)
        try:
            if check:
                check()
            response = await self._session.request(
                method,
                url,
                headers=headers,
                data=payload(body) if checked is None else checked,
                allow_redirects=False,
                server_hostname=server_name,
                middlewares=_ONCE if method in _REPEATED else None,
            )
        except BaseException as error:
            await self._leave()
            if checked and checked.refusal and isinstance(error, aiohttp.ClientError):
                raise checked.refusal from None  # aiohttp speaks of a broken connection
            raise
        finally:
            last_look.reset(looking)
        answer = Answer(self, response)
        self._answers.add(answer)
        return answer

    async def left(self, answer: Answer) -> None:
        self._answers.discard(answer)
        await self._leave()

    async def retire(self) -> None:
        """Use it for nothing new: what is idle goes now, the rest with its last request."""
        self._retired = True
        if not self._busy:
            await self._session.close()

    async def close(self) -> None:
        """End it, and whatever still uses it."""
        for answer in tuple(self._answers):
            answer.cut()
        await self._session.close()

    async def _leave(self) -> None:
        self._busy -= 1
        if self._retired and not self._busy:
            await self._session.close()


class CheckedBody(aiohttp.Payload):
    """A body of which each part is written only if a check lets it pass at that very moment.

    aiohttp writes the head together with the first part, so that a request refused there leaves no trace; one refused
    later stays incomplete, and no server acts on it.
    """

    def __init__(self, body: bytes, check: Check) -> None:
        super().__init__(body)
        self._size = len(body)
        self._autoclose = True
        self._check = check
        self.refusal: Exception | None = None

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return bytes(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        await self.write_with_length(writer, self._size)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:  # noqa: ARG002 - it is the size
        for begin in range(0, len(self._value), _PART):
            try:
                self._check()
            except Exception as error:
                self.refusal = error
                raise
            await writer.write(self._value[begin : begin + _PART])


class Pools:
    """The pool for the certificate in use, and those of earlier ones that are not done yet."""

    def __init__(self, make: Callable[[ClientCertificate | None], Awaitable[Pool]]) -> None:
        self._make = make
        self._current: Pool | None = None
        self._earlier: list[Pool] = []
        self._changing = asyncio.Lock()
        self._closed = False

    async def with_certificate(self, certificate: ClientCertificate | None) -> Pool:
        """The pool to use with this certificate; made if there is none, and then the last one retires."""
        if self._current is None or self._current.certificate != certificate:
            async with self._changing:  # making one takes a thread: others may come in the meantime
                await self._change(certificate)
        if self._current is None:
            raise ConnectionFailed("this transport is closed", sent=False)
        return self._current

    async def close(self) -> None:
        self._closed = True
        async with self._changing:
            for pool in (*self._earlier, *((self._current,) if self._current else ())):
                await pool.close()
            self._earlier, self._current = [], None

    async def _change(self, certificate: ClientCertificate | None) -> None:
        if self._closed or (self._current is not None and self._current.certificate == certificate):
            return
        last, self._current = self._current, await self._make(certificate)
        if last is not None:
            self._earlier = [pool for pool in (*self._earlier, last) if not pool.closed]
            await last.retire()


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keeps aiohttp from sending a write again over a new connection when the old one broke.

    The first may have been carried out, and the second would then be answered with a conflict of our own making.
    """
    try:
        return await send(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise Unanswered from error


_ONCE = (_once,)
_REPEATED = frozenset({"PUT", "DELETE"})


def cut(response: aiohttp.ClientResponse) -> None:
    """End a response's connection, unless all was read and others may use it.

    Aborted rather than closed: a peer that hangs would keep a proper end of TLS waiting.
    """
    if response.closed:
        return
    if response.connection is not None and response.connection.transport is not None:
        response.connection.transport.abort()
    response.close()


def payload(body: bytes) -> bytes | BytesIO | None:
    if not body:
        return None
    return BytesIO(body) if len(body) > _LARGE else body

"""Door: one embedded server, open to any client over HTTPS.

    door = Door(server, tokens={"secret": Caller()}, tls=Serving(now).context)
    await door.open()                     # on loopback, at a port the system chooses
    print(door.url)

Listens on loopback only. A request needs a known bearer token, but for health checks and the version. The server
computes, the door carries: it never waits for anything but its clients, and a client that does not read a watch is
cut off, as everywhere.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from aiohttp import web

from kedge.embedded import statuses
from kedge.embedded.callers import Caller
from kedge.embedded.feed import Feed
from kedge.embedded.server import Server
from kedge.embedded.watching import Watch
from kedge.kube.transport import JSON, ConnectionFailed, Request, Response

LOOPBACK = "127.0.0.1"
LARGEST_BODY = 3 * 1024 * 1024
_FOR_EVERYONE = ("/healthz", "/livez", "/readyz", "/version")
_ROOM = 10_000  # events a client may be behind
_NOBODY = Caller("system:anonymous", ("system:unauthenticated",), "")


class Door:
    """Serves one server over HTTPS. `tokens` says who a bearer token stands for."""

    def __init__(self, server: Server, *, tokens: Mapping[str, Caller], tls: ssl.SSLContext) -> None:
        self._server = server
        self._tokens = tokens
        self._tls = tls
        self._runner: web.ServerRunner | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self.port}"

    async def open(self, port: int = 0) -> None:
        """Begin to listen. Raises OSError if the port is taken."""
        handler = web.Server(self._answer, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(handler, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, LOOPBACK, port, ssl_context=self._tls, backlog=512)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        """Stop listening, and cut off who is connected."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, asked: web.BaseRequest) -> web.StreamResponse:
        caller = self._caller(asked)
        if caller is None:
            return _sent(statuses.unauthorized().response())
        if (asked.content_length or 0) > LARGEST_BODY:
            return _sent(statuses.too_large(LARGEST_BODY).response())
        request = await _read(asked)
        if request is None:
            return _sent(statuses.too_large(LARGEST_BODY).response())
        if not self._server.running:
            return _cut(asked)
        found = self._server.watch(request, caller)
        if isinstance(found, Response):
            return _sent(found)
        return await _streamed(asked, found)

    def _caller(self, asked: web.BaseRequest) -> Caller | None:
        """Who asks; None if nobody knows."""
        scheme, _, token = asked.headers.get("Authorization", "").partition(" ")
        known = self._tokens.get(token.strip()) if scheme.lower() == "bearer" else None
        if known is None:
            return _NOBODY if asked.path in _FOR_EVERYONE else None
        return Caller(known.user, known.groups, asked.headers.get("User-Agent", ""), known.sees_owners)


async def _read(asked: web.BaseRequest) -> Request | None:
    """The request as transports carry it; None if its body is too large."""
    body = bytearray()
    async for part in asked.content.iter_any():
        body += part
        if len(body) > LARGEST_BODY:
            return None
    url = asked.rel_url
    return Request(
        asked.method,
        url.raw_path,
        tuple(url.query.items()),
        bytes(body),
        asked.headers.get("Content-Type", ""),
        asked.headers.get("Accept", ""),
    )


def _sent(response: Response) -> web.Response:
    return web.Response(status=response.status, body=response.body, headers=response.headers)


def _cut(asked: web.BaseRequest) -> web.StreamResponse:
    """End the connection without an answer, as a server that is not there."""
    if asked.transport is not None:
        asked.transport.abort()
    return web.Response(status=503)


async def _streamed(asked: web.BaseRequest, watch: Watch) -> web.StreamResponse:
    """Send what a watch tells, until it ends or the client goes."""
    response = web.StreamResponse(headers={"Content-Type": JSON})
    response.enable_chunked_encoding()
    feed = Feed(watch, delay=lambda: 0.0, room=_ROOM)
    try:
        await response.prepare(asked)
        while True:
            if lines := list(feed.here()):
                await response.write(b"\n".join((*lines, b"")))
            elif feed.ended:
                break
            else:
                await feed.wait()
    except ConnectionFailed:
        return _cut(asked)
    except ConnectionError:  # the client went
        return response
    finally:
        feed.cut("the client went")
    await response.write_eof()
    return response

"""HTTPS server: one embedded server, reachable by any client over HTTPS.

    https = HttpsServer(server, tokens={"secret": Caller()}, tls=ServingCertificate(now).context)
    await https.open()                     # on loopback, at a port the system chooses
    print(https.url)

Listens on loopback only. A request needs a known bearer token, except for health checks and the version. It never waits
for anything but its clients. A client that does not read its watch is disconnected.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping

from aiohttp import web
from msgspec.structs import replace

from kedge.embedded import statuses
from kedge.embedded.options import is_watch
from kedge.embedded.request_info import Caller
from kedge.embedded.server import Server
from kedge.embedded.watch import Watch
from kedge.embedded.watch_stream import WatchStream
from kedge.kube.transport import JSON, ConnectionFailed, Request, Response

LOOPBACK = "127.0.0.1"
MAX_BODY_BYTES = 3 * 1024 * 1024
_PUBLIC_PATHS = ("/healthz", "/livez", "/readyz", "/version")
_MAX_LAG = 10_000  # events a client may be behind
_ANONYMOUS = Caller("system:anonymous", ("system:unauthenticated",), "")


class HttpsServer:
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
        """Start to listen. Raises OSError if the port is in use."""
        handler = web.Server(self._answer, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(handler, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, LOOPBACK, port, ssl_context=self._tls, backlog=512)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        """Stop listening, and close all connections."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def _answer(self, asked: web.BaseRequest) -> web.StreamResponse:
        caller = self._caller(asked)
        if caller is None:
            return _web_response(statuses.unauthorized().response())
        if (asked.content_length or 0) > MAX_BODY_BYTES:
            return _web_response(statuses.too_large(MAX_BODY_BYTES).response())
        request = await _read(asked)
        if request is None:
            return _web_response(statuses.too_large(MAX_BODY_BYTES).response())
        if not self._server.running:
            return _close_connection(asked)
        found = (
            self._server.watch(request, caller) if is_watch(request) else await self._server.respond(request, caller)
        )
        if isinstance(found, Response):
            return _web_response(found)
        return await _streamed(asked, found)

    def _caller(self, asked: web.BaseRequest) -> Caller | None:
        """The caller by the bearer token; None if it is unknown."""
        scheme, _, token = asked.headers.get("Authorization", "").partition(" ")
        known = self._tokens.get(token.strip()) if scheme.lower() == "bearer" else None
        if known is None:
            return _ANONYMOUS if asked.path in _PUBLIC_PATHS else None
        return replace(known, agent=asked.headers.get("User-Agent", ""), token=token.strip())


async def _read(asked: web.BaseRequest) -> Request | None:
    """The request as a transport has it; None if its body is too large."""
    body = bytearray()
    async for part in asked.content.iter_any():
        body += part
        if len(body) > MAX_BODY_BYTES:
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


def _web_response(response: Response) -> web.Response:
    return web.Response(status=response.status, body=response.body, headers=response.headers)


def _close_connection(asked: web.BaseRequest) -> web.StreamResponse:
    """Close the connection without an answer, as if there were no server."""
    if asked.transport is not None:
        asked.transport.abort()
    return web.Response(status=503)


async def _streamed(asked: web.BaseRequest, watch: Watch) -> web.StreamResponse:
    """Send the lines of a watch, until it ends or the client disconnects."""
    response = web.StreamResponse(headers={"Content-Type": JSON})
    response.enable_chunked_encoding()
    stream = WatchStream(watch, delay=lambda: 0.0, room=_MAX_LAG)
    try:
        await response.prepare(asked)
        while True:
            if lines := list(stream.arrived_lines()):
                await response.write(b"\n".join((*lines, b"")))
            elif stream.ended:
                break
            else:
                await stream.wait()
    except ConnectionFailed:
        return _close_connection(asked)
    except ConnectionError:  # the client went
        return response
    finally:
        stream.cut("the client went")
    await response.write_eof()
    return response

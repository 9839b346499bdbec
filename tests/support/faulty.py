"""A proxy in front of a real API server that can break what passes through it, over real sockets and TLS."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from aiohttp import ClientSession, TCPConnector, web

from controlplane.certs import Authority
from controlplane.cluster import Cluster
from support.waiting import until


class FaultyProxy:
    """Passes every request on to a cluster, and back; watches do not always survive it.

    `refuse` answers watches with a code instead; `cut` breaks those that are open, `cut_in_a_line` in the middle of
    the next line that comes, and `hush` keeps them open but silent. `gone` counts the watches that ended in a 410.
    """

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.refuse: int | None = None
        self.refused = 0
        self.watches = 0
        self.gone = 0
        self._cluster = cluster
        self._authority = Authority(folder, "proxy-ca")
        self._keys = self._authority.serving("proxy")
        self._open: set[asyncio.Transport] = set()
        self._hushed: set[asyncio.Transport] = set()
        self._half: set[asyncio.Transport] = set()
        self._sockets: list[socket.socket] = []
        self._session: ClientSession | None = None

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[Self]:
        upstream = ssl.create_default_context(cafile=str(self._cluster.ca_file))
        serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        serving.load_cert_chain(self._keys.certificate, self._keys.key)
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
        connector = TCPConnector(ssl=upstream, limit=0, socket_factory=self._new_socket)
        async with ClientSession(connector=connector, auto_decompress=False) as session:
            self._session = session
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=serving)
            await site.start()
            self.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
            try:
                yield self
            finally:
                self.cut()
                await runner.cleanup()
        await until(lambda: all(one.fileno() < 0 for one in self._sockets))  # a session does not wait for its sockets

    def _new_socket(self, address: Any) -> socket.socket:
        family, kind, protocol, _, _ = address
        made = socket.socket(family, kind, protocol)
        self._sockets.append(made)
        return made

    @property
    def ca(self) -> bytes:
        return self._authority.file.read_bytes()

    @property
    def passing(self) -> int:
        """How many watches are open and pass."""
        return len(self._open)

    def cut(self) -> None:
        """Reset the connection of every open watch."""
        for transport in list(self._open):
            transport.abort()

    def cut_in_a_line(self) -> None:
        """Reset every open watch in the middle of the next line."""
        self._half |= self._open

    def hush(self) -> None:
        """Let nothing pass on the open watches any more, and keep them open."""
        self._hushed |= self._open

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        is_watch = request.query.get("watch") == "true"
        if is_watch:
            self.watches += 1
        if is_watch and self.refuse:
            self.refused += 1
            return _refusal(self.refuse)
        assert self._session is not None
        url = self._cluster.url + request.raw_path
        headers = {
            name: request.headers[name]
            for name in ("Authorization", "Accept", "Content-Type")
            if name in request.headers
        }
        async with self._session.request(request.method, url, headers=headers, data=await request.read()) as answer:
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
            await response.prepare(request)
            transport = request.transport
            assert isinstance(transport, asyncio.Transport)
            if is_watch:
                self._open.add(transport)
            try:
                async for chunk in answer.content.iter_any():
                    self.gone += is_watch and b'"code":410' in chunk
                    await self._write(response, transport, chunk)
            finally:
                self._open.discard(transport)
            await response.write_eof()
            return response

    async def _write(self, response: web.StreamResponse, transport: asyncio.Transport, chunk: bytes) -> None:
        if transport in self._hushed or transport.is_closing():
            return
        if transport in self._half:
            await response.write(chunk[: len(chunk) // 2])
            await asyncio.sleep(0.05)  # let it out before the reset takes it back
            transport.abort()
            return
        await response.write(chunk)


def _refusal(code: int) -> web.Response:
    reason = {429: "TooManyRequests", 500: "InternalError"}[code]
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": "no"}
    return web.json_response(body, status=code, headers={"Retry-After": "1"})

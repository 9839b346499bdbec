"""A bare protocol: the least that HTTP over TLS can cost on this event loop. No client: it knows one kind of answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlsplit

from kedgebench.rivals import Held, Saw
from kedgebench.rivals.aiohttp import Aiohttp, marked

Take = Callable[[bytes], bool]
"""Told each chunk of a body; True means that no more is wanted."""


class Wire(asyncio.Protocol):
    """One connection. Knows chunked bodies only, which is how a kube-apiserver sends what is not small."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._rest = b""
        self._in_body = False
        self._take: Take = bool
        self._end = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._rest += data
        if not self._in_body:
            head, found, rest = self._rest.partition(b"\r\n\r\n")
            if not found:
                return
            assert b"chunked" in head, head
            self._in_body, self._rest = True, rest
        for chunk in self._chunks():
            if not chunk or self._take(chunk):
                self._in_body = False
                self._end.set_result(None)
                return

    def _chunks(self) -> Iterator[bytes]:
        begin = 0
        while (line := self._rest.find(b"\r\n", begin)) >= 0:
            end = line + 2 + int(self._rest[begin:line], 16)
            if len(self._rest) < end + 2:
                break
            begin, chunk = end + 2, self._rest[line + 2 : end]
            yield chunk
        self._rest = self._rest[begin:]

    async def ask(self, request: bytes, take: Take) -> None:
        self._take = take
        self._rest = b""
        self._end = self._loop.create_future()
        self._transport.write(request)  # type: ignore[attr-defined]  # a stream, as we asked for
        await self._end


class Bare(Aiohttp):
    """Trusts and identifies as the other floor does."""

    def __init__(self, kubeconfig: str, namespace: str) -> None:
        super().__init__(kubeconfig, namespace)
        self._free: list[Wire] = []

    async def get(self, name: str) -> object:
        parts: list[bytes] = []

        def take(chunk: bytes) -> bool:
            parts.append(chunk)
            return False

        wire = self._free.pop() if self._free else await self._connect()
        await wire.ask(self._request(f"{self._path}/{name}"), take)
        self._free.append(wire)
        return b"".join(parts)

    async def list(self) -> Sequence[object]:
        raise NotImplementedError

    async def watch(self, saw: Saw) -> None:
        def take(chunk: bytes) -> bool:
            return chunk.startswith(b'{"type":"MODIFIED"') and saw(marked(chunk))

        wire = await self._connect()
        await wire.ask(self._request(f"{self._path}?watch=true&resourceVersion=0"), take)

    async def hold(self, namespace: str, copies: int) -> Held:
        raise NotImplementedError

    async def _connect(self) -> Wire:
        server = urlsplit(self._server)
        loop = asyncio.get_running_loop()
        _, wire = await loop.create_connection(Wire, server.hostname, server.port, ssl=self._context)
        return wire

    def _request(self, path: str) -> bytes:
        head = f"GET {path} HTTP/1.1", f"Host: {urlsplit(self._server).netloc}", "Accept: application/json"
        return "\r\n".join([*head, "", ""]).encode()

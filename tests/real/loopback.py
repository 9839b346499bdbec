"""What listens on loopback in place of a network: pods that answer over HTTP, and the address of a Service."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import web

PORT = 443


class PodServers:
    """Answers for all pods, and remembers what they were asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []
        self.failing: set[str] = set()
        self.url = ""

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        runner = web.ServerRunner(web.Server(self._answer, access_log=None), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        pod = (request.url.host or "").partition(".")[0]
        self.asked.append((request.method, str(request.url)))
        return web.Response(status=500 if pod in self.failing and request.method == "POST" else 200)

    def told(self, method: str) -> list[str]:
        """The URLs that were asked with this method, in order of their names."""
        return sorted(url for asked, url in self.asked if asked == method)


class ServiceAddress:
    """Listens at the address of a Service, and leads every connection to the next of some ports that answers."""

    def __init__(self) -> None:
        self.ports: list[int] = []
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listen(self, host: str) -> AsyncIterator[None]:
        try:
            server = await asyncio.start_server(self._lead, host, PORT)
        except PermissionError:
            pytest.skip(f"only a privileged process may listen on port {PORT}")
        try:
            yield
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _lead(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            for _ in range(len(self.ports)):
                self.ports.append(self.ports.pop(0))
                with suppress(ConnectionError):
                    behind = await asyncio.open_connection("127.0.0.1", self.ports[-1])
                    await _join((reader, writer), behind)
                    return
        finally:
            writer.close()


async def _join(one: tuple[StreamReader, StreamWriter], other: tuple[StreamReader, StreamWriter]) -> None:
    """Copy both ways until one side ends."""
    copying = {asyncio.create_task(_copy(one[0], other[1])), asyncio.create_task(_copy(other[0], one[1]))}
    try:
        await asyncio.wait(copying, return_when=asyncio.FIRST_COMPLETED)
    finally:
        other[1].close()
        for task in copying:
            task.cancel()
        await asyncio.gather(*copying, return_exceptions=True)


async def _copy(reader: StreamReader, writer: StreamWriter) -> None:
    with suppress(ConnectionError):
        while part := await reader.read(65536):
            writer.write(part)
            await writer.drain()

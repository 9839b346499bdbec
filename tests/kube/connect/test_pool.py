"""Connections kept, shared out, limited, and ended."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest
import uvloop
from aiohttp import web
from yarl import URL

from kedge.kube.connect import dialer
from kedge.kube.connect.connection import Connection, Impersonation
from kedge.kube.connect.dialer import Address, Route
from kedge.kube.connect.failures import ServerUnreachable
from kedge.kube.connect.http_connection import HttpConnection
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.transport import ConnectionFailed, Request
from kube.connect.tlsfixtures import Authority, Tunnel, api, raw, serving, transport_to
from support.waiting import until

GET = Request("GET", "/api/v1/pods")
AUTHORITY = Authority()
SERVER = serving(AUTHORITY.server("127.0.0.1"))


class Counting:
    """A server that notes its connections, and answers when it may."""

    def __init__(self) -> None:
        self.peers: set[asyncio.BaseTransport] = set()
        self.waiting = 0
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def answer(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        self.peers.add(request.transport)
        self.waiting += 1
        await self.go_on.wait()
        self.waiting -= 1
        return web.Response()

    @property
    def open(self) -> int:
        return len([peer for peer in self.peers if not peer.is_closing()])


def transport_of(server: str, *, connections: int = 0, keep_alive: float = 55.0) -> HttpsTransport:
    return HttpsTransport(Connection(server, ca=AUTHORITY.pem), connections=connections, keep_alive=keep_alive)


async def test_an_idle_connection_is_closed_after_a_while() -> None:
    counting = Counting()
    async with api(counting.answer, SERVER) as server:
        transport = transport_of(server, keep_alive=0.1)
        await asyncio.gather(*(transport.send(GET, timeout=5) for _ in range(3)))
        await until(lambda: counting.open == 0)
        await transport.close()


async def test_a_connection_in_use_outlives_its_idleness() -> None:
    counting = Counting()
    async with api(counting.answer, SERVER) as server:
        transport = transport_of(server, keep_alive=0.1)
        await transport.send(GET, timeout=5)
        counting.go_on.clear()
        asking = asyncio.create_task(transport.send(GET, timeout=5))
        await asyncio.sleep(0.3)
        counting.go_on.set()
        assert (await asking).status == 200
        assert len(counting.peers) == 1
        await transport.close()


async def test_there_are_no_more_connections_than_allowed() -> None:
    counting = Counting()
    async with api(counting.answer, SERVER) as server:
        transport = transport_of(server, connections=2)
        answers = await asyncio.gather(*(transport.send(GET, timeout=5) for _ in range(20)))
        await transport.close()
    assert {answer.status for answer in answers} == {200}
    assert len(counting.peers) == 2


async def test_whoever_gives_up_waiting_takes_nobodys_turn() -> None:
    counting = Counting()
    counting.go_on.clear()
    async with api(counting.answer, SERVER) as server:
        transport = transport_of(server, connections=1)
        first, second, third = (asyncio.create_task(transport.send(GET, timeout=5)) for _ in range(3))
        await until(lambda: counting.waiting == 1)
        counting.go_on.set()
        await first
        second.cancel()
        assert (await third).status == 200
        await transport.close()


async def test_waiting_for_a_connection_has_a_time_out_and_was_not_sent() -> None:
    counting = Counting()
    counting.go_on.clear()
    async with api(counting.answer, SERVER) as server:
        transport = transport_of(server, connections=1)
        first = asyncio.create_task(transport.send(GET, timeout=5))
        await until(lambda: counting.waiting == 1)
        with pytest.raises(ConnectionFailed, match=r"no connection within 0.1 s") as caught:
            await transport.send(GET, timeout=0.1)
        assert not caught.value.sent
        counting.go_on.set()
        await first
        await transport.close()


async def test_a_failed_dial_makes_room_for_the_next() -> None:
    async with raw(Tunnel()) as server:
        pass
    transport = HttpsTransport(Connection(server), connections=1)
    outcomes = await asyncio.gather(*(transport.send(GET, timeout=5) for _ in range(3)), return_exceptions=True)
    assert all("cannot connect" in str(outcome) for outcome in outcomes)
    await transport.close()


async def test_closing_while_dialling_leaves_nothing_open() -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with raw(hang) as server:
        transport = HttpsTransport(Connection(server.replace("http", "https"), ca=AUTHORITY.pem))
        asking = asyncio.create_task(transport.send(GET, timeout=0.3))
        await asyncio.sleep(0.1)
        await transport.close()
        with pytest.raises(ConnectionFailed) as caught:
            await asking
        assert not caught.value.sent


async def test_a_kept_connection_that_broke_costs_a_read_one_more_try_and_not_two() -> None:
    tries: list[bytes] = []

    async def fickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tries.append(await reader.readuntil(b"\r\n\r\n"))
        if b"/first" in tries[-1]:
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            tries.append(await reader.readuntil(b"\r\n\r\n"))

    async with raw(fickle) as server, transport_to(server) as transport:
        await asyncio.gather(*(transport.send(Request("GET", "/first"), timeout=5) for _ in range(3)))
        with pytest.raises(ConnectionFailed):
            await transport.send(Request("GET", "/second"), timeout=5)
    assert len([head for head in tries if b"/second" in head]) == 2


def test_a_header_cannot_smuggle_in_another() -> None:
    acting = Impersonation("jane\r\nAuthorization: Bearer mine")
    with pytest.raises(ValueError, match=r"'Impersonate-User' holds a line break"):
        HttpsTransport(Connection("https://api", impersonate=acting))


# Dialling


async def test_a_plain_server_is_asked_for_by_its_whole_url_at_a_proxy() -> None:
    heads: list[str] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async with (
        raw(proxy) as at,
        transport_to("http://api.example:8080/base", proxy=at.replace("://", "://me:hunter2@")) as transport,
    ):
        assert (await transport.send(GET, timeout=5)).status == 200
    assert heads[0].startswith("GET http://api.example:8080/base/api/v1/pods HTTP/1.1\r\nHost: api.example:8080\r\n")
    assert "Proxy-Authorization: Basic bWU6aHVudGVyMg==" in heads[0]


@pytest.mark.parametrize("proxied_by", [None, SERVER], ids=["plain", "tls"])
def test_a_proxy_works_on_uvloop(proxied_by: object) -> None:
    async def work() -> None:
        async with (
            api(Counting().answer, SERVER) as server,
            raw(Tunnel(), SERVER if proxied_by else None) as proxy,
            transport_to(server, AUTHORITY.pem, proxy=proxy) as transport,
        ):
            for _ in range(2):
                assert (await transport.send(GET, timeout=5)).status == 200

    uvloop.run(work())


async def test_a_proxy_that_talks_nonsense_was_sent_nothing() -> None:
    async def noise(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
        await writer.drain()

    async with raw(noise) as proxy, transport_to("https://api.example", proxy=proxy) as transport:
        with pytest.raises(ConnectionFailed) as caught:
            await transport.send(GET, timeout=5)
    assert not caught.value.sent


@pytest.mark.parametrize("first", ["refuses", "hangs"])
async def test_the_next_address_is_tried_when_one_leads_nowhere(first: str, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = dialer._connected

    async def connected(address: Address) -> socket.socket:
        if address[4] != "nowhere":
            return await honest(address)
        if first == "hangs":
            await asyncio.Event().wait()
        raise ConnectionRefusedError(111, "Connection refused")

    async def getaddrinfo(host: str, port: int, **more: object) -> list[Address]:
        found = await resolve("127.0.0.1", port, type=socket.SOCK_STREAM)
        return [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", "nowhere"), *found]

    resolve = asyncio.get_running_loop().getaddrinfo
    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(dialer, "_connected", connected)
    monkeypatch.setattr(dialer, "NEXT_AFTER", 0.05)
    async with api(Counting().answer) as server:
        connection = await dialer.dial(Route(URL(server)))
        assert connection.is_open
        connection.abort()
        await connection.lost


async def test_addresses_that_all_lead_nowhere_are_told() -> None:
    async with raw(Tunnel()) as server:
        pass
    with pytest.raises(ServerUnreachable, match=r"cannot connect: Connect"):
        await dialer.dial(Route(URL(server.replace("127.0.0.1", "localhost"))))


# Nothing is left of a transport that was closed: what is would be found, and blamed on whoever runs then


class Deaf:
    """A server that answers once per connection, and then neither reads nor ends anything."""

    def __init__(self) -> None:
        self.connections: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        transport = cast("asyncio.ReadTransport", writer.transport)
        transport.pause_reading()


async def test_closing_waits_for_connections_that_were_being_ended_before_it() -> None:
    deaf = Deaf()
    server = await asyncio.start_server(deaf.serve, "127.0.0.1", 0, ssl=SERVER)
    address, port = server.sockets[0].getsockname()
    made: list[HttpConnection] = []
    transport = transport_of(f"https://{address}:{port}", keep_alive=0.05)
    with noting_connections(made):
        await transport.send(GET, timeout=5)
    await until(made[0].transport.is_closing)  # idle for too long; the server does not answer to its end
    await transport.close()
    assert made[0].lost.done()
    await ended(server, deaf)


async def test_a_request_that_is_cancelled_as_it_connects_leaves_no_connection() -> None:
    deaf = Deaf()
    server = await asyncio.start_server(deaf.serve, "127.0.0.1", 0, ssl=SERVER)
    address, port = server.sockets[0].getsockname()
    made: list[HttpConnection] = []
    transport = transport_of(f"https://{address}:{port}")
    asking = asyncio.create_task(transport.send(GET, timeout=5))
    with noting_connections(made, then=asking.cancel):
        await asyncio.wait([asking])
    assert asking.cancelled()
    await asyncio.wait([made[0].lost], timeout=1)
    assert made[0].lost.done()
    await transport.close()
    await ended(server, deaf)


@contextmanager
def noting_connections(made: list[HttpConnection], then: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Keep the connections that are made, and do something in the moment they are."""

    class Noted(HttpConnection):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            made.append(self)
            then()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dialer, "HttpConnection", Noted)
        yield


async def ended(server: asyncio.Server, deaf: Deaf) -> None:
    for writer in deaf.connections:
        writer.transport.abort()
    server.close()
    await server.wait_closed()

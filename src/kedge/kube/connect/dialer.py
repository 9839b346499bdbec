"""Dialer: opens connections to one server, directly or through a proxy.

All addresses of a name are tried, the next one when the last has not answered soon. Errors say what failed: the name,
the route, the proxy or TLS. A server that speaks TLS is reached through a tunnel (CONNECT), so that a proxy sees
neither request nor identity.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

from msgspec import Struct
from yarl import URL

from kedge.kube.connect.credentials import basic
from kedge.kube.connect.failures import ServerUnreachable, reason
from kedge.kube.connect.http_connection import HttpConnection, HttpReply, HttpRequest
from kedge.kube.connect.refused_addresses import refused

NEXT_AFTER = 0.25
"""Seconds after which the next address of a name is tried as well (RFC 8305)."""

END_WITHIN = 2.0
"""Seconds that a peer has for a proper end of TLS."""

Address = tuple[int, int, int, str, Any]


class Route(Struct, frozen=True):
    """Where a server is, how to reach it, and whom to trust. `server_name` is the name in its certificate."""

    server: URL
    context: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: URL | None = None
    is_guarded: bool = False
    """Whether addresses are refused that no user may have called (`refused_addresses`)."""

    @property
    def secured(self) -> ssl.SSLContext | None:
        """The context, if the server speaks TLS."""
        return self.context if self.server.scheme == "https" else None


async def dial(route: Route) -> HttpConnection:
    """A new connection. Raises `ServerUnreachable`, or the errors of TLS."""
    if route.proxy is None:
        sock = await _reach(route.server, is_guarded=route.is_guarded)
        return await _open(sock, route.secured, route.server_name or _host(route.server))
    try:
        sock = await _reach(route.proxy)
    except ServerUnreachable as error:
        raise ServerUnreachable(f"the proxy cannot be reached: {error}") from error
    connection = await _open(sock, route.context if route.proxy.scheme == "https" else None, _host(route.proxy))
    return connection if route.secured is None else await _tunnel(connection, route, route.secured)


def proxy_headers(proxy: URL) -> tuple[tuple[str, str], ...]:
    """The headers for a proxy."""
    if proxy.user is None:
        return ()
    return (("Proxy-Authorization", basic(proxy.user, proxy.password or "")),)


async def _open(sock: socket.socket, context: ssl.SSLContext | None, name: str) -> HttpConnection:
    secured: dict[str, Any] = {} if context is None else {"server_hostname": name, "ssl_shutdown_timeout": END_WITHIN}
    connection = HttpConnection()
    try:
        await asyncio.get_running_loop().create_connection(lambda: connection, sock=sock, ssl=context, **secured)
    except BaseException as error:
        if connection.is_made:  # given up in the moment it was there: nobody else knows of it
            connection.abort()
        else:
            sock.close()
        if isinstance(error, ssl.SSLError) or not isinstance(error, OSError):
            raise
        raise ServerUnreachable(f"cannot connect: {reason(error)}") from error
    return connection


async def _tunnel(connection: HttpConnection, route: Route, context: ssl.SSLContext) -> HttpConnection:
    """Open a tunnel through a proxy, and speak TLS with the server."""
    assert route.proxy is not None
    try:
        _let_through(await connection.ask(HttpRequest("CONNECT", _connect(route.server, route.proxy))))
        through = HttpConnection()
        transport = await asyncio.get_running_loop().start_tls(
            connection.transport,
            through,
            context,
            server_hostname=route.server_name or _host(route.server),
            ssl_shutdown_timeout=END_WITHIN,
        )
    except BaseException:
        connection.abort()
        raise
    if transport is None:
        raise ServerUnreachable("the proxy hung up")
    through.connection_made(transport)
    return through


def _let_through(reply: HttpReply) -> None:
    if reply.status >= 300:
        raise ServerUnreachable(f"the proxy refused with {reply.status} {reply.reason}")


def _connect(server: URL, proxy: URL) -> bytes:
    place = f"{server.host_subcomponent}:{server.port}"
    lines = [f"{name}: {value}\r\n" for name, value in (("Host", place), *proxy_headers(proxy))]
    return f"CONNECT {place} HTTP/1.1\r\n{''.join(lines)}\r\n".encode()


async def _reach(url: URL, *, is_guarded: bool = False) -> socket.socket:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(_host(url), url.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = reason(error) if isinstance(error, OSError) else "it is no proper name"
        raise ServerUnreachable(f"the name {url.host!r} cannot be resolved: {why}") from error
    if is_guarded and (why := next(filter(None, (refused(str(place[0])) for *_, place in found)), "")):
        raise ServerUnreachable(why)
    try:
        return await _first_of(_interleaved(found))
    except OSError as error:
        raise ServerUnreachable(f"cannot connect: {reason(error)}") from error


def _interleaved(found: Iterable[Address]) -> list[Address]:
    """Address families in turns, so that a family that does not work costs one wait and not many."""
    families: dict[int, list[Address]] = {}
    for address in found:
        families.setdefault(address[0], []).append(address)
    return [address for turn in zip_longest(*families.values()) for address in turn if address is not None]


async def _first_of(addresses: list[Address]) -> socket.socket:
    """A socket that is connected to the first address that answers."""
    waiting: set[asyncio.Task[socket.socket]] = set()
    failure: BaseException = OSError("it has no address")
    try:
        while addresses or waiting:
            if addresses:
                waiting.add(asyncio.create_task(_connected(addresses.pop(0))))
            soon = NEXT_AFTER if addresses else None
            done, waiting = await asyncio.wait(waiting, timeout=soon, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                error = task.exception()
                if error is None:
                    waiting |= done - {task}
                    return task.result()
                failure = error
    finally:
        for task in waiting:
            task.cancel()
            task.add_done_callback(_drop)
    raise failure


def _drop(task: asyncio.Task[socket.socket]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


async def _connected(address: Address) -> socket.socket:
    family, kind, protocol, _, place = address
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        await asyncio.get_running_loop().sock_connect(sock, place)
    except BaseException:
        sock.close()
        raise
    return sock


def _host(url: URL) -> str:
    return (url.raw_host or "").rstrip(".")

"""Dialling: how a connection to one server comes about, through a proxy or not.

Promises that a name with several addresses is tried at all of them, the next one when the last has not answered soon,
and that what went wrong says where: the name, the way, the proxy or TLS. A server that speaks TLS is reached through a
tunnel (CONNECT), so that a proxy sees neither request nor identity.
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
from kedge.kube.connect.failures import Unreached, reason
from kedge.kube.connect.wire import Asked, Reply, Wire

NEXT_AFTER = 0.25
"""Seconds after which the next address of a name is tried as well (RFC 8305)."""

END_WITHIN = 2.0
"""Seconds that a peer has for a proper end of TLS."""

Address = tuple[int, int, int, str, Any]


class Way(Struct, frozen=True):
    """Where a server is, how it is reached, and whom to trust there. `server_name` is whose certificate it shows."""

    server: URL
    context: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: URL | None = None

    @property
    def secured(self) -> ssl.SSLContext | None:
        """The context, if the server speaks TLS."""
        return self.context if self.server.scheme == "https" else None


async def dial(way: Way) -> Wire:
    """A connection on which to ask. Raises `Unreached`, or what TLS raises."""
    if way.proxy is None:
        sock = await _reach(way.server)
        return await _wire(sock, way.secured, way.server_name or _host(way.server))
    try:
        sock = await _reach(way.proxy)
    except Unreached as error:
        raise Unreached(f"the proxy cannot be reached: {error}") from error
    wire = await _wire(sock, way.context if way.proxy.scheme == "https" else None, _host(way.proxy))
    return wire if way.secured is None else await _tunnel(wire, way, way.secured)


def proxy_headers(proxy: URL) -> tuple[tuple[str, str], ...]:
    """What a proxy wants to know of us."""
    if proxy.user is None:
        return ()
    return (("Proxy-Authorization", basic(proxy.user, proxy.password or "")),)


async def _wire(sock: socket.socket, context: ssl.SSLContext | None, name: str) -> Wire:
    secured: dict[str, Any] = {} if context is None else {"server_hostname": name, "ssl_shutdown_timeout": END_WITHIN}
    wire = Wire()
    try:
        await asyncio.get_running_loop().create_connection(lambda: wire, sock=sock, ssl=context, **secured)
    except BaseException as error:
        if wire.is_made:  # given up in the moment it was there: nobody else knows of it
            wire.abort()
        else:
            sock.close()
        if isinstance(error, ssl.SSLError) or not isinstance(error, OSError):
            raise
        raise Unreached(f"cannot connect: {reason(error)}") from error
    return wire


async def _tunnel(wire: Wire, way: Way, context: ssl.SSLContext) -> Wire:
    """Have a proxy pass everything on to the server, and speak TLS with that."""
    assert way.proxy is not None
    try:
        _let_through(await wire.ask(Asked("CONNECT", _connect(way.server, way.proxy))))
        through = Wire()
        transport = await asyncio.get_running_loop().start_tls(
            wire.transport,
            through,
            context,
            server_hostname=way.server_name or _host(way.server),
            ssl_shutdown_timeout=END_WITHIN,
        )
    except BaseException:
        wire.abort()
        raise
    if transport is None:
        raise Unreached("the proxy hung up")
    through.connection_made(transport)
    return through


def _let_through(reply: Reply) -> None:
    if reply.status >= 300:
        raise Unreached(f"the proxy refused with {reply.status} {reply.reason}")


def _connect(server: URL, proxy: URL) -> bytes:
    place = f"{server.host_subcomponent}:{server.port}"
    lines = [f"{name}: {value}\r\n" for name, value in (("Host", place), *proxy_headers(proxy))]
    return f"CONNECT {place} HTTP/1.1\r\n{''.join(lines)}\r\n".encode()


async def _reach(url: URL) -> socket.socket:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(_host(url), url.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        why = reason(error) if isinstance(error, OSError) else "it is no proper name"
        raise Unreached(f"the name {url.host!r} cannot be resolved: {why}") from error
    try:
        return await _first_of(_interleaved(found))
    except OSError as error:
        raise Unreached(f"cannot connect: {reason(error)}") from error


def _interleaved(found: Iterable[Address]) -> list[Address]:
    """Families in turns, so that one that leads nowhere costs one wait and not many."""
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

"""Outbound: calls to what is not a Kubernetes API: webhooks, metric queries, endpoints of pods.

    answer = await outbound.fetch(Call("POST", "https://hooks.example.com/go", body=b"{}"), timeout=10)

The one way out for controllers, so that a simulation can answer in its place. Promises that an answer is whole and not
larger than a limit, whatever its status; redirects are answers, not followed; proxies as `proxies` reads the
environment; and that nobody is called at addresses that no user may have called (`refused_addresses`). When there is no
answer it raises `OutboundFailed`, which says what was asked, without the query of the URL or a password in it; where
the path is a secret too, give the call a name.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct
from yarl import URL

from kedge import __version__
from kedge.kube.connect import failures, proxies, tls
from kedge.kube.connect.connection import shown
from kedge.kube.connect.credentials import basic
from kedge.kube.connect.dialer import Route
from kedge.kube.connect.failures import FAILURES
from kedge.kube.connect.http_answer import decompressed
from kedge.kube.connect.http_connection import HttpRequest
from kedge.kube.connect.pool import Pool
from kedge.kube.connect.refused_addresses import refused
from kedge.kube.connect.request_head import WITH_BODY, host, lines, url_prefix
from kedge.kube.connect.tls import TlsRefused

MEBIBYTE = 2**20
_KEPT = 64
_KEEP_ALIVE = 15.0
_OURS = frozenset({"content-length", "transfer-encoding", "connection"})


class Call(Struct, frozen=True):
    """One request. `ca` (PEM) is whom to trust instead of the system's CAs; `name` is what errors call it.

    `address` (host and port) is where to connect instead of the URL's host, whose name the certificate must have.
    """

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    ca: bytes | None = None
    name: str = ""
    address: tuple[str, int] | None = None

    def __str__(self) -> str:
        return self.name or f"{self.method} {shown(self.url)}"

    def __repr__(self) -> str:
        return f"Call({self})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("name", str(self))]


class Answer(Struct, frozen=True):
    """One whole answer, whatever its status. Header names are in lower case."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}


class Outbound(Protocol):
    """How calls leave."""

    async def fetch(self, call: Call, *, timeout: float) -> Answer: ...

    async def close(self) -> None: ...


class OutboundFailed(Exception):
    """There was no answer, or none that can be used; the message says to what, and why."""


async def fetch_within(outbound: Outbound, call: Call, seconds: float) -> Answer:
    """The answer within so many seconds, whatever the outbound makes of its own time-out."""
    try:
        async with asyncio.timeout(seconds):
            return await outbound.fetch(call, timeout=seconds)
    except TimeoutError:
        raise OutboundFailed(f"{call}: no answer within {seconds:g} s") from None


class HttpOutbound:
    """Calls over sockets."""

    def __init__(self, *, limit: int = MEBIBYTE, environ: Mapping[str, str] | None = None) -> None:
        """Answers of more than `limit` bytes are refused."""
        self._limit = limit
        self._environ = os.environ if environ is None else environ
        self._pools: dict[tuple[URL, bytes | None, URL | None, str | None], Pool] = {}
        self._contexts: dict[bytes | None, ssl.SSLContext] = {}

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        try:
            async with asyncio.timeout(timeout):
                return await self._fetch(call, asyncio.get_running_loop().time() + timeout)
        except FAILURES as error:
            why = failures.explain(error, timeout=timeout, ca_given=call.ca is not None)
            raise OutboundFailed(f"{call}: {why}") from error
        except (TlsRefused, ValueError) as error:
            raise OutboundFailed(f"{call}: {error}") from error

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.close()
        self._pools = {}

    async def _fetch(self, call: Call, deadline: float) -> Answer:
        url = URL(call.url)
        if url.scheme not in {"http", "https"} or not url.host:
            raise ValueError("this is no http:// or https:// URL")
        if why := refused(url.host):  # a proxy would not know
            raise ValueError(why)
        given = None if call.address else proxies.from_environment(call.url, self._environ)
        proxy = URL(given) if given else None
        asked = HttpRequest(call.method, _head(call, url, proxy), call.body, limit=self._limit)
        pool = await self._pool(_server(url, call.address), call.ca, proxy, url.host if call.address else None)
        reply = (await pool.ask(asked, deadline)).reply
        return Answer(reply.status, decompressed(reply.body, reply.headers, limit=self._limit), reply.headers)

    async def _pool(self, server: URL, ca: bytes | None, proxy: URL | None, name: str | None) -> Pool:
        key = (server, ca, proxy, name)
        if key not in self._pools:
            secured = "https" in (server.scheme, proxy and proxy.scheme)
            context = await self._trusting(ca) if secured else None
            route = Route(server, context, server_name=name, proxy=proxy, is_guarded=True)
            if len(self._pools) >= _KEPT:
                self._pools.pop(next(iter(self._pools))).retire()
            self._pools[key] = Pool(None, route, keep_alive=_KEEP_ALIVE)
        return self._pools[key]

    async def _trusting(self, ca: bytes | None) -> ssl.SSLContext:
        if ca not in self._contexts:
            made = await asyncio.to_thread(tls.context, ca)
            if len(self._contexts) >= _KEPT:
                self._contexts.pop(next(iter(self._contexts)))
            self._contexts[ca] = made
        return self._contexts[ca]


def _server(url: URL, address: tuple[str, int] | None) -> URL:
    """Where to connect to."""
    return url.origin() if address is None else URL.build(scheme=url.scheme, host=address[0], port=address[1])


def _head(call: Call, url: URL, proxy: URL | None) -> bytes:
    if not (call.method.isascii() and call.method.isalpha()):
        raise ValueError(f"{call.method!r} is no method of HTTP")
    prefix, for_proxy = url_prefix(url, proxy)
    said = {"Host": host(url), "User-Agent": f"kedge/{__version__}", "Accept": "*/*", "Accept-Encoding": "identity"}
    if url.user is not None:
        said["Authorization"] = basic(url.user, url.password or "")
    named = {name.lower() for name in call.headers}
    headers = [(name, value) for name, value in said.items() if name.lower() not in named]
    headers += [(name, value) for name, value in call.headers.items() if name.lower() not in _OURS]
    if call.body or call.method in WITH_BODY:
        headers.append(("Content-Length", str(len(call.body))))
    target = f"{prefix}{url.raw_path_qs}"
    return f"{call.method} {target} HTTP/1.1\r\n".encode() + lines((*headers, *for_proxy)) + b"\r\n"

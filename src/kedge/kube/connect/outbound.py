"""Outbound: calls to what is not a Kubernetes API: webhooks, metric queries, endpoints of pods.

    answer = await outbound.fetch(Call("POST", "https://hooks.example.com/go", body=b"{}"), timeout=10)

The one way out for controllers, so that a simulation can answer in its place. Promises that an answer is whole and not
larger than a limit, whatever its status; redirects are answers, not followed; proxies as `proxies` reads the
environment. When there is none it raises `OutboundFailed`, which says what was asked, without the query of the URL
or a password in it; where the path is a secret too, give the call a name.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping
from typing import Any, Protocol

import aiohttp
from msgspec import Struct
from yarl import URL

from kedge import __version__
from kedge.kube.connect import failures, proxies, tls
from kedge.kube.connect.connection import shown
from kedge.kube.connect.failures import FAILURES, Connector
from kedge.kube.connect.https import lowered
from kedge.kube.connect.pool import cut, payload
from kedge.kube.connect.tls import TlsRefused

MEBIBYTE = 2**20
_CONTEXTS = 64


class Call(Struct, frozen=True):
    """One request. `ca` (PEM) is whom to trust instead of the system's CAs; `name` is what errors call it."""

    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    ca: bytes | None = None
    name: str = ""

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


class HttpOutbound:
    """Calls over sockets."""

    def __init__(self, *, limit: int = MEBIBYTE, environ: Mapping[str, str] | None = None) -> None:
        """Answers of more than `limit` bytes are refused."""
        self._limit = limit
        self._environ = os.environ if environ is None else environ
        self._session: aiohttp.ClientSession | None = None
        self._contexts: dict[bytes | None, ssl.SSLContext] = {}

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        try:
            async with asyncio.timeout(timeout):
                return await self._fetch(call)
        except FAILURES as error:
            why = failures.explain(error, timeout=timeout, ca_given=call.ca is not None)
            raise OutboundFailed(f"{call}: {why}") from error
        except (TlsRefused, ValueError) as error:
            raise OutboundFailed(f"{call}: {error}") from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _fetch(self, call: Call) -> Answer:
        url = URL(call.url)
        if url.scheme not in {"http", "https"} or not url.host:
            raise ValueError("this is no http:// or https:// URL")
        response = await self._opened().request(
            call.method,
            url,
            headers={"User-Agent": f"kedge/{__version__}", **call.headers},
            data=payload(call.body),
            allow_redirects=False,
            proxy=proxies.from_environment(call.url, self._environ),
            ssl=await self._trusting(url, call.ca),
        )
        try:
            return Answer(response.status, await self._body(response), lowered(response.headers.items()))
        finally:
            cut(response)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=Connector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            )
        return self._session

    async def _trusting(self, url: URL, ca: bytes | None) -> ssl.SSLContext | bool:
        if url.scheme != "https":
            return True
        if ca not in self._contexts:
            made = await asyncio.to_thread(tls.context, ca)
            if len(self._contexts) >= _CONTEXTS:
                self._contexts.pop(next(iter(self._contexts)))
            self._contexts[ca] = made
        return self._contexts[ca]

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        parts: list[bytes] = []
        size = 0
        while part := await response.content.readany():
            size += len(part)
            if size > self._limit:
                raise ValueError(f"the answer is larger than {self._limit} bytes, so it is not used")
            parts.append(part)
        return b"".join(parts)

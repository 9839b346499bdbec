"""Request heads: the bytes of a request before its body.

Most of a head is the same for all requests, and is built once. Paths are already in the form that is sent; characters
that no path can have are quoted. Headers with line breaks are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from yarl import URL

from kedge.kube.connect.dialer import proxy_headers
from kedge.kube.transport import Request

Headers = Iterable[tuple[str, str]]
_SAFE = "/:@!$&'()*+,;=~%"
_PLAIN = re.compile(r"[A-Za-z0-9_.\-/:@!$&'()*+,;=~%]*")
_KEPT = 256

WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
"""Methods that have a body, even an empty one."""


class RequestHeads:
    """Writes the heads of requests to one server."""

    def __init__(self, server: URL, headers: Headers, proxy: URL | None) -> None:
        """`headers` go with every request."""
        self._prefix, for_proxy = url_prefix(server, proxy)
        self._prefix += server.raw_path.rstrip("/")
        self._always = lines((("Host", host(server)), *headers, *for_proxy))
        self._kept: dict[tuple[str | None, ...], bytes] = {}

    def write(self, request: Request, encoding: str, authorization: str | None) -> bytes:
        """The head of a request, up to its body."""
        begin = f"{request.method} {self._prefix}{target(request)} HTTP/1.1\r\n".encode()
        if request.body:
            length = b"Content-Length: %d\r\n\r\n" % len(request.body)
            return begin + self._rest(request.accept, encoding, authorization, request.content_type) + length
        end = b"Content-Length: 0\r\n\r\n" if request.method in WITH_BODY else b"\r\n"
        return begin + self._rest(request.accept, encoding, authorization, None) + end

    def _rest(self, accept: str, encoding: str, authorization: str | None, content_type: str | None) -> bytes:
        key = (accept, encoding, authorization, content_type)
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            names = ("Accept", "Accept-Encoding", "Authorization", "Content-Type")
            given = [(name, value) for name, value in zip(names, key, strict=True) if value is not None]
            found = self._kept[key] = self._always + lines(given)
        return found


def host(server: URL) -> str:
    """The value of the `Host` header."""
    return server.host_port_subcomponent or ""


def url_prefix(server: URL, proxy: URL | None) -> tuple[str, Headers]:
    """What precedes the path, and the headers for it: a proxy without a tunnel needs the whole URL."""
    if proxy is None or server.scheme == "https":
        return "", ()
    return f"http://{host(server)}", proxy_headers(proxy)


def target(request: Request) -> str:
    """Path and query of a request."""
    path = request.path if _PLAIN.fullmatch(request.path) else quote(request.path, safe=_SAFE)
    if not request.query:
        return path
    query = "&".join([f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in request.query])
    return f"{path}?{query}"


def lines(headers: Sequence[tuple[str, str]]) -> bytes:
    """Headers as they are written. Raises ValueError for one that holds a line end or a null."""
    for name, value in headers:
        if any(char in name + value for char in "\r\n\0"):
            raise ValueError(f"the header {name!r} holds a line break or a null")
    return "".join([f"{name}: {value}\r\n" for name, value in headers]).encode()

"""Transport: the one seam between Kedge and a Kubernetes API.

A transport sends a request and brings back bytes, or opens a stream of lines. It knows nothing of kinds, retries
or limits: those live above it, and cannot tell a socket from a server in the same process. What it promises:

* `send` returns whatever the server answered, also when that is an error;
* `stream` yields whole lines only; a line that was cut off by the end of the connection is never delivered as one;
* when there was no answer it raises `ConnectionFailed`, and says whether the request may have reached the server.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct

JSON = "application/json"


class Request(Struct, frozen=True):
    """One request, as it would go over a wire."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    content_type: str = JSON
    accept: str = JSON

    def __str__(self) -> str:
        if not self.query:
            return f"{self.method} {self.path}"
        shown = "&".join(f"{key}={value}" for key, value in self.query)
        return f"{self.method} {self.path}?{shown}"


class Response(Struct, frozen=True):
    """One whole answer. Header names are in lower case."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = {}

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the server wants people to know (`Warning: 299 - "..."`)."""
        return tuple(parse_warnings(self.headers.get("warning", "")))


class Stream(Protocol):
    """An answer that keeps coming. Leave its context to close it."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    async def read(self) -> bytes:
        """The whole body; for answers that turn out to be errors."""
        ...

    def lines(self) -> AsyncIterator[bytes]:
        """Lines as they arrive, without their ends. Ends when the server ends the stream in good order."""
        ...


class BufferedStream:
    """A stream whose answer came in one piece."""

    def __init__(self, response: Response) -> None:
        self._response = response

    @property
    def status(self) -> int:
        return self._response.status

    @property
    def headers(self) -> Mapping[str, str]:
        return self._response.headers

    async def read(self) -> bytes:
        return self._response.body

    async def lines(self) -> AsyncIterator[bytes]:
        for line in self._response.body.splitlines():
            yield line


class Transport(Protocol):
    """How requests reach one API server."""

    async def send(self, request: Request, *, timeout: float) -> Response: ...

    def stream(self, request: Request, *, timeout: float, silence: float) -> AbstractAsyncContextManager[Stream]:
        """Open a stream; `timeout` bounds the wait for its first byte, `silence` the wait for each next one."""
        ...

    async def close(self) -> None: ...


class ConnectionFailed(Exception):
    """There was no answer: refused, reset, cut off, or silent for too long.

    `sent` tells whether the request may have reached the server, and so may have been carried out.
    """

    def __init__(self, what: str, *, sent: bool) -> None:
        super().__init__(what)
        self.sent = sent


def parse_warnings(header: str) -> list[str]:
    """The texts of a `Warning` header: `299 - "first", 299 - "second"` gives both."""
    texts: list[str] = []
    text: list[str] | None = None
    escaped = False
    for char in header:
        if text is None:
            text = [] if char == '"' else None
        elif escaped:
            text.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == '"':
            texts.append("".join(text))
            text = None
        else:
            text.append(char)
    return texts

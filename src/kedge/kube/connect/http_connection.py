"""HTTP connection: one connection to a server, with one request on it at a time.

A request gets a complete answer, or its head with the body as a `LineStream`, or it fails. A caller that gives up
waiting ends the connection; unexpected bytes end it too. One timer serves the time-outs of all requests, since setting
one costs as much as reading a small answer. It knows no pool: `keeps` says whether it may be used again.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import cast

from msgspec import Struct

from kedge.kube.connect.failures import CutOff, HungUp, Malformed, TooLarge, before_sending
from kedge.kube.connect.http_answer import CloseFraming, Head, HeadReader
from kedge.kube.connect.line_stream import LineStream

PART = 2**16
"""Bytes of a large body that are written at once."""

BUFFER = 2**18
"""Bytes that are read at once."""


class HttpRequest(Struct, frozen=True):
    """A request as it is sent, and how large its answer may be (0: no limit).

    `check` is called before each part of it is written, and may raise to refuse it.
    """

    method: str
    head: bytes
    body: bytes = b""
    check: Callable[[], None] | None = None
    limit: int = 0


class HttpReply(Struct, frozen=True):
    """An answer; without a body if that comes as lines. Header names are in lower case."""

    status: int
    reason: str
    headers: dict[str, str]
    body: bytes = b""


class _Buffers(threading.local):
    """The read buffer of event loops: one for all connections of a thread, used only until the bytes are parsed.

    Without it a loop allocates the largest possible read, for each read.
    """

    def __init__(self) -> None:
        self.view = memoryview(bytearray(BUFFER))


_buffers = _Buffers()


class HttpConnection(asyncio.BufferedProtocol):
    """A connection, for the event loop and for its callers."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._buffer = _buffers.view
        self.is_made = False
        self.lost: asyncio.Future[None] = self._loop.create_future()
        self.idle_since = 0.0
        self.keeps = True
        self._lost_with: Exception | None = None
        self._waiter: asyncio.Future[HttpReply] | None = None
        self._reader: HeadReader | None = None
        self._head: Head | None = None
        self._parts: list[bytes] = []
        self._size = self._limit = 0
        self._incoming: LineStream | None = None
        self._heard = False
        self._full = False
        self._writable: asyncio.Future[None] | None = None
        self._deadline: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = 0.0

    # For callers

    async def ask(
        self, asked: HttpRequest, deadline: float | None = None, incoming: LineStream | None = None
    ) -> HttpReply:
        """The answer to a request, by this time of the loop; with `incoming`, as soon as its head is there."""
        if self.lost.done():
            with before_sending:
                raise HungUp from self._lost_with
        waiter = self._begin(asked, incoming)
        self._deadline = deadline
        if deadline is not None and (self._timer is None or self._timer_due > deadline):
            self._set_timer(deadline)
        try:
            if len(asked.body) <= PART:
                self.transport.write(asked.head + asked.body)
            else:
                await self._write(asked, waiter)
            return await waiter
        except BaseException:
            self._give_up(waiter)
            raise
        finally:
            self._deadline = self._waiter = None  # or an idle connection would hold its last answer

    @property
    def is_open(self) -> bool:
        return not (self.lost.done() or self.transport.is_closing())

    @property
    def is_free(self) -> bool:
        """Whether another request may go over it."""
        return self.keeps and self._reader is None and self.is_open

    def close(self) -> None:
        """End it in good order."""
        self.transport.close()

    def abort(self) -> None:
        """End it now: a peer that hangs would keep a proper end of TLS waiting."""
        self.transport.abort()

    def _begin(self, asked: HttpRequest, incoming: LineStream | None) -> asyncio.Future[HttpReply]:
        self._reader, self._head, self._heard = HeadReader(asked.method), None, False
        self._parts, self._size, self._limit = [], 0, asked.limit
        self._incoming = incoming
        self._waiter = waiter = self._loop.create_future()
        return waiter

    async def _write(self, asked: HttpRequest, waiter: asyncio.Future[HttpReply]) -> None:
        """Write a large body part by part, as fast as it goes, up to an answer."""
        for begin in range(0, len(asked.body), PART):
            if begin and asked.check is not None:
                asked.check()
            if waiter.done():
                self.keeps = False  # the server has heard enough, and would take the rest for another request
                return
            part = asked.body[begin : begin + PART]
            self.transport.write(part if begin else asked.head + part)
            if self._full:
                self._writable = self._loop.create_future()
                await self._writable

    def _give_up(self, waiter: asyncio.Future[HttpReply]) -> None:
        if waiter.done() and not waiter.cancelled():
            waiter.exception()  # has been seen, or comes second to what is raised
        self._reader = None
        self.abort()

    # Time

    def _set_timer(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = deadline
        self._timer = self._loop.call_at(deadline, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._deadline is None:
            return
        if self._loop.time() < self._deadline:
            self._set_timer(self._deadline)
        else:
            self._fail(TimeoutError())

    # For the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.is_made = True

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - part of the protocol
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self._buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        """This came."""
        try:
            self._read(data)
        except (Malformed, TooLarge) as error:
            self._fail(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost_with = exc
        if not self.lost.done():
            self.lost.set_result(None)
        if self._timer is not None:
            self._timer.cancel()
        if self._reader is None:
            self._wake_writer()
        elif not self._heard:
            self._fail(HungUp(), exc)
        elif exc is None and self._head is not None and isinstance(self._head.framing, CloseFraming):
            self._finish(self._head)
        else:
            self._fail(CutOff(), exc)

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._wake_writer()

    # Reading

    def _read(self, data: bytes) -> None:
        head = self._head
        if head is None:
            if self._reader is None:
                self.abort()  # nobody asked
                return
            self._heard = True
            head = self._reader.feed(data)
            if head is None:
                return
            data = self._reader.rest
            self._begin_body(head)
        framing = head.framing
        part = framing.feed(data)
        if part:
            self._take(part)
        if framing.done:
            self._finish(head)

    def _take(self, part: bytes) -> None:
        if self._incoming is not None:
            self._incoming.take(part)
            return
        self._parts.append(part)
        self._size += len(part)
        if 0 < self._limit < self._size:
            raise TooLarge(self._limit)

    def _begin_body(self, head: Head) -> None:
        self._head = head
        if self._incoming is not None:
            self._incoming.begin(self.transport)
            self._deadline = None
            self._answer(HttpReply(head.status, head.reason, head.headers))

    def _finish(self, head: Head) -> None:
        self.keeps = self.keeps and head.keeps and not head.framing.rest
        self._reader = self._head = None
        if self._incoming is None:
            parts, self._parts = self._parts, []
            body = parts[0] if len(parts) == 1 else b"".join(parts)
            self._answer(HttpReply(head.status, head.reason, head.headers, body))
        else:
            self._incoming.end()
        self._wake_writer()

    def _answer(self, reply: HttpReply) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(reply)

    def _fail(self, error: Exception, cause: Exception | None = None) -> None:
        error.__cause__ = cause
        if self._incoming is not None and self._head is not None:
            self._incoming.fail(error)
        self._reader = self._head = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)
        self._wake_writer()
        self.abort()

    def _wake_writer(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)

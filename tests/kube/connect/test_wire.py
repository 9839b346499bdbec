"""One connection: requests out, answers in, and every way in which that ends."""

import asyncio
from collections.abc import Callable

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from kedge.kube.connect import line_stream
from kedge.kube.connect.failures import FAILURES, CutOff, HungUp, Malformed
from kedge.kube.connect.http_connection import HttpConnection, HttpReply, HttpRequest
from kedge.kube.connect.line_stream import LineStream
from kedge.kube.transport import ConnectionFailed, Request
from kube.connect.tlsfixtures import Authority, Connected, api, raw, serving, transport_to
from support.waiting import until

GET = Request("GET", "/api/v1/pods")
LARGE = Request("POST", "/x", body=b"x" * 2**24)
ASKED = HttpRequest("GET", b"GET / HTTP/1.1\r\n\r\n")
AUTHORITY = Authority()
SERVER = serving(AUTHORITY.server("127.0.0.1"))
EMPTY = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
HEAD_END = b"\r\n\r\n"


def answering(*answers: bytes, hold: bool = True) -> tuple[Connected, list[int]]:
    """Gives each request the next answer, whatever its connection; counts the requests of each connection."""
    left = list(answers)
    counts: list[int] = []

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        counts.append(0)
        mine = len(counts) - 1
        while left:
            await reader.readuntil(HEAD_END)
            counts[mine] += 1
            writer.write(left.pop(0))
            await writer.drain()
        if hold:
            await asyncio.Event().wait()

    return served, counts


async def test_what_only_announces_an_answer_is_passed_over() -> None:
    served, _ = answering(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" + EMPTY)
    async with raw(served) as server, transport_to(server) as transport:
        assert (await transport.send(GET, timeout=5)).status == 200


async def test_a_connection_that_the_server_wants_to_close_is_not_used_again() -> None:
    served, counts = answering(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n", EMPTY)
    async with raw(served) as server, transport_to(server) as transport:
        for _ in range(2):
            assert (await transport.send(GET, timeout=5)).status == 200
    assert counts == [1, 1]


async def test_a_connection_with_more_than_an_answer_on_it_is_not_used_again() -> None:
    served, counts = answering(EMPTY + b"HTTP/1.1 500 Not yours\r\ncontent-length: 0\r\n\r\n", EMPTY)
    async with raw(served) as server, transport_to(server) as transport:
        for _ in range(2):
            assert (await transport.send(GET, timeout=5)).status == 200
    assert counts == [1, 1]


async def test_bytes_that_nobody_asked_for_end_a_connection() -> None:
    late = asyncio.Event()
    ended = asyncio.Event()
    requests: list[bytes] = []

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await reader.readuntil(HEAD_END))
        writer.write(EMPTY)
        if len(requests) == 1:
            await late.wait()
            writer.write(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
            await reader.read()
            ended.set()

    async with raw(served) as server, transport_to(server) as transport:
        await transport.send(GET, timeout=5)
        late.set()
        await asyncio.wait_for(ended.wait(), 5)
        assert (await transport.send(GET, timeout=5)).status == 200


@pytest.mark.parametrize("context", [None, SERVER], ids=["plain", "tls"])
async def test_a_server_may_refuse_a_large_body_before_it_is_there(context: object) -> None:
    refusal = b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n"
    served, counts = answering(refusal, EMPTY)
    async with (
        raw(served, SERVER if context else None) as server,
        transport_to(server, AUTHORITY.pem if context else None) as transport,
    ):
        assert (await transport.send(LARGE, timeout=5)).status == 413
        assert (await transport.send(GET, timeout=5)).status == 200
    assert counts == [1, 1]


async def test_a_large_body_that_nobody_reads_is_a_time_out() -> None:
    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with raw(deaf) as server, transport_to(server) as transport:
        with pytest.raises(ConnectionFailed, match=r"no answer within 1 s") as caught:
            await transport.send(LARGE, timeout=1)
    assert caught.value.sent


async def test_a_server_that_hangs_up_in_the_middle_of_a_large_body_may_have_been_reached() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(HEAD_END)
        writer.transport.abort()

    async with raw(hang_up) as server, transport_to(server) as transport:
        with pytest.raises(ConnectionFailed) as caught:
            await transport.send(LARGE, timeout=5)
    assert caught.value.sent


async def test_a_short_time_out_counts_on_a_connection_made_for_a_long_one() -> None:
    served, counts = answering(EMPTY, b"", EMPTY)
    async with raw(served) as server, transport_to(server) as transport:
        await transport.send(GET, timeout=60)
        with pytest.raises(ConnectionFailed, match=r"no answer within 0.1 s"):
            await transport.send(GET, timeout=0.1)
        assert (await transport.send(GET, timeout=60)).status == 200
    assert counts == [2, 1]


async def test_a_time_out_that_is_past_does_not_end_a_later_request() -> None:
    async def slowly(request: web.Request) -> web.Response:
        await asyncio.sleep(0.2)
        return web.Response()

    async with api(slowly) as server, transport_to(server) as transport:
        for _ in range(8):
            assert (await transport.send(GET, timeout=1)).status == 200


async def test_giving_up_ends_the_connection() -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(HEAD_END)
        asked.set()
        await reader.read()
        ended.set()

    async with raw(served, SERVER) as server, transport_to(server, AUTHORITY.pem) as transport:
        task = asyncio.create_task(transport.send(GET, timeout=5))
        await asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(ended.wait(), 5)


@pytest.mark.parametrize(
    "sent",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 2**17,
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 2\r\n\r\n{}",
    ],
)
async def test_a_malformed_answer_is_a_failed_connection_at_once(sent: bytes) -> None:
    served, _ = answering(sent)
    async with raw(served, SERVER) as server, transport_to(server, AUTHORITY.pem) as transport:
        with pytest.raises(ConnectionFailed, match=r"cannot be read as an answer") as caught:
            await transport.send(GET, timeout=30)
    assert caught.value.sent


async def test_a_malformed_stream_is_a_failed_connection_too() -> None:
    head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    served, _ = answering(head + b"4\r\none\n\r\njunk\r\n")
    async with (
        raw(served) as server,
        transport_to(server) as transport,
        transport.stream(GET, timeout=5, silence=5) as stream,
    ):
        with pytest.raises(ConnectionFailed, match=r"cannot be read as an answer"):
            assert [line async for line in stream.lines()] == []


async def test_a_stream_that_was_read_to_its_end_leaves_its_connection_to_others() -> None:
    served, counts = answering(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\none\n", EMPTY)
    async with raw(served) as server, transport_to(server) as transport:
        async with transport.stream(GET, timeout=5, silence=5) as stream:
            assert [line async for line in stream.lines()] == [b"one"]
        assert (await transport.send(GET, timeout=5)).status == 200
    assert counts == [2]


@pytest.mark.parametrize("context", [None, SERVER], ids=["plain", "tls"])
async def test_a_slow_reader_slows_the_server_down(context: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_stream, "FULL", 2**16)
    chunk = b"%x\r\n%s\n\r\n" % (2**12, b"x" * (2**12 - 1))
    count = 16_000  # 64 MiB, more than sockets hold
    written = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        await reader.readuntil(HEAD_END)
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        for _ in range(count):
            writer.write(chunk)
            await writer.drain()
            written += 1
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        await asyncio.Event().wait()

    async with (
        raw(pour, SERVER if context else None) as server,
        transport_to(server, AUTHORITY.pem if context else None) as transport,
        transport.stream(GET, timeout=5, silence=5) as stream,
    ):
        lines = stream.lines()
        await anext(lines)
        before = -1
        while before != written:
            before = written
            await asyncio.sleep(0.2)
        assert written < count
        rest = 0
        async for _ in lines:
            rest += 1
    assert rest == count - 1


# Without a socket


class Socket:
    """A transport that keeps what is written."""

    def __init__(self, connection: HttpConnection) -> None:
        self._wire = connection
        self.closed = False

    def write(self, data: bytes) -> None: ...

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        if not self.closed:
            self.closed = True
            asyncio.get_running_loop().call_soon(self._wire.connection_lost, None)

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


async def asked_over(
    connection: HttpConnection, happens: Callable[[], None], into: LineStream | None = None
) -> HttpReply | Exception:
    """What a request comes to if this happens after it was sent."""
    connection.connection_made(Socket(connection))  # type: ignore[arg-type]
    asyncio.get_running_loop().call_soon(happens)
    try:
        async with asyncio.timeout(1):
            return await connection.ask(ASKED, None, into)
    except FAILURES as error:
        return error


@given(st.binary(max_size=200) | st.binary(max_size=100).map(b"HTTP/1.1 200 OK\r\n".__add__), st.booleans())
def test_garbage_is_an_error_and_never_a_wait(garbage: bytes, streamed: bool) -> None:
    async def work() -> None:
        connection = HttpConnection()

        def happens() -> None:
            connection.data_received(garbage)
            if connection.is_open:
                connection.transport.abort()

        into = LineStream(1.0) if streamed else None
        outcome = await asked_over(connection, happens, into)
        assert not isinstance(outcome, TimeoutError)
        if isinstance(outcome, HttpReply):
            assert b"\r\n\r\n" in garbage
        await connection.lost

    asyncio.run(work())


@pytest.mark.parametrize(
    ("came", "failure"),
    [
        (b"", HungUp),
        (b"HTTP/1.1 2", CutOff),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhalf", CutOff),
        (b"junk", Malformed),
    ],
)
async def test_how_far_an_answer_came_is_told(came: bytes, failure: type[Exception]) -> None:
    connection = HttpConnection()

    def happens() -> None:
        if came:
            connection.data_received(came)
        connection.transport.abort()

    assert isinstance(await asked_over(connection, happens), failure)


async def test_a_body_without_a_length_ends_with_its_connection() -> None:
    connection = HttpConnection()

    def happens() -> None:
        connection.data_received(b"HTTP/1.1 200 OK\r\n\r\nall of it")
        connection.transport.abort()

    outcome = await asked_over(connection, happens)
    assert isinstance(outcome, HttpReply)
    assert outcome.body == b"all of it"
    assert not connection.is_free


async def test_a_body_without_a_length_that_is_reset_is_cut() -> None:
    connection = HttpConnection()

    def happens() -> None:
        connection.data_received(b"HTTP/1.1 200 OK\r\n\r\nsome of it")
        connection.connection_lost(ConnectionResetError())

    assert isinstance(await asked_over(connection, happens), CutOff)


async def test_a_connection_that_is_lost_before_it_is_used_says_why() -> None:
    connection = HttpConnection()
    reset = ConnectionResetError("gone")
    connection.connection_made(Socket(connection))  # type: ignore[arg-type]
    connection.connection_lost(reset)
    with pytest.raises(HungUp) as caught:
        await connection.ask(ASKED)
    assert caught.value.__cause__ is reset
    await until(connection.lost.done)

"""Streams over real sockets: whole lines, in time, or an error."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from kedge.kube.transport import ConnectionFailed, Request, Stream
from kube.connect.tlsfixtures import Authority, Connected, api, raw, serving, transport_to
from support.waiting import until

WATCH = Request("GET", "/api/v1/pods", (("watch", "1"),))
AUTHORITY = Authority()
SERVER = serving(AUTHORITY.server("127.0.0.1"))
HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def answering(*pieces: bytes, then: Callable[[], Awaitable[object]] | None = None) -> Connected:
    """Writes the pieces one by one, then does what is asked, then hangs up."""

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.01)
        if then is not None:
            await then()

    return served


@asynccontextmanager
async def watching(served: Connected, *, timeout: float = 5, silence: float = 5) -> AsyncIterator[Stream]:
    """A stream over TLS from a server that does as told."""
    async with (
        raw(served, SERVER) as server,
        transport_to(server, AUTHORITY.pem) as transport,
        transport.stream(WATCH, timeout=timeout, silence=silence) as stream,
    ):
        yield stream


async def lines_from(served: Connected, *, silence: float = 5) -> tuple[list[bytes], ConnectionFailed | None]:
    """The lines that came, and the error at the end, if it was one."""
    lines: list[bytes] = []
    try:
        async with watching(served, silence=silence) as stream:
            async for line in stream.lines():
                lines.append(line)  # noqa: PERF401 - those before an error count too
    except ConnectionFailed as error:
        return lines, error
    return lines, None


@pytest.mark.parametrize(
    "pieces",
    [
        [b"one\n", b"two\n", b"three\n"],
        [b"one\ntwo\nthree\n"],
        [b"o", b"ne", b"\n", b"two\nth", b"ree", b"\n"],
        [b"one\nt", b"wo\nthree\n"],
    ],
)
async def test_lines_are_whole_however_they_arrive(pieces: Iterable[bytes]) -> None:
    lines, error = await lines_from(answering(HEAD, *map(chunk, pieces), END))
    assert lines == [b"one", b"two", b"three"]
    assert error is None


async def test_an_empty_line_is_a_line() -> None:
    lines, error = await lines_from(answering(HEAD, chunk(b"a\n\nb\n"), END))
    assert (lines, error) == ([b"a", b"", b"b"], None)


async def test_a_stream_of_nothing_ends_in_good_order() -> None:
    assert await lines_from(answering(HEAD, END)) == ([], None)


@pytest.mark.parametrize("size", [200_000, 20_000_000])
async def test_a_line_may_be_long(size: int) -> None:
    lines, error = await lines_from(answering(HEAD + chunk(b"x" * size + b"\nshort\n"), END))
    assert [len(line) for line in lines] == [size, 5]
    assert error is None


async def test_half_a_line_is_never_delivered_when_the_connection_is_cut() -> None:
    lines, error = await lines_from(answering(HEAD, chunk(b"whole\nha")))
    assert lines == [b"whole"]
    assert error is not None
    assert error.sent
    assert str(error) == "the connection was cut in the middle of the answer"


async def test_half_a_line_is_never_delivered_when_the_stream_ends_in_order() -> None:
    lines, error = await lines_from(answering(HEAD, chunk(b"whole\nha"), END))
    assert lines == [b"whole"]
    assert error is not None
    assert "in the middle of a line" in str(error)


async def test_a_cut_between_two_lines_is_no_end() -> None:
    lines, error = await lines_from(answering(HEAD, chunk(b"whole\n")))
    assert lines == [b"whole"]
    assert error is not None


async def test_a_reset_in_the_middle_of_a_line_is_an_error() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + chunk(b"whole\nha"))
        await writer.drain()
        await asyncio.sleep(0.05)
        at_once = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)

    lines, error = await lines_from(reset)
    assert lines == [b"whole"]
    assert error is not None


async def test_silence_is_an_error() -> None:
    hang = asyncio.Event().wait
    lines, error = await lines_from(answering(HEAD, chunk(b"one\n"), then=hang), silence=0.2)
    assert lines == [b"one"]
    assert error is not None
    assert error.sent
    assert "silent for 0.2 s" in str(error)


async def test_a_stream_that_keeps_coming_may_last_longer_than_any_time_out() -> None:
    beats = [chunk(b"beat\n")] * 40
    async with watching(answering(HEAD, *beats, END), timeout=0.3, silence=0.3) as stream:
        assert len([line async for line in stream.lines()]) == 40


async def test_a_slow_reader_is_no_silence() -> None:
    lines = []
    async with watching(answering(HEAD, chunk(b"one\ntwo\n"), END), silence=0.1) as stream:
        async for line in stream.lines():
            lines.append(line)
            await asyncio.sleep(0.2)
    assert lines == [b"one", b"two"]


async def test_a_stream_that_does_not_begin_in_time_is_an_error() -> None:
    with pytest.raises(ConnectionFailed, match=r"no answer within 0.2 s") as caught:
        async with watching(answering(then=asyncio.Event().wait), timeout=0.2):
            pass
    assert caught.value.sent


async def test_a_stream_that_turns_out_to_be_an_error_can_be_read() -> None:
    async def gone(request: web.Request) -> web.Response:
        return web.json_response({"reason": "Expired"}, status=410, headers={"Warning": '299 - "old"'})

    async with (
        api(gone, SERVER) as server,
        transport_to(server, AUTHORITY.pem) as transport,
        transport.stream(WATCH, timeout=5, silence=5) as stream,
    ):
        assert stream.status == 410
        assert stream.headers["warning"] == '299 - "old"'
        assert await stream.read() == b'{"reason": "Expired"}'


async def test_reading_an_error_has_a_time_out_too() -> None:
    head = b"HTTP/1.1 500 Oh\r\ncontent-length: 9\r\n\r\nha"
    async with watching(answering(head, then=asyncio.Event().wait), silence=0.2) as stream:
        with pytest.raises(ConnectionFailed, match=r"silent"):
            await stream.read()


async def test_leaving_a_stream_ends_its_connection() -> None:
    ended = asyncio.Event()

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD + chunk(b"one\n"))
        await reader.read()
        ended.set()

    async with raw(endless, SERVER) as server, transport_to(server, AUTHORITY.pem) as transport:
        async with transport.stream(WATCH, timeout=5, silence=5) as stream:
            assert await anext(stream.lines()) == b"one"
        await asyncio.wait_for(ended.wait(), 5)


async def test_closing_the_transport_ends_its_streams() -> None:
    async with (
        raw(answering(HEAD, chunk(b"one\n"), then=asyncio.Event().wait), SERVER) as server,
        transport_to(server, AUTHORITY.pem) as transport,
        transport.stream(WATCH, timeout=5, silence=20) as stream,
    ):
        lines = stream.lines()
        await anext(lines)
        waiting = asyncio.ensure_future(anext(lines))
        await asyncio.sleep(0.05)
        await transport.close()
        with pytest.raises(ConnectionFailed):
            await asyncio.wait_for(waiting, 5)


async def test_many_streams_and_requests_go_side_by_side() -> None:
    opened: list[str] = []
    done = asyncio.Event()

    async def serve(request: web.Request) -> web.StreamResponse:
        if "watch" not in request.query:
            return web.Response(body=b"answer")
        response = web.StreamResponse()
        await response.prepare(request)
        opened.append(request.path)
        await response.write(b"line\n")
        await done.wait()
        return response

    async with api(serve, SERVER) as server, transport_to(server, AUTHORITY.pem) as transport:

        async def watch() -> list[bytes]:
            async with transport.stream(WATCH, timeout=10, silence=10) as stream:
                return [line async for line in stream.lines()]

        watches = [asyncio.create_task(watch()) for _ in range(120)]  # more than aiohttp's own limit of 100
        await until(lambda: len(opened) == 120)
        assert (await transport.send(Request("GET", "/x"), timeout=5)).body == b"answer"
        done.set()
        assert await asyncio.gather(*watches) == [[b"line"]] * 120

"""Writes that were decided on while leading, and are not sent any more."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from aiohttp import web

from kedge.kube.connect.connection import Connection
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.fencing import AlarmWatchdog, FencedTransport, NotLeading
from kedge.kube.transport import Request
from kube.connect.tlsfixtures import Authority, api, raw, serving
from support.scripted import Scripted, ScriptedStream, answer

READ = Request("GET", "/api/v1/namespaces/shop/configmaps/web")
WRITES = [Request(method, READ.path, body=b"{}") for method in ("POST", "PUT", "PATCH", "DELETE")]
BODILESS = Request("DELETE", READ.path)
AUTHORITY = Authority()
SERVER = serving(AUTHORITY.server("127.0.0.1"))


class Leadership:
    """Guards as an election does; may end after so many looks."""

    def __init__(self, looks: float = float("inf")) -> None:
        self.looks = looks
        self.looked = 0

    def guard(self, request: Request) -> None:
        if request.method == "GET":
            return
        self.looked += 1
        if self.looked > self.looks:
            raise NotLeading(f"{request}: refused")

    def end(self) -> None:
        self.looks = 0


def fenced(server: str, leadership: Leadership) -> FencedTransport:
    connection = Connection(server=server, ca=AUTHORITY.pem)
    return FencedTransport(HttpsTransport(connection, connections=1, before_send=leadership.guard), leadership)


@pytest.mark.parametrize("write", [*WRITES, BODILESS], ids=str)
async def test_without_leadership_there_is_no_writing(write: Request) -> None:
    transport = Scripted([answer(200)])
    with pytest.raises(NotLeading):
        await FencedTransport(transport, Leadership(0)).send(write, timeout=1)
    with pytest.raises(NotLeading):
        FencedTransport(transport, Leadership(0)).stream(write, timeout=1, silence=1)
    assert transport.asked == transport.streamed == []


async def test_reading_needs_no_leadership() -> None:
    reading = FencedTransport(Scripted([answer(200)], [ScriptedStream(200, [b"a line"])]), Leadership(0))
    assert (await reading.send(READ, timeout=1)).status == 200
    async with reading.stream(READ, timeout=1, silence=1) as stream:
        assert [line async for line in stream.lines()] == [b"a line"]


@pytest.mark.parametrize("write", [*WRITES, BODILESS], ids=str)
async def test_a_write_that_waits_for_a_connection_is_not_sent_once_leadership_has_ended(write: Request) -> None:
    seen: list[str] = []
    go_on = asyncio.Event()

    async def slow(request: web.Request) -> web.Response:
        seen.append(request.method)
        await go_on.wait()
        return web.Response()

    leadership = Leadership()
    async with api(slow, SERVER) as server:
        transport = fenced(server, leadership)
        reading = asyncio.create_task(transport.send(READ, timeout=10))
        writing = asyncio.create_task(transport.send(write, timeout=10))
        while leadership.looked < 2:  # it has passed the fence, and waits for the only connection
            await asyncio.sleep(0)
        leadership.end()
        go_on.set()
        assert (await reading).status == 200
        with pytest.raises(NotLeading):
            await writing
        assert (await transport.send(READ, timeout=10)).status == 200  # the connection is as good as ever
        assert seen == ["GET", "GET"]
        await transport.close()


async def test_a_write_refused_at_the_last_look_leaves_no_trace_on_its_connection() -> None:
    came: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while part := await reader.read(2**16):
            came.append(part)
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")

    async with raw(listen, SERVER) as server:
        unguarded = Leadership()
        transport = fenced(server, unguarded)
        await transport.send(WRITES[0], timeout=10)
        await transport.close()
        assert b"POST" in b"".join(came)
        came.clear()
        transport = fenced(server, Leadership(unguarded.looked - 1))
        with pytest.raises(NotLeading):
            await transport.send(WRITES[0], timeout=10)
        await transport.close()
        assert came == []


async def test_a_large_write_stops_in_the_middle() -> None:
    whole: list[int] = []

    async def swallow(request: web.Request) -> web.Response:
        whole.append(len(await request.read()))
        return web.Response()

    async with api(swallow, SERVER) as server:
        unguarded = Leadership()
        large = Request("POST", READ.path, body=b" " * 2**22)
        transport = fenced(server, unguarded)
        await transport.send(large, timeout=10)
        await transport.close()
        assert unguarded.looked > 2**22 // 2**16
        transport = fenced(server, Leadership(unguarded.looked - 1))
        with pytest.raises(NotLeading):
            await transport.send(large, timeout=10)
        await transport.close()
        assert whole == [2**22]


# The switch


@contextmanager
def program(*lines: str) -> Iterator[subprocess.Popen[bytes]]:
    start = ["import time", "from kedge.kube.fencing import AlarmWatchdog", "watchdog = AlarmWatchdog()"]
    process = subprocess.Popen([sys.executable, "-c", "\n".join([*start, *lines])], stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("busy", ["while True: pass", "time.sleep(60)"])
def test_a_process_that_does_not_put_the_switch_off_ends(busy: str) -> None:
    with program("watchdog.postpone(0.05)", busy) as process:
        assert process.wait(30) == signal.SIGALRM


def test_a_switch_that_is_late_strikes_at_once() -> None:
    with program("watchdog.postpone(-5)", "time.sleep(60)") as process:
        assert process.wait(30) == signal.SIGALRM


@pytest.mark.parametrize("reprieve", ["watchdog.disarm()", "watchdog.postpone(60)"])
def test_a_switch_that_is_put_off_or_disarmed_does_not_strike(reprieve: str) -> None:
    with program("watchdog.postpone(0.5)", reprieve, "time.sleep(1)") as process:
        assert process.wait(30) == 0


def test_a_process_that_was_stopped_too_long_does_nothing_more(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.touch()
    mark = f"with open({str(marks)!r}, 'ab', 0) as file:\n  while file.write(b'.'): time.sleep(0.0001)"
    with program("watchdog.postpone(3)", mark) as process:
        while not marks.stat().st_size:
            assert process.poll() is None
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3.5)
        before = marks.stat().st_size
        process.send_signal(signal.SIGCONT)
        assert process.wait(30) == signal.SIGALRM
        assert marks.stat().st_size == before


def test_there_is_no_switch_where_the_signal_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.default_int_handler)
    with pytest.raises(RuntimeError, match="SIGALRM is in use already"):
        AlarmWatchdog()

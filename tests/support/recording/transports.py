"""Transports of recorded tests: one that listens to a live server, one that plays again what was said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

from kedge.kube.transport import BufferedStream, Request, Response, Stream, Transport
from support.recording.exchange import Exchange, answered
from support.recording.rows import Rows
from support.recording.tape import Opened, Recording, Replay


class Listening:
    """Passes everything on to a live server, and takes down what it says."""

    def __init__(self, inner: Transport, rows: Rows, *, others_act: bool) -> None:
        self._inner = inner
        self._answered = partial(answered, others_act=others_act)
        self._rows = rows
        self.close = inner.close

    async def send(self, request: Request, *, timeout: float) -> Response:
        tape = self._rows.recording
        response = await self._inner.send(request, timeout=timeout)
        tape.add(self._answered(request, response))
        return response

    @asynccontextmanager
    async def stream(self, request: Request, *, timeout: float, silence: float) -> AsyncIterator[Stream]:
        tape = self._rows.recording
        async with self._inner.stream(request, timeout=timeout, silence=silence) as stream:
            if stream.status == 200:
                opened = tape.open(self._answered(request, Response(stream.status, headers=stream.headers)))
                yield _Heard(stream, tape, opened)
            else:
                refused = Response(stream.status, await stream.read(), stream.headers)
                tape.open(self._answered(request, refused)).ended = True
                yield BufferedStream(refused)


class _Heard:
    """A stream of a live server."""

    def __init__(self, inner: Stream, tape: Recording, opened: Opened) -> None:
        self._inner = inner
        self._tape = tape
        self._opened = opened
        self.status = inner.status
        self.headers: Mapping[str, str] = inner.headers
        self.read = inner.read

    async def lines(self) -> AsyncIterator[bytes]:
        async for line in self._inner.lines():
            self._tape.line(self._opened, line)
            yield line
        self._opened.ended = True


class Replaying:
    """Says what a server said then."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    async def send(self, request: Request, *, timeout: float) -> Response:
        await asyncio.sleep(0)
        return self._rows.replay.answer(request)

    @asynccontextmanager
    async def stream(self, request: Request, *, timeout: float, silence: float) -> AsyncIterator[Stream]:
        await asyncio.sleep(0)
        tape = self._rows.replay
        found = tape.stream(request)
        yield BufferedStream(found.response(request.body)) if found.code != 200 else _Replayed(found, tape)

    async def close(self) -> None:
        pass


class _Replayed:
    """A stream as it was."""

    def __init__(self, found: Exchange, tape: Replay) -> None:
        self._found = found
        self._tape = tape
        self.status = found.code
        self.headers = found.headers

    async def read(self) -> bytes:
        return b"\n".join([line async for line in self.lines()])

    def lines(self) -> AsyncIterator[bytes]:
        return self._tape.lines(self._found)

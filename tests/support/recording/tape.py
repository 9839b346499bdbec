"""Tapes: the exchanges of one test with a server, while they are taken down or played again.

A request that changes nothing is answered by the last answer to it after the same number of changes: whoever waits asks
the same again and again, and how often is chance.
"""

from __future__ import annotations

import asyncio
import difflib
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kedge.kube.transport import Request, Response
from support.recording.exchange import Exchange, Line, asked, body, raw
from support.recording.masking import masked

ANEW = "`make record` asks the real server, and writes down what it says now"


class Differs(AssertionError):
    """A test and its recording do not belong together any more."""


class Opened(Struct):
    """A stream that is being taken down."""

    exchange: Exchange
    lines: list[Line] = []
    ended: bool = False

    def closed(self) -> Exchange:
        return replace(self.exchange, lines=tuple(self.lines), ended=self.ended)


class Recording:
    """Takes down what a live server says."""

    def __init__(self) -> None:
        self._taken: list[Exchange | Opened] = []
        self._changes = 0

    def add(self, exchange: Exchange) -> None:
        self._changes += not exchange.changes_nothing
        self._taken.append(exchange)

    def open(self, exchange: Exchange) -> Opened:
        self._taken.append(stream := Opened(exchange))
        return stream

    def line(self, stream: Opened, content: bytes) -> None:
        stream.lines.append(Line(self._changes, body(content)))

    def exchanges(self) -> Sequence[Exchange]:
        return _last_answers(one if isinstance(one, Exchange) else one.closed() for one in self._taken)


def _last_answers(exchanges: Iterable[Exchange]) -> Sequence[Exchange]:
    """Without the answers that were followed by another one to the same request, with no change in between."""
    kept: list[Exchange] = []
    since: dict[str, int] = {}
    for one in exchanges:
        if not one.changes_nothing or one.lines is not None:
            since = {} if one.lines is None else since
            kept.append(one)
        elif (at := since.get(one.request)) is not None:
            kept[at] = one
        else:
            since[one.request] = len(kept)
            kept.append(one)
    return tuple(kept)


def compare(then: Sequence[Exchange], now: Sequence[Exchange]) -> None:
    """Fail if a server does not say what it said when it was recorded."""
    before, after = masked(then), masked(now)
    if before != after:
        shown = "\n".join(line for line in difflib.unified_diff(before, after, "recorded", "now", lineterm="", n=0))
        raise Differs(f"the server said something else when this was recorded; {ANEW}:\n{shown[:4000]}")


class Replay:
    """Plays exchanges again, and insists that the test asks what it asked then."""

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._writes: dict[str, deque[Exchange]] = defaultdict(deque)
        self._reads: dict[str, list[tuple[int, Exchange]]] = defaultdict(list)
        self._streams: dict[str, deque[Exchange]] = defaultdict(deque)
        self._changes = changes = 0
        for one in exchanges:
            if one.lines is not None:
                self._streams[one.request].append(one)
            elif one.changes_nothing:
                self._reads[one.request].append((changes, one))
            else:
                self._writes[one.request].append(one)
                changes += 1

    def answer(self, request: Request) -> Response:
        """What the server answered then."""
        question = asked(request)
        if question.changes_nothing:
            return self._read(question).response(request.body)
        waiting = self._writes[question.request]
        if not waiting:
            raise Differs(f"this was not asked when the test was recorded; {ANEW}: {question.request}")
        self._changes += 1
        return waiting.popleft().response(request.body)

    def _read(self, question: Exchange) -> Exchange:
        known = [one for after, one in self._reads[question.request] if after <= self._changes]
        if not known:
            raise Differs(f"this was not asked so early when the test was recorded; {ANEW}: {question.request}")
        return known[-1]

    def stream(self, request: Request) -> Exchange:
        question = asked(request)
        waiting = self._streams[question.request]
        if not waiting:
            raise Differs(f"this was not watched when the test was recorded; {ANEW}: {question.request}")
        return waiting.popleft()

    async def lines(self, stream: Exchange) -> AsyncIterator[bytes]:
        """The lines of a stream, none before the changes that came before it."""
        for line in stream.lines or ():
            while self._changes < line.after:
                await asyncio.sleep(0.001)
            yield raw(line.content)
        if not stream.ended:
            await asyncio.Event().wait()  # nothing more came

    def check(self) -> None:
        """Fail if the test left something out that it did when it was recorded."""
        left = [one.request for waiting in self._writes.values() for one in waiting]
        if left:
            raise Differs(f"this is no longer asked by the test; {ANEW}: {left[0]}")

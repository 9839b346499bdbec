"""A tape plays again what was said, and notices a test that says something else."""

from __future__ import annotations

import asyncio

import pytest

from kedge.kube.transport import Request
from support.recording.exchange import Exchange, Line
from support.recording.tape import Differs, Recording, Replay, compare

READ, WRITE = Request("GET", "/a"), Request("POST", "/a", body=b'{"k":"v"}')


def read(text: str) -> Exchange:
    return Exchange(ask="GET /a", code=200, answer={"text": text})


def write(code: int = 201) -> Exchange:
    return Exchange(ask="POST /a", sent={"json": {"k": "v"}}, code=code)


def test_writes_are_answered_in_their_order() -> None:
    tape = Replay([write(201), write(409)])
    assert [tape.answer(WRITE).status for _ in range(2)] == [201, 409]


def test_a_read_sees_what_was_there_after_as_many_changes_however_often_it_asks() -> None:
    tape = Replay([read("none"), write(), read("not yet"), read("one")])
    before = [tape.answer(READ).body for _ in range(3)]
    tape.answer(WRITE)
    after = [tape.answer(READ).body for _ in range(3)]
    assert (before, after) == ([b"none"] * 3, [b"one"] * 3)


def test_what_was_never_asked_fails() -> None:
    with pytest.raises(Differs, match=r"was not asked when the test was recorded.*make record"):
        Replay([]).answer(WRITE)


def test_a_body_that_was_never_sent_fails() -> None:
    with pytest.raises(Differs, match="was not asked when the test was recorded"):
        Replay([write()]).answer(Request("POST", "/a", body=b'{"k":"w"}'))


def test_a_read_that_comes_too_early_fails() -> None:
    with pytest.raises(Differs, match="was not asked so early"):
        Replay([write(), read("one")]).answer(READ)


def test_a_write_that_the_test_no_longer_makes_fails() -> None:
    tape = Replay([write(), read("one")])
    with pytest.raises(Differs, match="is no longer asked by the test"):
        tape.check()


def test_a_server_that_says_something_else_than_it_did_fails() -> None:
    with pytest.raises(Differs, match="said something else when this was recorded"):
        compare([read("one")], [read("two")])


def test_of_answers_to_who_waits_the_last_is_kept() -> None:
    tape = Recording()
    for one in (read("none"), read("one"), write(), read("two")):
        tape.add(one)
    assert tape.exchanges() == (read("one"), write(), read("two"))


async def test_a_line_of_a_stream_comes_after_what_it_tells_of() -> None:
    lines = (Line(0, {"text": "there"}), Line(1, {"text": "made"}))
    tape = Replay([write(), Exchange(ask="GET /a", code=200, lines=lines, ended=True)])
    seen: list[bytes] = []
    reading = asyncio.create_task(_read_all(tape, seen))
    await asyncio.sleep(0.02)
    before = list(seen)
    tape.answer(WRITE)
    await reading
    assert (before, seen) == ([b"there"], [b"there", b"made"])


async def test_a_stream_that_nobody_ended_stays_open() -> None:
    tape = Replay([Exchange(ask="GET /a", code=200, lines=())])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(_read_all(tape, []), 0.02)


async def _read_all(tape: Replay, seen: list[bytes]) -> None:
    async for line in tape.lines(tape.stream(READ)):
        seen.append(line)  # noqa: PERF401  # read while it is still being filled

"""Answers from bytes: the same however they are cut; and what is not plainly one answer is none."""

import gzip
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kedge.kube.connect.failures import Malformed, TooLarge
from kedge.kube.connect.http_answer import HEAD_LIMIT, LINE_LIMIT, CloseFraming, HeadReader, decompressed

Answer = tuple[int, dict[str, str], bytes, bool, bytes]
"""Status, headers, body, whether the connection stays, and what came after."""


def read(*pieces: bytes, method: str = "GET") -> Answer | None:
    """The answer in these pieces; None if it is not whole."""
    reader = HeadReader(method)
    head = None
    body = b""
    left = list(pieces)
    while head is None:
        if not left:
            return None
        head = reader.feed(left.pop(0))
    for piece in (reader.rest, *left):
        if head.framing.done:
            head.framing.rest += piece
        else:
            body += head.framing.feed(piece)
    done = head.framing.done or isinstance(head.framing, CloseFraming)
    return (head.status, head.headers, body, head.keeps, head.framing.rest) if done else None


def cut(whole: bytes, places: list[int]) -> list[bytes]:
    """The same bytes in pieces."""
    return [whole[a:b] for a, b in pairwise([0, *sorted(place % (len(whole) + 1) for place in places), len(whole)])]


def chunked(parts: list[bytes], extension: bytes = b"", trailers: bytes = b"") -> bytes:
    sized = b"".join(b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts if part)
    return sized + b"0" + extension + b"\r\n" + trailers + b"\r\n"


BODIES = st.lists(st.binary(max_size=40) | st.sampled_from([b"\r\n", b"0\r\n\r\n", b"line\n"]), max_size=5)
PLACES = st.lists(st.integers(min_value=0, max_value=2**12), max_size=12)
INFORMATION = st.sampled_from(
    [b"", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n" * 2]
)


@given(BODIES, PLACES, INFORMATION, st.sampled_from([b"", b";a=b", b' ; a="b"']), st.sampled_from([b"", b"x: y\r\n"]))
def test_a_chunked_answer_is_the_same_however_it_is_cut(
    parts: list[bytes], places: list[int], before: bytes, extension: bytes, trailers: bytes
) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Some:  thing \r\n\r\n"
    whole = before + head + chunked(parts, extension, trailers)
    assert read(*cut(whole, places)) == (
        200,
        {"transfer-encoding": "chunked", "x-some": "thing"},
        b"".join(parts),
        True,
        b"",
    )


@given(st.binary(max_size=200), PLACES, st.binary(max_size=20))
def test_a_counted_answer_is_the_same_however_it_is_cut(body: bytes, places: list[int], more: bytes) -> None:
    whole = b"HTTP/1.1 404 Not Found\r\ncontent-length: %d\r\n\r\n%s%s" % (len(body), body, more)
    assert read(*cut(whole, places)) == (404, {"content-length": str(len(body))}, body, True, more)


@given(BODIES.filter(any), st.data())
def test_the_beginning_of_an_answer_is_none(parts: list[bytes], data: st.DataObject) -> None:
    whole = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunked(parts)
    assert read(whole[: data.draw(st.integers(0, len(whole) - 1))]) is None


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
SHARDS = st.sampled_from(
    [
        *(
            b"HTTP/1.1 200 OK\r\n",
            b"HTTP/1.1 ",
            b"200",
            b" OK",
            b"\r\n",
            b"\r",
            b"\n",
            b":",
            b" ",
            b"\t",
            b"\0",
            b"\x85",
        ),
        *(b"content-length: 3\r\n", b"content-length: -3\r\n", b"transfer-encoding: chunked\r\n", b"\r\n\r\n"),
        *(
            b"3\r\nabc\r\n",
            b"0\r\n\r\n",
            b"-1\r\n",
            b"0x3\r\n",
            b"1_0\r\n",
            b"ffffffffffffffff\r\n",
            b"connection: close",
        ),
    ]
)
GARBAGE = st.builds(
    bytes.__add__,
    st.sampled_from([b"", OK, CHUNKED, OK + b"content-length: 3\r\n"]),
    st.lists(SHARDS | st.binary(max_size=10), max_size=30).map(b"".join),
)


def outcome(*pieces: bytes) -> Answer | str | None:
    try:
        return read(*pieces)
    except Malformed:
        return "refused"


@given(GARBAGE, PLACES)
@example(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + b"0" * (LINE_LIMIT + 1), [LINE_LIMIT + 50])
@example(b"HTTP/1.1 200 OK\r\nx: " + b"y" * HEAD_LIMIT + b"\r\n\r\n", [HEAD_LIMIT - 10])
def test_garbage_comes_to_the_same_end_however_it_is_cut(garbage: bytes, places: list[int]) -> None:
    assert outcome(garbage) == outcome(*cut(garbage, places))


@given(st.binary(max_size=300))
def test_noise_is_never_an_answer(noise: bytes) -> None:
    assert noise.startswith(b"HTTP/1.") or outcome(noise) in (None, "refused")


@pytest.mark.parametrize(
    "sent",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"HTTP/1.1 200 O\0K\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 17,
        OK + b"content-length: 3\r\ntransfer-encoding: chunked\r\n\r\nabc",
        OK + b"content-length: 3\r\ncontent-length: 4\r\n\r\nabc",
        OK + b"content-length: 3, 3\r\n\r\nabc",
        OK + b"content-length: -3\r\n\r\nabc",
        OK + b"content-length: +3\r\n\r\nabc",
        OK + b"content-length: 3.0\r\n\r\nabc",
        OK + b"content-length: \xd9\xa3\r\n\r\nabc",  # a three, in Arabic
        OK + b"content-length: " + b"9" * 19 + b"\r\n\r\nabc",
        OK + b"content-length:\r\n\r\nabc",
        OK + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        OK + b"transfer-encoding: identity\r\n\r\n",
        b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        OK + b"no colon\r\n\r\n",
        OK + b": no name\r\n\r\n",
        OK + b"a name: x\r\n\r\n",
        OK + b"name : x\r\n\r\n",
        OK + b"folded: a\r\n b\r\n\r\n",
        OK + b"bare: a\nb: c\r\n\r\n",
        OK + b"bare: a\rb\r\n\r\n",
        OK + b"null: \0\r\n\r\n",
        OK + b"deleted: \x7f\r\n\r\n",
        OK + b"x: " + b"y" * HEAD_LIMIT,
        CHUNKED + b"\r\n",
        CHUNKED + b"-1\r\n",
        CHUNKED + b"+1\r\na\r\n0\r\n\r\n",
        CHUNKED + b"0x1\r\na\r\n0\r\n\r\n",
        CHUNKED + b"1_0\r\n",
        CHUNKED + b" 1\r\na\r\n0\r\n\r\n",
        CHUNKED + b"1\na\r\n0\r\n\r\n",
        CHUNKED + b"f" * 16 + b"\r\n",
        CHUNKED + b"1\r\nab\r\n0\r\n\r\n",
        CHUNKED + b"1\r\na\n0\r\n\r\n",
        CHUNKED + b"0" * (LINE_LIMIT + 2),
        CHUNKED + b"0\r\n" + b"x: y\r\n" * 100,
        CHUNKED + b"0\r\n" + b"x: y\r\n" * 64 + b"0\r\n\r\n",
    ],
)
def test_what_is_not_plainly_one_answer_is_refused(sent: bytes) -> None:
    with pytest.raises(Malformed):
        read(sent)
    with pytest.raises(Malformed):
        read(*cut(sent, list(range(min(len(sent), 5000)))))


@pytest.mark.parametrize(
    ("version", "connection", "keeps"),
    [
        (b"1.1", None, True),
        (b"1.1", b"close", False),
        (b"1.1", b"Keep-Alive, Close", False),
        (b"1.1", b"upgrade", True),
        (b"1.0", None, False),
        (b"1.0", b"keep-alive", True),
    ],
)
def test_a_server_says_whether_the_connection_stays(version: bytes, connection: bytes | None, keeps: bool) -> None:
    header = b"" if connection is None else b"connection: %s\r\n" % connection
    answer = read(b"HTTP/%s 200 OK\r\n%scontent-length: 0\r\n\r\n" % (version, header))
    assert answer is not None
    assert answer[3] == keeps


@pytest.mark.parametrize(
    ("method", "start"),
    [("HEAD", b"200 OK"), ("GET", b"204 No Content"), ("GET", b"304 Not Modified"), ("CONNECT", b"200 OK")],
)
def test_some_answers_have_no_body_whatever_they_say(method: str, start: bytes) -> None:
    answer = read(b"HTTP/1.1 %s\r\ncontent-length: 10\r\n\r\n" % start, method=method)
    assert answer is not None
    assert answer[2] == b""


def test_headers_that_come_twice_are_joined() -> None:
    answer = read(OK + b"Warning: a\r\nwarning:\tb\r\ncontent-length: 0\r\n\r\n")
    assert answer is not None
    assert answer[1]["warning"] == "a, b"


def test_a_body_without_a_length_lasts_as_long_as_its_connection() -> None:
    assert read(OK + b"\r\n", b"one", b"two") == (200, {}, b"onetwo", True, b"")


# Packing


@given(st.binary(), st.sampled_from(["gzip", "x-gzip", "GZIP"]))
def test_what_is_packed_is_unpacked(body: bytes, coding: str) -> None:
    assert decompressed(gzip.compress(body), {"content-encoding": coding}) == body


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (b"junk", "gzip"),
        (gzip.compress(b"x" * 1000, mtime=0)[:-1], "gzip"),
        (gzip.compress(b"x" * 1000, mtime=0) + b"more", "gzip"),
        (b"x", "br"),
        (b"x", "gzip, gzip"),
    ],
)
def test_what_is_packed_badly_is_refused(body: bytes, coding: str) -> None:
    with pytest.raises(Malformed):
        decompressed(body, {"content-encoding": coding})


@pytest.mark.parametrize(("size", "fits"), [(1000, True), (1001, False), (10**8, False)])
def test_unpacking_has_a_limit(size: int, fits: bool) -> None:
    packed = gzip.compress(b"x" * size, 1)
    if fits:
        assert len(decompressed(packed, {"content-encoding": "gzip"}, limit=1000)) == size
    else:
        with pytest.raises(TooLarge):
            decompressed(packed, {"content-encoding": "gzip"}, limit=1000)

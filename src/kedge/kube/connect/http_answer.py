"""HTTP answers: HTTP/1.1 responses, parsed from bytes as they arrive. Does no I/O.

The answer does not depend on how the bytes are cut. Whatever is not clearly one answer is refused (`Malformed`): two
lengths, a length that is not a number, a chunk without its end, a head without bounds. A lenient parser could take the
end of one answer for the beginning of another.
"""

from __future__ import annotations

import re
import zlib
from functools import lru_cache
from typing import Protocol

from msgspec import Struct

from kedge.kube.connect.failures import Malformed, TooLarge

HEAD_LIMIT = 2**16
LINE_LIMIT = 2**12
TRAILERS = 64
_START = re.compile(r"HTTP/1\.([01]) ([1-9][0-9][0-9])(?: ([^\x00-\x08\x0a-\x1f\x7f]*))?")
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = bytes(range(0x09)) + bytes(range(0x0A, 0x20)) + b"\x7f"
_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[^\x00\r\n]*)?")
_HEAD_END = b"\r\n\r\n"
_LINE_END = b"\r\n"
_LAST_CHUNK = b"0\r\n\r\n"


class BodyFraming(Protocol):
    """Where a body ends. `rest` is what came after it."""

    done: bool
    rest: bytes

    def feed(self, data: bytes) -> bytes:
        """What of this belongs to the body."""
        ...


class Head(Struct, frozen=True):
    """What comes before a body. Header names are in lower case; `keeps` is whether the connection stays."""

    status: int
    reason: str
    headers: dict[str, str]
    framing: BodyFraming
    keeps: bool


class HeadReader:
    """Reads the head of the answer to a request of this method."""

    __slots__ = ("_begun", "_method", "_passed", "rest")

    def __init__(self, method: str) -> None:
        self._method = method
        self._begun = b""
        self._passed = 0
        self.rest = b""

    def feed(self, data: bytes) -> Head | None:
        """The head once it is whole, and then `rest`, what came after it."""
        data = self._begun + data if self._begun else data
        while True:
            end = data.find(_HEAD_END)
            if end < 0 or end > HEAD_LIMIT:
                self._wait(data)
                return None
            head = read_head(data[:end], self._method)
            data = data[end + 4 :]
            if head.status >= 200:
                self.rest = data
                return head
            self._pass(head)

    def _wait(self, begun: bytes) -> None:
        if not b"HTTP/1.".startswith(begun[:7]):
            raise Malformed("it is no HTTP/1.1")
        if len(begun) > HEAD_LIMIT + 3:
            raise Malformed("its head does not end")
        self._begun = begun

    def _pass(self, head: Head) -> None:
        """What only tells that an answer will come is passed over, a few times."""
        self._passed += 1
        if head.status == 101 or self._passed > 16:
            raise Malformed(f"{head.status} is no answer to what was asked")


def read_head(raw: bytes, method: str) -> Head:
    """A head, without the empty line at its end."""
    first, *lines = raw.decode("utf-8", "surrogateescape").split("\r\n")
    version, status, reason = _start(first)
    if len(raw) - len(raw.translate(None, _CONTROL)) != len(_LINE_END) * len(lines):
        raise Malformed("a header holds control characters")
    headers: dict[str, str] = {}
    for line in lines:
        written, colon, value = line.partition(":")
        if not colon:
            raise Malformed("a header has no proper name")
        name, value = _name(written), value.strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return Head(status, reason, headers, _framing(method, status, version, headers), _keeps(version, headers))


@lru_cache(32)
def _start(line: str) -> tuple[str, int, str]:
    """Version, status and reason."""
    start = _START.fullmatch(line)
    if start is None:
        raise Malformed("it is no HTTP/1.1")
    version, status, reason = start.groups()
    return version, int(status), reason or ""


@lru_cache(128)
def _name(written: str) -> str:
    """The name of a header, in lower case."""
    if not _NAME.fullmatch(written):
        raise Malformed("a header has no proper name")
    return written.lower()


def _keeps(version: str, headers: dict[str, str]) -> bool:
    given = headers.get("connection")
    if given is None:
        return version == "1"
    wishes = {wish.strip() for wish in given.lower().split(",")}
    return "close" not in wishes and (version == "1" or "keep-alive" in wishes)


def _framing(method: str, status: int, version: str, headers: dict[str, str]) -> BodyFraming:
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None and length is not None:
        raise Malformed("it has both a length and a transfer coding")
    if coding is not None and (coding.lower() != "chunked" or version == "0"):
        raise Malformed("its transfer coding is none that was asked for")
    if length is not None and not (length.isascii() and length.isdigit() and len(length) <= 18):
        raise Malformed("its length is no number")
    if method == "HEAD" or status < 200 or status in {204, 304} or (method == "CONNECT" and status < 300):
        return LengthFraming(0)
    if coding is not None:
        return ChunkedFraming()
    return LengthFraming(int(length)) if length is not None else CloseFraming()


class LengthFraming:
    """A body of so many bytes."""

    __slots__ = ("_left", "done", "rest")

    def __init__(self, length: int) -> None:
        self._left = length
        self.done = False
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        if len(data) < self._left:
            self._left -= len(data)
            return data
        self.done = True
        self.rest = data[self._left :]
        return data[: self._left]


class CloseFraming:
    """A body that ends with its connection."""

    __slots__ = ("done", "rest")

    def __init__(self) -> None:
        self.done = False
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        return data


class ChunkedFraming:
    """A body in parts that each tell their size.

    One loop over what came, and not a step for each kind of line: it runs for every event of every watch.
    """

    __slots__ = ("_begun", "_closing", "_left", "_trailers", "done", "rest")

    def __init__(self) -> None:
        self._left = 0
        self._closing = False  # between a chunk and the line end after it
        self._trailers = -1  # how many there were, once the last chunk has come
        self._begun = b""
        self.done = False
        self.rest = b""

    def feed(self, data: bytes) -> bytes:
        if self._begun:
            data = self._begun + data
            self._begun = b""
        parts: list[bytes] = []
        at = 0
        while True:
            if self._left:
                part = data[at : at + self._left]
                parts.append(part)
                at += len(part)
                self._left -= len(part)
                if self._left:
                    break
                self._closing = True
            if self._closing:
                if data[at : at + 2] != _LINE_END:
                    self._put_off(data[at:], _LINE_END)
                    break
                at += 2
                self._closing = False
            if len(data) - at == len(_LAST_CHUNK) and self._trailers < 0 and data.startswith(_LAST_CHUNK, at):
                self.done = True  # as nearly every body ends
                break
            end = data.find(_LINE_END, at)
            if end < 0:
                self._put_off(data[at:])
                break
            line = data[at:end]
            at = end + 2
            if self._trailers < 0:
                self._begin(line)
            elif not line:
                self.done = True
                self.rest = data[at:]
                break
            else:
                self._pass(line)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _put_off(self, begun: bytes, wanted: bytes = b"") -> None:
        """Keep the beginning of a line until there is more, if it may become one."""
        if wanted and not wanted.startswith(begun):
            raise Malformed("a chunk is longer than it says")
        if len(begun) > LINE_LIMIT + 1:
            raise Malformed("the size of a chunk does not end")
        self._begun = begun

    def _begin(self, line: bytes) -> None:
        size = _SIZE.fullmatch(line)
        if size is None or len(line) > LINE_LIMIT:
            raise Malformed("the size of a chunk is no number")
        self._left = int(size[1], 16)
        if not self._left:
            self._trailers = 0

    def _pass(self, line: bytes) -> None:
        """What comes after a body tells nothing we asked for."""
        self._trailers += 1
        if self._trailers > TRAILERS or len(line) > LINE_LIMIT:
            raise Malformed("what comes after it does not end")


def decompressed(body: bytes, headers: dict[str, str], *, limit: int = 0) -> bytes:
    """A body as it was before it was packed for the way; `TooLarge` if that is more than `limit` bytes (0: any)."""
    coding = headers.get("content-encoding", "identity").lower()
    if coding == "identity" or not body:
        return body
    if coding not in {"gzip", "x-gzip"}:
        raise Malformed("it is packed in a way that was not asked for")
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        found = unpack.decompress(body, limit and limit + 1)
    except zlib.error as error:
        raise Malformed("it is no gzip, as it says") from error
    if 0 < limit < len(found):
        raise TooLarge(limit)
    if unpack.unused_data or not unpack.eof:
        raise Malformed("it is packed, and not whole")
    return found

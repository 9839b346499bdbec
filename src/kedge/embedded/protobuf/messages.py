"""Messages: how each message of the Kubernetes API is read, by the numbers of its fields.

    read_message("io.k8s.api.apps.v1.Deployment", data)       # as JSON has it

The numbers come from the Go modules kube-apiserver is built from, by `python -m wiretypes`; they are read when this is
imported. Each message becomes a table of functions when first met, kept for the life of the process. Fields that a
message does not have are passed over; what cannot be read is `Malformed`.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from kedge.embedded.protobuf import wire
from kedge.embedded.protobuf.well_known import WELL_KNOWN, JsonForm
from kedge.embedded.protobuf.wire import Malformed
from kedge.kube.codec import Untyped

Json: TypeAlias = Any
_Read: TypeAlias = Callable[[bytes, int, int, int], Json]  # the text, from where to where, how deep
_Put: TypeAlias = Callable[[Untyped, bytes, int, int, int], None]  # what to fill, and then as above
_Fields: TypeAlias = Mapping[str, str]  # by number: the name, and the type

_FILE = Path(__file__).parents[1] / "builtin" / "messages.json"
_DEEPEST = 100  # messages in messages; the deepest that are of use, schemas in CRDs, have a fraction of it
_ONE_BYTE = 0x7F  # the largest number that takes no more
_WIRES = {"bool": wire.VARINT, "int32": wire.VARINT, "int64": wire.VARINT, "double": wire.EIGHT_BYTES}
_NUMBERS: Mapping[str, Callable[[int], Json]] = {"bool": bool, "int32": wire.int32, "int64": wire.int64}

_RUNTIME = "io.k8s.apimachinery.pkg.runtime"
ENVELOPE = f"{_RUNTIME}.Unknown"
_AROUND: Mapping[str, _Fields] = {  # what has no JSON of its own
    ENVELOPE: {"1": " TypeMeta", "2": "raw bytes", "3": "contentEncoding string", "4": "contentType string"},
    f"{_RUNTIME}.TypeMeta": {"1": "apiVersion string", "2": "kind string"},
}
_KEEP_BYTES = frozenset({*WELL_KNOWN, ENVELOPE})

# At import, not at first use: that may be inside an event loop, where reading a file has no place.
MESSAGES: Mapping[str, _Fields] = {
    **msgspec.json.decode(_FILE.read_bytes(), type=dict[str, dict[str, str]]),
    **_AROUND,
}


class _Message(Struct, frozen=True):
    """What to do with each field, by its tag, which is its number and what follows it."""

    name: str
    numbers: Mapping[int, Callable[[Untyped, int], None]]
    stretches: Mapping[int, _Put]
    known: frozenset[int]  # numbers of fields


def read_message(name: str, data: bytes) -> Untyped:
    """A message as JSON has it. LookupError if there is none of that name."""
    message = _message(name)
    found: Untyped = {}
    try:
        _fill(found, message, data, 0, len(data), 0)
    except (IndexError, struct.error):
        raise Malformed("unexpected EOF") from None
    return found


def _fill(out: Untyped, message: _Message, data: bytes, at: int, end: int, depth: int) -> None:
    """Put the fields between two places into a dict."""
    if depth > _DEEPEST:
        raise Malformed(f"messages are nested more than {_DEEPEST} deep")
    numbers, stretches = message.numbers, message.stretches
    while at < end:
        # Most tags, sizes and numbers are one byte: not worth a call, of which there are three for every field.
        tag = data[at]
        at += 1
        if tag > _ONE_BYTE:
            tag, at = wire.read_varint(data, at - 1)
        following = tag & 7
        if following == wire.VARINT:
            value, at = wire.read_varint(data, at)
            if tag in numbers:
                numbers[tag](out, value)
                continue
        else:
            if following == wire.LENGTH_DELIMITED and data[at] <= _ONE_BYTE:
                start = at + 1
                at = start + data[at]
            else:
                start, at = wire.payload_range(data, at, tag)
            if at > end:
                break
            if tag in stretches:
                stretches[tag](out, data, start, at, depth)
                continue
        _refuse_known(message, tag)
    if at != end:
        raise Malformed("unexpected EOF")


def _refuse_known(message: _Message, tag: int) -> None:
    """A field that is not there is nobody's business; one that is has to be of its type."""
    if tag >> 3 == 0:
        raise Malformed(f"proto: {message.name}: illegal tag 0 (wire type {tag & 7})")
    if tag >> 3 in message.known:
        raise Malformed(f"proto: wrong wireType = {tag & 7} for field {tag >> 3}")


@cache
def _message(name: str) -> _Message:
    package, _, short = name.rpartition(".")
    return _compiled(short, MESSAGES[name], package, keeps_bytes=name in _KEEP_BYTES)


def _compiled(name: str, fields: _Fields, package: str, *, keeps_bytes: bool = False) -> _Message:
    numbers: dict[int, Callable[[Untyped, int], None]] = {}
    stretches: dict[int, _Put] = {}
    for number, told in fields.items():
        member, _, written = told.partition(" ")
        tag = int(number) << 3
        plain = written.removeprefix("[]")
        if plain not in _NUMBERS:
            following = _WIRES.get(plain, wire.LENGTH_DELIMITED)
            stretches[tag | following] = _put(member, written, package, keeps_bytes=keeps_bytes)
        elif plain == written:
            numbers[tag] = partial(_put_number, member, _NUMBERS[plain])
        else:
            numbers[tag] = partial(_add_number, member, _NUMBERS[plain])
            stretches[tag | wire.LENGTH_DELIMITED] = partial(_add_packed, member, _NUMBERS[plain])
    return _Message(name, numbers, stretches, frozenset(map(int, fields)))


def _put(name: str, written: str, package: str, *, keeps_bytes: bool) -> _Put:
    if written.startswith("{}"):
        entry = {"1": "key string", "2": f"value {written.removeprefix('{}')}"}
        value = _reader(written.removeprefix("{}"), package, keeps_bytes=keeps_bytes)
        return partial(_put_entry, name, partial(_entry_table, tuple(entry.items()), package), value)
    if written.startswith("[]"):
        return partial(_add_one, name, _reader(written.removeprefix("[]"), package, keeps_bytes=keeps_bytes))
    if (inner := _full(written, package)) in MESSAGES and inner not in WELL_KNOWN:
        return partial(_put_inner, name, inner) if name else partial(_put_among, inner)
    return partial(_put_one, name, _reader(written, package, keeps_bytes=keeps_bytes))


def _reader(written: str, package: str, *, keeps_bytes: bool) -> _Read:
    match written:
        case "string":
            return _read_text
        case "bytes":
            return _read_bytes if keeps_bytes else _read_base64
        case "double":
            return _read_double
    name = _full(written, package)
    return partial(_read_form, name, WELL_KNOWN[name]) if name in WELL_KNOWN else partial(_read_inner, name)


def _full(written: str, package: str) -> str:
    return written if "." in written else f"{package}.{written}"


@cache
def _entry_table(fields: tuple[tuple[str, str], ...], package: str) -> _Message:
    """An entry of a map: a message of a key and a value."""
    return _compiled("entry", dict(fields), package)


def _put_number(name: str, converted: Callable[[int], Json], out: Untyped, value: int) -> None:
    out[name] = converted(value)


def _add_number(name: str, converted: Callable[[int], Json], out: Untyped, value: int) -> None:
    out.setdefault(name, []).append(converted(value))


def _add_packed(
    name: str, converted: Callable[[int], Json], out: Untyped, data: bytes, at: int, end: int, _depth: int
) -> None:
    values = out.setdefault(name, [])
    while at < end:
        value, at = wire.read_varint(data, at)
        values.append(converted(value))
    if at != end:
        raise Malformed("unexpected EOF")


def _put_one(name: str, read: _Read, out: Untyped, data: bytes, at: int, end: int, depth: int) -> None:
    if (value := read(data, at, end, depth)) is not None:
        out[name] = value


def _add_one(name: str, read: _Read, out: Untyped, data: bytes, at: int, end: int, depth: int) -> None:
    out.setdefault(name, []).append(read(data, at, end, depth))


def _put_inner(name: str, inner: str, out: Untyped, data: bytes, at: int, end: int, depth: int) -> None:
    # A message that comes twice is one: the second adds to the first.
    _fill(out.setdefault(name, {}), _message(inner), data, at, end, depth + 1)


def _put_among(inner: str, out: Untyped, data: bytes, at: int, end: int, depth: int) -> None:
    """Put the members of a message that JSON has no name for among those around it."""
    _fill(out, _message(inner), data, at, end, depth + 1)


def _put_entry(
    name: str, table: Callable[[], _Message], read: _Read, out: Untyped, data: bytes, at: int, end: int, depth: int
) -> None:
    entry: Untyped = {}
    _fill(entry, table(), data, at, end, depth + 1)
    value = entry["value"] if "value" in entry else read(b"", 0, 0, depth)
    out.setdefault(name, {})[entry.get("key", "")] = value


def _read_text(data: bytes, at: int, end: int, _depth: int) -> Json:
    # Go takes any bytes for text, and writes a mark for those that are none.
    return data[at:end].decode("utf-8", "replace")


def _read_bytes(data: bytes, at: int, end: int, _depth: int) -> Json:
    return data[at:end]


def _read_base64(data: bytes, at: int, end: int, _depth: int) -> Json:
    return base64.b64encode(data[at:end]).decode()


def _read_double(data: bytes, at: int, end: int, _depth: int) -> Json:
    return struct.unpack("<d", data[at:end])[0]


def _read_inner(name: str, data: bytes, at: int, end: int, depth: int) -> Json:
    found: Untyped = {}
    _fill(found, _message(name), data, at, end, depth + 1)
    return found


def _read_form(name: str, form: JsonForm, data: bytes, at: int, end: int, depth: int) -> Json:
    return form(_read_inner(name, data, at, end, depth))

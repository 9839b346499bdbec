"""Wire: protobuf messages as trees, as far as reading and rewriting a compiled CEL expression takes it.

A message is a dict from field number to the values found there; which of them are messages themselves the reader says
when it asks. Fixed-size numbers stay as their bytes.
"""

from __future__ import annotations

from typing import TypeAlias

Value: TypeAlias = "int | bytes | Fixed | Message"
Message: TypeAlias = "dict[int, list[Value]]"


class Fixed(bytes):
    """A number of eight bytes (or four)."""


def read(data: bytes) -> Message:
    """A message; its inner messages are still bytes."""
    message: Message = {}
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        value: Value
        match tag & 7:
            case 0:
                value, at = _number(data, at)
            case 1:
                value, at = Fixed(data[at : at + 8]), at + 8
            case 5:
                value, at = Fixed(data[at : at + 4]), at + 4
            case _:
                size, at = _number(data, at)
                value, at = data[at : at + size], at + size
        message.setdefault(tag >> 3, []).append(value)
    return message


def written(message: Message) -> bytes:
    return b"".join(_field(number, value) for number, values in message.items() for value in values)


def inner(message: Message, field: int) -> list[Message]:
    """The messages at a field, read in place: what is changed in them is changed in the whole."""
    values = message.get(field, [])
    for index, value in enumerate(values):
        if isinstance(value, bytes):
            values[index] = read(value)
    return [value for value in values if isinstance(value, dict)]


def number(message: Message, field: int) -> int:
    found = message.get(field, [0])[-1]
    return found if isinstance(found, int) else 0


def text(message: Message, field: int) -> str:
    found = message.get(field, [b""])[-1]
    return found.decode() if isinstance(found, bytes) else ""


def packed(data: bytes) -> list[int]:
    """Numbers that stand one after the other."""
    found, at = [], 0
    while at < len(data):
        value, at = _number(data, at)
        found.append(value)
    return found


def _field(field: int, value: Value) -> bytes:
    if isinstance(value, int):
        return _varint(field << 3) + _varint(value)
    if isinstance(value, Fixed):
        return _varint(field << 3 | (1 if len(value) == 8 else 5)) + value
    data = written(value) if isinstance(value, dict) else value
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7

"""Wire: the encoding of protobuf: varints, length-delimited fields, groups.

Every function takes the data and a position, and gives the next position. What ends too soon raises IndexError or gives
a position behind the end: the caller checks. What is invalid raises `Malformed`.
"""

from __future__ import annotations

VARINT, EIGHT_BYTES, LENGTH_DELIMITED, GROUP, END_OF_GROUP, FOUR_BYTES = range(6)
_LONGEST = 70  # bits in the ten bytes that a number may take


class Malformed(ValueError):
    """What is no message, in words."""


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """A number without a sign, and where it ends."""
    value = data[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    for shift in range(7, _LONGEST, 7):
        at += 1
        byte = data[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, at + 1
    raise Malformed("proto: integer overflow")


def payload_range(data: bytes, at: int, tag: int) -> tuple[int, int]:
    """Where what follows a tag begins and ends."""
    match tag & 7:
        case 2:
            size, at = read_varint(data, at)
            return at, at + size
        case 1:
            return at, at + 8
        case 5:
            return at, at + 4
        case 3:
            return at, _behind_group(data, at)
    raise Malformed(f"proto: illegal wireType {tag & 7}")


def _behind_group(data: bytes, at: int) -> int:
    """Where a group ends, an old form that nothing here has; groups may be in groups."""
    open_groups = 1
    while open_groups:
        tag, at = read_varint(data, at)
        match tag & 7:
            case 0:
                _, at = read_varint(data, at)
            case 3:
                open_groups += 1
            case 4:
                open_groups -= 1
            case _:
                _, at = payload_range(data, at, tag)
    return at


def int64(value: int) -> int:
    """A number that may be below zero."""
    return value - (1 << 64) if value >> 63 else value


def int32(value: int) -> int:
    """A number of four bytes: what is beyond them is dropped, as Go does."""
    value &= 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value

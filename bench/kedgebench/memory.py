"""Memory: how much this process holds, and how much of it is in given objects."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress

import msgspec
import psutil

GC_HEAD = 16
"""Bytes before each object that the collector tracks."""


def resident() -> int:
    """Bytes of memory in use, after returning to the system what is free."""
    for _ in range(3):
        gc.collect()
    with suppress(OSError, AttributeError):  # glibc only
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    return int(psutil.Process().memory_info().rss)


def deep_size(*roots: object) -> int:
    """Bytes of these objects and of all they refer to, each counted once; what the allocator adds is not known here."""
    seen: set[int] = set()
    waiting = [*roots]
    size = 0
    while waiting:
        found = waiting.pop()
        if found is None or isinstance(found, (bool, type)) or id(found) in seen:
            continue
        seen.add(id(found))
        size += _own_size(found)
        waiting += _parts(found)
    return size


def _own_size(found: object) -> int:
    # getsizeof adds the collector's head where there is one; for Structs it does not know about gc=False.
    if isinstance(found, msgspec.Struct):
        return type(found).__basicsize__ + (GC_HEAD if gc.is_tracked(found) else 0)
    return sys.getsizeof(found)


def _parts(found: object) -> Iterable[object]:
    match found:
        case msgspec.Struct():
            return [getattr(found, name) for name in found.__struct_fields__]
        case Mapping():
            return [*found.keys(), *found.values()]
        case tuple() | list():
            return found
    return ()

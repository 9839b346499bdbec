"""Garbage collection: large caches are filled without the collector stopping the event loop.

While a cache fills, everything allocated stays, so each collection walks the whole cache to free nothing. Collection
is paused until the load is done, and what was loaded is then frozen: no later collection walks it. Reference counting
goes on as always.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

LARGE = 5_000
"""From this many objects on, freezing pays off. Freezing also keeps whatever garbage there is at that moment, so it is
not done for every small list."""

_loads = 0
_collecting = False  # whether to go on collecting after the last load


class Load:
    """One load in progress; `size` is its number of objects so far."""

    size = 0


@contextmanager
def bulk_load() -> Iterator[Load]:
    """Pause garbage collection while many objects are loaded that will stay. Loads may overlap."""
    global _loads, _collecting  # noqa: PLW0603  # the collector is one per process, and so is this count
    if _loads == 0:
        _collecting = gc.isenabled()
        gc.disable()
    _loads += 1
    load = Load()
    try:
        yield load
    finally:
        _loads -= 1
        if load.size >= LARGE:
            gc.freeze()
        if _loads == 0 and _collecting:
            gc.enable()


def freeze_heap() -> None:
    """Collect once more, then freeze everything that is allocated: it will stay, and is never walked again."""
    gc.collect()
    gc.freeze()

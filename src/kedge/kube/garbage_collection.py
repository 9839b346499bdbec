"""Loading: filling a large cache without the garbage collector stopping the event loop.

While a cache fills, everything allocated stays, so each collection walks the whole cache to free nothing. Collection
waits until the load is done, and what is loaded then is moved out of its sight. Reference counting goes on as ever.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

LARGE = 5_000
"""From this many objects on, walking them is worth sparing. Freezing also keeps what garbage there is at that moment,
so it is not done for every small list."""

_loads = 0
_collecting = False  # whether to go on collecting after the last load


class Load:
    """One load under way; `size` is how many objects it has brought."""

    size = 0


@contextmanager
def bulk_load() -> Iterator[Load]:
    """Put off garbage collection while many objects are loaded that will stay. Loads may overlap."""
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


def settle() -> None:
    """Say that what there is now will stay: the collector walks it once more, and then never again."""
    gc.collect()
    gc.freeze()

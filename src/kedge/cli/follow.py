"""Follow: `--watch`. Shows a story until it is over and stays so, or until time is up.

On a terminal this is a tree that is redrawn; elsewhere a line for each change.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct
from rich.console import Console, RenderableType
from rich.live import Live

from kedge.cli.render import console, print_lines
from kedge.kube.cache import Cache

S = TypeVar("S")
REDRAW_EVERY: Final = 0.1
"""Seconds. Nobody can read faster than that."""


class Followed(Struct, Generic[S], frozen=True):
    """What is followed."""

    tell: Callable[[], Awaitable[S]]
    """Tells the story as it is now."""
    is_over: Callable[[S], bool]
    lines: Callable[[S], Mapping[str, str]]
    """What is printed off a terminal: of these lines, those that have changed."""
    tree: Callable[[S, Console], RenderableType]
    """What is drawn on a terminal."""
    stable_for: float = 0
    """Seconds for which it has to stay over: a status may lag behind a change that has just been made."""
    tick: float | None = None
    """Seconds after which it is told anew though nothing has changed."""
    pause: float = REDRAW_EVERY


async def follow(what: Followed[S], changed: asyncio.Event, timeout: float | None, form: str) -> S:
    """Show it until it is over, or until time is up. Returns the last story."""
    out = console(sys.stdout if form == "tree" else sys.stderr)
    with _shown(what, out) as show:
        story = await what.tell()
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                while True:
                    changed.clear()
                    story = await what.tell()
                    show(story)
                    if await _stays(what, story, changed):
                        break
        return story


async def _stays(what: Followed[S], story: S, changed: asyncio.Event) -> bool:
    """Whether a story that is over stays as it is."""
    is_over = what.is_over(story)
    try:
        await asyncio.wait_for(changed.wait(), what.stable_for if is_over else what.tick)
    except TimeoutError:
        return is_over
    await asyncio.sleep(what.pause)
    return False


@contextmanager
def _shown(what: Followed[S], out: Console) -> Iterator[Callable[[S], None]]:
    if not out.is_terminal or out.is_dumb_terminal:
        yield _Lines(what, out).show
        return
    with Live(console=out, auto_refresh=False, vertical_overflow="crop") as live:
        yield lambda story: live.update(what.tree(story, out), refresh=True)


class _Lines(Generic[S]):
    """A line for each change."""

    def __init__(self, what: Followed[S], out: Console) -> None:
        self._what = what
        self._out = out
        self._printed: Mapping[str, str] = {}

    def show(self, story: S) -> None:
        now = self._what.lines(story)
        print_lines((line for key, line in now.items() if self._printed.get(key) != line), self._out)
        self._printed = now


@asynccontextmanager
async def changes(*caches: Cache[Any]) -> AsyncIterator[asyncio.Event]:
    """Runs the caches, which are synced; the event is set when something in them has changed."""
    changed = asyncio.Event()
    for cache in caches:
        cache.on_change(lambda _: changed.set())
    running = [asyncio.create_task(cache.run()) for cache in caches]
    try:
        for cache in caches:
            await cache.synced()
        yield changed
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

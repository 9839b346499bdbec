"""Following a run: its stages again and again, as they change, until it has ended.

On a terminal that is a tree that moves, with the time that is left to wait; elsewhere a line for whatever changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import click
from rich.console import Console
from rich.live import Live

from kedge.api.staged import ClusterStagedUpdateRun
from kedge.cli.asking import Which
from kedge.cli.hub_lease import Listening
from kedge.cli.runs import doubted, find_run, run_story, run_tree
from kedge.cli.showing import can_draw, console
from kedge.kube.cache import Cache
from kedge.kube.client import Client
from kedge.plan.staging.run_story import RunStory, tell_run

TICK: Final = 1.0  # seconds between two looks at a clock that runs down


async def follow_run(client: Client, name: str, namespace: str | None, timeout: float | None) -> RunStory:
    """Show a run until it has ended, or time is up; the last story."""
    story = await _followed(client, name, namespace, timeout)
    return await run_story(client, name, namespace) if story.is_done else story  # it may have been rolled back since


async def _followed(client: Client, name: str, namespace: str | None, timeout: float | None) -> RunStory:
    which, _ = await find_run(client, name, namespace)
    cache = Cache(client, which.twins.run, which.namespace, fields={"metadata.name": which.name})
    following = asyncio.create_task(cache.run())
    out = console()
    try:
        async with Listening(client) as hub:
            if not out.is_terminal:
                return await _until_ended(cache, which, hub, Lines(out).show, timeout)
            with Live(console=out, auto_refresh=False) as live:
                return await _until_ended(cache, which, hub, lambda story: _draw(live, out, story), timeout)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _until_ended(
    cache: Cache[ClusterStagedUpdateRun],
    which: Which,
    hub: Listening,
    show: Callable[[RunStory], None],
    timeout: float | None,
) -> RunStory:
    changed = asyncio.Event()
    cache.on_change(lambda _: changed.set())
    await cache.synced()
    story = _story(cache, which, hub)
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            while True:
                story = _story(cache, which, hub)
                show(story)
                if story.has_ended:
                    break
                changed.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), TICK)
    return story


def _story(cache: Cache[ClusterStagedUpdateRun], which: Which, hub: Listening) -> RunStory:
    found = cache.get(which.name, which.namespace)
    if found is None:
        raise click.ClickException(f"run {which.path} has been deleted")
    return doubted(tell_run(found), hub.since)


def _draw(live: Live, out: Console, story: RunStory) -> None:
    live.update(run_tree(story, datetime.now(UTC), drawn=can_draw(out)), refresh=True)


class Lines:
    """A line for whatever changed."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._said = ""

    def show(self, story: RunStory) -> None:
        stages = ", ".join(f"{stage.name} {stage.done}/{stage.clusters}" for stage in story.stages)
        line = ": ".join(part for part in (f"run {story.name}", story.word, stages, story.why, story.doubt) if part)
        if line != self._said:
            self._out.print(line, soft_wrap=True)
        self._said = line

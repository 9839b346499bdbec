"""Watch: `kedge status --watch`. Shows a placement until it is available, or a staged update run until it has ended.

On a terminal this is a tree that is redrawn; elsewhere a line for each change.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext, suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Protocol, Self

import click
from msgspec.structs import replace
from rich.console import Console
from rich.live import Live
from rich.text import Text

from kedge.api.cluster import MemberCluster
from kedge.api.placement_kinds import PolicySnapshot, Run
from kedge.api.staged import ClusterStagedUpdateRun
from kedge.api.work import Work
from kedge.cli.hub_lease import LeaseWatcher
from kedge.cli.render import can_draw, console, print_lines, tree
from kedge.cli.runs import find_run, run_story, run_tree, with_doubt
from kedge.cli.safe_text import bounded, printable
from kedge.cli.targets import PlacementName, PlacementTarget
from kedge.kube.cache import Cache
from kedge.kube.client import Client
from kedge.kube.codec import metadata_of
from kedge.kube.errors import Unreachable
from kedge.plan.explaining.phrases import of_place, separate_doubt, summary
from kedge.plan.explaining.placed_objects import without_manifests
from kedge.plan.explaining.story import Story, tell
from kedge.plan.staging.run_story import RunStory, tell_run

REDRAW_EVERY: Final = 0.1
"""Seconds. Nobody can read faster than that."""
STABLE_FOR: Final = 1.5
"""Seconds for which a placement has to stay available: the scheduler may pick again a moment after a member changed."""
CHECK_HUB_AFTER: Final = 3.0
"""Seconds without a change after which we check whether the hub still works."""
POLL_EVERY: Final = 2.0
"""Seconds between two reads of members and policies."""
TICK: Final = 1.0
"""Seconds between two updates of the time that a run still has to wait."""


class Screen(Protocol):
    """Shows a story, and any problem with reading it."""

    def show(self, story: Story, problem: str | None) -> None: ...


async def watch_placement(found: PlacementTarget, screen: Screen, timeout: float | None) -> Story:
    """Show a placement until it is available and stays so, or until time is up. Returns the last story."""
    story = await found.story()
    async with _caches(found) as caches:
        try:
            async with asyncio.timeout(timeout):
                await caches.synced()
                while True:
                    await caches.poll()
                    story = caches.story()
                    screen.show(story, caches.problem)
                    if (checked := await _checked_while_unchanged(found, caches, screen)) is not None:
                        return checked
                    await asyncio.sleep(REDRAW_EVERY)
        except TimeoutError:
            if caches.problem:
                raise click.ClickException(_no_answer(caches.problem)) from None
            return await found.checked(story)


async def _checked_while_unchanged(found: PlacementTarget, caches: _Caches, screen: Screen) -> Story | None:
    """While nothing changes, check whether the story is still true of the hub. Returns the story if it is done."""
    pause = STABLE_FOR if caches.story().is_done else CHECK_HUB_AFTER
    while not await caches.changed(pause):
        story = await found.checked(caches.story())
        if story.is_done or not story.is_readable:
            return story
        screen.show(story, caches.problem)
        pause = CHECK_HUB_AFTER
    return None


def _no_answer(problem: str) -> str:
    return f"the hub does not answer: {problem.removeprefix('no answer: ')}"


class _Caches:
    """Everything that a placement's story is made of."""

    def __init__(self, found: PlacementTarget) -> None:
        client, which, labels = found.client, found.which, found.labels
        self._found = found
        self._which = which
        self._policies: Sequence[PolicySnapshot] = ()
        self._members: Mapping[str, MemberCluster] | None = None
        self._runs: Sequence[Run] = ()
        self._polled_at: float | None = None
        self._placement = Cache(client, which.kinds.placement, which.namespace, fields={"metadata.name": which.name})
        self._bindings = Cache(client, which.kinds.binding, which.namespace, labels=labels)
        self._works = Cache(client, Work, labels=found.labels_of_works, transform=without_manifests)
        snapshots = metadata_of(which.kinds.resource_snapshot.resource)
        self._snapshots = Cache(client, snapshots, which.namespace, labels=labels)
        self.all: tuple[Cache[Any], ...] = (self._placement, self._bindings, self._works, self._snapshots)
        self._change = asyncio.Event()
        for cache in self.all:
            cache.on_change(lambda _: self._change.set())
            cache.on_problem(lambda _: self._change.set())

    @property
    def problem(self) -> str | None:
        return next((cache.problem for cache in self.all if cache.problem), None)

    async def synced(self) -> None:
        for cache in self.all:
            await cache.synced()

    async def poll(self) -> None:
        """Read now and then what not everyone may watch, and what changes at every heartbeat."""
        now = asyncio.get_running_loop().time()
        if self._polled_at is not None and now - self._polled_at < POLL_EVERY:
            return
        self._polled_at = now
        with suppress(Unreachable):  # the caches say so
            self._policies, self._members = await self._found.policies(), await self._found.members()
            self._runs = await self._found.runs()

    async def changed(self, within: float) -> bool:
        """Wait for a change. False if nothing changes, and there is no problem either."""
        try:
            async with asyncio.timeout(within):
                await self._change.wait()
        except TimeoutError:
            return self.problem is not None
        finally:
            self._change.clear()
        return True

    def story(self) -> Story:
        placement = self._placement.get(self._which.name, self._which.namespace)
        if placement is None:
            raise click.ClickException(f"{self._which.kind} {self._which.path} has been deleted")
        snapshots = [one.metadata for one in self._snapshots.all()]
        return tell(
            placement,
            self._bindings.all(),
            self._works.all(),
            snapshots,
            policies=self._policies,
            members=self._members,
            runs=self._runs,
            now=datetime.now(UTC),
        )


@asynccontextmanager
async def _caches(found: PlacementTarget) -> AsyncIterator[_Caches]:
    caches = _Caches(found)
    running = [asyncio.create_task(cache.run()) for cache in caches.all]
    try:
        yield caches
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class PlacementTree:
    """A tree that is redrawn, no higher than the terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.__exit__(kind, error, at)

    def show(self, story: Story, problem: str | None) -> None:
        shown = tree(bounded(story), lines=self._console.height - 2, drawn=can_draw(self._console))
        if problem:
            shown.add(Text(printable(_no_answer(problem)), "red"))
        self._live.update(shown, refresh=True)


class PlacementLines:
    """A line for each change."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._print = say
        self._printed: dict[str, str] = {}

    def show(self, story: Story, problem: str | None) -> None:
        story = bounded(story)
        now = {"": f"{story.title}: {summary(story)}"}
        bare = [replace(place, things=()) for place in story.places]  # without them the place says why itself
        now |= {place.cluster: f"  {place.cluster}: {of_place(place)}" for place in bare}
        about = _no_answer(problem) if problem else separate_doubt(story)
        now |= {"the hub": about} if about else {}
        for key, line in now.items():
            if self._printed.get(key) != line:
                self._print(line)
        self._printed = now


def screen(console: Console) -> AbstractContextManager[Screen]:
    """A tree for a terminal, lines for everything else."""
    if console.is_terminal and not console.is_dumb_terminal:
        return PlacementTree(console)
    return nullcontext(PlacementLines(lambda line: print_lines([line], console)))


# Runs


async def watch_run(client: Client, name: str, namespace: str | None, timeout: float | None) -> RunStory:
    """Show a run until it has ended, or until time is up. Returns the last story."""
    story = await _watched(client, name, namespace, timeout)
    return await run_story(client, name, namespace) if story.is_done else story  # it may have been rolled back since


async def _watched(client: Client, name: str, namespace: str | None, timeout: float | None) -> RunStory:
    which, _ = await find_run(client, name, namespace)
    cache = Cache(client, which.kinds.run, which.namespace, fields={"metadata.name": which.name})
    following = asyncio.create_task(cache.run())
    out = console()
    try:
        async with LeaseWatcher(client) as hub:
            if not out.is_terminal:
                return await _until_ended(cache, which, hub, RunLines(out).show, timeout)
            with Live(console=out, auto_refresh=False) as live:
                return await _until_ended(cache, which, hub, lambda story: _draw_run(live, out, story), timeout)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _until_ended(
    cache: Cache[ClusterStagedUpdateRun],
    which: PlacementName,
    hub: LeaseWatcher,
    show: Callable[[RunStory], None],
    timeout: float | None,
) -> RunStory:
    changed = asyncio.Event()
    cache.on_change(lambda _: changed.set())
    await cache.synced()
    story = _run_story(cache, which, hub)
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout):
            while True:
                story = _run_story(cache, which, hub)
                show(story)
                if story.has_ended:
                    break
                changed.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), TICK)
    return story


def _run_story(cache: Cache[ClusterStagedUpdateRun], which: PlacementName, hub: LeaseWatcher) -> RunStory:
    found = cache.get(which.name, which.namespace)
    if found is None:
        raise click.ClickException(f"run {which.path} has been deleted")
    return with_doubt(tell_run(found), hub.since)


def _draw_run(live: Live, out: Console, story: RunStory) -> None:
    live.update(run_tree(story, datetime.now(UTC), drawn=can_draw(out)), refresh=True)


class RunLines:
    """A line for each change."""

    def __init__(self, out: Console) -> None:
        self._out = out
        self._printed = ""

    def show(self, story: RunStory) -> None:
        stages = ", ".join(f"{stage.name} {stage.done}/{stage.clusters}" for stage in story.stages)
        line = ": ".join(part for part in (f"run {story.name}", story.word, stages, story.why, story.doubt) if part)
        if line != self._printed:
            print_lines([line], self._out)
        self._printed = line

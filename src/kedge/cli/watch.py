"""Following a placement: its story again and again, as it changes, until what is on the hub now is available.

On a terminal that is a tree that moves; elsewhere a line for whatever changed.
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
from kedge.api.twins import PolicySnapshot, Run
from kedge.api.work import Work
from kedge.cli.render import can_draw, tree
from kedge.cli.targets import Found
from kedge.kube.cache import Cache
from kedge.kube.codec import metadata_of
from kedge.kube.errors import Unreachable
from kedge.plan.telling.phrases import of_place, separate_doubt, summary
from kedge.plan.telling.story import Story, tell
from kedge.plan.telling.things import without_manifests

BETWEEN_LOOKS: Final = 0.1
"""Seconds: more often than that nobody can read."""
SETTLES: Final = 1.5
"""Seconds for which it has to stay available: clusters may be picked anew a moment after a member changed."""
QUIET: Final = 3.0
"""Seconds without a change after which it is looked at whether the hub is still at work."""

AROUND: Final = 2.0
"""Seconds between two looks at members and policies."""


class Screen(Protocol):
    """What shows a story, and what is wrong with reading it."""

    def show(self, story: Story, problem: str | None) -> None: ...


async def follow(found: Found, screen: Screen, timeout: float | None) -> Story:
    """Show it until it is available, and stays so; or until time is up. The last story."""
    story = await found.story()
    async with _caches(found) as caches:
        try:
            async with asyncio.timeout(timeout):
                await caches.filled()
                while True:
                    await caches.look_around()
                    story = caches.story()
                    screen.show(story, caches.problem)
                    if (checked := await _unchanged(found, caches, screen)) is not None:
                        return checked
                    await asyncio.sleep(BETWEEN_LOOKS)
        except TimeoutError:
            if caches.problem:
                raise click.ClickException(_no_answer(caches.problem)) from None
            return await found.checked(story)


async def _unchanged(found: Found, caches: _Caches, screen: Screen) -> Story | None:
    """As long as nothing changes, see whether what is said is about the hub as it is now; the story, if it is done."""
    pause = SETTLES if caches.story().is_done else QUIET
    while not await caches.changed(pause):
        story = await found.checked(caches.story())
        if story.is_done or not story.is_readable:
            return story
        screen.show(story, caches.problem)
        pause = QUIET
    return None


def _no_answer(problem: str) -> str:
    return f"the hub does not answer: {problem.removeprefix('no answer: ')}"


class _Caches:
    """All that a placement's story is told from."""

    def __init__(self, found: Found) -> None:
        client, which, labels = found.client, found.which, found.labels
        self._found = found
        self._which = which
        self._policies: Sequence[PolicySnapshot] = ()
        self._members: Mapping[str, MemberCluster] | None = None
        self._runs: Sequence[Run] = ()
        self._looked: float | None = None
        self._placement = Cache(client, which.twins.placement, which.namespace, fields={"metadata.name": which.name})
        self._bindings = Cache(client, which.twins.binding, which.namespace, labels=labels)
        self._works = Cache(client, Work, labels=found.labels_of_works, transform=without_manifests)
        snapshots = metadata_of(which.twins.resource_snapshot.resource)
        self._snapshots = Cache(client, snapshots, which.namespace, labels=labels)
        self.all: tuple[Cache[Any], ...] = (self._placement, self._bindings, self._works, self._snapshots)
        self._change = asyncio.Event()
        for cache in self.all:
            cache.on_change(lambda _: self._change.set())
            cache.on_problem(lambda _: self._change.set())

    @property
    def problem(self) -> str | None:
        return next((cache.problem for cache in self.all if cache.problem), None)

    async def filled(self) -> None:
        for cache in self.all:
            await cache.synced()

    async def look_around(self) -> None:
        """Read what not everyone may watch, and what is written at every heartbeat: now and then."""
        now = asyncio.get_running_loop().time()
        if self._looked is not None and now - self._looked < AROUND:
            return
        self._looked = now
        with suppress(Unreachable):  # the caches say so
            self._policies, self._members = await self._found.policies(), await self._found.members()
            self._runs = await self._found.runs()

    async def changed(self, within: float) -> bool:
        """Wait for something to change; False if nothing does, and there is no trouble either."""
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
async def _caches(found: Found) -> AsyncIterator[_Caches]:
    caches = _Caches(found)
    running = [asyncio.create_task(cache.run()) for cache in caches.all]
    try:
        yield caches
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class Moving:
    """A tree that moves, no higher than the terminal."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.__exit__(kind, error, at)

    def show(self, story: Story, problem: str | None) -> None:
        shown = tree(story, lines=self._console.height - 2, drawn=can_draw(self._console))
        if problem:
            shown.add(Text(_no_answer(problem), "red"))
        self._live.update(shown, refresh=True)


class Lines:
    """A line for whatever changed."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._said: dict[str, str] = {}

    def show(self, story: Story, problem: str | None) -> None:
        now = {"": f"{story.title}: {summary(story)}"}
        bare = [replace(place, things=()) for place in story.places]  # then it says itself what they would
        now |= {place.cluster: f"  {place.cluster}: {of_place(place)}" for place in bare}
        about = _no_answer(problem) if problem else separate_doubt(story)
        now |= {"the hub": about} if about else {}
        for key, line in now.items():
            if self._said.get(key) != line:
                self._say(line)
        self._said = now


def screen(console: Console) -> AbstractContextManager[Screen]:
    """What suits where it is printed."""
    if console.is_terminal and not console.is_dumb_terminal:
        return Moving(console)
    return nullcontext(Lines(lambda line: console.print(line, soft_wrap=True)))

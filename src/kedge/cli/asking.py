"""Asking a hub: one client for one command, and errors as sentences instead of tracebacks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

import click
from msgspec import Struct

from kedge.api.cluster import MemberCluster
from kedge.api.fleet import PARENT_NAMESPACE, PARENT_PLACEMENT
from kedge.api.meta import ObjectMeta
from kedge.api.twins import CLUSTER, NAMESPACED, Binding, Placement, PolicySnapshot, Run, Twins
from kedge.api.work import Work
from kedge.cli.hub_lease import hub_silent_since
from kedge.cli.quiet import quiet
from kedge.controllers.hub.selected_objects import selected_now
from kedge.controllers.hub.snapshot_writes import ResourceSnapshots
from kedge.kube.client import Client
from kedge.kube.codec import metadata_of
from kedge.kube.connect.config import ConfigError, load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.errors import ApiError, Forbidden, KubeError, NotFound, Unauthorized, Unreachable
from kedge.plan.revisions import is_master, resource_index
from kedge.plan.rolling.observing import is_external
from kedge.plan.selecting.choosing import Selection
from kedge.plan.selecting.kinds import RUN_ON_THE_HUB
from kedge.plan.telling.freshness import against_lease, against_placement, against_selection, needs_selection
from kedge.plan.telling.story import Story, tell
from kedge.plan.telling.things import without_manifests
from kedge.plan.telling.words import listed

T = TypeVar("T")
MANAGER = "kedge-cli"
NO_PLACEMENTS = "this cluster knows no placements: is it the hub? `kedge install hub` prints what a hub needs"
_WORKS_AT_ONCE = 50  # they hold all manifests, of which nothing is needed


class Hub(Struct, frozen=True):
    """Which hub is meant: a kubeconfig and a context, or whatever is current."""

    kubeconfig: Path | None = None
    context: str | None = None

    def ask(self, question: Callable[[Client], Coroutine[None, None, T]]) -> T:
        """What it answers to a question."""

        async def asked() -> T:
            async with _client(self) as client:
                return await question(client)

        try:
            with quiet():
                return asyncio.run(asked())
        except (KubeError, ConfigError) as error:
            raise click.ClickException(in_words(error)) from error


@asynccontextmanager
async def _client(hub: Hub) -> AsyncIterator[Client]:
    connection = await asyncio.to_thread(load, [hub.kubeconfig] if hub.kubeconfig else None, hub.context)
    client = Client(HttpsTransport(connection))
    try:
        yield client
    finally:
        await client.close()


def in_words(error: KubeError | ConfigError) -> str:
    """What went wrong, for who typed the command."""
    match error:
        case Unreachable():
            return f"the hub cannot be reached: {error.answer.removeprefix('no answer: ')}"
        case Unauthorized():
            return "the hub does not know who you are (401 Unauthorized): check the user of this context"
        case Forbidden():
            return f"the hub does not let you: {error.message}"
        case ApiError():
            return f"the hub refused: {error.message or error.answer}"
        case _:
            return str(error)


class Which(Struct, frozen=True):
    """Which placement is meant: `web`, `shop/web`, or a name and a namespace."""

    twins: Twins
    namespace: str | None
    name: str

    @classmethod
    def of(cls, name: str, namespace: str | None) -> Which:
        place, slash, rest = name.partition("/")
        if not slash:
            return cls(NAMESPACED, namespace, name) if namespace else cls(CLUSTER, None, name)
        if not place or not rest or "/" in rest:
            raise click.UsageError(f"{name!r} names no placement: write NAME, or NAMESPACE/NAME")
        if namespace not in (None, place):
            raise click.UsageError(f"{name} is in namespace {place}, and --namespace says {namespace}: leave one out")
        return cls(NAMESPACED, place, rest)

    @property
    def kind(self) -> str:
        return self.twins.placement.resource.kind

    @property
    def path(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Found:
    """A placement, and how to read what belongs to it."""

    def __init__(self, client: Client, which: Which, placement: Placement) -> None:
        self.client = client
        self.which = which
        self.placement = placement

    @property
    def path(self) -> str:
        """What users call it by."""
        return self.which.path

    @property
    def labels(self) -> dict[str, str]:
        """Of what belongs to it, in its own namespace."""
        return {PARENT_PLACEMENT: self.which.name}

    @property
    def labels_of_works(self) -> str:
        """Of its Works, which are in the namespaces of members."""
        place = f"{PARENT_NAMESPACE}={self.which.namespace}" if self.which.namespace else f"!{PARENT_NAMESPACE}"
        return f"{PARENT_PLACEMENT}={self.which.name},{place}"

    async def story(self) -> Story:
        """All that the fleet's objects say of it."""
        return tell(
            self.placement,
            await self.bindings(),
            await self.works(),
            await self.snapshots(),
            policies=await self.policies(),
            members=await self.members(),
            runs=await self.runs(),
            now=datetime.now(UTC),
        )

    async def checked(self, story: Story) -> Story:
        """The story, held against the hub as it is now: what is told may be of earlier."""
        if story.is_done:
            story = await self._compared(story)
        return against_lease(story, await hub_silent_since(self.client))

    async def _compared(self, story: Story) -> Story:
        which = self.which
        try:
            placement = await self.client.get(which.twins.placement, which.name, which.namespace)
        except NotFound as error:
            raise click.ClickException(f"{which.kind} {which.path} has been deleted") from error
        story = against_placement(story, placement)
        if not needs_selection(story):
            return story
        held = await self._held(story.index)
        return against_selection(story, await self._selected(placement, held), held)

    async def _selected(self, placement: Placement, held: str) -> Selection:
        """What is selected now; as a hub where workloads run selects it, if that is what is held."""
        found = await selected_now(self.client, placement)
        if not found.is_known or found.digest == held:
            return found
        narrower = await selected_now(self.client, placement, RUN_ON_THE_HUB)
        return narrower if narrower.digest == held else found

    async def _held(self, index: str) -> str:
        """The digest of what a revision holds; empty if there is none."""
        found = (one for one in await self.snapshots() if is_master(one) and str(resource_index(one)) == index)
        master = next(found, None)
        return await ResourceSnapshots(self.client, self.which.twins).held(master) if master is not None else ""

    async def bindings(self) -> list[Binding]:
        page = await self.client.list(self.which.twins.binding, self.which.namespace, labels=self.labels)
        return sorted(page.items, key=lambda binding: binding.metadata.name)

    async def works(self) -> list[Work]:
        found: list[Work] = []
        async for page in self.client.pages(Work, labels=self.labels_of_works, page_size=_WORKS_AT_ONCE):
            found += map(without_manifests, page.items)
        return found

    async def snapshots(self) -> list[ObjectMeta]:
        kind = metadata_of(self.which.twins.resource_snapshot.resource)
        page = await self.client.list(kind, self.which.namespace, labels=self.labels)
        return [one.metadata for one in page.items]

    async def policies(self) -> list[PolicySnapshot]:
        """None, if one may not read them: then the placement's status says which clusters were not picked."""
        with suppress(Forbidden):
            kind = self.which.twins.policy_snapshot
            return list((await self.client.list(kind, self.which.namespace, labels=self.labels)).items)
        return []

    async def members(self) -> dict[str, MemberCluster] | None:
        """By name; None if one may not read them: then the placement's status says who cannot be reached."""
        with suppress(Forbidden):
            return {one.metadata.name: one for one in (await self.client.list(MemberCluster)).items}
        return None

    async def runs(self) -> list[Run]:
        """The staged update runs that move it, if that is what does."""
        if not is_external(self.placement):
            return []
        page = await self.client.list(self.which.twins.run, self.which.namespace)
        return [one for one in page.items if one.spec.placement_name == self.which.name]


async def find(client: Client, name: str, namespace: str | None = None) -> Found:
    """The placement that is meant, or a sentence that says what there is instead."""
    which = Which.of(name, namespace)
    try:
        return Found(client, which, await client.get(which.twins.placement, which.name, which.namespace))
    except NotFound as error:
        raise click.ClickException(await _what_there_is(client, which)) from error


async def _what_there_is(client: Client, which: Which) -> str:
    try:
        known = await _names(client, CLUSTER) + await _names(client, NAMESPACED)
    except NotFound:
        return NO_PLACEMENTS
    missing = f"there is no {which.kind} {which.path}"
    namesakes = [path for path in known if path.rpartition("/")[2] == which.name]
    close = namesakes or get_close_matches(which.path, known)
    if close:
        return f"{missing}: did you mean {listed(close)}?"
    return f"{missing}: there is {listed(known)}" if known else f"{missing}, nor any other placement"


async def _names(client: Client, twins: Twins) -> list[str]:
    """Those one may see."""
    with suppress(Forbidden):
        page = await client.list(metadata_of(twins.placement.resource))
        metas = [one.metadata for one in page.items]
        return sorted(f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name for meta in metas)
    return []

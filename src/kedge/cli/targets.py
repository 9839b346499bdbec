"""Targets: the hub a command asks, and the placement it is about. Errors become sentences instead of tracebacks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import UTC, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import TypeVar

import click
from msgspec import Struct

from kedge.api.cluster import MemberCluster
from kedge.api.fleet import PARENT_NAMESPACE, PARENT_PLACEMENT
from kedge.api.meta import ObjectMeta
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, Binding, Placement, PlacementKinds, PolicySnapshot, Run
from kedge.api.work import Work
from kedge.cli.hub_lease import hub_silent_since
from kedge.cli.served_kinds import without_placements
from kedge.controllers.hub.selected_objects import selected_now
from kedge.controllers.hub.snapshot_writes import ResourceSnapshots
from kedge.kube.client import Client
from kedge.kube.codec import metadata_of
from kedge.kube.connect.config import ConfigError, load
from kedge.kube.connect.https import HttpsTransport
from kedge.kube.errors import ApiError, Forbidden, KubeError, NotFound, Unauthorized, Unreachable
from kedge.plan.explaining.freshness import against_lease, against_placement, against_selection, needs_selection
from kedge.plan.explaining.placed_objects import without_manifests
from kedge.plan.explaining.story import Story, tell
from kedge.plan.placements import is_external
from kedge.plan.revisions import is_master, resource_index
from kedge.plan.selecting.kinds import KEPT_WHERE_WORKLOADS_RUN
from kedge.plan.selecting.selection import Selection
from kedge.plan.text import listed, path_of

T = TypeVar("T")
MANAGER = "kedge-cli"
PLACEMENT, RUN = "placement/", "run/"
"""What may stand before the name of a placement or a run, if something else has the same name."""
_WORKS_AT_ONCE = 50  # a page of them: they hold all manifests, which are not needed


class Hub(Struct, frozen=True):
    """The hub to ask: a kubeconfig and a context, or the current ones."""

    kubeconfig: Path | None = None
    context: str | None = None

    def ask(self, question: Callable[[Client], Coroutine[None, None, T]]) -> T:
        """Run a question with a client for the hub. Errors end the command with a sentence."""

        async def asked() -> T:
            async with _client(self) as client:
                return await question(client)

        with error_sentences("the hub"), quiet_logs():
            return asyncio.run(asked())


@contextmanager
def quiet_logs(level: int = logging.CRITICAL) -> Iterator[None]:
    """Log nothing below this level: the command reports failures itself."""
    log = logging.getLogger("kedge")
    before = log.level
    log.setLevel(level)
    try:
        yield
    finally:
        log.setLevel(before)


@asynccontextmanager
async def _client(hub: Hub) -> AsyncIterator[Client]:
    connection = await asyncio.to_thread(load, [hub.kubeconfig] if hub.kubeconfig else None, hub.context)
    client = Client(HttpsTransport(connection))
    try:
        yield client
    finally:
        await client.close()


@contextmanager
def error_sentences(who: str) -> Iterator[None]:
    """End the command with a sentence about whoever was asked (`the hub`) if that fails."""
    try:
        yield
    except (KubeError, ConfigError) as error:
        raise click.ClickException(_sentence(error, who)) from error


def _sentence(error: KubeError | ConfigError, who: str) -> str:
    match error:
        case Unreachable():
            return f"{who} cannot be reached: {error.answer.removeprefix('no answer: ')}"
        case Unauthorized():
            return f"{who} does not know who you are (401 Unauthorized): check the user of this context"
        case Forbidden():
            return f"{who} does not allow it: {error.message}"
        case ApiError():
            return f"{who} refused: {error.message or error.answer}"
        case _:
            return str(error)


class PlacementName(Struct, frozen=True):
    """The name of a placement: `web`, `shop/web`, or a name and a namespace. `placement/` or `run/` may come first."""

    kinds: PlacementKinds
    namespace: str | None
    name: str

    @classmethod
    def of(cls, name: str, namespace: str | None) -> PlacementName:
        name = name.removeprefix(PLACEMENT).removeprefix(RUN)
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
        return self.kinds.placement.resource.kind

    @property
    def path(self) -> str:
        return path_of(self.namespace, self.name)


class PlacementTarget:
    """A placement, and the objects that belong to it."""

    def __init__(self, client: Client, which: PlacementName, placement: Placement) -> None:
        self.client = client
        self.which = which
        self.placement = placement

    @property
    def path(self) -> str:
        """Its name for users."""
        return self.which.path

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the objects that belong to it, in its own namespace."""
        return {PARENT_PLACEMENT: self.which.name}

    @property
    def labels_of_works(self) -> str:
        """The label selector of its Works, which are in the namespaces of members."""
        place = f"{PARENT_NAMESPACE}={self.which.namespace}" if self.which.namespace else f"!{PARENT_NAMESPACE}"
        return f"{PARENT_PLACEMENT}={self.which.name},{place}"

    async def story(self) -> Story:
        """The story that the fleet's objects tell about it."""
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
        """The story, checked against the hub as it is now: it may be outdated."""
        if story.is_done:
            story = await self._compared(story)
        return against_lease(story, await hub_silent_since(self.client))

    async def _compared(self, story: Story) -> Story:
        which = self.which
        try:
            placement = await self.client.get(which.kinds.placement, which.name, which.namespace)
        except NotFound as error:
            raise click.ClickException(f"{which.kind} {which.path} has been deleted") from error
        story = against_placement(story, placement)
        if not needs_selection(story):
            return story
        held = await self._held(story.index)
        return against_selection(story, await self._selected(placement, held), held)

    async def _selected(self, placement: Placement, held: str) -> Selection:
        """What is selected now; or what a hub with workloads of its own selects, if that is what the revision holds."""
        found = await selected_now(self.client, placement)
        if not found.is_known or found.digest == held:
            return found
        narrower = await selected_now(self.client, placement, KEPT_WHERE_WORKLOADS_RUN)
        return narrower if narrower.digest == held else found

    async def _held(self, index: str) -> str:
        """The digest of a revision; empty if there is none."""
        found = (one for one in await self.snapshots() if is_master(one) and str(resource_index(one)) == index)
        master = next(found, None)
        return await ResourceSnapshots(self.client, self.which.kinds).held(master) if master is not None else ""

    async def bindings(self) -> list[Binding]:
        page = await self.client.list(self.which.kinds.binding, self.which.namespace, labels=self.labels)
        return sorted(page.items, key=lambda binding: binding.metadata.name)

    async def works(self) -> list[Work]:
        found: list[Work] = []
        async for page in self.client.pages(Work, labels=self.labels_of_works, page_size=_WORKS_AT_ONCE):
            found += map(without_manifests, page.items)
        return found

    async def snapshots(self) -> list[ObjectMeta]:
        kind = metadata_of(self.which.kinds.resource_snapshot.resource)
        page = await self.client.list(kind, self.which.namespace, labels=self.labels)
        return [one.metadata for one in page.items]

    async def policies(self) -> list[PolicySnapshot]:
        """Empty if we may not read them: then the placement's status says which clusters were not picked."""
        with suppress(Forbidden):
            kind = self.which.kinds.policy_snapshot
            return list((await self.client.list(kind, self.which.namespace, labels=self.labels)).items)
        return []

    async def members(self) -> dict[str, MemberCluster] | None:
        """By name; None if we may not read them: then the placement's status says which members are unreachable."""
        with suppress(Forbidden):
            return {one.metadata.name: one for one in (await self.client.list(MemberCluster)).items}
        return None

    async def runs(self) -> list[Run]:
        """The staged update runs of an External placement."""
        if not is_external(self.placement):
            return []
        page = await self.client.list(self.which.kinds.run, self.which.namespace)
        return [one for one in page.items if one.spec.placement_name == self.which.name]


async def find(client: Client, name: str, namespace: str | None = None) -> PlacementTarget:
    """The placement of this name. If there is none, the error names those that exist."""
    which = PlacementName.of(name, namespace)
    try:
        return PlacementTarget(client, which, await client.get(which.kinds.placement, which.name, which.namespace))
    except NotFound as error:
        raise click.ClickException(await _what_there_is(client, which)) from error


async def _what_there_is(client: Client, which: PlacementName) -> str:
    try:
        known = await _names(client, CLUSTER) + await _names(client, NAMESPACED)
    except NotFound:
        return await without_placements(client, which.path)
    missing = f"there is no {which.kind} {which.path}"
    namesakes = [path for path in known if path.rpartition("/")[2] == which.name]
    close = namesakes or get_close_matches(which.path, known)
    if close:
        return f"{missing}: did you mean {listed(close)}?"
    return f"{missing}: there is {listed(known)}" if known else f"{missing}, nor any other placement"


async def _names(client: Client, kinds: PlacementKinds) -> list[str]:
    """The names of the placements that we may read."""
    with suppress(Forbidden):
        page = await client.list(metadata_of(kinds.placement.resource))
        metas = [one.metadata for one in page.items]
        return sorted(path_of(meta.namespace, meta.name) for meta in metas)
    return []

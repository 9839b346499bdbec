"""Snapshot contents: the objects of a placement's revisions, read when they are needed, and the last few kept.

Snapshots never change, and are known by their uid: another one under the same name, after its placement was deleted
and made again, is another one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec import Struct, convert

from kedge.api.meta import ObjectMeta
from kedge.api.placement_kinds import PlacementKinds
from kedge.api.placement_status import ResourceIdentifier
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.errors import NotFound
from kedge.plan.identifiers import identifiers_of
from kedge.plan.revisions import resource_index
from kedge.plan.working.work_contents import RevisionContents, RevisionPart, further_parts, revision_part

KEPT: Final = 32 * 1024 * 1024  # bytes of objects


class Missing(Struct, frozen=True):
    """Why the objects of a revision cannot be had."""

    problem: str


class Contents:
    """Reads the snapshots of one kind of placement."""

    def __init__(
        self, client: Client, kinds: PlacementKinds, known: Callable[[str, str | None], ObjectMeta | None]
    ) -> None:
        """`known` is what a cache shows of a snapshot, or None."""
        self._client = client
        self._form = untyped(kinds.resource_snapshot.resource)
        self._known = known
        self._kept: OrderedDict[str, tuple[ObjectMeta, RevisionPart]] = OrderedDict()
        self._size = 0

    async def read(self, name: str, namespace: str | None) -> RevisionContents | Missing:
        """The objects of the revision whose first snapshot has this name."""
        try:
            master, first = await self._part(name, namespace)
            rest = [await self._part(further, namespace) for further in further_parts(master)]
        except NotFound as error:
            return Missing(f"{self._form.resource.kind} {error.request.path.rpartition('/')[2]} does not exist")
        except ValueError as error:
            return Missing(str(error))
        return RevisionContents(name, str(resource_index(master)), (first, *(found for _, found in rest)))

    async def _part(self, name: str, namespace: str | None) -> tuple[ObjectMeta, RevisionPart]:
        known = self._known(name, namespace)
        if known is not None and known.uid in self._kept:
            self._kept.move_to_end(known.uid)
            return self._kept[known.uid]
        found: dict[str, Any] = await self._client.get(self._form, name, namespace)
        meta = convert(found["metadata"], ObjectMeta)
        held = (meta, revision_part(found.get("spec", {}).get("selectedResources") or ()))
        self._keep(meta.uid, held)
        return held

    def _keep(self, uid: str, held: tuple[ObjectMeta, RevisionPart]) -> None:
        if uid in self._kept:
            return
        self._kept[uid] = held
        self._size += held[1].size
        while self._size > KEPT and len(self._kept) > 1:
            _, (_, oldest) = self._kept.popitem(last=False)
            self._size -= oldest.size


REMEMBERED: Final = 1000  # snapshots


class Selected:
    """Knows the snapshots of one kind of placement."""

    def __init__(self, client: Client, kinds: PlacementKinds) -> None:
        self._client = client
        self._form = untyped(kinds.resource_snapshot.resource)
        self._known: OrderedDict[str, tuple[ResourceIdentifier, ...]] = OrderedDict()

    async def of(self, parts: Iterable[ObjectMeta]) -> tuple[ResourceIdentifier, ...]:
        """The objects of these parts of a revision, in their order."""
        return tuple([found for part in parts for found in await self._part(part)])

    async def _part(self, meta: ObjectMeta) -> tuple[ResourceIdentifier, ...]:
        if meta.uid not in self._known:
            self._known[meta.uid] = await self._read(meta)
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        self._known.move_to_end(meta.uid)
        return self._known[meta.uid]

    async def _read(self, meta: ObjectMeta) -> tuple[ResourceIdentifier, ...]:
        try:
            found: dict[str, Any] = await self._client.get(self._form, meta.name, meta.namespace)
        except NotFound:
            return ()  # deleted a moment ago: there will be another to speak of
        return identifiers_of(found.get("spec", {}).get("selectedResources") or ())

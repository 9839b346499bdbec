"""Selected: which objects a placement's revisions hold. Read once, since a snapshot never changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

from kedge.api.meta import ObjectMeta
from kedge.api.placement_status import ResourceIdentifier
from kedge.api.twins import Twins
from kedge.kube.client import Client
from kedge.kube.codec import untyped
from kedge.kube.errors import NotFound
from kedge.plan.identifiers import identifiers_of

REMEMBERED: Final = 1000  # snapshots


class Selected:
    """Knows the snapshots of one kind of placement."""

    def __init__(self, client: Client, twins: Twins) -> None:
        self._client = client
        self._form = untyped(twins.resource_snapshot.resource)
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

"""Pod counting: writes down how many pods a revision runs, on its first snapshot, where a budget of pods needs it.

A snapshot never changes, so this is done once; whoever sees its metadata then knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import msgspec

from kedge.api.fleet import POD_COUNTS
from kedge.api.meta import ObjectMeta
from kedge.api.placement_kinds import PlacementKinds
from kedge.controllers.gather import gather
from kedge.controllers.hub.snapshot_contents import Contents, Missing
from kedge.kube.client import Client
from kedge.kube.codec import metadata_of
from kedge.plan.rolling.pod_counts import count_pods, counts_text
from kedge.plan.working.work_contents import RevisionContents


class PodCounting:
    """The snapshots of one kind of placement."""

    def __init__(self, client: Client, kinds: PlacementKinds, contents: Contents, *, manager: str) -> None:
        self._client = client
        self._form = metadata_of(kinds.resource_snapshot.resource)
        self._contents = contents
        self._manager = manager

    async def count(self, snapshots: Iterable[ObjectMeta]) -> bool:
        """Write down the pods of these revisions, each given by its first snapshot. Gives whether any was written."""
        return any(await gather(partial(self._count, one) for one in snapshots))

    async def _count(self, snapshot: ObjectMeta) -> bool:
        found = await self._contents.read(snapshot.name, snapshot.namespace)
        if isinstance(found, Missing):
            return False  # a part is not there yet, or no more: its event wakes us
        text = counts_text(count_pods(_manifests(found)))
        change = {"metadata": {"annotations": {POD_COUNTS: text}}}
        await self._client.amend(self._form, snapshot, change, manager=self._manager)
        return True


def _manifests(revision: RevisionContents) -> Iterator[Any]:
    for part in revision.parts:
        if part.manifests is not None:
            yield from msgspec.json.decode(part.manifests)

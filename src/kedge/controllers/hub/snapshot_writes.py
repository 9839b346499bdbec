"""Revision writes: the few things that are ever done to a snapshot. Its content never changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kedge.api.meta import ObjectMeta, OwnerReference
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.resource import Resource
from kedge.kube.client import Client
from kedge.kube.codec import metadata_of

MANAGER: Final = "kedge-snapshots"


class RevisionWrites:
    """Writes snapshots of one kind, each only as the one that was looked at."""

    def __init__(self, client: Client, resource: Resource) -> None:
        self._client = client
        self._form = metadata_of(resource)

    async def make(self, body: Mapping[str, Any], namespace: str | None) -> ObjectMeta:
        return (await self._client.create(self._form, body, namespace, manager=MANAGER)).metadata

    async def mark(
        self,
        meta: ObjectMeta,
        *,
        labels: Mapping[str, str | None] | None = None,
        annotations: Mapping[str, str | None] | None = None,
    ) -> None:
        """Set these labels and annotations; None takes one away."""
        given = {"labels": labels, "annotations": annotations}
        change = {"metadata": {key: value for key, value in given.items() if value}}
        await self._client.amend(self._form, meta, change, manager=MANAGER)

    async def remove(self, meta: ObjectMeta) -> None:
        """Delete it, if it is still there, and as it was looked at."""
        if meta.deletion_timestamp is None:
            await self._client.remove(self._form, meta)


def owned_by(placement: ClusterResourcePlacement) -> OwnerReference:
    """The placement as owner of what is made for it."""
    kind = placement.resource
    return OwnerReference(
        api_version=kind.api_version,
        kind=kind.kind,
        name=placement.metadata.name,
        uid=placement.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )

"""Removal: objects that a Work no longer asks for are deleted, or left to others.

Everything here is done to an object only while the AppliedWork is among its owners, for exactly the object and the
version that was looked at. An object that is gone, or is somebody else's by now, is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from msgspec import to_builtins

from kedge.api.meta import ObjectMeta
from kedge.api.resource import Resource
from kedge.api.work import AppliedResource
from kedge.controllers.gather import gather
from kedge.controllers.member.writing import AT_MOST, MANAGER
from kedge.kube.client import Client
from kedge.kube.codec import metadata_of
from kedge.kube.errors import ApiError, Conflict, NotFound, TooManyRequests
from kedge.plan.applying.manifests import object_key
from kedge.plan.applying.ownership import WorkOwner

_TRIES: Final = 5


class Remover:
    """Undoes what was done for one AppliedWork."""

    def __init__(self, client: Client, owner: WorkOwner) -> None:
        self._client = client
        self._owner = owner

    async def remove(self, found: AppliedResource) -> str | None:
        """Remove an object, or only the claim to it if others own it as well. Says why, if it was refused."""
        try:
            await self._act_on(found, self._remove)
        except ApiError as error:
            if isinstance(error, TooManyRequests) or error.code > 500:
                raise
            return f"{object_key(found)}: {error.message}"
        return None

    async def disown_all(self, found: Iterable[AppliedResource]) -> None:
        """Give up every claim, so that the objects stay when the AppliedWork goes."""
        await gather((partial(self._act_on, one, self._disown) for one in found), at_most=AT_MOST)

    async def unblock_all(self, found: Iterable[AppliedResource]) -> None:
        """Let the AppliedWork go before its objects do: something keeps them."""
        await gather((partial(self._act_on, one, self._unblock) for one in found), at_most=AT_MOST)

    async def _act_on(self, found: AppliedResource, act: Any) -> None:
        resource = resource_of(found)
        for _ in range(_TRIES):
            try:
                live = await self._client.get(metadata_of(resource), found.name, found.namespace or None)
                if any(map(self._owner.owns, _owners(live.metadata))):
                    await act(resource, live.metadata)
            except NotFound:
                return
            except Conflict:
                continue
            return

    async def _remove(self, resource: Resource, live: ObjectMeta) -> None:
        if self._owner.without(_owners(live)):
            await self._disown(resource, live)
            return
        # Not every kind's own default: of a Job the pods would stay.
        await self._client.remove(metadata_of(resource), live, propagation="Background")

    async def _disown(self, resource: Resource, live: ObjectMeta) -> None:
        await self._own(resource, live, self._owner.without(_owners(live)))

    async def _unblock(self, resource: Resource, live: ObjectMeta) -> None:
        owners = [
            {**owner, "blockOwnerDeletion": False} if self._owner.owns(owner) else owner for owner in _owners(live)
        ]
        if owners != _owners(live):
            await self._own(resource, live, owners)

    async def _own(self, resource: Resource, live: ObjectMeta, owners: list[Mapping[str, Any]]) -> None:
        await self._client.amend(
            metadata_of(resource), live, {"metadata": {"ownerReferences": owners or None}}, manager=MANAGER
        )


def resource_of(found: AppliedResource) -> Resource:
    """The kind of it."""
    return Resource(found.group, found.version, found.kind, found.resource, namespaced=bool(found.namespace))


def _owners(live: ObjectMeta) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = to_builtins(live.owner_references)
    return list(found)

"""Object writes: reads, applies and removes the objects of components, of whatever kind.

Each write of an object that was read names its uid and version: if somebody was faster, it is a Conflict, and all is
looked at again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kedge.api.meta import ObjectMeta
from kedge.api.oam.rollout_plan import ObjectReference
from kedge.api.resource import Resource
from kedge.controllers.kinds import Kinds
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import NotFound
from kedge.plan.fields import Object, patched, text
from kedge.plan.oam.refused import OamRefused

MANAGER: Final = "kedge-application"


class ObjectWrites:
    """Writes to one cluster."""

    def __init__(self, client: Client, kinds: Kinds) -> None:
        self._client = client
        self._kinds = kinds

    async def resource(self, obj: Object) -> Resource:
        """Where objects of this kind are. Refuses a kind that is not served, or is not of a namespace."""
        version, kind = text(obj, "apiVersion"), text(obj, "kind")
        found = await self._kinds.find(version, kind)
        if found is None:
            raise OamRefused(f"the cluster serves no {kind} of {version}: install its definition first")
        if not found.namespaced:
            raise OamRefused(f"a {kind} is not of a namespace, and cannot be part of a component")
        return found

    async def get(self, obj: Object) -> Untyped | None:
        """The object of this kind and name, as it is now."""
        return await self._find(await self.resource(obj), text(obj, "metadata", "name"), obj)

    async def find(self, ref: ObjectReference, namespace: str) -> Untyped | None:
        """The object that is referred to; None also if its kind is gone."""
        named = {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": {"namespace": namespace}}
        try:
            return await self._find(await self.resource(named), ref.name, named)
        except OamRefused:
            return None

    async def _find(self, resource: Resource, name: str, obj: Object) -> Untyped | None:
        try:
            return await self._client.get(untyped(resource), name, text(obj, "metadata", "namespace"))
        except NotFound:
            return None

    async def apply(self, body: Object, owner: Mapping[str, Any], live: Object | None) -> Untyped:
        """Apply an object that this owner has. Over one that is there it wins; a new one must be new."""
        owned = patched(body, {"metadata": {"ownerReferences": [owner]}})
        resource, meta = await self.resource(body), _meta(live)
        return await self._client.apply(
            untyped(resource),
            owned,
            manager=MANAGER,
            uid=meta.uid if meta else None,
            resource_version=meta.resource_version if meta else None,
            force=meta is not None,
        )

    async def patch(self, live: Object, change: Mapping[str, Any]) -> Untyped:
        """Merge a change into an object in the version that was read."""
        meta = _meta(live)
        assert meta is not None
        return await self._client.amend(untyped(await self.resource(live)), meta, change, manager=MANAGER)

    async def remove(self, live: Object) -> None:
        """Delete an object in the version that was read."""
        meta = _meta(live)
        assert meta is not None
        await self._client.remove(untyped(await self.resource(live)), meta, propagation="Background")


def _meta(live: Object | None) -> ObjectMeta | None:
    if live is None:
        return None
    given = live["metadata"]
    return ObjectMeta(
        name=given["name"],
        namespace=given["namespace"],
        uid=given["uid"],
        resource_version=given["resourceVersion"],
    )

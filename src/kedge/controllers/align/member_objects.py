"""Member objects: reads, writes and removes the objects of Works in the cluster of one member.

Assumes that a request may arrive late: each write is for the very version that was looked at, and a new object is
created, never applied over one that has come meanwhile.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from kedge.api.core import Namespace
from kedge.api.resource import Resource
from kedge.kube.client import Client
from kedge.kube.codec import Codec, Untyped, untyped
from kedge.kube.errors import AlreadyExists, Forbidden, NotFound
from kedge.kube.patches import JsonPatch, MergePatch
from kedge.plan.aligning.interpreter import without_replicas
from kedge.plan.aligning.retaining import without_retaining
from kedge.plan.aligning.work_spec import unmarking
from kedge.plan.applying.apply_configuration import upgraded_managed_fields
from kedge.plan.fields import Object, text

MANAGER: Final = "karmada-agent"


class NotApplied(ValueError):
    """Why something is not written to the cluster, in words."""


class MemberObjects:
    """The objects of one member that Works ask for."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, resource: Resource, manifest: Object) -> Untyped | None:
        """The object that a manifest is about; None if there is none."""
        try:
            return await self._client.get(untyped(resource), *name_in(manifest))
        except NotFound:
            return None

    async def write(self, kind: Codec[Untyped], body: Object, live: Untyped | None) -> Untyped:
        """Change the object that is there, in this version; create it if there is none.

        A new object that runs pods is created without them: a late request may come when nobody asks for it any more.
        """
        if live is None:
            empty = without_retaining(without_replicas(body))
            live = await self._create(kind, empty)
            if empty == body:
                return live
        name, namespace = name_in(body)
        fields = upgraded_managed_fields(live["metadata"].get("managedFields") or (), MANAGER)
        if fields is not None:
            change = JsonPatch([{"op": "replace", "path": "/metadata/managedFields", "value": fields}])
            live = await self._client.patch(
                kind, name, change, namespace, uid=live["metadata"]["uid"], resource_version=version_of(live)
            )
        return await self._client.apply(
            kind, body, manager=MANAGER, uid=live["metadata"]["uid"], resource_version=version_of(live), force=True
        )

    async def _create(self, kind: Codec[Untyped], body: Object) -> Untyped:
        """A new object, in a new namespace if the member has none of this name. Nobody takes that away again."""
        _, namespace = name_in(body)
        try:
            return await self._client.create(kind, body, manager=MANAGER)
        except NotFound:
            if namespace is None:
                raise
        try:
            await self._client.create(Namespace, {"metadata": {"name": namespace}}, manager=MANAGER)
        except AlreadyExists:
            pass
        except Forbidden as error:
            raise NotApplied(
                f"there is no namespace {namespace}, and the agent may not create it: create it there, or give it the"
                f" right ({error})"
            ) from error
        return await self._client.create(kind, body, manager=MANAGER)

    async def remove(self, resource: Resource, found: Untyped) -> None:
        """Delete this object, and no other that has come in its place."""
        with suppress(NotFound):
            await self._client.delete(
                untyped(resource), *name_in(found), uid=found["metadata"]["uid"], propagation="Background"
            )

    async def unmark(self, resource: Resource, found: Untyped) -> None:
        """Take away what marks an object as propagated: it stays, and nobody manages it any more."""
        change = unmarking(found)
        if not change:
            return
        name, namespace = name_in(found)
        with suppress(NotFound):
            await self._client.patch(
                untyped(resource),
                name,
                MergePatch(change),
                namespace,
                uid=found["metadata"]["uid"],
                resource_version=version_of(found),
                manager=MANAGER,
            )


def name_in(manifest: Object) -> tuple[str, str | None]:
    """The name, and the namespace if there is one."""
    return text(manifest, "metadata", "name"), text(manifest, "metadata", "namespace") or None


def version_of(live: Untyped) -> str:
    return str(live["metadata"]["resourceVersion"])

"""Writes: of revisions, which are created once, and of statuses, which are written only if they say something new."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, to_builtins

from kedge.api.meta import ObjectMeta
from kedge.controllers.application.object_writes import MANAGER
from kedge.kube.client import Client
from kedge.kube.errors import AlreadyExists, as_conflict
from kedge.kube.patches import difference
from kedge.plan.fields import Object


async def create(client: Client, kind: type[Any], body: Object) -> None:
    """Create an object. If somebody else just did, it is a Conflict: all is looked at again."""
    try:
        await client.create(kind, body, manager=MANAGER)
    except AlreadyExists as error:
        raise as_conflict(error) from error


async def write_status(client: Client, kind: type[Any], meta: ObjectMeta, old: Struct, new: Struct) -> bool:
    """Write a status if it says something new. Tells whether it did."""
    if old == new:
        return False
    change = {"status": difference(to_builtins(old), to_builtins(new))}
    await client.amend(kind, meta, change, manager=MANAGER, subresource="status")
    return True

"""Owned: which objects belong to a workload, by owner reference and by selector.

The rules of Kubernetes: a workload owns what names it as controller; it adopts what nobody controls and its selector
selects; it releases what its selector no longer selects. A workload on its way out does neither, and nobody adopts
what is on its way out itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Generic, Protocol, TypeVar

from msgspec import Struct, to_builtins

from kedge.api.meta import Object, ObjectMeta, OwnerReference, controller_of
from kedge.api.resource import Resource
from kedge.api.selector import LabelSelector, selects
from kedge.kube.client import Client
from kedge.kube.codec import metadata_of
from kedge.kube.errors import Conflict, NotFound
from kedge.kube.store import Index

O = TypeVar("O", bound=Object)  # noqa: E741  # an object


class Selecting(Protocol):
    """A workload: it owns the pods its selector selects."""

    resource: ClassVar[Resource]

    @property
    def metadata(self) -> ObjectMeta: ...

    @property
    def selector(self) -> LabelSelector | None: ...


class Claims(Struct, Generic[O], frozen=True):
    """What is a workload's own, what it may adopt, and what it must let go."""

    own: tuple[O, ...]
    adopt: tuple[O, ...]
    release: tuple[O, ...]


def reference_to(owner: Object) -> OwnerReference:
    """What an object says that this owner controls."""
    resource, meta = owner.resource, owner.metadata
    return OwnerReference(
        api_version=resource.api_version,
        kind=resource.kind,
        name=meta.name,
        uid=meta.uid,
        controller=True,
        block_owner_deletion=True,
    )


def claims(workload: Selecting, candidates: Iterable[O]) -> Claims[O]:
    """What to do with each of these objects: those the workload controls, and those nobody does."""
    own: list[O] = []
    adopt: list[O] = []
    release: list[O] = []
    leaving = workload.metadata.deletion_timestamp is not None
    for found in candidates:
        controller = controller_of(found.metadata)
        selected = selects(workload.selector, found.metadata.labels)
        if controller is None:
            if selected and not leaving and found.metadata.deletion_timestamp is None:
                adopt.append(found)
        elif controller.uid == workload.metadata.uid:
            if selected:
                own.append(found)
            elif not leaving:
                release.append(found)
    return Claims(tuple(own), tuple(adopt), tuple(release))


async def settle(client: Client, workload: Selecting, found: Claims[O], *, manager: str | None = None) -> None:
    """Adopt and release. Whoever is gone by now, or another than we saw, is left alone."""
    if found.adopt and not await _is_still_there(client, workload):
        return
    for one in found.adopt:
        owners = (*one.metadata.owner_references, reference_to(workload))
        await _set_owners(client, one, owners, manager)
    for one in found.release:
        owners = tuple(o for o in one.metadata.owner_references if o.uid != workload.metadata.uid)
        await _set_owners(client, one, owners, manager)


async def _is_still_there(client: Client, workload: Selecting) -> bool:
    """Asks the server: the cache may show a workload that is gone, and its pods with it."""
    meta = workload.metadata
    try:
        found = await client.get(metadata_of(workload.resource), meta.name, meta.namespace)
    except NotFound:
        return False
    return found.metadata.uid == meta.uid and found.metadata.deletion_timestamp is None


async def _set_owners(client: Client, one: Object, owners: tuple[OwnerReference, ...], manager: str | None) -> None:
    change = {"metadata": {"ownerReferences": to_builtins(owners) or None}}
    try:
        await client.amend(type(one), one.metadata, change, manager=manager)
    except (NotFound, Conflict):
        return  # the cache will show what it is now, and wake whom it concerns


def by_owner(found: Object) -> Iterable[str]:
    """Index: the uid of who controls it."""
    owner = controller_of(found.metadata)
    return () if owner is None else (owner.uid,)


def orphans_of(found: Object) -> Iterable[str]:
    """Index: its namespace, if nobody controls it."""
    return () if controller_of(found.metadata) is not None else (found.metadata.namespace or "",)


def by_namespace(found: Object) -> Iterable[str]:
    """Index: its namespace."""
    return (found.metadata.namespace or "",)


OWNER, ORPHAN, NAMESPACE = "owner", "orphan", "namespace"
INDEXES: dict[str, Index[Object]] = {OWNER: by_owner, ORPHAN: orphans_of, NAMESPACE: by_namespace}

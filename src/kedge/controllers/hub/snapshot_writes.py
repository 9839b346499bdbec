"""Snapshot writes: keeps the policy of a placement, and what it selects, under running numbers.

The content of a snapshot never changes. Another policy is another snapshot; another number of clusters, or another
generation of the placement, is only noted on the one there is. Resources that are too large for one object are several
snapshots. The first part of a revision is its master, and is written last: a revision whose master is there is whole.
What a crash left behind of one that was not finished is removed before that number is used again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from kedge.api.fleet import (
    IS_LATEST,
    NUMBER_OF_CLUSTERS,
    NUMBER_OF_ENVELOPED,
    NUMBER_OF_SNAPSHOTS,
    PARENT_PLACEMENT,
    PLACEMENT_GENERATION,
    POLICY_INDEX,
    RESOURCE_HASH,
    RESOURCE_INDEX,
    SUBINDEX,
    policy_snapshot_name,
    resource_snapshot_name,
    resource_snapshot_part,
)
from kedge.api.meta import ObjectMeta, OwnerReference
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.placement_kinds import PlacementKinds
from kedge.api.resource import Resource
from kedge.api.snapshot import ClusterSchedulingPolicySnapshot
from kedge.kube.client import Client
from kedge.kube.codec import metadata_of, untyped
from kedge.kube.errors import ApiError, KubeError, NotFound, ServerError, Unreachable
from kedge.plan.placing.policies import number_of_clusters, policy_hash
from kedge.plan.revisions import is_master, parent, policy_index, resource_index
from kedge.plan.selecting.candidates import Manifest
from kedge.plan.selecting.selection import manifests_digest
from kedge.plan.selecting.snapshots import (
    NumberedSnapshot,
    SnapshotChange,
    count_envelopes,
    newest_snapshot,
    numbered_snapshots,
    resource_hash,
    snapshot_change,
    split_into_parts,
)

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


class PolicySnapshots:
    """The policy snapshots of one kind of placement."""

    def __init__(self, client: Client, kinds: PlacementKinds) -> None:
        self._kinds = kinds
        self._writes = RevisionWrites(client, kinds.policy_snapshot.resource)

    async def keep(
        self, placement: ClusterResourcePlacement, known: Iterable[ClusterSchedulingPolicySnapshot]
    ) -> tuple[NumberedSnapshot, ...]:
        """Have the newest say what the placement says. Gives those that were there."""
        hashes = {found.metadata.uid: found.spec.policy_hash for found in known}
        there = numbered_snapshots((found.metadata for found in known), policy_index, lambda meta: hashes[meta.uid])
        todo = snapshot_change(there, policy_hash(placement.spec.policy))
        for revision in todo.unlabel:
            await self._writes.mark(revision.meta, labels={IS_LATEST: "false"})
        if todo.create_index is not None:
            await self._writes.make(self._body(placement, todo.create_index), placement.metadata.namespace)
        elif (current := newest_snapshot(there)) is not None:
            await self._note(placement, current)
        return there

    async def remove(self, revision: NumberedSnapshot) -> None:
        await self._writes.remove(revision.meta)

    async def _note(self, placement: ClusterResourcePlacement, current: NumberedSnapshot) -> None:
        """Write down what changes without a new snapshot, where it is not written down yet."""
        noted, labels = current.meta.annotations, {} if current.is_labelled else {IS_LATEST: "true"}
        fresh = {key: value for key, value in _notes(placement).items() if noted.get(key) != value}
        if fresh or labels:
            await self._writes.mark(current.meta, labels=labels, annotations=fresh)

    def _body(self, placement: ClusterResourcePlacement, index: int) -> dict[str, Any]:
        name = placement.metadata.name
        policy = placement.spec.policy
        return {
            "metadata": {
                "name": policy_snapshot_name(name, index),
                "labels": {PARENT_PLACEMENT: name, IS_LATEST: "true", POLICY_INDEX: str(index)},
                "annotations": {key: value for key, value in _notes(placement).items() if value is not None},
                "ownerReferences": [owned_by(placement)],
            },
            "spec": {"policyHash": policy_hash(policy), **({} if policy is None else {"policy": policy})},
        }


def _notes(placement: ClusterResourcePlacement) -> dict[str, str | None]:
    return {
        PLACEMENT_GENERATION: str(placement.metadata.generation),
        NUMBER_OF_CLUSTERS: number_of_clusters(placement.spec.policy),
    }


class ResourceSnapshots:
    """The resource snapshots of one kind of placement."""

    def __init__(self, client: Client, kinds: PlacementKinds) -> None:
        self._client = client
        self._form = untyped(kinds.resource_snapshot.resource)
        self._writes = RevisionWrites(client, kinds.resource_snapshot.resource)

    async def take(
        self,
        placement: ClusterResourcePlacement,
        manifests: Sequence[Manifest],
        known: Sequence[ObjectMeta],
        used: Collection[int] = (),
        unsure: MutableMapping[int, str] | None = None,
    ) -> ObjectMeta | None:
        """Have the newest hold these manifests. Gives the new master, or None if that is what the newest holds.

        `used` are numbers that clusters or runs go by. `unsure` is kept here: numbers that were asked for without an
        answer, and what for. A server may carry that out much later, so that they are for that content or for none.
        """
        wanted = resource_hash(manifests)
        unsure = {} if unsure is None else unsure
        todo = snapshot_change(
            masters(known), wanted, {*used, *(number for number, what in unsure.items() if what != wanted)}
        )
        if todo.create_index is None:
            await self.confirm(todo)
            return None
        with _asking(unsure, todo.create_index, wanted):
            await self._clear(known, todo.create_index)
            first, *rest = split_into_parts(manifests)
            for number, part in enumerate(rest):
                name = resource_snapshot_part(placement.metadata.name, todo.create_index, number)
                await self._make(placement, name, todo.create_index, part, {SUBINDEX: str(number)})
            for revision in todo.unlabel:
                await self._writes.mark(revision.meta, labels={IS_LATEST: "false"})
            counts = {NUMBER_OF_SNAPSHOTS: str(1 + len(rest)), NUMBER_OF_ENVELOPED: str(count_envelopes(manifests))}
            name = resource_snapshot_name(placement.metadata.name, todo.create_index)
            return await self._make(placement, name, todo.create_index, first, {RESOURCE_HASH: wanted, **counts})

    async def confirm(self, todo: SnapshotChange) -> None:
        """Have exactly the newest carry the label that says so."""
        for revision in todo.unlabel:
            await self._writes.mark(revision.meta, labels={IS_LATEST: "false"})
        if todo.label is not None:
            await self._writes.mark(todo.label.meta, labels={IS_LATEST: "true"})

    async def remove(self, known: Iterable[ObjectMeta]) -> None:
        """Delete these, the last part first: what is left is then never a master without its parts."""
        for meta in sorted(known, key=is_master):
            await self._writes.remove(meta)

    async def held(self, master: ObjectMeta) -> str:
        """The digest of the selection that a revision was made of; empty if it is not whole."""
        rest = [
            resource_snapshot_part(parent(master), resource_index(master) or 0, part) for part in range(more(master))
        ]
        manifests: list[Manifest] = []
        try:
            for name in (master.name, *rest):
                found = await self._client.get(self._form, name, master.namespace)
                manifests += (found.get("spec") or {}).get("selectedResources") or []
        except NotFound:
            return ""
        return manifests_digest(manifests)

    async def _clear(self, known: Iterable[ObjectMeta], index: int) -> None:
        for meta in known:
            if resource_index(meta) == index:
                await self._writes.remove(meta)

    async def _make(
        self,
        placement: ClusterResourcePlacement,
        name: str,
        index: int,
        part: Sequence[Manifest],
        annotations: Mapping[str, str],
    ) -> ObjectMeta:
        latest = {IS_LATEST: "true"} if RESOURCE_HASH in annotations else {}
        body: Mapping[str, Any] = {
            "metadata": {
                "name": name,
                "labels": {PARENT_PLACEMENT: placement.metadata.name, RESOURCE_INDEX: str(index), **latest},
                "annotations": annotations,
                "ownerReferences": [owned_by(placement)],
            },
            "spec": {"selectedResources": part},
        }
        return await self._writes.make(body, placement.metadata.namespace)


@contextmanager
def _asking(unsure: MutableMapping[int, str], number: int, wanted: str) -> Iterator[None]:
    """Ask for this number: it stays unsure unless there is an answer, yes, or no to all that ever asked for it."""
    was_unsure = number in unsure
    unsure[number] = wanted
    try:
        yield
    except KubeError as error:
        is_refused = isinstance(error, ApiError) and not isinstance(error, ServerError)
        if not was_unsure and (is_refused or (isinstance(error, Unreachable) and not error.maybe_done)):
            del unsure[number]
        raise
    del unsure[number]


def masters(known: Sequence[ObjectMeta]) -> tuple[NumberedSnapshot, ...]:
    """The revisions there are, by their masters. One that lost a part holds nothing that anybody could want."""
    parts_of = Counter(resource_index(meta) for meta in known if not is_master(meta))

    def hash_of(master: ObjectMeta) -> str:
        return master.annotations[RESOURCE_HASH] if parts_of[resource_index(master)] >= more(master) else ""

    return numbered_snapshots((meta for meta in known if is_master(meta)), resource_index, hash_of)


def more(master: ObjectMeta) -> int:
    """How many parts a revision has beside its master."""
    count = master.annotations.get(NUMBER_OF_SNAPSHOTS, "")
    return int(count) - 1 if count.isascii() and count.isdecimal() and int(count) else 0

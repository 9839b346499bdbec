"""Policy snapshots: keeps the newest of a placement equal to its policy.

Another policy is another snapshot; another number of clusters, or another generation of the placement, is only noted
on the one there is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kedge.api.fleet import (
    IS_LATEST,
    NUMBER_OF_CLUSTERS,
    PARENT_PLACEMENT,
    PLACEMENT_GENERATION,
    POLICY_INDEX,
    policy_snapshot_name,
)
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.snapshot import ClusterSchedulingPolicySnapshot
from kedge.api.twins import Twins
from kedge.controllers.hub.revision_writes import RevisionWrites, owned_by
from kedge.kube.client import Client
from kedge.plan.placing.policies import number_of_clusters, policy_hash
from kedge.plan.revisions import policy_index
from kedge.plan.selecting.snapshots import NumberedSnapshot, newest_snapshot, numbered_snapshots, snapshot_change


class PolicySnapshots:
    """The policy snapshots of one kind of placement."""

    def __init__(self, client: Client, twins: Twins) -> None:
        self._twins = twins
        self._writes = RevisionWrites(client, twins.policy_snapshot.resource)

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

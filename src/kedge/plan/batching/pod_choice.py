"""Pod choice: which pods of a Deployment go when it is scaled down.

A ReplicaSet takes pods with the lowest deletion cost first, so the pods that a batch names are given the lowest there
is before the Deployment is lowered.
"""

from __future__ import annotations

from typing import Final

from kedge.api.meta import ObjectMeta
from kedge.plan.batching.moves import Batch, Step, Workloads, Write

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
LOWEST: Final = "-2147483648"


def with_chosen_pods(seen: Workloads, batch: Batch, writes: tuple[Write, ...]) -> Step:
    """The writes that lower old Deployments, once the pods that the batch names will be the ones to go."""
    unmarked = [meta for meta in _named(seen, batch) if meta.annotations.get(DELETION_COST) != LOWEST]
    if not unmarked:
        return Step(writes)
    change = {"metadata": {"annotations": {DELETION_COST: LOWEST}}}
    return Step((Write(seen.sources[0].ref, patch_pods=tuple((meta, change) for meta in unmarked)),))


def _named(seen: Workloads, batch: Batch) -> list[ObjectMeta]:
    pods = [pod.metadata for one in seen.sources for pod in one.pods]
    return [meta for meta in pods if meta.name in batch.pods and meta.deletion_timestamp is None]

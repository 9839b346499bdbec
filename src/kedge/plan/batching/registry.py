"""Registry: which moves a rollout of some workloads has, by their kind."""

from __future__ import annotations

from kedge.plan.batching.deployment_moves import DeploymentMoves
from kedge.plan.batching.moves import Moves, Workloads
from kedge.plan.batching.partition_moves import PartitionMoves
from kedge.plan.batching.scale_moves import ScaleMoves
from kedge.plan.workloads import find_handler
from kedge.plan.workloads.registry import BrokenHandler


def moves_for(seen: Workloads) -> Moves | str:
    """The moves of a kind; or why there are none."""
    ref = seen.target.ref
    handler = find_handler(ref.group, ref.kind)
    if isinstance(handler, BrokenHandler):
        return str(handler)
    if handler is None:
        return f"the workload kind `{ref.kind}` is not supported"
    if seen.is_scale:
        return ScaleMoves(handler)
    if seen.in_place and handler.with_partition(0) is not None:
        return PartitionMoves(handler)
    return DeploymentMoves(handler)

"""Registry: which moves a workload has, by its kind and by whether there is something to move from.

A kind that other distributions bring moves through its handler: by its partition if it has one, else from one object
to another by scaling both. What can do neither is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from kedge.plan.batching.daemon_moves import DaemonMoves
from kedge.plan.batching.deployment_moves import DeploymentMoves
from kedge.plan.batching.moves import Moves, Workloads
from kedge.plan.batching.partition_moves import PartitionMoves
from kedge.plan.batching.scale_moves import ScaleMoves
from kedge.plan.workloads import WorkloadHandler, find_handler
from kedge.plan.workloads.registry import BrokenHandler, Found, installed_handlers

FindHandler: TypeAlias = Callable[[str, str], Found | None]
TwoObjectMoves: TypeAlias = Callable[[WorkloadHandler], Moves]

_DAEMON_SET: Final = ("apps", "DaemonSet")
_UNSUPPORTED: Final = (("batch", "Job"),)
"""Kinds that run pods to their end: there is no other revision to move to."""


def moves_for(
    seen: Workloads, two_object_moves: TwoObjectMoves = DeploymentMoves, find: FindHandler = find_handler
) -> Moves | str:
    """The moves of a rollout's workloads; a text if they cannot be moved, which says why.

    `two_object_moves` makes the moves from one object to another, of kinds that can be scaled.
    """
    ref = seen.target.ref
    handler = find(ref.group, ref.kind)
    if isinstance(handler, BrokenHandler):
        return str(handler)
    if handler is None or (ref.group, ref.kind) in _UNSUPPORTED:
        return f"the workload kind `{ref.kind}` is not supported"
    if other := next((one.ref for one in seen.sources if (one.ref.group, one.ref.kind) != (ref.group, ref.kind)), None):
        return f"the source {other} and the target {ref} are not of the same kind"
    return ScaleMoves(handler) if seen.is_scale else _rollout_moves(seen, handler, two_object_moves)


def _rollout_moves(seen: Workloads, handler: WorkloadHandler, two_object_moves: TwoObjectMoves) -> Moves | str:
    if (handler.group, handler.kind) == _DAEMON_SET:
        return DaemonMoves(handler)
    if handler.with_partition(0) is not None:
        return PartitionMoves(handler)
    if seen.in_place:
        return f"a {handler.kind} cannot be changed in place batch by batch: it has no partition"
    if handler.scale(0) is not None:
        return two_object_moves(handler)
    return f"the workload kind `{handler.kind}` is not supported"


installed_handlers()  # reads files, which no event loop may wait for: so it is done before one runs

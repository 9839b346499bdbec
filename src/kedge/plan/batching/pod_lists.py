"""Pod lists: whether a workload can replace exactly the pods that a batch names.

A StatefulSet can if they are the next ones in its own order, from the highest number down. A CloneSet chooses by
itself. A DaemonSet replaces any pod, on any node.
"""

from __future__ import annotations

from kedge.api.oam.rollout_plan import RolloutPlan
from kedge.plan.batching.in_place import first_ordinal, numbers_pods
from kedge.plan.batching.moves import Workload
from kedge.plan.batching.sizes import BadBatches, batches_of, target_sizes
from kedge.plan.text import listed
from kedge.plan.workloads import WorkloadHandler


def pod_list_problem(handler: WorkloadHandler, target: Workload, plan: RolloutPlan, size: int) -> str:
    """What is wrong with the pods that batches name; empty if nothing is."""
    batches = batches_of(plan, size)
    naming = [index for index, batch in enumerate(batches) if batch.pod_list]
    if naming and not numbers_pods(handler):
        return (
            f"rolloutBatches[{naming[0]}].podList is set, but a {handler.kind} chooses the pods itself:"
            " use replicas instead"
        )
    try:
        goals = (0, *target_sizes(batches, 0, size))
    except BadBatches as error:
        return str(error)
    for index in naming:
        wanted = _names(target, size - goals[index + 1], size - goals[index])
        if set(batches[index].pod_list) != set(wanted):
            return (
                f"rolloutBatches[{index}].podList names {listed(batches[index].pod_list)}, but a {handler.kind} goes"
                f" from its highest number down: the pods of this batch are {listed(wanted)}"
            )
    return ""


def _names(target: Workload, first: int, end: int) -> tuple[str, ...]:
    """The pods from a place up to another one, the highest first."""
    start = first_ordinal(target.obj or {})
    return tuple(f"{target.ref.name}-{start + at}" for at in range(end - 1, first - 1, -1))

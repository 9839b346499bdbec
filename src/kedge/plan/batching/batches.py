"""Batches: the plan in effect, in pods. It is kept in the status; what the user wrote is never changed.

The sizes are fixed when the rollout is verified. What may change under way is read from the plan each time: hooks,
metrics, how many pods may be unavailable, the partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from kedge.api.oam.rollout_plan import RolloutBatch, RolloutPlan, RolloutStrategy
from kedge.api.oam.rollout_status import PlannedBatch, RolloutStatus
from kedge.plan.batching.moves import Batch
from kedge.plan.batching.sizes import BadBatches, batches_of, rollout_goals, scale_goals
from kedge.plan.moving.budget import Budget
from kedge.plan.workloads.handler import resolved


def planned(plan: RolloutPlan, original: int, total: int, *, is_scale: bool) -> tuple[PlannedBatch, ...]:
    """The batches of a rollout of this size. Refuses (BadBatches) a plan that does not add up to it.

    A workload that is to be scaled and has its size already: no numbers add up to that, and none of them moves a pod.
    """
    start = original if is_scale else 0
    batches = batches_of(plan, abs(total - start))
    goals = _scaled(batches, original, total) if is_scale else rollout_goals(batches, total)
    return tuple(
        PlannedBatch(replicas=abs(goal - before), goal=goal)
        for goal, before in zip(goals, (start, *goals), strict=False)
    )


def _scaled(batches: Sequence[RolloutBatch], original: int, total: int) -> tuple[int, ...]:
    return (total,) * len(batches) if original == total else scale_goals(batches, original, total)


def replanned(plan: RolloutPlan, status: RolloutStatus, *, is_scale: bool) -> tuple[PlannedBatch, ...]:
    """The batches with later ones as the plan has them now. Those that have begun stay as they are.

    Refuses (BadBatches) a plan that does not add up any more, or that would change what is done already.
    """
    wanted = _planned_now(plan, status, is_scale=is_scale)
    if not _keeps_begun(wanted, status):
        raise BadBatches(f"only batches after batch {status.current_batch} can be changed: it has begun")
    return wanted


def is_rewritten(plan: RolloutPlan, status: RolloutStatus, *, is_scale: bool) -> bool:
    """Whether the plan adds up to other batches than those that have begun."""
    try:
        return not _keeps_begun(_planned_now(plan, status, is_scale=is_scale), status)
    except BadBatches:
        return False


def _planned_now(plan: RolloutPlan, status: RolloutStatus, *, is_scale: bool) -> tuple[PlannedBatch, ...]:
    return planned(plan, status.rollout_original_size, status.rollout_target_size, is_scale=is_scale)


def _keeps_begun(wanted: tuple[PlannedBatch, ...], status: RolloutStatus) -> bool:
    number = status.current_batch + 1
    return wanted[:number] == status.batches[:number]


def batch_at(plan: RolloutPlan, status: RolloutStatus, index: int, *, is_scale: bool) -> Batch:
    """One batch of the plan in effect."""
    start = status.rollout_original_size if is_scale else 0
    total, found = status.rollout_target_size, status.batches[index]
    spec = plan.rollout_batches[index] if plan.rollout_batches and index < len(plan.rollout_batches) else RolloutBatch()
    tolerated = resolved(spec.max_unavailable, total, default=0, round_up=True)
    strategy = plan.rollout_strategy or RolloutStrategy.increase_first
    return Batch(
        index=index,
        goal=found.goal,
        before=status.batches[index - 1].goal if index else start,
        total=total,
        spec=spec,
        strategy=strategy,
        tolerated=tolerated,
        budget=_budget(total, found.replicas, tolerated, strategy),
        pods=spec.pod_list,
    )


def current_batch(plan: RolloutPlan, status: RolloutStatus, *, is_scale: bool) -> Batch:
    """The batch that rolls now."""
    index = max(0, min(status.current_batch, len(status.batches) - 1))
    return batch_at(plan, status, index, is_scale=is_scale)


def back(plan: RolloutPlan, status: RolloutStatus, *, is_scale: bool) -> Batch:
    """What a rollout that is taken back may spend at once: as much as its largest batch, and as the plan has it now."""
    largest = max(range(len(status.batches)), key=lambda index: status.batches[index].replicas)
    found = batch_at(plan, status, largest, is_scale=is_scale)
    size = min(status.batches[largest].replicas, _largest_asked(plan, status, is_scale=is_scale))
    return replace(found, budget=_budget(found.total, size, found.tolerated, found.strategy))


def _largest_asked(plan: RolloutPlan, status: RolloutStatus, *, is_scale: bool) -> int:
    """The largest batch of the plan as it is now, which may not be in effect; of one that does not add up, any."""
    total = status.rollout_target_size
    try:
        asked = _planned_now(plan, status, is_scale=is_scale)
    except BadBatches:
        return total
    return max((one.replicas for one in asked), default=total)


def begun(batch: Batch, since: datetime | None, now: datetime) -> tuple[int, datetime | None]:
    """How many pods of a batch may have begun, with an interval between two; and when the next one may."""
    size, interval = abs(batch.goal - batch.before), batch.spec.instance_interval or 0
    if not interval or since is None:
        return size, None
    number = min(size, 1 + int((now - since).total_seconds() // interval))
    return number, since + timedelta(seconds=number * interval) if number < size else None


def _budget(total: int, size: int, tolerated: int, strategy: RolloutStrategy) -> Budget:
    if strategy is RolloutStrategy.decrease_first:
        return Budget(total, max_unavailable=size + tolerated)
    return Budget(total, max_unavailable=tolerated, max_surge=size)

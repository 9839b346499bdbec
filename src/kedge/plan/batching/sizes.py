"""Sizes: how many pods each batch moves, as KubeVela reckons it. A share is of all pods that move, and rounded up.

The last batch takes what is left: its own share counts for nothing, but a number must be exactly what is left. All
batches before it must leave at least one pod to it. A percentage is of the total of a rollout, and of the difference
of a scale operation.
"""

from __future__ import annotations

from collections.abc import Sequence

from kedge.api.numbers import resolve
from kedge.api.oam.rollout_plan import RolloutBatch, RolloutPlan
from kedge.plan.text import counted


class BadBatches(ValueError):
    """Batches that do not add up; the message says why."""


def default_batches(size: int, number: int) -> tuple[RolloutBatch, ...]:
    """So many batches of nearly the same size; the later ones are the larger ones."""
    least, larger = divmod(size, number)
    return tuple(RolloutBatch(replicas=least + (index >= number - larger)) for index in range(number))


def batches_of(plan: RolloutPlan, size: int) -> tuple[RolloutBatch, ...]:
    """The batches of a plan that moves so many pods: those it names, or as many as it asks for, or a single one."""
    if plan.rollout_batches:
        return plan.rollout_batches
    return default_batches(size, max(1, plan.num_batches or 1))


def rollout_goals(batches: Sequence[RolloutBatch], total: int) -> tuple[int, ...]:
    """How many pods the target has after each batch. Refuses (BadBatches) batches that do not add up to the total."""
    sizes = _sizes(batches, total)
    before = sum(sizes[:-1])
    if before >= max(total, 1):
        raise BadBatches(
            f"the batches before the last one take {before} of {total} pods, which leaves none to the last one"
        )
    _check_last(batches[-1], sizes[-1], total - before)
    return target_sizes(batches, 0, total)


def scale_goals(batches: Sequence[RolloutBatch], original: int, total: int) -> tuple[int, ...]:
    """How many pods there are after each batch of a scale operation. Refuses (BadBatches) what does not add up."""
    difference = abs(total - original)
    sizes = _sizes(batches, difference)
    before = sum(sizes[:-1])
    if before > difference or (difference and before == difference and len(batches) > 1):
        raise BadBatches(
            f"the batches before the last one change {before} pods, but only {difference} are to change"
            f" ({original} to {total})"
        )
    _check_last(batches[-1], sizes[-1], difference - before)
    return target_sizes(batches, original, total)


def target_sizes(batches: Sequence[RolloutBatch], original: int, total: int) -> tuple[int, ...]:
    """The size after each batch, on the way from one to the other."""
    return tuple(target_size(batches, original, total, index) for index in range(len(batches)))


def target_size(batches: Sequence[RolloutBatch], original: int, total: int, index: int) -> int:
    """The size after one batch; after the last one, and beyond it, the total."""
    if index >= len(batches) - 1:
        return total
    moved = sum(_sizes(batches[: index + 1], abs(total - original)))
    return original + (moved if total >= original else -moved)


def _sizes(batches: Sequence[RolloutBatch], base: int) -> tuple[int, ...]:
    if not batches:
        raise BadBatches("the rollout has to have batches")
    return tuple(_size(index, batch, base) for index, batch in enumerate(batches))


def _size(index: int, batch: RolloutBatch, base: int) -> int:
    if batch.pod_list:
        return len(batch.pod_list)
    try:
        return resolve(0 if batch.replicas is None else batch.replicas, base, round_up=True)
    except ValueError as error:
        raise BadBatches(f"rolloutBatches[{index}].replicas: {error}") from None


def _check_last(last: RolloutBatch, size: int, left: int) -> None:
    is_exact = bool(last.pod_list) or isinstance(last.replicas, int)
    if is_exact and size != left:
        raise BadBatches(
            f"the last batch has {counted(size, 'pod')}, but {left} are left to it: the batches do not add up"
        )

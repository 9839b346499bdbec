"""Rollout preview: what a rollout in batches would do: its batches, how many pods there are meanwhile, what holds it.

Made by the functions with which the controller decides, from what it would look at. So what is refused here fails
there, with the same sentence. How long webhooks, metrics and pods take is not foretold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from kedge.api.oam.rollout_plan import CanaryMetric, HookType, OnAutoscaler, RolloutPlan, RolloutStrategy
from kedge.api.oam.rollout_status import BatchState, PlannedBatch, RollingState, RolloutStatus
from kedge.plan.batching.autoscalers import autoscaler_step
from kedge.plan.batching.batch_metrics import metrics_after
from kedge.plan.batching.batches import batch_at, planned
from kedge.plan.batching.moves import Batch, Step, Verified
from kedge.plan.batching.progress import moved
from kedge.plan.batching.rollout import is_modified
from kedge.plan.batching.rollout_waits import BatchCode, sentence, waiting_for
from kedge.plan.batching.sizes import BadBatches
from kedge.plan.batching.spec_rules import Problem, effective_partition
from kedge.plan.batching.states import ENDED, Illegal, RolloutEvent
from kedge.plan.batching.steps import BatchRolloutInput, Move, known
from kedge.plan.batching.traffic import wanted_percent
from kedge.plan.text import counted, listed, path_of

_DAEMON_SET: Final = "DaemonSet"
_AFTER: Final = (RollingState.finalising, RollingState.succeeded)


class BatchPreview(Struct, frozen=True):
    """What one batch would do."""

    index: int
    pods: int
    """How many pods it moves."""
    goal: int
    """How many pods of the target there are when it is done."""
    is_done: bool = False
    floor: int | None = None
    """The least number of pods that are available meanwhile; None if the workload itself decides it."""
    ceiling: int | None = None
    """The most pods that there are meanwhile."""
    gates: tuple[str, ...] = ()
    """What has to say yes before and after it."""
    is_reached: bool = True
    """Whether it may roll; False behind the partition."""


class RolloutPreview(Struct, frozen=True):
    """What one rollout would do."""

    kind: str
    namespace: str
    name: str
    target: str
    size: int | None = None
    """How many pods there are in the end; None if that is not known."""
    moves: str = ""
    """How pods move, in words."""
    batches: tuple[BatchPreview, ...] = ()
    refused: tuple[str, ...] = ()
    """Why it would be refused, or fail at once."""
    waits: tuple[str, ...] = ()
    """What it would wait for before its first batch, or waits for now."""
    holds: str = ""
    """Why it does not go to its end by itself, though nothing is wrong."""
    has_ended: bool = False

    @property
    def path(self) -> str:
        return path_of(self.namespace, self.name)

    @property
    def is_done(self) -> bool:
        """Whether every batch is rolled by what is known."""
        return not self.refused and not self.waits and not self.holds

    def as_json(self) -> dict[str, Any]:
        """The preview for programs."""
        return {**to_builtins(self), "done": self.is_done}


def rollout_preview(seen: BatchRolloutInput, target: str, problems: Sequence[Problem] = ()) -> RolloutPreview:
    """What a rollout would do, given what its controller would look at. `problems` are those of its spec."""
    one = seen.identity
    preview = RolloutPreview(one.kind, one.namespace, one.name, target, refused=tuple(map(str, problems)))
    if problems:
        return preview
    if seen.status.rolling_state in ENDED:
        return _ended(preview, seen.status)
    if seen.workloads is None or seen.moves is None:
        return _unlocated(preview, seen)
    return _under_way(preview, seen) if seen.status.batches else _from_the_start(preview, seen)


def begun_anew(seen: BatchRolloutInput, now: datetime) -> RolloutStatus:
    """The status with which a rollout begins that is asked for something else than it does; else as it is."""
    if not is_modified(seen):
        return seen.status
    found = moved(Move(RolloutEvent.modified, seen.status), seen.status, now)
    if not isinstance(found, Illegal) and found.rolling_state is RollingState.abandoning:
        found = moved(Move(RolloutEvent.finalized, found), found, now)
    return seen.status if isinstance(found, Illegal) else found


def _ended(preview: RolloutPreview, status: RolloutStatus) -> RolloutPreview:
    if status.rolling_state is RollingState.succeeded:
        return replace(preview, has_ended=True, size=status.rollout_target_size)
    return replace(preview, has_ended=True, waits=(f"it has failed: {status.failure}",))


def _unlocated(preview: RolloutPreview, seen: BatchRolloutInput) -> RolloutPreview:
    if seen.problem:
        return replace(preview, refused=(seen.problem,))
    if seen.writes:
        taken = listed(str(write.ref) for write in seen.writes)
        return replace(preview, holds=f"it takes {taken} over first, and its batches are known after that")
    return replace(preview, waits=(sentence(seen.wait or waiting_for("the target", BatchCode.missing)),))


def _from_the_start(preview: RolloutPreview, seen: BatchRolloutInput) -> RolloutPreview:
    workloads, moves = known(seen)
    found = moves.verify(workloads, seen.plan, seen.status)
    waits = tuple(_waits(seen, found))
    if isinstance(found, Step) and found.failure:
        return replace(preview, refused=(found.failure,))
    size = (found.original, found.total) if isinstance(found, Verified) else _expected_size(seen)
    if size is None:
        return replace(preview, waits=waits)
    try:
        batches = planned(seen.plan, *size, is_scale=seen.is_scale)
    except BadBatches as error:
        return replace(preview, refused=(str(error),), waits=waits)
    status = replace(seen.status, rollout_original_size=size[0], rollout_target_size=size[1], batches=batches)
    return replace(_with_batches(preview, seen, replace(status, current_batch=0)), waits=waits)


def _expected_size(seen: BatchRolloutInput) -> tuple[int, int] | None:
    """The size of a rollout that has to wait before its size is known, if the plan or what it replaces says it."""
    total = seen.plan.target_size if seen.plan.target_size is not None else seen.status.desired_size or None
    return None if total is None or seen.is_scale else (total, total)


def _under_way(preview: RolloutPreview, seen: BatchRolloutInput) -> RolloutPreview:
    status = seen.status
    waits = (status.message,) if status.message and not _is_held(seen.plan, status) and not seen.plan.paused else ()
    return replace(_with_batches(preview, seen, status), waits=waits)


def _waits(seen: BatchRolloutInput, found: Verified | Step) -> Iterator[str]:
    if isinstance(found, Step) and found.wait is not None:
        yield sentence(found.wait)
    workloads, _ = known(seen)
    refs = [one.ref for one in (workloads.target, *workloads.sources)]
    if seen.plan.on_autoscaler is not OnAutoscaler.take_over:
        step = autoscaler_step(seen.autoscalers, refs, seen.plan.on_autoscaler, seen.identity.claim).step
        if step.wait is not None:
            yield sentence(step.wait)


# Batches


def _with_batches(preview: RolloutPreview, seen: BatchRolloutInput, status: RolloutStatus) -> RolloutPreview:
    last = effective_partition(seen.plan, status)
    batches = tuple(_batch(seen, status, index, is_reached=index <= last) for index in range(len(status.batches)))
    return replace(
        preview,
        size=status.rollout_target_size,
        moves=_how(seen, status),
        batches=batches,
        holds=_holds(seen.plan, status, last),
    )


def _batch(seen: BatchRolloutInput, status: RolloutStatus, index: int, *, is_reached: bool) -> BatchPreview:
    batch = batch_at(seen.plan, status, index, is_scale=seen.is_scale)
    floor, ceiling = _limits(seen, batch)
    found: PlannedBatch = status.batches[index]
    return BatchPreview(
        index,
        found.replicas,
        found.goal,
        is_done=_is_done(status, index),
        floor=floor,
        ceiling=ceiling,
        gates=tuple(_gates(seen, batch, is_last=index + 1 == len(status.batches))),
        is_reached=is_reached,
    )


def _is_done(status: RolloutStatus, index: int) -> bool:
    is_ready = status.rolling_state is RollingState.rolling and status.batch_rolling_state is BatchState.ready
    return (
        index < status.current_batch or status.rolling_state in _AFTER or (is_ready and index == status.current_batch)
    )


def _limits(seen: BatchRolloutInput, batch: Batch) -> tuple[int | None, int | None]:
    """How many pods are available at least and how many there are at most."""
    workloads, _ = known(seen)
    if workloads.is_scale:
        return None, max(batch.before, batch.goal)
    if not workloads.in_place:
        return batch.budget.must_stay_available, batch.budget.most
    if workloads.target.ref.kind == _DAEMON_SET:
        return max(0, batch.total - max(1, batch.budget.max_unavailable)), batch.total
    return None, None


def _how(seen: BatchRolloutInput, status: RolloutStatus) -> str:
    workloads, _ = known(seen)
    ref = workloads.target.ref
    if workloads.is_scale:
        return f"{ref} is scaled from {status.rollout_original_size} to {counted(status.rollout_target_size, 'pod')}"
    if workloads.in_place:
        own = "" if ref.kind == _DAEMON_SET else ", and its own maxUnavailable says how many are down at a time"
        return f"the pods of {ref} are replaced in place{own}"
    order = "pods of the target come first, then old ones go"
    if seen.plan.rollout_strategy is RolloutStrategy.decrease_first:
        order = "old pods go first, then those of the target come"
    return f"from {listed(str(one.ref) for one in workloads.sources)} to {ref}: {order}"


def _holds(plan: RolloutPlan, status: RolloutStatus, last: int) -> str:
    if plan.paused:
        return "it is paused: no batch begins until it is resumed"
    if last + 1 < len(status.batches):
        return f"it stands still after batch {last}, which is the last one that may roll: raise batchPartition to go on"
    return ""


def _is_held(plan: RolloutPlan, status: RolloutStatus) -> bool:
    return status.batch_rolling_state is BatchState.ready and effective_partition(plan, status) <= status.current_batch


# Gates


def _gates(seen: BatchRolloutInput, batch: Batch, *, is_last: bool) -> Iterator[str]:
    """What has to say yes for a batch, in the order in which it is asked."""
    plan, index = seen.plan, batch.index
    if index == 0:
        yield from _hooks(plan, HookType.initialize_rollout, index, "before the rollout")
    yield from _hooks(plan, HookType.pre_batch_rollout, index, "before the batch")
    if batch.spec.instance_interval:
        yield f"one pod every {batch.spec.instance_interval} s"
    if batch.pods:
        yield f"the pods {listed(batch.pods)}"
    yield _pods_gate(batch, is_scale=seen.is_scale)
    if plan.traffic is not None and not seen.is_scale:
        yield f"{wanted_percent(plan, batch.goal, batch.total, is_last)}% of the traffic to the target"
    yield from map(_metric, metrics_after(plan, index))
    yield from _hooks(plan, HookType.post_batch_rollout, index, "after the batch")
    if is_last:
        yield from _hooks(plan, HookType.finalize_rollout, index, "at the end, told and not asked")


def _pods_gate(batch: Batch, *, is_scale: bool) -> str:
    if is_scale and batch.goal < batch.before:
        return "no more pods left than its goal"
    return (
        f"{max(0, batch.goal - batch.tolerated)} of its pods available" if batch.tolerated else "all its pods available"
    )


def _hooks(plan: RolloutPlan, type_: HookType, index: int, when: str) -> Iterator[str]:
    batches = plan.rollout_batches or ()
    own = batches[index].batch_rollout_webhooks if index < len(batches) else ()
    for hook in (*plan.rollout_webhooks, *own):
        if hook.type is type_:
            yield f"webhook {hook.name} {when}"


def _metric(metric: CanaryMetric) -> str:
    ends = metric.metrics_range
    said = (
        []
        if ends is None
        else [f"{word} {end}" for word, end in (("at least", ends.min), ("at most", ends.max)) if end is not None]
    )
    times = f", {metric.count} times" if (metric.count or 1) > 1 else ""
    return f"metric {metric.name} {' and '.join(said)}{times}"

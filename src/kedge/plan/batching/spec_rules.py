"""Spec rules: what a rollout plan may say, and how it may be changed.

    create_problems(plan)                # of a plan by itself
    update_problems(old, new, ...)       # of a change, by the rules of the seed

The CRDs say most of this in their schemas and in CEL, and the webhook says all of it. A controller that runs without
them asks here.

What a plan may say is what KubeVela's webhook checks, and what it does not check though it would fail later. One thing
is allowed that it refuses: webhooks of the whole rollout may be of every type, since those are called with every batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import structs, to_builtins

from kedge.api.numbers import IntOrPercent
from kedge.api.oam.rollout_plan import RolloutBatch, RolloutPlan
from kedge.api.oam.rollout_rules import ENDED, MAX_BATCHES, SHARE
from kedge.api.oam.rollout_status import RolloutStatus
from kedge.api.patterns import compiled
from kedge.plan.batching.part_rules import Problem as Problem  # noqa: PLC0414  # callers take it from here
from kedge.plan.batching.part_rules import (
    hook_problems,
    metric_problems,
    same_call_problems,
    same_metric_problems,
    traffic_problems,
)
from kedge.plan.digest import digest

PLAN: Final = "spec.rolloutPlan"
_ALL: Final = 2**31
"""Above every index of a batch."""
FREE: Final = (
    *("batch_partition", "last_batch_to_rollout", "rollout_batches", "canary_metric", "paused", "revert_on_delete"),
    *("progress_deadline_seconds", "on_deadline", "on_autoscaler"),
)
"""Fields that may change while a rollout is under way; the first three have rules of their own. The deadline and what
is done about autoscalers are ours: like `paused` they say how to wait, and nothing of what is done already."""


_FIXED: Final = "cannot be changed while the rollout is under way unless the target changes"
_REMEMBERED: Final = ("rollout_strategy", "rollout_webhooks", "traffic")
_REMEMBERED_NAMES: Final = "rolloutStrategy, rolloutWebhooks and traffic"


def create_problems(plan: RolloutPlan, namespace: str = "") -> list[Problem]:
    """What is wrong with a plan by itself. With the namespace of the rollout, references to others are problems."""
    return [
        *_size_problems(plan),
        *_partition_problems(plan),
        *_number_problems(plan),
        *_batch_problems(plan.rollout_batches or ()),
        *_hook_problems(plan),
        *_metric_problems(plan, namespace),
        *(traffic_problems(f"{PLAN}.traffic", plan.traffic, namespace) if plan.traffic is not None else ()),
    ]


def _size_problems(plan: RolloutPlan) -> Iterator[Problem]:
    if plan.target_size is not None and plan.target_size < 0:
        yield Problem(f"{PLAN}.targetSize", "cannot be less than 0")
    if plan.progress_deadline_seconds is not None and plan.progress_deadline_seconds < 1:
        yield Problem(f"{PLAN}.progressDeadlineSeconds", "has to be at least 1")


def _partition_problems(plan: RolloutPlan) -> Iterator[Problem]:
    """A partition of as many batches as there are, or more, is allowed: it means all of them."""
    one, other = plan.batch_partition, plan.last_batch_to_rollout
    for name, partition in (("batchPartition", one), ("lastBatchToRollout", other)):
        if partition is not None and partition < 0:
            yield Problem(f"{PLAN}.{name}", "the rollout plan has to be positive")
    if one is not None and other is not None and one != other:
        yield Problem(
            f"{PLAN}.lastBatchToRollout",
            f"is {other}, but batchPartition, which means the same, is {one}: remove one of them",
        )


def _number_problems(plan: RolloutPlan) -> Iterator[Problem]:
    number, batches = plan.num_batches, plan.rollout_batches
    if batches is not None and not batches:
        yield Problem(f"{PLAN}.rolloutBatches", "the rollout has to have batches")
    if batches and len(batches) > MAX_BATCHES:
        yield Problem(f"{PLAN}.rolloutBatches", f"there can be at most {MAX_BATCHES} batches")
    if number is not None and not 1 <= number <= MAX_BATCHES:
        yield Problem(f"{PLAN}.numBatches", f"can only be from 1 to {MAX_BATCHES}")
    elif number is not None and batches and number != len(batches):
        yield Problem(f"{PLAN}.numBatches", "the num batches does not match the rollout batch size")


def _batch_problems(batches: Sequence[RolloutBatch]) -> Iterator[Problem]:
    for index, batch in enumerate(batches):
        here = f"{PLAN}.rolloutBatches[{index}]"
        if batch.replicas is not None and batch.pod_list:
            yield Problem(here, "replicas and podList cannot both be set")
        if batch.replicas is None and not batch.pod_list and index < len(batches) - 1:
            yield Problem(
                here, "replicas or podList has to be set: only the last batch can be without, and takes what is left"
            )
        yield from _share_problems(f"{here}.replicas", batch.replicas)
        yield from _share_problems(f"{here}.maxUnavailable", batch.max_unavailable)
        if batch.instance_interval is not None and batch.instance_interval < 0:
            yield Problem(f"{here}.instanceInterval", "cannot be less than 0")
    yield from _pod_problems(batches)


def _share_problems(path: str, value: IntOrPercent | None) -> Iterator[Problem]:
    is_good = value is None or (value >= 0 if isinstance(value, int) else compiled(SHARE).search(value) is not None)
    if not is_good:
        yield Problem(path, f"{value!r} is neither a number of at least 0 nor a percentage from '0%' to '100%'")


def _pod_problems(batches: Sequence[RolloutBatch]) -> Iterator[Problem]:
    listed: set[str] = set()
    for index, batch in enumerate(batches):
        for position, pod in enumerate(batch.pod_list):
            path = f"{PLAN}.rolloutBatches[{index}].podList[{position}]"
            if not pod:
                yield Problem(path, "a pod has to have a name")
            elif pod in listed:
                yield Problem(path, f"the pod {pod} is listed twice")
            listed.add(pod)


def _hook_problems(plan: RolloutPlan) -> Iterator[Problem]:
    path = f"{PLAN}.rolloutWebhooks"
    yield from hook_problems(path, plan.rollout_webhooks, of_batch=False)
    of_all = [(f"{path}[{index}]", hook) for index, hook in enumerate(plan.rollout_webhooks)]
    yield from same_call_problems(of_all)
    for number, batch in enumerate(plan.rollout_batches or ()):
        path = f"{PLAN}.rolloutBatches[{number}].batchRolloutWebhooks"
        yield from hook_problems(path, batch.batch_rollout_webhooks, of_batch=True)
        own = [(f"{path}[{index}]", hook) for index, hook in enumerate(batch.batch_rollout_webhooks)]
        yield from _only_in(path, same_call_problems([*of_all, *own]))


def _metric_problems(plan: RolloutPlan, namespace: str) -> Iterator[Problem]:
    path = f"{PLAN}.canaryMetric"
    yield from metric_problems(path, plan.canary_metric, namespace)
    of_all = [(f"{path}[{index}]", metric) for index, metric in enumerate(plan.canary_metric)]
    yield from same_metric_problems(of_all)
    for number, batch in enumerate(plan.rollout_batches or ()):
        path = f"{PLAN}.rolloutBatches[{number}].canaryMetric"
        yield from metric_problems(path, batch.canary_metric, namespace)
        own = [(f"{path}[{index}]", metric) for index, metric in enumerate(batch.canary_metric)]
        yield from _only_in(path, same_metric_problems([*of_all, *own]))


def _only_in(path: str, problems: Iterator[Problem]) -> Iterator[Problem]:
    return (problem for problem in problems if problem.path.startswith(path))


def update_problems(
    old: RolloutPlan, new: RolloutPlan, *, target_changed: bool, ended: bool, current_batch: int, begun: bool = True
) -> list[Problem]:
    """Why a plan may not be changed so. `target_changed` is true of an ended rollout whose source changed, too.

    Another target is another rollout, and so is another size of one that has ended: then everything may change. So may
    a plan by which nothing has begun: its batches are not fixed yet, or it failed for what it says and can be mended.
    """
    if target_changed or not begun or create_problems(old):
        return []
    if ended:
        is_free = new == old or new.target_size != old.target_size
        return [] if is_free else [Problem(PLAN, ENDED)]
    return [*_lowered(old, new), *_rewritten(old, new, current_batch), *_changed(old, new)]


def _lowered(old: RolloutPlan, new: RolloutPlan) -> Iterator[Problem]:
    before, after = _last(old), _last(new)
    if after < before:
        was = "all batches" if old.last_batch is None else str(old.last_batch)
        yield Problem(
            f"{PLAN}.batchPartition",
            f"the BatchPartition field can only increase unless the target ref has changed: it was {was}",
        )


def _rewritten(old: RolloutPlan, new: RolloutPlan, current_batch: int) -> Iterator[Problem]:
    """Batches up to the partition stay. The last one takes what is left, so it also may not become another one."""
    end = max(_last(old), current_batch) + 1
    one, other = old.rollout_batches or (), new.rollout_batches or ()
    if one[:end] != other[:end] or (len(one) > end) != (len(other) > end):
        yield Problem(
            f"{PLAN}.rolloutBatches", "RolloutBatches can only change the part after the BatchPartition field"
        )


def _changed(old: RolloutPlan, new: RolloutPlan) -> Iterator[Problem]:
    for field in structs.fields(RolloutPlan):
        if field.name in FREE or getattr(old, field.name) == getattr(new, field.name):
            continue
        if field.name == "num_batches" and old.rollout_batches and new.rollout_batches:
            continue  # it only repeats how many there are
        yield Problem(f"{PLAN}.{field.encode_name}", _FIXED)


def fixed_part(plan: RolloutPlan) -> str:
    """A digest of what cannot change while batches roll, of those fields that no other part of a status remembers."""
    return digest([to_builtins(getattr(plan, name)) for name in _REMEMBERED])[:16]


def remembered_problems(plan: RolloutPlan, status: RolloutStatus) -> list[Problem]:
    """Why the plan of a rollout that is under way may not be what it is now."""
    if status.fixed_plan in ("", fixed_part(plan)):
        return []
    return [Problem(PLAN, f"{_REMEMBERED_NAMES} {_FIXED}")]


def _last(plan: RolloutPlan) -> int:
    """The partition as a number: none is above all."""
    return _ALL if plan.last_batch is None else plan.last_batch


def effective_partition(plan: RolloutPlan, status: RolloutStatus) -> int:
    """The last batch that may roll now. One below the current batch holds there: that batch ends, and none follows."""
    number = len(status.batches) or len(plan.rollout_batches or ()) or plan.num_batches or 1
    return max(min(_last(plan), number - 1), status.current_batch)

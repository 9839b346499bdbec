"""Makes Deployments of revisions, plans and statuses of rollouts in batches, and what a step of one depends on."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from kedge.api.numbers import IntOrPercent
from kedge.api.oam.keys import CLAIM as CLAIM_KEY
from kedge.api.oam.rollout_plan import RolloutBatch, RolloutPlan, RolloutStrategy
from kedge.api.oam.rollout_status import RolloutStatus
from kedge.plan.batching.batches import batch_at, planned
from kedge.plan.batching.moves import Batch, Step, Workload, WorkloadRef, Workloads
from kedge.plan.batching.rollout_waits import sentence
from kedge.plan.moving.wait import Wait
from plan.batching.in_place_worlds import CLAIM, template

NOW = datetime(2030, 1, 1, tzinfo=UTC)
OTHER = "Rollout/other/uid-2"
INCREASE, DECREASE = RolloutStrategy.increase_first, RolloutStrategy.decrease_first
R: tuple[IntOrPercent, ...] = ("20%", 2, 2, "50%")
"""KubeVela's own example of batches."""


def ref(name: str) -> WorkloadRef:
    return WorkloadRef("apps/v1", "Deployment", "shop", name)


def deployment(
    name: str,
    asked: int,
    *,
    pods: int | None = None,
    available: int | None = None,
    claim: str = CLAIM,
    observed: int = 2,
    **spec: Any,
) -> Workload:
    """A Deployment; it has as many pods as it asks for, and all are available, unless said."""
    there = asked if pods is None else pods
    well = there if available is None else available
    notes = {"annotations": {CLAIM_KEY: claim}} if claim else {}
    obj = {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "5", "generation": 2, **notes},
        "spec": {"replicas": asked, "template": template(f"app:{name}"), **spec},
        "status": {
            "observedGeneration": observed,
            "replicas": there,
            "readyReplicas": there,
            "availableReplicas": well,
        },
    }
    return Workload(ref(name), obj)


def workloads(target: Workload, *sources: Workload, **more: Any) -> Workloads:
    return Workloads(target, sources, claim=CLAIM, **more)


def plan_of(*sizes: IntOrPercent, strategy: RolloutStrategy | None = None, **more: Any) -> RolloutPlan:
    """A plan with batches of these sizes; `max_unavailable` is of each of them."""
    tolerated = more.pop("max_unavailable", None)
    batches = tuple(RolloutBatch(replicas=size, max_unavailable=tolerated) for size in sizes)
    return RolloutPlan(rollout_batches=batches or None, rollout_strategy=strategy, **more)


def sized(plan: RolloutPlan, total: int, original: int = 0, *, is_scale: bool = False, **more: Any) -> RolloutStatus:
    """The status of a rollout with this plan once its size is known."""
    found = planned(plan, original, total, is_scale=is_scale)
    return RolloutStatus(rollout_original_size=original, rollout_target_size=total, batches=found, **more)


def batch_of(plan: RolloutPlan, total: int, index: int) -> Batch:
    return batch_at(plan, sized(plan, total), index, is_scale=False)


def sizes_in(step: Step) -> dict[str, int]:
    """The replicas that are written, by workload."""
    assert not step.failure
    assert step.wait is None
    return {write.ref.name: (write.patch or {})["spec"]["replicas"] for write in step.writes}


def wait_in(step: object) -> Wait:
    assert isinstance(step, Step)
    assert step.wait is not None, step
    assert not step.writes
    assert sentence(step.wait)
    return step.wait

"""Batch metrics: which metrics have to pass after a batch."""

from __future__ import annotations

from kedge.api.oam.rollout_plan import CanaryMetric, RolloutPlan
from kedge.plan.measuring.measurement import metrics_problem


def metrics_after(plan: RolloutPlan, batch: int) -> tuple[CanaryMetric, ...]:
    """The metrics of the rollout, then those of the batch. One of the batch replaces the rollout's of that name."""
    batches = plan.rollout_batches or ()
    own = batches[batch].canary_metric if 0 <= batch < len(batches) else ()
    names = {metric.name for metric in own}
    return (*(metric for metric in plan.canary_metric if metric.name not in names), *own)


def plan_metrics_problem(plan: RolloutPlan) -> str:
    """Why the metrics of a plan cannot be measured; empty if they can."""
    lists = [("canaryMetric", plan.canary_metric)]
    lists += [
        (f"rolloutBatches[{n}].canaryMetric", one.canary_metric) for n, one in enumerate(plan.rollout_batches or ())
    ]
    found = ((where, metrics_problem(metrics)) for where, metrics in lists)
    return next((f"{where}: {problem}" for where, problem in found if problem), "")

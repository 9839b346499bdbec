"""Batch metrics: which metrics have to pass after a batch."""

from __future__ import annotations

from kedge.api.oam.rollout_plan import CanaryMetric, RolloutPlan


def metrics_after(plan: RolloutPlan, batch: int) -> tuple[CanaryMetric, ...]:
    """The metrics of the rollout, then those of the batch. One of the batch replaces the rollout's of that name."""
    batches = plan.rollout_batches or ()
    own = batches[batch].canary_metric if 0 <= batch < len(batches) else ()
    names = {metric.name for metric in own}
    return (*(metric for metric in plan.canary_metric if metric.name not in names), *own)

"""Which metrics have to pass after a batch."""

import pytest

from kedge.api.oam.rollout_plan import RolloutBatch, RolloutPlan
from kedge.plan.batching.batch_metrics import metrics_after
from plan.measuring.making import metric

OWN = metric("errors", count=5)
PLAN = RolloutPlan(
    canary_metric=(metric("errors"), metric("latency")),
    rollout_batches=(RolloutBatch(), RolloutBatch(canary_metric=(OWN, metric("extra")))),
)


@pytest.mark.parametrize(
    ("batch", "names"),
    [(-1, "errors latency"), (0, "errors latency"), (1, "latency errors extra"), (2, "errors latency")],
)
def test_a_batch_has_those_of_the_rollout_and_its_own(batch: int, names: str) -> None:
    assert " ".join(one.name for one in metrics_after(PLAN, batch)) == names
    assert (OWN in metrics_after(PLAN, batch)) == (batch == 1)


def test_a_plan_of_numbers_has_those_of_the_rollout() -> None:
    assert metrics_after(RolloutPlan(canary_metric=(OWN,), num_batches=3), 2) == (OWN,)
    assert metrics_after(RolloutPlan(), 0) == ()

"""Assumed metrics: in a preview every metric is in its range, since nothing is measured."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from kedge.api.oam.rollout_plan import CanaryMetric, MetricsRange
from kedge.plan.measuring.measurement import Measured, Measurement
from kedge.plan.measuring.query import MetricSubject


class AssumedMetrics:
    """Answers with an end of the range."""

    async def measure(
        self,
        metric: CanaryMetric,
        subject: MetricSubject,  # noqa: ARG002
        wake: Callable[[], None],  # noqa: ARG002
        *,
        key: Hashable,  # noqa: ARG002
    ) -> Measurement | None:
        """A measurement that is in the range."""
        ends = metric.metrics_range or MetricsRange()
        return Measured((str(ends.max if ends.min is None else ends.min),))

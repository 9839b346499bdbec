"""Metrics to test with."""

from typing import Any

import msgspec

from kedge.api.oam.rollout_plan import CanaryMetric


def metric(name: str = "errors", **given: Any) -> CanaryMetric:
    """A metric that passes from 0 to 1; `given` are fields by their wire names."""
    fields = {"metricsRange": {"min": 0, "max": 1}, "templateRef": {"name": "errors"}, **given}
    return msgspec.convert({"name": name, **fields}, CanaryMetric)

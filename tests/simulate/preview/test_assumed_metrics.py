"""In a preview every metric passes."""

from typing import Any

import pytest

from kedge.plan.measuring.measurement import MeasurementVerdict, judge
from kedge.plan.measuring.query import MetricSubject
from kedge.simulate.preview.assumed_metrics import AssumedMetrics
from plan.measuring.making import metric


@pytest.mark.parametrize("ends", [{"min": 5}, {"max": "0.01"}, {"min": "-3", "max": 7}])
async def test_an_assumed_measurement_is_in_the_range(ends: dict[str, Any]) -> None:
    asked = metric(metricsRange=ends)
    found = await AssumedMetrics().measure(asked, MetricSubject("", "", ""), print, key="x")
    assert found is not None
    assert judge(asked, found).verdict is MeasurementVerdict.successful

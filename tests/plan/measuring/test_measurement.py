"""What one measurement means, and what is wrong with metrics."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.oam.rollout_plan import MetricsRange
from kedge.plan.measuring.measurement import (
    Judgement,
    Measured,
    MeasurementVerdict,
    NotMeasured,
    interval_of,
    is_in_range,
    judge,
    metric_problem,
    metrics_problem,
    range_text,
    read_number,
)
from plan.measuring.making import metric

DURATION = "write whole numbers with units, such as 1d, 1w or 1h30m"
OK, BAD, UNCLEAR = MeasurementVerdict.successful, MeasurementVerdict.failed, MeasurementVerdict.inconclusive


@pytest.mark.parametrize(
    ("ends", "value", "verdict"),
    [
        ({"min": 0, "max": 1}, "0", OK),
        ({"min": 0, "max": 1}, "1", OK),
        ({"min": 0, "max": 1}, "1.0000000000000000000000001", BAD),
        ({"min": 0, "max": 1}, "-0.0000001", BAD),
        ({"min": 0, "max": 1}, "-0", OK),
        ({"min": 0, "max": 1}, "1e-05", OK),
        ({"min": "0.99"}, "0.99", OK),
        ({"min": "0.99"}, "0.98999999", BAD),
        ({"min": "0.99"}, "9e+300", OK),
        ({"max": "5e2"}, "500", OK),
        ({"max": "5e2"}, "500.1", BAD),
        ({"max": 500}, "-1", OK),
        ({"min": 5, "max": 5}, "5.0", OK),
        ({"min": -3, "max": "-1.5"}, "-2", OK),
        ({"min": "+1"}, ".5", BAD),
        ({"min": "1."}, "+1", OK),
    ],
)
def test_a_number_is_in_its_range_or_not(ends: dict[str, Any], value: str, verdict: MeasurementVerdict) -> None:
    assert judge(metric(metricsRange=ends), Measured((value,))).verdict is verdict


@pytest.mark.parametrize("no_data", [None, "Inconclusive", "Fail"])
@pytest.mark.parametrize(
    "values",
    [
        (),
        ("0.5", "0.5"),
        ("NaN",),
        ("+Inf",),
        ("-Inf",),
        ("Inf",),
        ("Infinity",),
        ("",),
        ("fine",),
        ("1 ",),
        ("1\n",),
        ("0x1",),
        ("1_0",),
        ("٠",),
        ("1e99999",),
        ("0" * 61,),
        ("50%",),
    ],
)
def test_what_is_no_number_is_never_success(values: tuple[str, ...], no_data: str | None) -> None:
    asked = metric(metricsRange={"min": 0}, **({} if no_data is None else {"noData": no_data}))
    found = judge(asked, Measured(values))
    assert found.verdict is (BAD if no_data == "Fail" else UNCLEAR)
    assert found.message


@pytest.mark.parametrize("no_data", ["Inconclusive", "Fail"])
def test_no_answer_is_inconclusive(no_data: str) -> None:
    assert judge(metric(noData=no_data), NotMeasured("no answer")) == Judgement(UNCLEAR, "", "no answer")


@pytest.mark.parametrize(
    ("measured", "judgement"),
    [
        (Measured(("0.50",)), Judgement(OK, "0.50", "")),
        (Measured(("7",)), Judgement(BAD, "7", "7 is not from 0 to 1")),
        (Measured(()), Judgement(UNCLEAR, "", "the query found nothing")),
        (
            Measured(("1", "2", "3")),
            Judgement(UNCLEAR, "", "the query found 3 series, and has to find one: combine them, such as with sum()"),
        ),
        (Measured(("NaN",)), Judgement(UNCLEAR, "NaN", "'NaN' is not a number")),
        (Measured(("x" * 99,)), Judgement(UNCLEAR, "x" * 63 + "…", f"'{'x' * 63}…' is not a number")),
    ],
    ids=["ok", "out", "nothing", "several", "nan", "long"],
)
def test_a_judgement_says_what_is_wrong(measured: Measured, judgement: Judgement) -> None:
    assert judge(metric(), measured) == judgement


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        (MetricsRange(min=1), "at least 1"),
        (MetricsRange(max="0.5"), "at most 0.5"),
        (MetricsRange(min=1, max=2), "from 1 to 2"),
    ],
    ids=["min", "max", "both"],
)
def test_a_range_is_said(ends: MetricsRange, said: str) -> None:
    assert range_text(ends) == said


@pytest.mark.parametrize(
    "ends",
    [
        None,
        MetricsRange(),
        MetricsRange(min="x"),
        MetricsRange(min="x", max=9),
        MetricsRange(min=0, max="x"),
        MetricsRange(min="NaN"),
    ],
    ids=str,
)
def test_nothing_is_in_a_range_that_cannot_be_read(ends: MetricsRange | None) -> None:
    assert not is_in_range(Decimal(1), ends)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, ""),
        ({"metricsRange": {"max": "0.01"}, "interval": "1h30m"}, ""),
        ({"templateRef": {"kind": "MetricTemplate", "name": "x"}}, ""),
        ({"metricsRange": None}, "metric errors: metricsRange has no end: give it a min, a max or both"),
        ({"metricsRange": {}}, "metric errors: metricsRange has no end: give it a min, a max or both"),
        ({"metricsRange": {"min": 1, "max": "1"}}, ""),
        ({"metricsRange": {"min": 2, "max": 1}}, "metric errors: metricsRange has no number: min 2 is more than max 1"),
        (
            {"metricsRange": {"min": "0.2", "max": "0.10"}},
            "metric errors: metricsRange has no number: min 0.2 is more than max 0.10",
        ),
        (
            {"metricsRange": {"min": "99%"}},
            "metric errors: metricsRange.min is '99%', which is not a number: write one such as 5 or '0.99'",
        ),
        (
            {"metricsRange": {"min": 1, "max": "NaN"}},
            "metric errors: metricsRange.max is 'NaN', which is not a number: write one such as 5 or '0.99'",
        ),
        (
            {"interval": "soon"},
            f"metric errors: interval: 'soon' is not a duration: {DURATION}",
        ),
        ({"interval": "0"}, "metric errors: interval is 0: it has to be at least 1s"),
        ({"interval": "999ms"}, "metric errors: interval is 999ms: it has to be at least 1s"),
        ({"interval": "1s"}, ""),
        ({"templateRef": None}, "metric errors: templateRef names no MetricTemplate: nothing says what to measure"),
        (
            {"templateRef": {"kind": "MetricTemplate"}},
            "metric errors: templateRef names no MetricTemplate: nothing says what to measure",
        ),
        (
            {"templateRef": {"kind": "ConfigMap", "name": "x"}},
            "metric errors: templateRef is a ConfigMap: only a MetricTemplate says what to measure",
        ),
    ],
)
def test_what_is_wrong_with_a_metric(given: dict[str, Any], problem: str) -> None:
    assert metric_problem(metric(**given)) == problem
    assert metrics_problem([metric("fine"), metric(**given)]) == problem


def test_metrics_have_names_of_their_own() -> None:
    assert metric_problem(metric("")) == "a metric has no name: give it one"
    twice = metrics_problem([metric("a"), metric("b"), metric("a")])
    assert twice == "two metrics are called a: give each a name of its own"
    assert metrics_problem([]) == ""


@pytest.mark.parametrize(("interval", "seconds"), [("", 60), ("30s", 30), ("1m30s", 90), ("soon", 0)])
def test_the_interval_is_a_minute_if_not_set(interval: str, seconds: int) -> None:
    assert interval_of(metric(interval=interval)).total_seconds() == seconds


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_every_number_that_prometheus_writes_is_read(number: float) -> None:
    found = read_number(repr(number))
    assert (found is None) == (number != number or abs(number) == float("inf"))
    assert found is None or float(found) == number


@given(st.text(max_size=8))
def test_any_text_is_a_number_or_none(text: str) -> None:
    found = read_number(text)
    assert found is None or found.is_finite()

"""Measurement: what one measurement of a metric means, and what is wrong with a metric that cannot be measured.

Numbers are compared exactly, as decimals: `0.99` is in the range from `0.99`.

| what was found | means |
|---|---|
| one number in the range | successful |
| one number out of it | failed |
| nothing, several series, NaN, infinity, text | as `noData` says: inconclusive, or failed |
| no answer, or an error | inconclusive |
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct

from kedge.api.numbers import IntOrPercent
from kedge.api.oam.rollout_plan import CanaryMetric, MetricsRange, NoData
from kedge.api.times import parse_prometheus_duration
from kedge.plan.text import cut

TEMPLATE_KIND: Final = "MetricTemplate"
DEFAULT_INTERVAL: Final = "1m"
_SHORTEST_INTERVAL: Final = timedelta(seconds=1)
_NUMBER: Final = re.compile(r"[+-]?([0-9]{1,60}(\.[0-9]{0,60})?|\.[0-9]{1,60})([eE][+-]?[0-9]{1,4})?", re.ASCII)
_LONGEST_VALUE: Final = 64
_INFINITY: Final = Decimal("Infinity")


class Measured(Struct, frozen=True):
    """The query was answered. The values of what it found, as they were written."""

    values: tuple[str, ...]


class NotMeasured(Struct, frozen=True):
    """There was no answer, or an error."""

    reason: str


Measurement: TypeAlias = Measured | NotMeasured


class MeasurementVerdict(StrEnum):
    """What a measurement means."""

    successful = "Successful"
    failed = "Failed"
    inconclusive = "Inconclusive"


class Judgement(Struct, frozen=True):
    """What a measurement means, the value that was found, and what is wrong with it."""

    verdict: MeasurementVerdict
    value: str = ""
    message: str = ""


def judge(metric: CanaryMetric, measurement: Measurement) -> Judgement:
    """What a measurement means. Assumes a metric without a problem."""
    if isinstance(measurement, NotMeasured):
        return Judgement(MeasurementVerdict.inconclusive, message=measurement.reason)
    if len(measurement.values) != 1:
        return Judgement(_without_data(metric), message=_wrong_count(len(measurement.values)))
    value = cut(measurement.values[0], _LONGEST_VALUE)
    number = read_number(measurement.values[0])
    if number is None:
        return Judgement(_without_data(metric), value, f"{value!r} is not a number")
    if is_in_range(number, metric.metrics_range):
        return Judgement(MeasurementVerdict.successful, value)
    return Judgement(MeasurementVerdict.failed, value, f"{value} is not {range_text(metric.metrics_range)}")


def read_number(value: IntOrPercent) -> Decimal | None:
    """The number a text means; None if it means none, or none that is finite."""
    if isinstance(value, int):
        return Decimal(value)
    return Decimal(value) if _NUMBER.fullmatch(value) else None


def is_in_range(number: Decimal, ends: MetricsRange | None) -> bool:
    """Whether a number is in a range. Nothing is in one without ends, or with an end that cannot be read."""
    if ends is None or (ends.min is None and ends.max is None):
        return False
    lowest, highest = _end(ends.min, -_INFINITY), _end(ends.max, _INFINITY)
    return lowest is not None and highest is not None and lowest <= number <= highest


def range_text(ends: MetricsRange | None) -> str:
    """`at least 1`, `at most 5`, `from 1 to 5`."""
    lowest, highest = (None, None) if ends is None else (ends.min, ends.max)
    if highest is None:
        return f"at least {lowest}"
    return f"at most {highest}" if lowest is None else f"from {lowest} to {highest}"


def interval_of(metric: CanaryMetric) -> timedelta:
    """The time between two measurements; zero if it cannot be read."""
    try:
        return parse_prometheus_duration(metric.interval or DEFAULT_INTERVAL)
    except ValueError:
        return timedelta()


# What is wrong with metrics


def metrics_problem(metrics: Iterable[CanaryMetric]) -> str:
    """Why these metrics cannot be measured; empty if they can."""
    found = tuple(metrics)
    twice = [name for name, times in Counter(metric.name for metric in found).items() if times > 1]
    if twice:
        return f"two metrics are called {twice[0]}: give each a name of its own"
    return next((problem for metric in found if (problem := metric_problem(metric))), "")


def metric_problem(metric: CanaryMetric) -> str:
    """Why a metric cannot be measured; empty if it can."""
    if not metric.name:
        return "a metric has no name: give it one"
    problem = _range_problem(metric.metrics_range) or _interval_problem(metric) or _template_problem(metric)
    return f"metric {metric.name}: {problem}" if problem else ""


def _range_problem(ends: MetricsRange | None) -> str:
    if ends is None or (ends.min is None and ends.max is None):
        return "metricsRange has no end: give it a min, a max or both"
    for name, end in (("min", ends.min), ("max", ends.max)):
        if end is not None and read_number(end) is None:
            return f"metricsRange.{name} is {end!r}, which is not a number: write one such as 5 or '0.99'"
    lowest, highest = _end(ends.min, -_INFINITY), _end(ends.max, _INFINITY)
    if lowest is not None and highest is not None and lowest > highest:
        return f"metricsRange has no number: min {ends.min} is more than max {ends.max}"
    return ""


def _interval_problem(metric: CanaryMetric) -> str:
    try:
        length = parse_prometheus_duration(metric.interval or DEFAULT_INTERVAL)
    except ValueError as error:
        return f"interval: {error}"
    return "" if length >= _SHORTEST_INTERVAL else f"interval is {metric.interval}: it has to be at least 1s"


def _template_problem(metric: CanaryMetric) -> str:
    ref = metric.template_ref
    if ref is None or not ref.name:
        return f"templateRef names no {TEMPLATE_KIND}: nothing says what to measure"
    if ref.kind not in ("", TEMPLATE_KIND):
        return f"templateRef is a {ref.kind}: only a {TEMPLATE_KIND} says what to measure"
    return ""


def _end(end: IntOrPercent | None, absent: Decimal) -> Decimal | None:
    return absent if end is None else read_number(end)


def _without_data(metric: CanaryMetric) -> MeasurementVerdict:
    return MeasurementVerdict.failed if metric.no_data is NoData.fail else MeasurementVerdict.inconclusive


def _wrong_count(found: int) -> str:
    if not found:
        return "the query found nothing"
    return f"the query found {found} series, and has to find one: combine them, such as with sum()"

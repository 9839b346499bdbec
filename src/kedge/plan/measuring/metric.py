"""Metric: when to measure again, and whether all metrics have passed.

    measuring = next_measurement(metrics, results, batch, since, now)

A metric is measured for the first time one interval after `since`, so that its window holds nothing from before, and
then once in an interval. In this order:

1. more measurements failed than `failureLimit` (0 if not set): the metric has failed;
2. more were inconclusive than `inconclusiveLimit` (no limit if not set): the metric has failed;
3. as many as `count` (1 if not set) were successful: the metric has passed;
4. else it is measured again.

One metric that has failed is enough; all have to pass. A metric with a problem holds everything until it is corrected:
it neither passes nor fails. Results from before `since` are of an earlier time, and count for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.oam.rollout_plan import CanaryMetric
from kedge.api.oam.rollout_status import MetricResult
from kedge.plan.measuring.measurement import Measurement, MeasurementVerdict, interval_of, judge, metrics_problem
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.text import counted, cut, listed, moment, of_all

_LONGEST_MESSAGE: Final = 300
_KEPT_OF_OTHER_BATCHES: Final = 20


class MetricCode(StrEnum):
    """What is waited for because of metrics."""

    interval = "MetricInterval"
    """For the time of the next measurement."""
    under_way = "MetricUnderWay"
    """For the answer to a query."""
    invalid = "MetricInvalid"
    """For somebody to correct a metric."""


class Measuring(Struct, frozen=True):
    """What to do about metrics. Nothing of all: all have passed."""

    query: CanaryMetric | None = None
    """The metric to measure now."""
    wait: Wait | None = None
    failed: str = ""
    """Which metric has failed, and how."""
    until: datetime | None = None
    """When to look again, if it waits for time."""

    @property
    def is_done(self) -> bool:
        return self.query is None and self.wait is None and not self.failed


class _State(Struct, frozen=True):
    """One metric, and what was measured of it since."""

    metric: CanaryMetric
    result: MetricResult
    due: datetime

    @property
    def failure(self) -> str:
        """Why the metric has failed; empty if it has not."""
        result, most = self.result, self.metric.failure_limit or 0
        if result.failed > most:
            return f"{counted(result.failed, 'measurement')} failed, and {most} may: {self.last}"
        limit = self.metric.inconclusive_limit
        if limit is not None and result.inconclusive > limit:
            return f"{counted(result.inconclusive, 'measurement')} had no answer to go by, and {limit} may: {self.last}"
        return ""

    @property
    def count(self) -> int:
        return self.metric.count or 1

    @property
    def has_passed(self) -> bool:
        return not self.failure and self.result.successful >= self.count

    @property
    def last(self) -> str:
        """What the last measurement came to."""
        return self.result.message or self.result.value

    @property
    def blocker(self) -> Blocker:
        last = f"; last: {self.last}" if self.last else ""
        progress = f"{of_all(self.result.successful, self.count, 'measurement')} in range{last}"
        return Blocker(self.metric.name, None, self.result.time, self.due, progress)


def next_measurement(
    metrics: Iterable[CanaryMetric],
    results: Iterable[MetricResult],
    batch: int,
    since: datetime,
    now: datetime,
    *,
    unit: str = "",
) -> Measuring:
    """What to measure now, what to wait for, or which metric has failed.

    `since` is when what is measured was complete; it has to be the same at every call. `unit` is who waits.
    """
    asked, known = tuple(metrics), tuple(results)
    if problem := metrics_problem(asked):
        return Measuring(wait=Wait(unit, MetricCode.invalid, {}, (Blocker(unit, reported=problem),)))
    states = [_state(metric, known, batch, since) for metric in asked]
    failures = [f"metric {one.metric.name}: {one.failure}" for one in states if one.failure]
    if failures:
        return Measuring(failed=cut(failures[0], _LONGEST_MESSAGE))
    running = [one for one in states if not one.has_passed]
    due = next((one.metric for one in running if now >= one.due), None)
    if due is not None or not running:
        return Measuring(query=due)
    return _waiting(running, len(states), unit)


def recorded(
    results: Iterable[MetricResult],
    metric: CanaryMetric,
    batch: int,
    measurement: Measurement,
    since: datetime,
    now: datetime,
) -> tuple[MetricResult, ...]:
    """The results with one more measurement. Of other batches, only the latest are kept."""
    known = tuple(results)
    before, found = _result(metric, known, batch, since), judge(metric, measurement)
    after = replace(
        before,
        successful=before.successful + (found.verdict is MeasurementVerdict.successful),
        failed=before.failed + (found.verdict is MeasurementVerdict.failed),
        inconclusive=before.inconclusive + (found.verdict is MeasurementVerdict.inconclusive),
        value=found.value,
        message=cut(found.message, _LONGEST_MESSAGE),
        time=now,
    )
    elsewhere = [one for one in known if one.batch != batch]
    here = [one for one in known if one.batch == batch and one.name != metric.name]
    return (*elsewhere[-_KEPT_OF_OTHER_BATCHES:], *here, after)


def under_way(metric: CanaryMetric, unit: str = "") -> Wait:
    """The wait for a query that takes a while."""
    return Wait(unit, MetricCode.under_way, {}, (Blocker(metric.name),))


def metric_wait_text(wait: Wait) -> str:
    """A wait for metrics, in a sentence."""
    first = wait.blockers[0]
    if wait.code == MetricCode.invalid:
        return first.reported
    if wait.code == MetricCode.under_way:
        return f"metric {first.key} is being measured"
    each = listed(f"{one.key} ({one.reported})" for one in wait.blockers)
    at = "" if first.until is None else f"; the next measurement is at {moment(first.until)}"
    return f"{of_all(wait.numbers['passed'], wait.numbers['metrics'], 'metric')} passed: {each}{at}"


def _state(metric: CanaryMetric, results: tuple[MetricResult, ...], batch: int, since: datetime) -> _State:
    result = _result(metric, results, batch, since)
    return _State(metric, result, (result.time or since) + interval_of(metric))


def _result(metric: CanaryMetric, results: tuple[MetricResult, ...], batch: int, since: datetime) -> MetricResult:
    """What was measured of a metric since then."""
    found = (one for one in results if one.name == metric.name and one.batch == batch)
    return next(
        (one for one in found if one.time is not None and one.time >= since),
        MetricResult(name=metric.name, batch=batch),
    )


def _waiting(running: list[_State], metrics: int, unit: str) -> Measuring:
    in_order = sorted(running, key=lambda one: one.due)
    numbers = {"passed": metrics - len(running), "metrics": metrics}
    wait = Wait(unit, MetricCode.interval, numbers, tuple(one.blocker for one in in_order))
    return Measuring(wait=wait, until=in_order[0].due)

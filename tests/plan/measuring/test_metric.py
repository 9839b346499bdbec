"""When metrics are measured, and when they have passed or failed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.oam.rollout_plan import CanaryMetric
from kedge.api.oam.rollout_status import MetricResult
from kedge.plan.measuring.measurement import Measured, Measurement, NotMeasured
from kedge.plan.measuring.metric import (
    Measuring,
    MetricCode,
    metric_wait_text,
    next_measurement,
    recorded,
    under_way,
)
from plan.measuring.making import metric

SINCE = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
IN, OUT, NOTHING, DEAF = Measured(("0.5",)), Measured(("7",)), Measured(()), NotMeasured("no answer within 10 s")
LETTERS: dict[str, Measurement] = {"s": IN, "f": OUT, "i": NOTHING, "n": DEAF}


def measured(asked: CanaryMetric, letters: str, batch: int = 0) -> tuple[tuple[MetricResult, ...], datetime]:
    """The results after these measurements, one a minute; and the time of the last."""
    results: tuple[MetricResult, ...] = ()
    now = SINCE
    for letter in letters:
        now += MINUTE
        results = recorded(results, asked, batch, LETTERS[letter], SINCE, now)
    return results, now


def outcome(asked: CanaryMetric, letters: str) -> str:
    results, now = measured(asked, letters)
    found = next_measurement([asked], results, 0, SINCE, now)
    return "failed" if found.failed else "passed" if found.is_done else "running"


@pytest.mark.parametrize(
    ("given", "letters", "becomes"),
    [
        ({}, "", "running"),
        ({}, "s", "passed"),
        ({}, "f", "failed"),
        ({}, "i", "running"),
        ({}, "n", "running"),
        ({}, "ininininininininininini", "running"),
        ({}, "inis", "passed"),
        ({"count": 3}, "ss", "running"),
        ({"count": 3}, "sss", "passed"),
        ({"count": 3}, "ssf", "failed"),
        ({"count": 3, "failureLimit": 1}, "ssf", "running"),
        ({"count": 3, "failureLimit": 1}, "fsss", "passed"),
        ({"count": 3, "failureLimit": 1}, "ssfs", "passed"),
        ({"count": 3, "failureLimit": 1}, "fsf", "failed"),
        ({"count": 3, "failureLimit": 2}, "fff", "failed"),
        ({"inconclusiveLimit": 0}, "i", "failed"),
        ({"inconclusiveLimit": 0}, "n", "failed"),
        ({"inconclusiveLimit": 2}, "in", "running"),
        ({"inconclusiveLimit": 2}, "inn", "failed"),
        ({"inconclusiveLimit": 2}, "ins", "passed"),
        ({"count": 1, "inconclusiveLimit": 2, "failureLimit": 5}, "fiiis", "failed"),
        ({"noData": "Fail"}, "i", "failed"),
        ({"noData": "Fail"}, "n", "running"),
        ({"noData": "Fail", "failureLimit": 1, "count": 2}, "isis", "failed"),
    ],
)
def test_what_measurements_come_to(given: dict[str, Any], letters: str, becomes: str) -> None:
    assert outcome(metric(**given), letters) == becomes


def test_the_first_measurement_is_one_interval_after_what_it_measures() -> None:
    asked = metric(interval="2m")
    early = next_measurement([asked], (), 0, SINCE, SINCE + 2 * MINUTE - timedelta(seconds=1))
    assert early.query is None
    assert not early.is_done
    assert early.until == SINCE + 2 * MINUTE
    assert next_measurement([asked], (), 0, SINCE, SINCE + 2 * MINUTE) == Measuring(query=asked)


def test_measurements_are_one_interval_apart() -> None:
    asked = metric(count=2)
    results, now = measured(asked, "s")
    assert next_measurement([asked], results, 0, SINCE, now + MINUTE - timedelta(seconds=1)).until == now + MINUTE
    assert next_measurement([asked], results, 0, SINCE, now + MINUTE).query == asked


def test_all_metrics_have_to_pass_each_in_its_own_time() -> None:
    fast, slow = metric("fast", interval="10s"), metric("slow", interval="1m")
    asked, now, order = (slow, fast), SINCE, []
    results: tuple[MetricResult, ...] = ()
    while not (found := next_measurement(asked, results, 0, SINCE, now)).is_done:
        now = found.until or now
        if found.query is not None:
            order.append((found.query.name, (now - SINCE).seconds))
            results = recorded(results, found.query, 0, IN, SINCE, now)
    assert order == [("fast", 10), ("slow", 60)]
    assert next_measurement([], (), 0, SINCE, SINCE).is_done


def test_a_failure_comes_before_everything() -> None:
    bad, late = metric("bad"), metric("late", interval="1h")
    results, now = measured(bad, "f")
    said = next_measurement([late, bad], results, 0, SINCE, now)
    assert said == Measuring(failed="metric bad: 1 measurement failed, and 0 may: 7 is not from 0 to 1")
    assert not said.is_done


def test_too_many_without_answer_are_said() -> None:
    asked = metric(inconclusiveLimit=1)
    results, now = measured(asked, "in")
    assert next_measurement([asked], results, 0, SINCE, now).failed == (
        "metric errors: 2 measurements had no answer to go by, and 1 may: no answer within 10 s"
    )


def test_a_metric_with_a_problem_holds_until_it_is_corrected() -> None:
    asked = metric("odd", metricsRange={"min": 2, "max": 1})
    results, now = measured(metric(), "f")
    found = next_measurement([metric(), asked], results, 0, SINCE, now, unit="web")
    assert (found.query, found.failed, found.until) == (None, "", None)
    assert found.wait is not None
    assert (found.wait.unit, found.wait.code) == ("web", MetricCode.invalid)
    assert metric_wait_text(found.wait) == "metric odd: metricsRange has no number: min 2 is more than max 1"


def test_a_wait_is_said() -> None:
    one, two, three = metric("one", count=3), metric("two"), metric("three", interval="5m")
    results, now = measured(one, "si")
    results += measured(two, "s")[0]
    wait = next_measurement([three, one, two], results, 0, SINCE, now, unit="web").wait
    assert wait is not None
    assert (wait.unit, wait.code, wait.numbers) == ("web", MetricCode.interval, {"passed": 1, "metrics": 3})
    assert [(blocker.key, blocker.since) for blocker in wait.blockers] == [("one", now), ("three", None)]
    assert metric_wait_text(wait) == (
        "1 of 3 metrics passed: one (1 of 3 measurements in range; last: the query found nothing) and three (0 of 1 "
        "measurement in range); the next measurement is at 2026-03-01T12:03:00Z"
    )


def test_the_last_value_is_said() -> None:
    asked = metric(count=2)
    results, now = measured(asked, "s")
    wait = next_measurement([asked], results, 0, SINCE, now).wait
    assert wait is not None
    assert wait.blockers[0].reported == "1 of 2 measurements in range; last: 0.5"


def test_a_query_that_takes_long_is_said() -> None:
    wait = under_way(metric(), "web")
    assert (wait.unit, wait.code) == ("web", MetricCode.under_way)
    assert metric_wait_text(wait) == "metric errors is being measured"


def test_a_result_holds_all_that_was_measured() -> None:
    results, now = measured(metric(), "sfin")
    assert results == (
        MetricResult(
            name="errors", batch=0, successful=1, failed=1, inconclusive=2, message="no answer within 10 s", time=now
        ),
    )
    assert measured(metric(), "s")[0][0].value == "0.5"


def test_each_batch_is_measured_anew() -> None:
    results, now = measured(metric(), "s")
    assert next_measurement([metric()], results, 1, SINCE, now).query is not None
    results = recorded(results, metric(), 1, OUT, SINCE, now)
    assert [(one.batch, one.successful, one.failed) for one in results] == [(0, 1, 0), (1, 0, 1)]


@pytest.mark.parametrize("letters", ["s", "f"])
def test_results_from_before_count_for_nothing(letters: str) -> None:
    results, now = measured(metric(), letters)
    later = now + timedelta(seconds=1)
    assert next_measurement([metric()], results, 0, now, now).is_done == (letters == "s")
    assert next_measurement([metric()], results, 0, later, later).until == later + MINUTE
    results = recorded(results, metric(), 0, IN, later, later + MINUTE)
    assert [(one.successful, one.failed) for one in results] == [(1, 0)]


def test_a_result_without_a_time_counts_for_nothing() -> None:
    results = (MetricResult(name="errors", batch=0, successful=9),)
    assert next_measurement([metric()], results, 0, SINCE, SINCE).until == SINCE + MINUTE


def test_results_of_other_batches_are_bounded_and_those_of_this_batch_are_not() -> None:
    many = [metric(f"m{number}") for number in range(30)]
    results: tuple[MetricResult, ...] = ()
    for batch in range(3):
        for asked in many:
            results = recorded(results, asked, batch, IN, SINCE, SINCE + MINUTE)
        assert next_measurement(many, results, batch, SINCE, SINCE + MINUTE).is_done
    assert len(results) == 30 + 20
    assert [one.name for one in results[:20]] == [f"m{number}" for number in range(10, 30)]


def test_messages_are_cut() -> None:
    asked = metric(inconclusiveLimit=0)
    results = recorded((), asked, 0, NotMeasured("x" * 5000), SINCE, SINCE)
    assert len(results[0].message) == 300
    assert len(next_measurement([asked], results, 0, SINCE, SINCE).failed) == 300


ANY = st.one_of(
    st.sampled_from(list(LETTERS.values())),
    st.builds(NotMeasured, st.text(max_size=5)),
    st.builds(Measured, st.lists(st.sampled_from(["0", "1", "NaN", "+Inf", "x", "2", ""]), max_size=3).map(tuple)),
)


@given(
    st.lists(ANY, max_size=40),
    st.fixed_dictionaries(
        {"count": st.integers(1, 5)},
        optional={
            "failureLimit": st.integers(0, 3),
            "inconclusiveLimit": st.integers(0, 3),
            "noData": st.sampled_from(["Fail", "Inconclusive"]),
        },
    ),
    st.lists(st.integers(1, 200), min_size=1, max_size=9),
)
def test_a_metric_never_passes_without_enough_measurements_in_range(
    answers: list[Measurement], fields: dict[str, Any], pauses: list[int]
) -> None:
    asked, now, last = metric(**fields), SINCE, SINCE
    results: tuple[MetricResult, ...] = ()
    in_range = 0
    for number, answer in enumerate(answers):
        now += timedelta(seconds=pauses[number % len(pauses)])
        found = next_measurement([asked], results, 0, SINCE, now)
        if found.is_done:
            assert in_range >= (asked.count or 1)
        if found.query is not None:
            assert now - last >= MINUTE
            in_range += isinstance(answer, Measured) and answer.values in (("0",), ("1",), ("0.5",))
            results, last = recorded(results, asked, 0, answer, SINCE, now), now
            results = msgspec.json.decode(msgspec.json.encode(results), type=tuple[MetricResult, ...])
        elif found.wait is not None:
            assert found.until is not None
            assert found.until > now

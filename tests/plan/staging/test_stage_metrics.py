"""Metrics that have to pass after a stage."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.condition import FALSE, find_condition
from kedge.api.fleet import RETRY
from kedge.api.stage import StrategySpec
from kedge.plan.measuring.measurement import Measured, Measurement
from kedge.plan.measuring.metric import MetricCode
from kedge.plan.staging.initializing import initialize
from kedge.plan.staging.rollbacks import retried, without_gates
from kedge.plan.staging.stage_metrics import stage_metrics_problem
from kedge.plan.staging.stage_metrics import with_measurement as with_one
from kedge.plan.staging.step import step
from plan.measuring.making import metric as any_metric
from plan.staging.making import NOW, World, beginning, stage, timed

IN, OUT, NOTHING = Measured(("0.5",)), Measured(("7",)), Measured(())


def metric(name: str = "errors", **given: Any) -> Any:
    return any_metric(name, **{"templateRef": {"name": "errors", "namespace": "shop"}, **given})


def world(*metrics: Any, **how: Any) -> World:
    """A run whose first stage has these metrics, and whose first cluster is done."""
    found = World({"a": "one", "b": "two"}, stage("one", metrics=metrics, **how), stage("two"))
    found.settle()
    found.arrive("a")
    return found


def measure(found: World, measurement: Measurement) -> str:
    """Measure the metric that is due; its name."""
    (asked,) = step(found.seen, found.now).measure
    found.run = replace(found.run, status=with_one(found.status, asked, measurement, found.now))
    found.settle()
    return asked.metric.name


def test_the_next_stage_begins_when_all_metrics_have_passed() -> None:
    found = world(metric("one"), metric("two", count=2))
    assert found.given() == ["a"]
    assert found.says() == "False/UpdateRunWaiting"
    assert found.message() == (
        "run waits: stage one is done, and 0 of 2 metrics passed: one (0 of 1 measurement in range) and two (0 of 2 "
        "measurements in range); the next measurement is at 2026-03-01T12:01:00Z"
    ).replace("2026-03-01T12:01:00Z", f"{NOW + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}")
    assert step(found.seen, found.now).look_again == 60
    found.wait(60)
    assert [measure(found, IN), measure(found, IN)] == ["one", "two"]
    assert found.given() == ["a"]
    found.wait(60)
    assert measure(found, IN) == "two"
    assert found.given() == ["a", "b"]
    assert found.stage_says("one", reasons.SUCCEEDED) == "True/StageUpdatingSucceeded"
    assert [(one.name, one.successful, one.value) for one in found.stage("one").metrics] == [
        ("one", 1, "0.5"),
        ("two", 2, "0.5"),
    ]
    assert found.stage("two").metrics == ()


def test_a_metric_that_fails_fails_the_run() -> None:
    found = world(metric())
    found.wait(60)
    measure(found, OUT)
    why = "stage one: metric errors: 1 measurement failed, and 0 may: 7 is not from 0 to 1"
    assert found.says(reasons.SUCCEEDED) == "False/UpdateRunFailed"
    assert found.message(reasons.SUCCEEDED) == why
    said = find_condition(found.stage("one").conditions, reasons.SUCCEEDED)
    assert said is not None
    assert (said.status, said.message) == (FALSE, why)
    assert found.stage("one").metrics[0].failed == 1
    assert found.given() == ["a"]


def test_what_is_missing_does_not_pass() -> None:
    found = world(metric())
    for _ in range(5):
        found.wait(60)
        measure(found, NOTHING)
    assert found.given() == ["a"]
    assert "last: the query found nothing" in found.message()


def test_a_metric_that_is_due_is_said_and_wakes_nobody_by_time() -> None:
    found = world(metric())
    found.wait(60)
    planned = step(found.seen, found.now)
    assert [(one.stage, one.metric.name, one.since) for one in planned.measure] == [("one", "errors", NOW)]
    assert planned.look_again is None
    assert [wait.code for wait in planned.waits] == [MetricCode.under_way]
    assert found.message() == "run waits: stage one is done, and metric errors is being measured"


def test_tasks_and_metrics_are_waited_for_together() -> None:
    found = world(metric(), after_stage_tasks=(timed("1h"),))
    found.wait(60)
    measure(found, IN)
    assert found.given() == ["a"]
    found.wait(3600)
    assert found.given() == ["a", "b"]


def test_nothing_is_measured_while_the_stage_moves_or_the_run_is_stopped() -> None:
    found = World({"a": "one", "b": "one"}, stage("one", metrics=(metric(),)))
    found.settle()
    found.arrive("a")
    found.wait(600)
    assert step(found.seen, found.now).measure == ()


def test_a_retry_measures_anew() -> None:
    found = world(metric())
    found.wait(60)
    measure(found, OUT)
    found.now += timedelta(seconds=10)
    meta = replace(found.run.metadata, annotations={RETRY: f"{found.now:%Y-%m-%dT%H:%M:%SZ}"})
    found.run = replace(found.run, metadata=meta)
    found.run = replace(found.run, status=retried(found.run))
    assert found.stage("one").metrics == ()
    found.settle()
    assert measure(found, IN) == "errors"
    assert found.given() == ["a", "b"]


def test_a_rollback_measures_nothing() -> None:
    spec = StrategySpec(stages=(stage("one", metrics=(metric(),)),))
    assert without_gates(spec).stages[0].metrics == ()


@pytest.mark.parametrize(
    ("metrics", "namespace", "problem"),
    [
        ((), None, ""),
        ((metric(),), None, ""),
        ((any_metric(),), "shop", ""),
        ((any_metric(),), None, "stage one: metric errors: templateRef has no namespace, and neither has the run"),
        (
            (metric(metricsRange={}),),
            "shop",
            "stage one: metric errors: metricsRange has no end: give it a min, a max or both",
        ),
        ((metric(), metric()), None, "stage one: two metrics are called errors: give each a name of its own"),
    ],
    ids=["none", "fine", "namespaced", "namespace", "range", "twice"],
)
def test_a_run_does_not_begin_with_metrics_that_cannot_be_measured(
    metrics: tuple[Any, ...], namespace: str | None, problem: str
) -> None:
    spec = StrategySpec(stages=(stage("zero"), stage("one", metrics=metrics)))
    assert stage_metrics_problem(spec, namespace) == problem
    if namespace is None:
        status = initialize(beginning({"a": "one"}, stage("one", metrics=metrics)), NOW)
        said = find_condition(status.conditions, reasons.INITIALIZED)
        assert said is not None
        assert (said.message if said.status == FALSE else "") == problem

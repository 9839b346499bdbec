"""Metrics after a stage, on an embedded hub in virtual time; the test answers in place of Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from typing import Any

from controllers.hub.staging import Staging, play, stage
from kedge.api.oam.rollout_plan import CanaryMetric
from kedge.api.placement_kinds import NAMESPACED
from kedge.api.reasons import SUCCEEDED
from kedge.controllers.metric_queries import NoMeasures
from kedge.plan.measuring.measurement import Measured, Measurement, NotMeasured
from kedge.plan.measuring.query import MetricSubject

TWO = {"a": "one", "b": "two"}
METRIC = {
    "name": "errors",
    "interval": "10s",
    "metricsRange": {"max": 1},
    "templateRef": {"name": "t", "namespace": "x"},
}
ENDED = "True/UpdateRunSucceeded"


class Answers:
    """Gives these answers, one after the other; None first says that it takes a while, and then wakes."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[MetricSubject, Hashable]] = []

    async def measure(
        self, metric: CanaryMetric, subject: MetricSubject, wake: Callable[[], None], *, key: Hashable
    ) -> Measurement | None:
        self.asked.append((subject, key))
        answer = self.answers.pop(0)
        if answer is None:
            asyncio.get_running_loop().call_later(3, wake)
            return None
        return Measured((answer,))


async def first_stage_done(placed: Staging, **metric: Any) -> None:
    await placed.fleet(TWO, stage("one", metrics=[{**METRIC, **metric}]), stage("two"))
    await placed.start()
    await placed.until_given({"a": "1", "b": ""})
    await placed.arrive("a")


def test_the_next_stage_begins_when_its_metrics_have_passed() -> None:
    answers = Answers("0.1", "NaN", "0.2")

    async def act(placed: Staging) -> None:
        await first_stage_done(placed, count=2)
        assert answers.asked == []
        await placed.rest(15)
        assert len(answers.asked) == 1
        assert await placed.given() == {"a": "1", "b": ""}
        await placed.rest(20)
        await placed.until_given({"a": "1", "b": "1"})
        await placed.arrive("b")
        await placed.until_says(ENDED, SUCCEEDED)
        (result,) = (await placed.status()).stages_status[0].metrics
        assert (result.successful, result.failed, result.inconclusive, result.value) == (2, 0, 1, "0.2")

    play(act, NAMESPACED, measures=answers)
    assert answers.asked[0][0] == MetricSubject("run", "shop", "crp")
    assert len(set(answers.asked)) == 1


def test_a_metric_out_of_its_range_fails_the_run() -> None:
    async def act(placed: Staging) -> None:
        await first_stage_done(placed)
        await placed.until_says("False/UpdateRunFailed", SUCCEEDED)
        assert "metric errors: 1 measurement failed" in await placed.message(SUCCEEDED)
        assert await placed.given() == {"a": "1", "b": ""}

    play(act, measures=Answers("7"))


def test_an_answer_that_takes_a_while_is_waited_for() -> None:
    answers = Answers(None, "0.5")

    async def act(placed: Staging) -> None:
        await first_stage_done(placed)
        await placed.rest(11)
        assert await placed.message() == "run waits: stage one is done, and metric errors is being measured"
        await placed.until_given({"a": "1", "b": "1"})
        assert len(answers.asked) == 2

    play(act, measures=answers)


def test_a_hub_that_measures_nothing_lets_nothing_pass() -> None:
    async def act(placed: Staging) -> None:
        await first_stage_done(placed)
        await placed.rest(60)
        assert await placed.given() == {"a": "1", "b": ""}
        assert "metrics are not measured here" in await placed.message()

    play(act)


async def test_what_nobody_measures_is_not_measured() -> None:
    found = await NoMeasures().measure(CanaryMetric(name="x"), MetricSubject("", "", ""), print, key=1)
    assert isinstance(found, NotMeasured)

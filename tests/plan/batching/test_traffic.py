"""Weights that follow batches: recorded first, written, waited for, corrected, given back."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.oam.rollout_plan import ObjectReference, RolloutPlan, Traffic, TrafficProvider
from kedge.api.oam.rollout_status import Remembered, RolloutStatus
from kedge.plan.batching.traffic import (
    TrafficStep,
    problem_wait,
    remembered_ref,
    restore_step,
    traffic_step,
    wanted_percent,
    with_remembered,
    without_remembered,
)
from kedge.plan.traffic.routes import MANAGER, RouteProblem, TrafficCode
from kedge.plan.traffic.wait_text import wait_text
from plan.traffic.manifests import CANARY, HTTP_ROUTE, patched, route

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
PLAN = RolloutPlan(
    traffic=Traffic(
        provider=TrafficProvider.gateway_api,
        route_ref=ObjectReference(name="web"),
        source_service="web-v1",
        target_service="web-v2",
    )
)
NGINX = RolloutPlan(
    traffic=Traffic(
        provider=TrafficProvider.nginx,
        route_ref=ObjectReference(name="web-canary"),
        source_service="web-v1",
        target_service="web-v2",
    )
)
OTHER = Remembered(ObjectReference(kind="HorizontalPodAutoscaler", name="web"), '{"minReplicas":2}')


def text(step: TrafficStep) -> str:
    assert step.wait is not None
    return wait_text(step.wait)


def accepts(obj: dict[str, Any]) -> dict[str, Any]:
    """The route after its gateway has seen it: one generation on, and said so."""
    generation = obj["metadata"]["generation"] + 1
    parent = obj["status"]["parents"][0]
    conditions = [{**one, "observedGeneration": generation} for one in parent["conditions"]]
    metadata = {**obj["metadata"], "generation": generation}
    return {**obj, "metadata": metadata, "status": {"parents": [{**parent, "conditions": conditions}]}}


class Played:
    """A rollout's status and its route, and what steps make of them."""

    def __init__(self, obj: dict[str, Any], plan: RolloutPlan = PLAN, now: datetime = NOW) -> None:
        self.obj, self.plan, self.now = obj, plan, now
        self.status = RolloutStatus(remembered=(OTHER,))

    def step(self, wanted: int) -> TrafficStep:
        return self._kept(traffic_step(self.plan, self.status, self.obj, wanted, self.now))

    def back(self) -> TrafficStep:
        return self._kept(restore_step(self.status, self.obj, self.now))

    def _kept(self, step: TrafficStep) -> TrafficStep:
        if step.remembered is not None:
            self.status = with_remembered(self.status, step.remembered)
        if step.patch is not None:
            self.obj = patched(self.obj, step.patch)
        return step

    def weights(self) -> list[int]:
        return [one["weight"] for one in self.obj["spec"]["rules"][0]["backendRefs"]]


@pytest.mark.parametrize(
    ("goal", "total", "is_last", "most", "percent"),
    [
        (0, 10, False, None, 0),
        (1, 10, False, None, 10),
        (1, 1, False, None, 100),
        (1, 3, False, None, 33),
        (2, 3, False, None, 66),
        (1, 1000, False, None, 1),  # a target that gets nothing cannot be measured
        (3, 10, False, 20, 20),
        (1, 10, False, 20, 10),
        (10, 10, False, 50, 50),
        (10, 10, False, None, 100),
        (10, 10, True, 50, 100),
        (0, 0, True, None, 100),
        (0, 0, False, None, 0),
        (5, 0, False, None, 0),
        (12, 10, False, None, 100),
        (12, 10, False, 200, 100),
        (-1, 10, False, None, 0),
    ],
)
def test_the_share_follows_the_pods_and_keeps_to_max_weight_before_the_last_batch(
    goal: int, total: int, is_last: bool, most: int | None, percent: int
) -> None:
    assert PLAN.traffic is not None
    plan = replace(PLAN, traffic=replace(PLAN.traffic, max_weight=most))
    assert wanted_percent(plan, goal, total, is_last) == percent


def test_without_traffic_the_share_is_that_of_the_pods_and_there_is_nothing_to_do() -> None:
    assert wanted_percent(RolloutPlan(), 3, 10, False) == 30
    assert traffic_step(RolloutPlan(), RolloutStatus(), None, 30, NOW) == TrafficStep()
    assert traffic_step(RolloutPlan(), RolloutStatus(), None, 30, NOW).is_done


def test_weights_are_recorded_then_written_then_accepted() -> None:
    played = Played(route(HTTP_ROUTE))
    first = played.step(30)
    assert first.patch is None
    assert first.remembered is not None
    assert text(first) == "the weights of HTTPRoute shop/web are recorded before they are changed"
    assert first.look_again == NOW
    assert first.notes == ("spec.rules[2] of HTTPRoute shop/web is left alone: it has web-v1, but not web-v2",)
    assert not first.is_done
    second = played.step(30)
    assert second.patch is not None
    assert second.patch["metadata"] == {"uid": "u-1", "resourceVersion": "7"}
    assert (second.wait, second.look_again, second.is_done) == (None, NOW, False)
    assert played.weights() == [70, 30]
    played.obj["metadata"]["generation"] = 4
    third = played.step(30)
    assert third.wait is not None
    assert (third.wait.code, third.look_again) == (TrafficCode.not_accepted, NOW + 5 * SECOND)
    assert not third.is_done
    played.obj = accepts(played.obj)
    assert played.step(30) == TrafficStep()
    assert played.status.remembered[0] == OTHER
    assert len(played.status.remembered) == 2


def test_a_restart_between_two_steps_changes_nothing() -> None:
    played = Played(route(HTTP_ROUTE))
    assert played.step(30) == traffic_step(PLAN, RolloutStatus(remembered=(OTHER,)), route(HTTP_ROUTE), 30, NOW)
    status = played.status
    first = traffic_step(PLAN, status, played.obj, 30, NOW)
    assert first == traffic_step(PLAN, status, played.obj, 30, NOW)
    # The status was written, the route was not: it is written now.
    played.step(30)
    played.obj = route(HTTP_ROUTE)
    assert played.step(30).patch is not None


def test_the_record_stays_that_of_the_first_weights() -> None:
    played = Played(route(CANARY), NGINX)
    for wanted in (10, 10, 10, 50, 50, 100, 100):
        played.step(wanted)
    assert played.step(100).is_done
    assert played.back().patch is not None
    assert played.obj == route(CANARY)
    assert played.back().is_done


def test_on_failure_the_weights_of_before_are_given_back_and_accepted() -> None:
    played = Played(route(HTTP_ROUTE))
    for _ in range(2):
        played.step(30)
    played.obj = accepts(played.obj)
    step = played.back()
    assert (step.patch is not None, step.look_again, step.is_done) == (True, NOW, False)
    assert played.obj["spec"] == route(HTTP_ROUTE)["spec"]
    played.obj["metadata"]["generation"] += 1
    waiting = played.back()
    assert waiting.wait is not None
    assert (waiting.wait.code, waiting.look_again) == (TrafficCode.not_accepted, NOW + 5 * SECOND)
    played.obj = accepts(played.obj)
    assert played.back().is_done
    played.status = without_remembered(played.status)
    assert played.status.remembered == (OTHER,)
    assert remembered_ref(played.status) is None
    assert played.back() == TrafficStep()


def test_the_route_to_give_back_to_is_in_the_status() -> None:
    played = Played(route(HTTP_ROUTE))
    assert remembered_ref(played.status) is None
    played.step(30)
    ref = ObjectReference(api_version="gateway.networking.k8s.io/v1", kind="HTTPRoute", name="web", namespace="shop")
    assert remembered_ref(played.status) == ref


def test_nothing_can_be_given_back_to_a_route_that_is_gone_or_has_other_backends() -> None:
    played = Played(route(HTTP_ROUTE))
    played.step(30)
    gone = restore_step(played.status, None, NOW)
    assert gone.is_done
    assert gone.notes == ("HTTPRoute shop/web is gone: its weights are not given back",)
    other = restore_step(played.status, route(HTTP_ROUTE, spec__rules=[]), NOW)
    assert other.is_done
    assert other.notes[0].startswith("the weights of before are not given back: no rule of HTTPRoute shop/web has both")
    unread = restore_step(played.status, RouteProblem("forbidden"), NOW)
    assert text(unread) == "HTTPRoute shop/web: forbidden"


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize(
    ("found", "code", "sentence"),
    [
        (None, TrafficCode.route_missing, "there is no HTTPRoute web: create it"),
        (
            RouteProblem("HTTPRoutes are not served"),
            TrafficCode.route_unread,
            "HTTPRoute web: HTTPRoutes are not served",
        ),
        (
            route(HTTP_ROUTE, spec__rules=[]),
            TrafficCode.route_unreadable,
            (
                "no rule of HTTPRoute shop/web has both web-v1 and web-v2 as backends: add the one that is missing, "
                "web-v2 with weight 0"
            ),
        ),
    ],
)
def test_a_route_that_is_missing_or_odd_is_waited_for(
    found: Any, code: TrafficCode, sentence: str, recorded: bool
) -> None:
    played = Played(route(HTTP_ROUTE))
    if recorded:
        played.step(30)
        played.step(30)
    step = traffic_step(PLAN, played.status, found, 30, NOW)
    assert step.wait is not None
    assert (step.wait.code, text(step), step.look_again) == (code, sentence, NOW + 5 * SECOND)
    assert not step.is_done
    assert (step.patch, step.remembered) == (None, None)


def test_what_only_an_edit_of_the_rollout_can_mend_is_a_failure() -> None:
    assert PLAN.traffic is not None
    same = replace(PLAN, traffic=replace(PLAN.traffic, target_service="web-v1"))
    step = traffic_step(same, RolloutStatus(), route(HTTP_ROUTE), 30, NOW)
    assert step.failure == "traffic.sourceService and traffic.targetService are the same, web-v1"
    assert not step.is_done
    final = traffic_step(PLAN, RolloutStatus(), RouteProblem("elsewhere", is_final=True), 30, NOW)
    assert final.failure == "elsewhere"


@pytest.mark.parametrize(
    "change",
    [
        {"target_service": "web-v3"},
        {"source_service": "web-v0"},
        {"route_ref": ObjectReference(name="other")},
        {"provider": TrafficProvider.nginx, "route_ref": ObjectReference(name="web")},
    ],
)
def test_traffic_that_is_changed_midway_fails(change: dict[str, Any]) -> None:
    played = Played(route(HTTP_ROUTE))
    played.step(30)
    assert PLAN.traffic is not None
    other = replace(PLAN, traffic=replace(PLAN.traffic, **change))
    step = traffic_step(other, played.status, played.obj, 30, NOW)
    assert step.failure == (
        "traffic was changed in the plan while HTTPRoute shop/web divides it between web-v1 and web-v2: "
        "that can only be changed between rollouts"
    )


def test_weights_that_somebody_else_changes_are_set_again_at_once_then_more_and_more_seldom() -> None:
    played = Played(route(CANARY), NGINX)
    played.step(30)
    played.step(30)
    git = {"manager": "argocd-controller", "time": "2026-03-01T12:00:01Z"}
    ours = {"manager": MANAGER, "time": "2026-03-01T12:00:02Z"}
    status = {"manager": "nginx", "time": "2026-03-01T12:00:03Z", "subresource": "status"}
    older = {"manager": "kubectl", "time": "2026-02-01T12:00:03Z"}
    reverted = route(CANARY, metadata__managedFields=[older, git, ours, status])
    written: list[int] = []
    for second in range(400):
        played.now = NOW + second * SECOND
        played.obj = reverted
        if played.step(30).patch is not None:
            written.append(second)
    assert written == [0, 1, 2, 7, 17, 37, 77, 157, 277, 397]
    played.now += SECOND
    step = played.step(30)
    assert step.look_again == played.now + 5 * SECOND
    assert text(step) == (
        "argocd-controller sets the weights of Ingress shop/web-canary, too: they were set to 30 percent again "
        f"10 times; have it ignore what the field manager {MANAGER} writes"
    )
    assert MANAGER == "kedge-traffic"  # users have GitOps tools ignore it by this name
    assert step.wait is not None
    assert step.wait.blockers[0].until == NOW + 517 * SECOND
    assert step.wait.blockers[0].since == NOW + 397 * SECOND


def test_weights_that_are_fought_over_are_trusted_only_after_a_while() -> None:
    played = Played(route(CANARY), NGINX)
    played.step(30)
    played.step(30)
    for _ in range(3):
        assert played.step(30).is_done
        played.obj = route(CANARY)
        played.step(30)
    step = played.step(30)
    assert text(step).startswith("somebody else sets the weights of Ingress shop/web-canary, too")
    played.now += timedelta(seconds=4.9)
    assert played.step(30).look_again == NOW + 5 * SECOND
    played.now = NOW + 5 * SECOND
    assert played.step(30).is_done
    # The next batch begins to count anew.
    played.step(60)
    played.obj = route(CANARY)
    assert played.step(60).patch is not None
    assert played.step(60).is_done


def test_a_fight_over_no_traffic_at_all_is_said_too() -> None:
    obj = route(CANARY)
    obj["metadata"]["annotations"]["nginx.ingress.kubernetes.io/canary-weight"] = "50"
    played = Played(obj, NGINX)
    for _ in range(5):
        played.step(0)
        played.obj = obj
    assert "they were set to 0 percent again 3 times" in text(played.step(0))


def test_a_record_that_cannot_be_read_is_no_record_of_traffic() -> None:
    for value in ("", "{", "[]", '{"of":"hpa"}', '{"of":"traffic"}'):
        status = RolloutStatus(remembered=(Remembered(ObjectReference(kind="HTTPRoute", name="web"), value),))
        assert remembered_ref(status) is None
        assert without_remembered(status) == status
        assert restore_step(status, route(HTTP_ROUTE), NOW) == TrafficStep()


def test_a_refused_write_is_waited_for() -> None:
    played = Played(route(HTTP_ROUTE))
    played.step(30)
    ref = remembered_ref(played.status)
    assert ref is not None
    wait = problem_wait(ref, RouteProblem("its weights were refused: no"))
    assert wait_text(wait) == "HTTPRoute shop/web: its weights were refused: no"

"""Gates between two batches: each answers with what to do, or is open."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.oam.rollout_plan import (
    CanaryMetric,
    HookType,
    MetricsRange,
    ObjectReference,
    OnAutoscaler,
    RolloutPlan,
    RolloutWebhook,
)
from kedge.api.oam.rollout_status import HookResult, MetricResult, RollingState
from kedge.plan.batching.batches import batch_at
from kedge.plan.batching.gates import autoscalers, final_hooks, hooks, metrics, traffic, traffic_restored
from kedge.plan.batching.rollout_waits import BatchCode
from kedge.plan.batching.states import RolloutEvent
from kedge.plan.batching.steps import Act, BatchRolloutInput, Hold, Move, Note, Query
from kedge.plan.measuring.metric import MetricCode
from kedge.plan.traffic.routes import RouteProblem, TrafficCode
from plan.batching.making import (
    NOW,
    PLAN,
    ROUTE,
    TRAFFIC,
    WHO,
    asked_of,
    deployment,
    observed,
    ref,
    weights_in,
    workloads,
)
from plan.batching.test_autoscalers import hpa, written
from plan.traffic.manifests import patched

R = RollingState
E = RolloutEvent
MINUTE = timedelta(minutes=1)


def seen(plan: RolloutPlan = PLAN, **more: Any) -> BatchRolloutInput:
    return observed(R.rolling, plan=plan, **more)


# Autoscalers


@pytest.mark.parametrize("scaled", ["v1", "v2"])
def test_an_autoscaler_of_any_workload_has_to_stop(scaled: str) -> None:
    found = autoscalers(seen(autoscalers=(hpa(scales=ref(scaled)),)))
    assert isinstance(found, Hold)
    assert found.wait.code == BatchCode.autoscaler


def test_others_may_go_on() -> None:
    assert autoscalers(seen(autoscalers=(hpa(scales=ref("v3")),))) is None
    assert autoscalers(seen()) is None


def test_what_is_stopped_is_noted_and_the_others_stay_noted() -> None:
    plan = replace(PLAN, on_autoscaler=OnAutoscaler.take_over)
    one, two = hpa("one", ref("v1")), hpa("two", ref("v2"))
    given = seen(plan, autoscalers=(one, two))
    found = autoscalers(given)
    assert isinstance(found, Act)
    assert [write.ref.name for write in found.writes] == ["one", "two"]
    first, second = written([one, two], found.writes)
    noted = autoscalers(replace(given, autoscalers=(first,)))
    assert isinstance(noted, Note)
    assert [each.ref.name for each in noted.status.remembered] == ["one"]
    again = replace(given, status=noted.status)
    assert autoscalers(replace(again, autoscalers=(first,))) is None
    both = autoscalers(replace(again, autoscalers=(first, second)))
    assert isinstance(both, Note)
    assert [each.ref.name for each in both.status.remembered] == ["one", "two"]


# Webhooks


def with_hook(type_: HookType) -> RolloutPlan:
    return replace(PLAN, rollout_webhooks=(RolloutWebhook(type=type_, name="gate", url="https://hooks/gate"),))


def test_a_webhook_is_called_then_obeyed() -> None:
    plan = with_hook(HookType.pre_batch_rollout)
    asking = seen(plan)

    def gate(given: BatchRolloutInput) -> Any:
        return hooks(given, HookType.pre_batch_rollout, "batchInitializing", NOW, 1)

    call = gate(asking)
    assert asked_of(call) == ("batchInitializing", 1)
    results = {
        state: HookResult(id=call.call.id, name="gate", state=state, attempts=1, message="frozen", time=NOW)
        for state in ("Accepted", "Refused", "Failed")
    }

    def after(state: str) -> BatchRolloutInput:
        return replace(asking, status=replace(asking.status, hooks=(results[state],)))

    assert gate(after("Accepted")) is None
    refused = gate(after("Refused"))
    assert isinstance(refused, Move)
    assert refused.event is E.failed
    assert "frozen" in refused.message
    held = gate(after("Failed"))
    assert isinstance(held, Hold)
    assert held.until == NOW + timedelta(seconds=1)
    assert gate(seen()) is None


def test_the_webhooks_of_the_end_are_told_where_it_ends() -> None:
    given = seen(with_hook(HookType.finalize_rollout))
    assert asked_of(final_hooks(given, NOW)) == ("rollingInBatches", None)
    nowhere = replace(given, status=replace(given.status, rolling_state=None))
    assert asked_of(final_hooks(nowhere, NOW)) == ("locatingTargetApp", None)


# Metrics


METRIC = CanaryMetric(
    name="errors",
    interval="1m",
    metrics_range=MetricsRange(max=1),
    template_ref=ObjectReference(name="errors"),
)


def measured(**more: Any) -> Any:
    given = seen(replace(PLAN, canary_metric=(METRIC,)), status={"batch_available_at": NOW, **more})
    return metrics(given, batch_at(given.plan, given.status, 1, is_scale=False), NOW + MINUTE)


def test_metrics_are_measured_from_when_a_batch_is_available() -> None:
    found = measured(batch_available_at=None)
    assert isinstance(found, Note)
    assert found.status.batch_available_at == NOW + MINUTE
    assert measured() == Act(query=Query(METRIC, 1, NOW))
    found = measured(batch_available_at=NOW + MINUTE)
    assert isinstance(found, Hold)
    assert (found.wait.code, found.until) == (MetricCode.interval, NOW + 2 * MINUTE)
    assert found.wait.unit == "web"


def test_metrics_pass_or_fail() -> None:
    result = MetricResult(name="errors", batch=1, time=NOW + MINUTE)
    assert measured(metrics=(replace(result, successful=1),)) is None
    found = measured(metrics=(replace(result, failed=1),))
    assert isinstance(found, Move)
    assert found.event is E.batch_failed
    assert found.message == found.status.failure != ""


# Traffic


def gated(given: BatchRolloutInput, goal: int, index: int = 0) -> Any:
    return traffic(given, goal, batch_at(given.plan, given.status, index, is_scale=False), NOW)


def recorded() -> BatchRolloutInput:
    """A rollout that has recorded the weights of its route."""
    given = seen(replace(PLAN, traffic=TRAFFIC), route=ROUTE)
    found = gated(given, 1)
    assert isinstance(found, Note)
    return replace(given, status=found.status)


def test_without_traffic_the_gate_is_open() -> None:
    assert gated(seen(route=ROUTE), 1) is None
    assert traffic_restored(seen(route=ROUTE), NOW) is None


def test_weights_are_recorded_with_what_is_left_alone() -> None:
    found = gated(seen(replace(PLAN, traffic=TRAFFIC), route=ROUTE), 1)
    assert isinstance(found, Note)
    (warning,) = found.warnings
    assert "web-v1" in warning


@pytest.mark.parametrize(
    ("goal", "index", "weights"), [(1, 0, [75, 25]), (3, 1, [25, 75]), (4, 2, [0, 100]), (3, 2, [25, 75])]
)
def test_weights_follow_the_pods(goal: int, index: int, weights: list[int]) -> None:
    found = gated(recorded(), goal, index)
    assert isinstance(found, Act)
    assert found.route is not None
    assert weights_in(found.route.patch) == weights
    assert found.route.ref == replace(TRAFFIC.route_ref, api_version="gateway.networking.k8s.io/v1", kind="HTTPRoute")
    assert found.route.status != recorded().status, "what is written is in the status before"


def test_all_traffic_comes_with_all_pods_of_the_last_batch_only() -> None:
    given = recorded()
    most = replace(given, plan=replace(given.plan, traffic=replace(TRAFFIC, max_weight=50)))
    for goal, index, weights in ((4, 2, [0, 100]), (4, 1, [50, 50]), (3, 2, [50, 50])):
        found = gated(most, goal, index)
        assert weights_in(found.route.patch) == weights


def test_the_gate_opens_when_the_weights_are_in_effect() -> None:
    given = recorded()
    found = gated(given, 1)
    after = replace(given, route=patched(ROUTE, found.route.patch), status=found.route.status)
    assert gated(after, 1) is None
    obj = dict(after.route or {})  # type: ignore[arg-type]
    unseen = replace(after, route={**obj, "metadata": {**obj["metadata"], "generation": 9}})
    held = gated(unseen, 1)
    assert isinstance(held, Hold)
    assert (held.wait.code, held.until) == (TrafficCode.not_accepted, NOW + timedelta(seconds=5))


def test_what_cannot_be_divided_fails_the_rollout() -> None:
    given = replace(recorded(), route=RouteProblem("not a route", is_final=True))
    found = gated(given, 1)
    assert isinstance(found, Move)
    assert (found.event, found.message) == (E.failed, "not a route")


def test_workloads_of_a_scale_operation_have_no_source() -> None:
    assert seen(workloads=workloads(deployment("v2", 1))).is_scale
    assert not seen().is_scale
    assert not seen(workloads=None).is_scale
    caller = seen(moving="v2").caller
    assert (caller.kind, caller.namespace, caller.name, caller.uid, caller.generation, caller.target) == (
        WHO.kind,
        WHO.namespace,
        WHO.name,
        WHO.uid,
        WHO.generation,
        "v2",
    )

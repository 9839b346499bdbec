"""What a rollout in batches would do: batches, limits, gates, and what would refuse it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.oam.rollout_plan import (
    CanaryMetric,
    HookType,
    MetricsRange,
    ObjectReference,
    OnAutoscaler,
    RolloutBatch,
    RolloutPlan,
    RolloutStrategy,
    RolloutWebhook,
    Traffic,
    TrafficProvider,
)
from kedge.api.oam.rollout_status import BatchState, PlannedBatch, RollingState, RolloutStatus
from kedge.plan.batching.autoscalers import HPA, Autoscaler
from kedge.plan.batching.moves import Workload, WorkloadRef, Workloads, Write
from kedge.plan.batching.registry import moves_for
from kedge.plan.batching.spec_rules import Problem
from kedge.plan.batching.steps import BatchRolloutInput, RolloutIdentity
from kedge.plan.fields import Object
from kedge.plan.previewing.rollout_preview import RolloutPreview, begun_anew, rollout_preview
from plan.batching.rollout_examples import V1

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SIZES = tuple(RolloutBatch(replicas=one) for one in (2, 3, 5))
BEGUN = tuple(PlannedBatch(*one) for one in ((2, 2), (3, 5), (5, 10)))


def workload(name: str, desired: int, kind: str = "Deployment", **status: Any) -> Workload:
    obj: Object = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop", "uid": name, "generation": 1},
        "spec": {
            "replicas": desired,
            "selector": {"matchLabels": {"version": name}},
            "template": {"spec": {"containers": [{"name": "app", "image": name}]}},
        },
        "status": {
            "observedGeneration": 1,
            "replicas": desired,
            "updatedReplicas": desired,
            "readyReplicas": desired,
            "availableReplicas": desired,
            **status,
        },
    }
    return Workload(WorkloadRef("apps/v1", kind, "shop", name), obj)


def seen(workloads: Workloads | None = None, status: RolloutStatus | None = None, **plan: Any) -> BatchRolloutInput:
    """A rollout of ten pods from web-v1 to web-v2."""
    found = workloads or Workloads(workload("web-v2", 0), (workload("web-v1", 10),))
    moves = moves_for(found)
    assert not isinstance(moves, str), moves
    given = {"rollout_batches": SIZES} | plan
    return BatchRolloutInput(
        RolloutIdentity("RolloutTrait", "shop", "web", "1"),
        RolloutPlan(**given),
        status or RolloutStatus(),
        wanted="apps/v1/Deployment/web-v2",
        moving="apps/v1/Deployment/web-v2" if status is not None else "",
        workloads=found,
        moves=moves,
    )


def previewed(given: BatchRolloutInput, *problems: Problem) -> RolloutPreview:
    return rollout_preview(given, "Deployment web-v2", problems)


def test_batches_are_told_with_their_goals_and_how_many_pods_there_are_meanwhile() -> None:
    found = previewed(seen())
    assert (found.size, found.is_done, found.path) == (10, True, "shop/web")
    assert [(one.pods, one.goal, one.floor, one.ceiling) for one in found.batches] == [
        (2, 2, 10, 12),
        (3, 5, 10, 13),
        (5, 10, 10, 15),
    ]
    assert found.moves == (
        "from Deployment shop/web-v1 to Deployment shop/web-v2: pods of the target come first, then old ones go"
    )
    assert found.batches[0].gates == ("all its pods available",)


def test_old_pods_that_go_first_lower_the_floor_instead() -> None:
    batches = (RolloutBatch(replicas=4, max_unavailable=1), RolloutBatch())
    found = previewed(seen(rollout_strategy=RolloutStrategy.decrease_first, rollout_batches=batches))
    assert [(one.floor, one.ceiling) for one in found.batches] == [(5, 10), (4, 10)]
    assert found.batches[0].gates == ("3 of its pods available",)
    assert "old pods go first, then those of the target come" in found.moves


@pytest.mark.parametrize(
    ("plan", "size", "goals"),
    [
        ({"rollout_batches": None, "num_batches": 4}, 10, [2, 4, 7, 10]),
        ({"rollout_batches": None}, 10, [10]),
        ({"rollout_batches": None, "num_batches": 2, "target_size": 12}, 12, [6, 12]),
        ({"rollout_batches": (RolloutBatch(replicas="20%"), RolloutBatch(replicas="80%"))}, 10, [2, 10]),
    ],
)
def test_the_size_and_the_batches_are_those_of_the_controller(
    plan: dict[str, Any], size: int, goals: list[int]
) -> None:
    found = previewed(seen(**plan))
    assert (found.size, [one.goal for one in found.batches]) == (size, goals)


def test_gates_are_told_in_the_order_in_which_they_are_asked() -> None:
    def hook(type_: HookType, name: str) -> RolloutWebhook:
        return RolloutWebhook(type=type_, name=name, url="http://gate.shop")

    metric = CanaryMetric(name="errors", metrics_range=MetricsRange(min=0, max="0.5"), count=3)
    route = ObjectReference(name="web")
    found = previewed(
        seen(
            rollout_batches=(
                RolloutBatch(
                    replicas=3,
                    instance_interval=30,
                    batch_rollout_webhooks=(hook(HookType.pre_batch_rollout, "own"),),
                ),
                RolloutBatch(canary_metric=(CanaryMetric(name="errors", metrics_range=MetricsRange(max=1)),)),
            ),
            rollout_webhooks=(
                hook(HookType.initialize_rollout, "begin"),
                hook(HookType.post_batch_rollout, "smoke"),
                hook(HookType.finalize_rollout, "end"),
            ),
            canary_metric=(metric,),
            traffic=Traffic(TrafficProvider.istio, route, "old", "new"),
        )
    )
    assert found.batches[0].gates == (
        "webhook begin before the rollout",
        "webhook own before the batch",
        "one pod every 30 s",
        "all its pods available",
        "30% of the traffic to the target",
        "metric errors at least 0 and at most 0.5, 3 times",
        "webhook smoke after the batch",
    )
    assert found.batches[1].gates == (
        "all its pods available",
        "100% of the traffic to the target",
        "metric errors at most 1",
        "webhook smoke after the batch",
        "webhook end at the end, told and not asked",
    )


@pytest.mark.parametrize(
    ("plan", "holds", "reached"),
    [
        ({"batch_partition": 0}, "it stands still after batch 0, which is the last one", [True, False, False]),
        ({"last_batch_to_rollout": 1}, "it stands still after batch 1", [True, True, False]),
        ({"batch_partition": 2}, "", [True, True, True]),
        ({"batch_partition": 9}, "", [True, True, True]),
        ({"paused": True}, "it is paused: no batch begins until it is resumed", [True, True, True]),
    ],
)
def test_what_holds_a_rollout_back_is_told(plan: dict[str, Any], holds: str, reached: list[bool]) -> None:
    found = previewed(seen(**plan))
    assert found.holds.startswith(holds)
    assert bool(found.holds) is not found.is_done
    assert [one.is_reached for one in found.batches] == reached


def test_what_would_refuse_it_is_told() -> None:
    problem = Problem("spec.rolloutPlan.numBatches", "the num batches does not match the rollout batch size")
    assert previewed(seen(), problem).refused == (str(problem),)
    too_small = previewed(seen(target_size=4))
    assert too_small.refused == ("target size `4` less than source size `10`",)
    odd = previewed(seen(rollout_batches=(RolloutBatch(replicas=7), RolloutBatch(replicas=7))))
    assert odd.refused == ("the last batch has 7 pods, but 3 are left to it: the batches do not add up",)
    unknown = previewed(replace(seen(), workloads=None, moves=None, problem="the workload kind `Job` is not supported"))
    assert unknown.refused == ("the workload kind `Job` is not supported",)
    assert not any(one.is_done for one in (too_small, odd, unknown))


def test_what_it_would_wait_for_is_told() -> None:
    missing = Workloads(Workload(WorkloadRef("apps/v1", "Deployment", "shop", "web-v2")), (workload("web-v1", 10),))
    found = previewed(seen(missing))
    assert (found.waits, found.size, found.batches) == (("Deployment shop/web-v2 does not exist",), None, ())
    assert not found.is_done
    nowhere = previewed(replace(seen(), workloads=None, moves=None))
    assert nowhere.waits == ("the target does not exist",)
    app = WorkloadRef("core.oam.dev/v1beta1", "Application", "shop", "store")
    brings_in = previewed(replace(seen(), workloads=None, moves=None, writes=(Write(app),)))
    assert brings_in.holds == "it takes Application shop/store over first, and its batches are known after that"
    busy = Workloads(workload("web-v2", 0), (workload("web-v1", 10, replicas=8),))
    scaling = previewed(seen(busy, target_size=10))
    assert scaling.waits == ("Deployment shop/web-v1 is still scaling: it has 8 of 10 pods",)
    assert [one.goal for one in scaling.batches] == [2, 5, 10], "the plan says the size"
    assert previewed(seen(busy)).size is None


def test_a_workload_that_is_only_in_the_file_is_taken_to_be_there() -> None:
    new = workload("web-v2", 0)
    there = Workloads(replace(new, obj=None, manifest=new.obj), (workload("web-v1", 10),))
    assert [one.goal for one in previewed(seen(there)).batches] == [2, 5, 10]


def test_an_autoscaler_of_a_workload_would_hold_it_unless_it_is_taken_over() -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v1"}
    ref = WorkloadRef(HPA.api_version, HPA.kind, "shop", "web")
    scaler = Autoscaler(ref, {"metadata": {"name": "web", "uid": "7"}, "spec": {"scaleTargetRef": target}})
    found = previewed(replace(seen(), autoscalers=(scaler,)))
    assert len(found.waits) == 1
    assert "delete it, or set onAutoscaler to TakeOver" in found.waits[0]
    taken = previewed(replace(seen(on_autoscaler=OnAutoscaler.take_over), autoscalers=(scaler,)))
    assert taken.waits == ()


def test_a_scale_operation_and_a_workload_in_place_have_other_limits() -> None:
    up = previewed(seen(Workloads(workload("web-v2", 4)), target_size=10, rollout_batches=None, num_batches=2))
    assert [(one.goal, one.floor, one.ceiling) for one in up.batches] == [(7, None, 7), (10, None, 10)]
    assert up.moves == "Deployment shop/web-v2 is scaled from 4 to 10 pods"
    down = previewed(seen(Workloads(workload("web-v2", 4)), target_size=0, rollout_batches=None))
    assert down.batches[0].gates == ("no more pods left than its goal",)
    assert down.batches[0].ceiling == 4
    pods = workload("web-v2", 10, "StatefulSet", updateRevision="b", currentRevision="a", readyReplicas=10)
    there = Workloads(pods, in_place=True)
    begun = RolloutStatus(rolling_state=RollingState.rolling, batches=BEGUN, rollout_target_size=10)
    in_place = previewed(seen(there, begun))
    assert (in_place.batches[0].floor, in_place.batches[0].ceiling) == (None, None)
    assert "its own maxUnavailable says how many are down at a time" in in_place.moves
    nodes = replace(there, target=workload("web-v2", 10, "DaemonSet"))
    assert [(one.floor, one.ceiling) for one in previewed(seen(nodes, begun)).batches] == [(9, 10)] * 3


# Rollouts that are under way


def under_way(**said: Any) -> RolloutStatus:
    given: dict[str, Any] = {
        "rolling_state": RollingState.rolling,
        "batch_rolling_state": BatchState.verifying,
        "batches": BEGUN,
        "current_batch": 1,
        "rollout_original_size": 10,
        "rollout_target_size": 10,
        "desired_size": 10,
        "message": "3 of 5 pods are available",
    }
    return RolloutStatus(**(given | said))


def test_a_rollout_that_is_under_way_tells_what_is_done_and_what_it_waits_for() -> None:
    found = previewed(seen(status=under_way()))
    assert [one.is_done for one in found.batches] == [True, False, False]
    assert found.waits == ("3 of 5 pods are available",)
    held = previewed(seen(status=under_way(batch_rolling_state=BatchState.ready), batch_partition=1))
    assert [one.is_done for one in held.batches] == [True, True, False]
    assert (held.waits, held.holds.startswith("it stands still after batch 1")) == ((), True)


def test_a_rollout_that_has_ended_moves_nothing() -> None:
    done = previewed(seen(status=under_way(rolling_state=RollingState.succeeded)))
    assert (done.has_ended, done.is_done, done.batches, done.size) == (True, True, (), 10)
    failed = previewed(seen(status=under_way(rolling_state=RollingState.failed, failure="it was aborted")))
    assert (failed.has_ended, failed.is_done, failed.waits) == (True, False, ("it has failed: it was aborted",))


@pytest.mark.parametrize(
    ("rolling", "desired", "sources"),
    [(RollingState.rolling, 10, 1), (RollingState.failed, 10, 1), (RollingState.succeeded, 0, 0)],
)
def test_another_target_begins_anew_and_midway_keeps_the_size(
    rolling: RollingState, desired: int, sources: int
) -> None:
    given = seen(status=under_way(rolling_state=rolling, sources=(V1,)))
    found = begun_anew(replace(given, wanted="apps/v1/Deployment/web-v3"), NOW)
    assert (found.rolling_state, found.batches) == (RollingState.locating, ())
    assert (found.desired_size, len(found.sources)) == (desired, sources)
    assert begun_anew(given, NOW) is given.status


def test_a_preview_is_data_for_programs() -> None:
    found = previewed(seen()).as_json()
    assert (found["done"], found["size"], found["batches"][2]["ceiling"]) == (True, 10, 15)

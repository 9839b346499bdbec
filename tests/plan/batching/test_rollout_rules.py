"""What each kind of rollout may say of its target and source, and how the whole may be changed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.oam.rollouts import AnyRollout, ApplicationDeployment, AppRollout, Rollout, RolloutTrait
from kedge.plan.batching.rollout_rules import SOURCES, TARGETS, rollout_problems, rollout_update_problems

Object = dict[str, Any]
KINDS: dict[type[AnyRollout], Object] = {
    RolloutTrait: {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v2"}},
    Rollout: {"targetRevisionName": "web-v2", "componentName": "web"},
    AppRollout: {"targetAppRevisionName": "web-v2"},
    ApplicationDeployment: {"targetApplicationName": "web-v2"},
}
SOURCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-v1"}
BEGUN = {"rollingState": "rollingInBatches", "batches": [{"replicas": 1, "goal": 1}]}
ENDED = {"rollingState": "rolloutSucceed", "batches": [{"replicas": 1, "goal": 1}]}
every_kind = pytest.mark.parametrize("kind", list(KINDS), ids=lambda kind: kind.__name__)


def made(kind: type[AnyRollout], plan: Object | None = None, status: Object | None = None, **spec: Any) -> AnyRollout:
    body = {"metadata": {"name": "x", "namespace": "shop"}, "status": status or {}}
    return msgspec.convert(body | {"spec": KINDS[kind] | {"rolloutPlan": plan or {}} | spec}, kind)


def problems(rollout: AnyRollout) -> list[str]:
    return [str(problem) for problem in rollout_problems(rollout)]


@every_kind
def test_a_good_one_is_not_refused(kind: type[AnyRollout]) -> None:
    assert problems(made(kind)) == []


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        (Rollout, {"targetRevisionName": ""}, "spec.targetRevisionName: target revision name cannot be empty"),
        (Rollout, {"componentName": ""}, "spec.componentName: component name cannot be empty"),
        (
            AppRollout,
            {"targetAppRevisionName": ""},
            "spec.targetAppRevisionName: target app revision name cannot be empty",
        ),
        (
            ApplicationDeployment,
            {"targetApplicationName": ""},
            "spec.targetApplicationName: target application name cannot be empty",
        ),
        (
            AppRollout,
            {"componentList": ["a", "b"]},
            "spec.componentList: only one component can be rolled out at a time",
        ),
        (
            ApplicationDeployment,
            {"componentList": ["a", "b"]},
            "spec.componentList: only one component can be rolled out at a time",
        ),
        (RolloutTrait, {"targetRef": SOURCE | {"apiVersion": ""}}, "spec.targetRef.apiVersion: cannot be empty"),
        (RolloutTrait, {"targetRef": SOURCE | {"kind": ""}}, "spec.targetRef.kind: cannot be empty"),
        (RolloutTrait, {"targetRef": SOURCE | {"name": ""}}, "spec.targetRef.name: cannot be empty"),
        (RolloutTrait, {"sourceRef": [SOURCE, SOURCE | {"name": ""}]}, "spec.sourceRef[1].name: cannot be empty"),
        (
            RolloutTrait,
            {"sourceRef": [SOURCE | {"namespace": "other"}]},
            "spec.sourceRef[0].namespace: can only be the namespace of the rollout, shop",
        ),
    ],
)
def test_a_bad_reference_is_refused(kind: type[AnyRollout], spec: Object, expected: str) -> None:
    assert problems(made(kind, **spec)) == [expected]


@pytest.mark.parametrize(
    ("field", "value", "is_good"),
    [
        ("name", "web.v2-1", True),
        ("name", "0", True),
        ("name", "a" * 253, True),
        ("name", "a" * 254, False),
        ("name", "../web", False),
        ("name", "web/scale", False),
        ("name", "web%2F..", False),
        ("name", "Web", False),
        ("name", "web-", False),
        ("name", ".web", False),
        ("name", "web\n", False),
        ("kind", "CloneSet", True),
        ("kind", "a2", True),
        ("kind", "Deployment/status", False),
        ("kind", "2a", False),
        ("kind", "K" * 63, True),
        ("kind", "K" * 64, False),
        ("apiVersion", "v1", True),
        ("apiVersion", "apps.kruise.io/v1alpha1", True),
        ("apiVersion", "apps/", False),
        ("apiVersion", "/v1", False),
        ("apiVersion", "a/b/v1", False),
        ("apiVersion", "Apps/v1", False),
    ],
)
@pytest.mark.parametrize("where", ["targetRef", "sourceRef[0]"])
def test_a_reference_is_to_what_can_be_there(where: str, field: str, value: str, is_good: bool) -> None:
    ref = SOURCE | {field: value}
    spec: Object = {"targetRef": ref} if where == "targetRef" else {"sourceRef": [ref]}
    words = {"name": "name", "kind": "kind", "apiVersion": "API version"}[field]
    expected = [] if is_good else [f"spec.{where}.{field}: {value!r} is not the {words} of an object"]
    assert problems(made(RolloutTrait, **spec)) == expected


def test_names_in_the_plan_are_those_of_objects() -> None:
    route = {"provider": "nginx", "sourceService": "a", "targetService": "b", "routeRef": {"name": "../web"}}
    metric = {"name": "errors", "metricsRange": {"max": 5}, "templateRef": {"name": "a/b"}}
    found = problems(made(Rollout, {"traffic": route, "canaryMetric": [metric]}))
    assert found == [
        "spec.rolloutPlan.canaryMetric[0].templateRef.name: 'a/b' is not the name of an object",
        "spec.rolloutPlan.traffic.routeRef.name: '../web' is not the name of an object",
    ]


@pytest.mark.parametrize("kind", [AppRollout, ApplicationDeployment])
def test_one_component_may_be_named(kind: type[AnyRollout]) -> None:
    assert problems(made(kind, componentList=["web"])) == []


def test_what_the_plan_refers_to_is_in_the_same_namespace() -> None:
    route = {"provider": "nginx", "sourceService": "a", "targetService": "b"}
    plan = {"traffic": route | {"routeRef": {"name": "web", "namespace": "other"}}, "numBatches": 0}
    found = problems(made(Rollout, plan))
    assert [one.partition(":")[0] for one in found] == [
        "spec.rolloutPlan.numBatches",
        "spec.rolloutPlan.traffic.routeRef.namespace",
    ]


def other(field: str) -> Object:
    name = "".join(part if not at else part.title() for at, part in enumerate(field.split("_")))
    return {name: {"target_ref": SOURCE, "source_ref": [SOURCE], "component_list": ["other"]}.get(field, "web-v1")}


def changed(kind: type[AnyRollout], status: Object, plan: Object | None = None, *fields: str) -> list[str]:
    spec = {name: value for field in fields for name, value in other(field).items()}
    old = made(kind, {"batchPartition": 1}, status)
    new = made(kind, {"batchPartition": 1} if plan is None else plan, **spec)
    return [problem.path for problem in rollout_update_problems(old, new)]


@every_kind
def test_another_target_frees_everything(kind: type[AnyRollout]) -> None:
    lowered = {"batchPartition": 0}
    assert changed(kind, BEGUN, lowered) == ["spec.rolloutPlan.batchPartition"]
    assert changed(kind, BEGUN, lowered, TARGETS[kind]) == []
    assert changed(kind, BEGUN, lowered, TARGETS[kind], *SOURCES[kind]) == []


@every_kind
def test_what_else_says_what_is_rolled_out_stays_until_it_has_ended(kind: type[AnyRollout]) -> None:
    for field in SOURCES[kind]:
        assert changed(kind, BEGUN, None, field) == ["spec"]
        assert changed(kind, {}, None, field) == []
        assert changed(kind, ENDED, {"batchPartition": 0}, field) == []


@every_kind
def test_one_that_ended_or_never_began(kind: type[AnyRollout]) -> None:
    assert changed(kind, ENDED, {"batchPartition": 2}) == ["spec.rolloutPlan"]
    assert changed(kind, ENDED, {"batchPartition": 0, "targetSize": 4}) == []
    assert changed(kind, {"rollingState": "verifyingSpec"}, {"batchPartition": 0}) == []
    assert changed(kind, {"rollingState": "rolloutFailed"}, {"batchPartition": 0}) == []


@every_kind
@pytest.mark.parametrize(
    "state", ["initializing", "rollingInBatches", "finalising", "rolloutFailing", "rolloutAbandoned"]
)
def test_a_status_without_batches_that_is_under_way_has_begun(kind: type[AnyRollout], state: str) -> None:
    status = {"rollingState": state, "currentBatch": 1}
    assert changed(kind, status, {"batchPartition": 0}) == ["spec.rolloutPlan.batchPartition"]
    assert changed(kind, status, {"batchPartition": 1, "targetSize": 4}) == ["spec.rolloutPlan.targetSize"]
    assert changed(kind, status, None, SOURCES[kind][0]) == ["spec"]


@every_kind
@pytest.mark.parametrize(
    "status", [{"rollingState": "rolloutSucceed"}, {"rollingState": "rolloutFailed", "currentBatch": 1}]
)
def test_a_status_without_batches_that_has_ended_stays(kind: type[AnyRollout], status: Object) -> None:
    assert changed(kind, status, {"batchPartition": 2}) == ["spec.rolloutPlan"]
    assert changed(kind, status, {"batchPartition": 0, "targetSize": 4}) == []


def test_batches_that_began_in_spite_of_the_partition_stay() -> None:
    batches = [{"replicas": 1}, {"replicas": 2}, {"replicas": 3}]
    plan, new = ({"batchPartition": 0, "rolloutBatches": [batches[0], one, batches[2]]} for one in batches[:2])
    for current, expected in ((0, []), (1, ["spec.rolloutPlan.rolloutBatches"])):
        old = made(Rollout, plan, BEGUN | {"currentBatch": current})
        assert [problem.path for problem in rollout_update_problems(old, made(Rollout, new))] == expected

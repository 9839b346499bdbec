"""The two Services of a rollout's traffic: told apart by the pods they select, and given back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kedge.api.oam.keys import SELECTOR_BEFORE, WORKLOAD_LABEL
from kedge.api.oam.rollout_plan import ObjectReference, Traffic, TrafficProvider
from kedge.plan.batching.moves import DONE, Step, Workload, WorkloadRef, Workloads, Write
from kedge.plan.batching.services import narrowed, widened

CLAIM = "AppRollout/web/uid-1"
TRAFFIC = Traffic(
    provider=TrafficProvider.gateway_api,
    route_ref=ObjectReference(api_version="gateway.networking.k8s.io/v1", kind="HTTPRoute", name="web"),
    source_service="web-old",
    target_service="web-new",
)
APP = {"app": "web"}


def deployment(name: str, *, replicas: int | None = 3, labels: Any = None, made: bool = True) -> Workload:
    """A Deployment of a component, whose pods have its name."""
    given = labels if labels is not None else {**APP, WORKLOAD_LABEL: name}
    obj = {"spec": {"replicas": replicas, "template": {"metadata": {"labels": given}}}}
    ref = WorkloadRef("apps/v1", "Deployment", "shop", name)
    return Workload(ref, obj) if made else Workload(ref, manifest=obj)


def service(name: str, selector: Any = APP, **annotations: str) -> dict[str, Any]:
    meta = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": "3", "annotations": annotations}
    return {"metadata": meta, "spec": {"selector": selector}}


def seen(target: Workload, *sources: Workload) -> Workloads:
    return Workloads(target, sources, claim=CLAIM)


def memory(before: Any = APP, rollout: str = CLAIM) -> str:
    return json.dumps({"before": before, "rollout": rollout}, separators=(",", ":"))


def narrowing(name: str, workload: str, before: Any = APP) -> Write:
    patch = {
        "metadata": {"annotations": {SELECTOR_BEFORE: memory(before)}},
        "spec": {"selector": {WORKLOAD_LABEL: workload}},
    }
    return Write(WorkloadRef("v1", "Service", "shop", name), patch, uid=f"uid-{name}", resource_version="3")


# Narrowed


def test_each_service_selects_the_pods_of_its_own_side() -> None:
    found = narrowed([service("web-old"), service("web-new"), service("other")], TRAFFIC, seen(V2, V1))
    assert found == Step((narrowing("web-old", "web-v1"), narrowing("web-new", "web-v2")))


V1, V2 = deployment("web-v1"), deployment("web-v2", replicas=0)


def test_a_target_that_is_not_created_yet_is_known_by_what_it_will_be() -> None:
    found = narrowed([service("web-new")], TRAFFIC, seen(deployment("web-v2", made=False), V1))
    assert found == Step((narrowing("web-new", "web-v2"),))


def test_several_labels_are_remembered_in_order() -> None:
    labels = {"tier": "front", "app": "web", WORKLOAD_LABEL: "web-v2"}
    both = {"tier": "front", "app": "web"}
    found = narrowed([service("web-new", both)], TRAFFIC, seen(deployment("web-v2", labels=labels), V1))
    assert found == Step((narrowing("web-new", "web-v2", {"app": "web", "tier": "front"}),))


@pytest.mark.parametrize(
    "one",
    [
        service("web-old", {}),  # it has endpoints that somebody else writes
        service("web-old", None),
        service("web-old", {"app": "api"}),
        service("web-old", {"app": "web", "tier": "front"}),
        service("web-old", {"app": "web", WORKLOAD_LABEL: "web-v1"}),
        service("web-old", APP, **{SELECTOR_BEFORE: memory()}),
        service("other"),
    ],
)
def test_a_service_that_selects_nothing_of_its_side_or_no_more_than_that_is_left(one: dict[str, Any]) -> None:
    assert narrowed([one], TRAFFIC, seen(V2, V1)) == DONE


@pytest.mark.parametrize(
    ("sources", "chosen"),
    [
        ((V1, deployment("web-v0", replicas=0)), "web-v1"),
        ((deployment("web-v0", replicas=0), V1), "web-v1"),
        ((deployment("web-v0", replicas=None),), "web-v0"),  # it asks for one
        ((V1, deployment("web-v0", made=False)), "web-v1"),
        ((V1, deployment("web-v0")), ""),  # a selector cannot name two
        ((deployment("web-v0", replicas=0),), ""),
        ((), ""),
    ],
)
def test_the_old_service_selects_the_only_workload_that_has_pods(sources: tuple[Workload, ...], chosen: str) -> None:
    found = narrowed([service("web-old")], TRAFFIC, seen(V2, *sources))
    assert found == (Step((narrowing("web-old", chosen),)) if chosen else DONE)


@pytest.mark.parametrize("labels", [APP, {**APP, WORKLOAD_LABEL: "another"}, "no labels", {}])
def test_pods_that_do_not_say_which_workload_they_are_of_cannot_be_told_apart(labels: Any) -> None:
    assert narrowed([service("web-new")], TRAFFIC, seen(deployment("web-v2", labels=labels), V1)) == DONE


@pytest.mark.parametrize("noted", ["", "no json", "{}", '{"rollout":"x"}'])
def test_a_note_that_nobody_can_read_is_none(noted: str) -> None:
    one = service("web-new", APP, **{SELECTOR_BEFORE: noted})
    assert narrowed([one], TRAFFIC, seen(V2, V1)) == Step((narrowing("web-new", "web-v2"),))
    assert widened([one], CLAIM) == ()


# Widened


def given_back(patch: Any) -> tuple[Write, ...]:
    return (Write(WorkloadRef("v1", "Service", "shop", "web-old"), patch, uid="uid-web-old", resource_version="3"),)


NOT_NOTED = {"metadata": {"annotations": {SELECTOR_BEFORE: None}}}


def test_a_selector_is_given_back_as_it_was() -> None:
    one = service("web-old", {**APP, WORKLOAD_LABEL: "web-v1"}, **{SELECTOR_BEFORE: memory()})
    assert widened([one], CLAIM) == given_back({**NOT_NOTED, "spec": {"selector": {WORKLOAD_LABEL: None, **APP}}})


@pytest.mark.parametrize("now", [{"app": "api", WORKLOAD_LABEL: "web-v1"}, {WORKLOAD_LABEL: "web-v1"}, None])
def test_a_selector_that_somebody_else_changed_since_stays(now: Any) -> None:
    one = service("web-old", now, **{SELECTOR_BEFORE: memory()})
    assert widened([one], CLAIM) == given_back(NOT_NOTED)


def test_only_what_this_rollout_narrowed_is_given_back() -> None:
    theirs = service("web-old", APP, **{SELECTOR_BEFORE: memory(rollout="AppRollout/other/uid-2")})
    assert widened([theirs, service("web-new")], CLAIM) == ()

"""Times: as told, else as measured, else as most others, else by default."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from kedge.api.binding import ClusterResourceBinding
from kedge.api.work import Work
from kedge.plan.previewing.durations import (
    DEFAULT_SECONDS,
    Durations,
    ExpectedDuration,
    MeasuredDuration,
    measured_durations,
)
from kedge.plan.previewing.expected_objects import (
    ExpectedObject,
    available_result,
    expected_object,
    longest_deadline,
    most_rounds,
    refused_result,
    takes_time_kind,
    unavailable_result,
)

START = datetime(2030, 1, 1, tzinfo=UTC)


def seconds(times: Durations, cluster: str = "a", *, rounds: int = 1, first: bool = False) -> float:
    return times.seconds(cluster, rounds=rounds, deadline=600.0, first=first)


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (Durations(), ExpectedDuration(DEFAULT_SECONDS, "default")),
        (
            Durations(measured={"b": MeasuredDuration(10), "c": MeasuredDuration(30)}),
            ExpectedDuration(20, "median of 2 measured"),
        ),
        (
            Durations(measured={"b": MeasuredDuration(10, first=True)}),
            ExpectedDuration(10, "median of 1 measured", first=True),
        ),
        (
            Durations(measured={"b": MeasuredDuration(10, first=True), "c": MeasuredDuration(30)}),
            ExpectedDuration(20, "median of 2 measured"),
        ),
        (Durations(measured={"a": MeasuredDuration(10)}), ExpectedDuration(10, "measured")),
        (Durations(measured={"a": MeasuredDuration(10)}, for_all=5.0), ExpectedDuration(5.0, "told")),
        (Durations(measured={"a": MeasuredDuration(10)}, for_all=5.0, given={"a": 7.0}), ExpectedDuration(7.0, "told")),
    ],
)
def test_given_durations_come_before_measured_ones(times: Durations, expected: ExpectedDuration) -> None:
    assert times.of("a") == expected


def test_a_failing_cluster_never_becomes_available_and_a_slow_one_takes_its_deadline() -> None:
    assert seconds(Durations(failing=frozenset({"a"}), longest=True)) == math.inf
    assert seconds(Durations(longest=True)) == 600.0


def test_a_duration_measured_at_a_first_placement_counts_for_each_round() -> None:
    times = Durations(measured={"a": MeasuredDuration(20, first=True)})
    assert seconds(times, rounds=3) == 60
    assert seconds(times, rounds=3, first=True) == 20
    assert seconds(Durations(measured={"a": MeasuredDuration(20)}), rounds=3) == 20


def test_a_duration_is_measured_from_applied_to_available() -> None:
    assert measured_durations([binding(0, 42)], [work(42)]) == {"cluster-1": MeasuredDuration(42.0, first=True)}
    assert measured_durations([binding(0, 42)], [work(42, generation=2)]) == {"cluster-1": MeasuredDuration(42.0)}


def test_one_workload_that_became_available_is_enough_even_within_the_same_second() -> None:
    assert measured_durations([binding(42, 42)], [work(42)]) == {"cluster-1": MeasuredDuration(1.0, first=True)}
    found = work(42)
    [workload] = found.status.manifest_conditions
    plain = msgspec.structs.replace(workload, identifier=msgspec.structs.replace(workload.identifier, group="x"))
    for both in ((workload, plain), (plain, workload)):
        status = msgspec.structs.replace(found.status, manifest_conditions=both)
        assert measured_durations([binding(0, 42)], [msgspec.structs.replace(found, status=status)])


def test_a_placement_is_a_first_one_if_all_its_works_are() -> None:
    assert measured_durations([binding(0, 42)], [work(42), work(42, generation=2)]) == {
        "cluster-1": MeasuredDuration(42.0)
    }


def test_a_binding_that_is_not_available_is_not_measured() -> None:
    found = binding(0, 42)
    applied, available = found.status.conditions
    down = msgspec.structs.replace(available, status="False")
    for conditions in ((applied, down), (applied,), (available,)):
        other = msgspec.structs.replace(found, status=msgspec.structs.replace(found.status, conditions=conditions))
        assert measured_durations([other], [work(42)]) == {}


def test_a_change_without_a_starting_workload_is_not_measured() -> None:
    assert measured_durations([binding(100, 101)], [work(42)]) == {}
    assert measured_durations([binding(0, 42)], []) == {}


def test_conditions_of_another_generation_are_not_measured() -> None:
    assert measured_durations([binding(0, 42, observed=2)], [work(42)]) == {}


def condition(kind: str, at: float, observed: int = 3) -> dict[str, Any]:
    moment = START + timedelta(seconds=at)
    said = {"type": kind, "status": "True", "reason": "Said", "message": "", "observedGeneration": observed}
    return {**said, "lastTransitionTime": msgspec.to_builtins(moment)}


def binding(applied: float, available: float, observed: int = 3) -> ClusterResourceBinding:
    body = {
        "metadata": {"name": "web-cluster-1", "generation": 3},
        "spec": {"state": "Bound", "targetCluster": "cluster-1", **_NEEDED},
        "status": {
            "conditions": [condition("Applied", applied, observed), condition("Available", available, observed)]
        },
    }
    return msgspec.convert(body, ClusterResourceBinding)


_NEEDED = {
    "resourceSnapshotName": "web-0-snapshot",
    "schedulingPolicySnapshotName": "web-0",
    "clusterDecision": {"clusterName": "cluster-1", "selected": True, "reason": ""},
}


def work(available: float, generation: int = 1) -> Work:
    which = {"ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment", "name": "web", "namespace": "shop"}
    body = {
        "metadata": {
            "name": "web-work",
            "generation": generation,
            "labels": {"kubernetes-fleet.io/parent-resource-binding": "web-cluster-1"},
        },
        "status": {"manifestConditions": [{"identifier": which, "conditions": [condition("Available", available)]}]},
    }
    return msgspec.convert(body, Work)


# What takes time


def deployment(replicas: int, **strategy: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"replicas": replicas, "strategy": {"rollingUpdate": strategy}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def recreated(replicas: int) -> dict[str, Any]:
    found = deployment(replicas)
    return {**found, "spec": {**found["spec"], "strategy": {"type": "Recreate"}}}


def plain() -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {}}


@pytest.mark.parametrize(
    ("manifest", "rounds"),
    [
        (deployment(1), 1),
        (deployment(3), 3),
        (deployment(8), 2),
        (deployment(4, maxSurge=2, maxUnavailable=0), 2),
        (deployment(4, maxSurge="nonsense"), 1),
        (deployment(0), 1),
        (deployment(2, maxSurge=1, maxUnavailable=0), 2),
        (deployment(2, maxSurge=0, maxUnavailable=0), 2),
        (deployment(5), 2),  # a quarter is two more, and one less: three at a time
        (deployment(8, maxUnavailable=6), 1),
        (recreated(6), 1),
        (plain(), 1),
        ({**deployment(6), "kind": "StatefulSet"}, 1),
    ],
)
def test_a_deployment_replaces_its_pods_in_as_many_rounds_as_its_strategy_needs(
    manifest: dict[str, Any], rounds: int
) -> None:
    assert expected_object(0, manifest).rounds == rounds


def test_only_workloads_and_objects_with_an_available_when_rule_take_time() -> None:
    plain = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    ruled = {**plain, "metadata": {"name": "a", "annotations": {"kedge.dev/available-when": "true"}}}
    unknown = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}}
    assert [
        (one.takes_time, one.trackable) for one in (expected_object(0, each) for each in (plain, ruled, unknown))
    ] == [
        (False, True),
        (True, True),
        (False, False),
    ]
    assert expected_object(0, deployment(1)).takes_time


def test_a_change_of_labels_alone_does_not_restart_a_workload() -> None:
    before, after = deployment(1), deployment(1)
    after["metadata"]["labels"] = {"a": "b"}
    assert (
        expected_object(0, before).digest
        == expected_object(0, after).digest
        != expected_object(0, deployment(2)).digest
    )


@pytest.mark.parametrize(
    ("group", "kind", "takes_time"),
    [
        ("apps", "Deployment", True),
        ("apps", "StatefulSet", True),
        ("apps", "DaemonSet", True),
        ("apps.kruise.io", "CloneSet", True),
        ("batch", "Job", True),
        ("batch", "CronJob", False),
        ("", "ConfigMap", False),
    ],
)
def test_kinds_that_take_time_to_become_available(group: str, kind: str, takes_time: bool) -> None:
    assert takes_time_kind(group, kind) is takes_time


def test_an_expected_object_has_its_identifier_and_deadline() -> None:
    body = deployment(1)
    body["metadata"]["namespace"] = "shop"
    found = expected_object(4, body)
    which = found.identifier
    assert (which.ordinal, which.group, which.version, which.kind, which.namespace, which.name) == (
        4, "apps", "v1", "Deployment", "shop", "web",
    )  # fmt: skip
    assert (found.name, found.deadline) == ("Deployment shop/web", 600.0)
    assert expected_object(0, {**body, "spec": {"progressDeadlineSeconds": 42}}).deadline == 42.0
    assert expected_object(0, {**body, "status": {"replicas": 9}}).digest == found.digest


def test_the_results_of_an_object_before_and_after_it_is_available() -> None:
    tracked, other = (
        expected_object(0, deployment(1)),
        expected_object(1, {"apiVersion": "a.com/v1", "kind": "T", "metadata": {}}),
    )

    def said(found: Any) -> Any:
        verdict = found.verdict
        return found.applied, verdict and (verdict.available, verdict.trackable)

    assert said(available_result(tracked)) == (True, (True, True))
    assert said(available_result(other)) == (True, (True, False))
    assert said(unavailable_result(tracked, "comes up")) == (True, (False, True))
    assert said(refused_result(tracked, "no")) == (False, None)
    assert available_result(tracked).identifier == tracked.identifier
    assert unavailable_result(tracked, "comes up").verdict.message == "Deployment web comes up"  # type: ignore[union-attr]


def test_the_most_rounds_and_the_longest_deadline_count() -> None:
    which = expected_object(0, deployment(1)).identifier
    these = [ExpectedObject(which, "a", rounds=2, deadline=30.0), ExpectedObject(which, "b", rounds=3, deadline=20.0)]
    assert (most_rounds(these), longest_deadline(these)) == (3, 30.0)
    assert (most_rounds([]), longest_deadline([])) == (1, 600.0)

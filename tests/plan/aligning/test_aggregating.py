"""What all clusters report of a resource, on its binding and on the resource itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.karmada.keys import SEQUENCE
from kedge.api.karmada.works import Work
from kedge.plan.aligning.aggregating import aggregated_items

IDENTIFIER = {"ordinal": 0, "version": "v1", "kind": "Deployment", "resource": "deployments", "name": "demo"}
DONE = {"generation": 2, "observedGeneration": 2, "alignmentSeq": 5, "resourceTemplateGeneration": 3}
COUNTS = {"replicas": 4, "updatedReplicas": 4, "readyReplicas": 4, "availableReplicas": 4}

CLONE_SET: dict[str, Any] = {
    "apiVersion": "apps.kruise.io/v1alpha1",
    "kind": "CloneSet",
    "spec": {"replicas": 4, "updateStrategy": {"partition": 3}},
}
STATEFUL_SET: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "spec": {"replicas": 4, "updateStrategy": {"rollingUpdate": {"partition": 3}}},
}


def work(
    status: dict[str, Any] | None,
    *,
    applied: str = "True",
    spec: dict[str, Any] | None = None,
    seq: str = "5",
    **manifest: str,
) -> Work:
    condition = {
        "type": "Applied",
        "status": applied,
        "reason": "Applied",
        "message": "said so",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    body = {"metadata": {"annotations": {SEQUENCE: seq}}, "spec": {"replicas": 4} if spec is None else spec, **manifest}
    statuses = [{"identifier": IDENTIFIER, "status": status}] if status is not None else []
    given = {"conditions": [condition], "manifestStatuses": statuses}
    return msgspec.convert({"spec": {"workload": {"manifests": [body]}}, "status": given}, Work)


@pytest.mark.parametrize(
    ("given", "health"),
    [
        (work({**DONE, **COUNTS}), "Healthy"),
        (work(None), "Unknown"),
        (work({**DONE, **COUNTS, "availableReplicas": 3}), "Unhealthy"),
        (work({**DONE, **COUNTS, "updatedReplicas": 3}), "Unhealthy"),
        (work({**DONE, **COUNTS, "observedGeneration": 1}), "Unhealthy"),
        (work({**DONE, **COUNTS, "alignmentSeq": 4}), "Unhealthy"),
        (work({**DONE, **COUNTS, "updatedReplicas": 1}, **CLONE_SET), "Healthy"),
        (work({**DONE, **COUNTS, "updatedReplicas": 0}, **CLONE_SET), "Unhealthy"),
        (work({**DONE, **COUNTS, "updatedReplicas": 1}, **STATEFUL_SET), "Healthy"),
        (work({**DONE, **COUNTS, "updatedReplicas": 0}, **STATEFUL_SET), "Unhealthy"),
        (work({**DONE, "availableReplicas": 1}, spec={"replicas": 1}), "Unhealthy"),
        (work({**DONE, "updatedReplicas": 1}, spec={"replicas": 1}), "Unhealthy"),
        (work({**DONE, **COUNTS, "updatedReplicas": 3}, apiVersion="apps/v1", kind="Deployment"), "Unhealthy"),
        (work({**COUNTS}, seq="1"), "Unhealthy"),
        (work({**COUNTS}, seq=""), "Healthy"),
        (work({"generation": 1}, spec={"data": {}}), "Healthy"),
    ],
)
def test_a_cluster_is_healthy_when_it_has_what_was_asked_for_last(given: Work, health: str) -> None:
    assert aggregated_items({"a": given})[0].health == health


NODES = {"desiredNumberScheduled": 3, "updatedNumberScheduled": 3, "numberAvailable": 3}
DAEMON_SET: dict[str, Any] = {"apiVersion": "apps/v1", "kind": "DaemonSet"}
BY_HAND: dict[str, Any] = {**DAEMON_SET, "spec": {"updateStrategy": {"type": "OnDelete"}}}
REPLICA_SET: dict[str, Any] = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": {"replicas": 2}}
JOB: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "spec": {}}
POD: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", "spec": {}}
BALANCED: dict[str, Any] = {"apiVersion": "v1", "kind": "Service", "spec": {"type": "LoadBalancer"}}
INGRESS: dict[str, Any] = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "spec": {}}
CLAIM: dict[str, Any] = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "spec": {}}
BUDGET: dict[str, Any] = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "spec": {}}
GAME: dict[str, Any] = {"apiVersion": "games.example/v1", "kind": "Game", "spec": {"replicas": 2}}
SEEN = {"generation": 2, "observedGeneration": 2}


def conditions(**statuses: str) -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status} for kind, status in statuses.items()]}


def addresses(*found: dict[str, str]) -> dict[str, Any]:
    return {"loadBalancer": {"ingress": list(found)}}


@pytest.mark.parametrize(
    ("manifest", "status", "health"),
    [
        (DAEMON_SET, {**SEEN, **NODES}, "Healthy"),
        (DAEMON_SET, SEEN, "Healthy"),
        (DAEMON_SET, {**SEEN, **NODES, "numberAvailable": 2}, "Unhealthy"),
        (DAEMON_SET, {**SEEN, **NODES, "updatedNumberScheduled": 2}, "Unhealthy"),
        (DAEMON_SET, {**SEEN, **NODES, "observedGeneration": 1}, "Unhealthy"),
        (BY_HAND, {**SEEN, **NODES, "updatedNumberScheduled": 0}, "Healthy"),
        (BY_HAND, {**SEEN, **NODES, "updatedNumberScheduled": 0, "numberAvailable": 2}, "Unhealthy"),
        (REPLICA_SET, {**SEEN, "replicas": 2, "availableReplicas": 2}, "Healthy"),
        (REPLICA_SET, {**SEEN, "replicas": 2, "availableReplicas": 1}, "Unhealthy"),
        (REPLICA_SET, {**SEEN, "observedGeneration": 1, "availableReplicas": 2}, "Unhealthy"),
        (JOB, {"generation": 1, "active": 1}, "Healthy"),
        (JOB, conditions(Complete="True"), "Healthy"),
        (JOB, conditions(FailureTarget="True", Failed="True"), "Unhealthy"),
        (POD, {"phase": "Succeeded", **conditions(Ready="False")}, "Healthy"),
        (POD, {"phase": "Running", **conditions(Ready="True")}, "Healthy"),
        (POD, {"phase": "Running", **conditions(Ready="False")}, "Unhealthy"),
        (POD, {"phase": "Pending"}, "Unhealthy"),
        ({**BALANCED, "spec": {"type": "ClusterIP"}}, {"loadBalancer": {}}, "Healthy"),
        (BALANCED, {"loadBalancer": {}}, "Unhealthy"),
        (BALANCED, addresses({}), "Unhealthy"),
        (BALANCED, addresses({}, {"ip": "10.0.0.1"}), "Healthy"),
        (INGRESS, addresses({"hostname": "here"}), "Healthy"),
        (INGRESS, {}, "Unhealthy"),
        (CLAIM, {"phase": "Bound"}, "Healthy"),
        (CLAIM, {"phase": "Pending"}, "Unhealthy"),
        (BUDGET, {"currentHealthy": 2, "desiredHealthy": 2}, "Healthy"),
        (BUDGET, {"currentHealthy": 1, "desiredHealthy": 2}, "Unhealthy"),
        ({**BUDGET, "apiVersion": "policy.example/v1"}, {"currentHealthy": 1, "desiredHealthy": 2}, "Healthy"),
        (GAME, {**SEEN, "readyReplicas": 2}, "Unknown"),
        (GAME, {**SEEN, "updatedReplicas": 2, "availableReplicas": 2}, "Healthy"),
        ({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 2}}, SEEN, "Unhealthy"),
    ],
)
def test_other_kinds_are_judged_by_what_they_report(
    manifest: dict[str, Any], status: dict[str, Any], health: str
) -> None:
    assert aggregated_items({"a": work(status, seq="", **manifest)})[0].health == health


def test_each_cluster_says_whether_it_was_written_and_why_not() -> None:
    found = aggregated_items({"b": work(None, applied="False"), "a": work({**DONE, **COUNTS})})
    assert [(one.cluster_name, one.applied, one.applied_message) for one in found] == [
        ("a", True, ""),
        ("b", False, "said so"),
    ]
    assert [one.status for one in found] == [{**DONE, **COUNTS}, None]

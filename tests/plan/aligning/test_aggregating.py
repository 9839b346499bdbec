"""What all clusters report of a resource, on its binding and on the resource itself."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.karmada.keys import SEQUENCE
from kedge.api.karmada.works import Work
from kedge.plan.aligning.aggregating import aggregated_items, template_status

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


def test_each_cluster_says_whether_it_was_written_and_why_not() -> None:
    found = aggregated_items({"b": work(None, applied="False"), "a": work({**DONE, **COUNTS})})
    assert [(one.cluster_name, one.applied, one.applied_message) for one in found] == [
        ("a", True, ""),
        ("b", False, "said so"),
    ]
    assert [one.status for one in found] == [{**DONE, **COUNTS}, None]


def template(observed: int | None = None) -> dict[str, Any]:
    status = {} if observed is None else {"observedGeneration": observed}
    return {"metadata": {"generation": 3}, "spec": {"replicas": 8}, "status": status}


def test_counts_are_added_up() -> None:
    works = {"a": work({**DONE, **COUNTS}), "b": work({**DONE, **COUNTS, "readyReplicas": 1})}
    assert template_status(template(), works, 2) == {
        "replicas": 8,
        "updatedReplicas": 8,
        "readyReplicas": 5,
        "availableReplicas": 8,
        "observedGeneration": 3,
    }


@pytest.mark.parametrize(
    "name",
    [
        *("replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"),
        *("updatedReadyReplicas", "updatedAvailableReplicas"),
    ],
)
def test_a_count_that_only_some_clusters_report_is_the_sum_of_theirs(name: str) -> None:
    works = {"a": work({**DONE, name: 2}), "b": work({**DONE, name: 3}), "c": work(DONE)}
    assert template_status(template(), works, 3) == {name: 5, "observedGeneration": 3}


@pytest.mark.parametrize(
    ("other", "clusters"),
    [
        (work({**DONE, **COUNTS, "resourceTemplateGeneration": 2}), 2),
        (work({**DONE, **COUNTS, "observedGeneration": 1}), 2),
        (work(None), 2),
        (work({**DONE, **COUNTS}), 3),
    ],
)
def test_a_generation_is_observed_when_every_cluster_has_observed_it(other: Work, clusters: int) -> None:
    works = {"a": work({**DONE, **COUNTS}), "b": other}
    found = template_status(template(2), works, clusters)
    assert found is not None
    assert found["observedGeneration"] == 2
    assert "observedGeneration" not in (template_status(template(), works, clusters) or {})


def test_what_has_no_pods_has_no_counts() -> None:
    assert template_status({"metadata": {}, "data": {}}, {}, 0) is None

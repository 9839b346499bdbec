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


def work(status: dict[str, Any] | None, *, applied: str = "True", spec: dict[str, Any] | None = None) -> Work:
    condition = {
        "type": "Applied",
        "status": applied,
        "reason": "Applied",
        "message": "said so",
        "lastTransitionTime": "2030-01-01T00:00:00Z",
    }
    manifest = {"metadata": {"annotations": {SEQUENCE: "5"}}, "spec": {"replicas": 4} if spec is None else spec}
    statuses = [{"identifier": IDENTIFIER, "status": status}] if status is not None else []
    given = {"conditions": [condition], "manifestStatuses": statuses}
    return msgspec.convert({"spec": {"workload": {"manifests": [manifest]}}, "status": given}, Work)


@pytest.mark.parametrize(
    ("given", "health"),
    [
        (work({**DONE, **COUNTS}), "Healthy"),
        (work(None), "Unknown"),
        (work({**DONE, **COUNTS, "availableReplicas": 3}), "Unhealthy"),
        (work({**DONE, **COUNTS, "updatedReplicas": 3}), "Unhealthy"),
        (work({**DONE, **COUNTS, "observedGeneration": 1}), "Unhealthy"),
        (work({**DONE, **COUNTS, "alignmentSeq": 4}), "Unhealthy"),
        (
            work({**DONE, **COUNTS, "updatedReplicas": 1}, spec={"replicas": 4, "updateStrategy": {"partition": 3}}),
            "Healthy",
        ),
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

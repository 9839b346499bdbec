"""What of an object goes to members."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.resource import Resource
from kedge.plan.selecting.candidates import without_hub_fields

DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
SERVICE = Resource("", "v1", "Service", "services")
JOB = Resource("batch", "v1", "Job", "jobs")
NAMED = {"name": "web", "namespace": "shop"}


def about(resource: Resource, **rest: Any) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": NAMED, **rest}


def test_fields_set_by_the_server_are_removed_and_the_rest_is_kept() -> None:
    meta = {
        **NAMED,
        "uid": "u",
        "resourceVersion": "7",
        "generation": 3,
        "creationTimestamp": "2030-01-01T00:00:00Z",
        "deletionTimestamp": "2030-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 30,
        "selfLink": "/x",
        "managedFields": [{}],
        "ownerReferences": [{}],
        "labels": {"app": "web"},
        "finalizers": ["example.com/hold"],
        "annotations": {
            "note": "kept",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "deployment.kubernetes.io/revision": "4",
        },
    }
    found = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": {"replicas": 2}, "status": {}}
    assert without_hub_fields(DEPLOYMENT, found) == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            **NAMED,
            "deletionGracePeriodSeconds": 30,
            "labels": {"app": "web"},
            "finalizers": ["example.com/hold"],
            "annotations": {"note": "kept"},
        },
        "spec": {"replicas": 2},
    }


def test_annotations_are_removed_if_all_were_set_by_the_server() -> None:
    found = about(DEPLOYMENT) | {"metadata": {**NAMED, "annotations": {"deployment.kubernetes.io/revision": "1"}}}
    assert without_hub_fields(DEPLOYMENT, found)["metadata"] == NAMED


def test_an_item_of_a_list_gets_apiVersion_and_kind() -> None:
    assert without_hub_fields(DEPLOYMENT, {"metadata": NAMED}) == about(DEPLOYMENT)


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        (
            {"clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"], "ports": [{"port": 80, "nodePort": 30000}]},
            {"ports": [{"port": 80}]},
        ),
        ({"clusterIP": "None", "clusterIPs": ["None"]}, {"clusterIP": "None", "clusterIPs": ["None"]}),
        ({"type": "LoadBalancer", "healthCheckNodePort": 31000}, {"type": "LoadBalancer"}),
        ({"clusterIP": "None", "healthCheckNodePort": 31000}, {"clusterIP": "None"}),
    ],
)
def test_a_service_loses_the_addresses_this_cluster_assigned(spec: dict[str, Any], kept: dict[str, Any]) -> None:
    assert without_hub_fields(SERVICE, about(SERVICE, spec=spec)) == about(SERVICE, spec=kept)


OURS = {"controller-uid": "u", "batch.kubernetes.io/controller-uid": "u"}


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        (
            {
                "selector": {"matchLabels": OURS},
                "template": {"metadata": {"creationTimestamp": None, "labels": {**OURS, "job-name": "j"}}, "spec": {}},
            },
            {"template": {"metadata": {"labels": {"job-name": "j"}}, "spec": {}}},
        ),
        (
            {"selector": {"matchLabels": {**OURS, "own": "x"}, "matchExpressions": []}, "template": {"spec": {}}},
            {"selector": {"matchLabels": {"own": "x"}, "matchExpressions": []}, "template": {"spec": {}}},
        ),
        (
            {"manualSelector": True, "selector": {"matchLabels": OURS}, "template": {"metadata": {"labels": OURS}}},
            {"manualSelector": True, "selector": {"matchLabels": OURS}, "template": {"metadata": {"labels": OURS}}},
        ),
    ],
)
def test_a_job_loses_the_generated_labels(spec: dict[str, Any], kept: dict[str, Any]) -> None:
    assert without_hub_fields(JOB, about(JOB, spec=spec)) == about(JOB, spec=kept)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["spec", "data", "status", "kind", "x"]), JSON))
def test_cleaning_changes_no_argument_and_is_idempotent(rest: dict[str, Any]) -> None:
    found = {"metadata": {**NAMED, "uid": "u", "annotations": {"a": "b"}}, **rest}
    before = copy.deepcopy(found)
    once = without_hub_fields(DEPLOYMENT, found)
    assert found == before
    assert without_hub_fields(DEPLOYMENT, once) == once

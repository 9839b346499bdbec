"""A resource as clusters get it."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.api.karmada.keys import TEMPLATE_GENERATION
from kedge.plan.aligning.propagating import propagated

POD = {"containers": [{"name": "a", "image": "a:1"}]}
SERVICE = {"type": "NodePort", "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}


def resource(api_version: str, kind: str, spec: dict[str, Any], **meta: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", **meta}, "spec": spec}


@pytest.mark.parametrize(
    ("given", "spec"),
    [
        (
            resource("v1", "Service", {**SERVICE, "ports": [{"port": 80, "nodePort": 30080}]}),
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]},
        ),
        (resource("v1", "Service", {"type": "ExternalName", "ports": []}), {"type": "ExternalName"}),
        (
            resource("batch/v1", "Job", {"ttlSecondsAfterFinished": 5, "template": {"spec": POD}}),
            {"template": {"spec": POD}},
        ),
        (resource("own.example/v1", "Job", {"ttlSecondsAfterFinished": 5}), {"ttlSecondsAfterFinished": 5}),
        (resource("own.example/v1", "Service", {"clusterIP": "10.0.0.1"}), {"clusterIP": "10.0.0.1"}),
    ],
)
def test_a_service_keeps_its_node_ports_and_a_job_is_not_removed_by_its_member(
    given: dict[str, Any], spec: dict[str, Any]
) -> None:
    assert propagated(given)["spec"] == spec


def test_it_says_of_which_generation_it_is_and_not_who_keeps_it_on_the_hub() -> None:
    given = resource("v1", "Secret", {}, generation=3, uid="x", resourceVersion="7", finalizers=["example.com/wait"])
    assert propagated(given)["metadata"] == {"name": "web", "annotations": {TEMPLATE_GENERATION: "3"}}

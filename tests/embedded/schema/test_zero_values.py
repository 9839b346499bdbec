"""Filling: members that Go writes though nobody gave them."""

from typing import Any

import pytest

from embedded.schema.sending import deployment
from kedge.api.openapi.builtin import schema_of
from kedge.api.openapi.model import Schema
from kedge.embedded.schema.zero_values import with_zero_values


@pytest.mark.parametrize(
    ("group", "kind", "written"),
    [
        ("", "ConfigMap", {}),
        ("", "Namespace", {"spec": {}, "status": {}}),
        ("", "Service", {"spec": {}, "status": {"loadBalancer": {}}}),
        ("", "Pod", {"spec": {"containers": None}, "status": {}}),
        ("apps", "ReplicaSet", {"status": {"replicas": 0}}),
        ("apps", "ControllerRevision", {"data": None, "revision": 0}),
        ("rbac.authorization.k8s.io", "ClusterRole", {"rules": None}),
        ("scheduling.k8s.io", "PriorityClass", {"value": 0}),
        ("coordination.k8s.io", "Lease", {"spec": {}}),
        (
            "",
            "Event",
            {
                "involvedObject": {},
                "source": {},
                "firstTimestamp": None,
                "lastTimestamp": None,
                "eventTime": None,
                "reportingComponent": "",
                "reportingInstance": "",
            },
        ),
    ],
)
def test_what_a_kind_always_has(group: str, kind: str, written: dict[str, Any]) -> None:
    found = with_zero_values(schema_of(group, "v1", kind), {"metadata": {"name": "a"}})
    assert {name: found[name] for name in written} == written
    assert found["metadata"] == {"name": "a"}


def test_what_is_there_stays_and_is_shared() -> None:
    obj = deployment()
    found = with_zero_values(schema_of("apps", "v1", "Deployment"), obj)
    assert found["metadata"] is obj["metadata"]
    assert found["spec"]["selector"] is obj["spec"]["selector"]
    assert found["spec"]["template"]["spec"]["containers"] == [{"name": "web", "image": "web:1", "resources": {}}]
    assert obj == deployment()


def test_filling_what_is_full_gives_it_back() -> None:
    schema = schema_of("apps", "v1", "Deployment")
    once = with_zero_values(schema, deployment())
    assert with_zero_values(schema, once) is once


def test_what_was_filled_before_is_not_looked_at_again() -> None:
    schema = schema_of("apps", "v1", "Deployment")
    before = deployment()
    found = with_zero_values(schema, {**before, "metadata": {"name": "other"}}, before)
    assert found == {**before, "metadata": {"name": "other"}, "status": {}}
    assert found["spec"] is before["spec"]


def test_a_custom_kind_is_left_alone() -> None:
    obj: dict[str, Any] = {"spec": {}}
    assert with_zero_values(Schema({"type": "object", "properties": {"status": {"type": "object"}}}), obj) is obj

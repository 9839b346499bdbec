"""Which objects may be placed, and what is remembered of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kedge.api.resource import Resource
from kedge.plan.selecting.candidates import candidate
from kedge.plan.selecting.kinds import Kind, is_placeable

MANAGED = {"endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}
OWNER = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u"}]


def resource(group: str, kind: str, *, namespaced: bool = True) -> Resource:
    return Resource(group, "v1", kind, f"{kind.lower()}s", namespaced)


def may_go(group: str, kind: str, name: str = "a", namespace: str | None = "shop", **found: Any) -> bool:
    meta = {"name": name, "namespace": namespace, **found.pop("metadata", {})}
    return candidate(resource(group, kind), {"metadata": meta, **found}).may_be_placed


@pytest.mark.parametrize(
    ("found", "goes"),
    [
        (lambda: may_go("", "ConfigMap"), True),
        (lambda: may_go("", "ConfigMap", "kube-root-ca.crt"), False),
        (lambda: may_go("", "ServiceAccount"), True),
        (lambda: may_go("", "ServiceAccount", "default"), False),
        (lambda: may_go("", "Secret", type="Opaque"), True),
        (lambda: may_go("", "Secret", type="kubernetes.io/service-account-token"), False),
        (lambda: may_go("apps", "ReplicaSet"), True),
        (lambda: may_go("apps", "ReplicaSet", metadata={"ownerReferences": OWNER}), False),
        (lambda: may_go("apps", "ControllerRevision", metadata={"ownerReferences": OWNER}), False),
        (lambda: may_go("apps", "Deployment", metadata={"ownerReferences": OWNER}), True),
        (lambda: may_go("discovery.k8s.io", "EndpointSlice"), True),
        (
            lambda: may_go(
                "discovery.k8s.io",
                "EndpointSlice",
                metadata={"labels": MANAGED},
            ),
            False,
        ),
        (lambda: may_go("example.com", "EndpointSlice", metadata={"labels": MANAGED}), True),
        (lambda: may_go("apps", "ControllerRevision"), True),
        (lambda: may_go("", "Namespace", "shop", None), True),
        (lambda: may_go("", "Namespace", "default", None), False),
        (lambda: may_go("", "Namespace", "kube-system", None), False),
        (lambda: may_go("", "Namespace", "fleet-member-a", None), False),
        (lambda: may_go("", "ConfigMap", namespace="fleet-member-a"), False),
        (lambda: may_go("", "ConfigMap", namespace="default"), True),
        (lambda: may_go("apps", "Deployment", metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"}), False),
    ],
)
def test_objects_of_the_hub_and_deleted_ones_are_not_placed(found: Callable[[], bool], goes: bool) -> None:
    assert found() is goes


def test_a_change_of_status_or_server_metadata_is_no_change_and_one_of_labels_is() -> None:
    kind = resource("apps", "Deployment")
    meta = {"name": "a", "namespace": "shop"}
    base = {"metadata": {**meta, "resourceVersion": "1"}, "spec": {"replicas": 1}}
    other = {**base, "metadata": {**meta, "resourceVersion": "2"}, "status": {"replicas": 1}}
    labelled = {**base, "metadata": {**meta, "labels": {"a": "b"}}}
    assert candidate(kind, base).digest == candidate(kind, other).digest
    assert candidate(kind, base).digest != candidate(kind, labelled).digest
    assert candidate(kind, labelled).metadata.labels == {"a": "b"}


def test_an_object_that_is_never_placed_is_remembered_without_labels_and_digest() -> None:
    found = candidate(resource("", "ConfigMap"), {"metadata": {"name": "kube-root-ca.crt", "labels": {"a": "b"}}})
    assert (found.metadata.name, found.metadata.labels, found.digest) == ("kube-root-ca.crt", {}, "")


@pytest.mark.parametrize(
    ("group", "kind", "placeable"),
    [
        ("", "ConfigMap", True),
        ("", "Pod", False),
        ("", "Node", False),
        ("", "Event", False),
        ("events.k8s.io", "Event", False),
        ("coordination.k8s.io", "Lease", False),
        ("metrics.k8s.io", "PodMetrics", False),
        ("cluster.kubernetes-fleet.io", "MemberCluster", False),
        ("placement.kubernetes-fleet.io", "ClusterResourcePlacement", False),
        ("placement.kubernetes-fleet.io", "Work", False),
        ("placement.kubernetes-fleet.io", "ResourceEnvelope", True),
        ("placement.kubernetes-fleet.io", "ClusterResourceEnvelope", True),
        ("placement.kubefleet.dev", "PlacementPolicy", False),
        ("networking.fleet.azure.com", "ServiceImport", False),
        ("networking.fleet.azure.com", "TrafficManagerProfile", False),
        ("networking.fleet.azure.com", "TrafficManagerBackend", False),
        ("networking.fleet.azure.com", "ServiceExport", True),
        ("example.com", "Pod", True),
    ],
)
def test_hub_only_kinds_cannot_be_placed(group: str, kind: str, placeable: bool) -> None:
    assert is_placeable(Kind(resource(group, kind))) is placeable


def test_a_kind_that_cannot_be_watched_cannot_be_placed() -> None:
    assert not is_placeable(Kind(resource("", "ComponentStatus", namespaced=False), watchable=False))

"""Bindings in the short form of the proposal, and what they stand for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kedge.api.karmada.bindings import BoundResource, TargetCluster
from kedge.api.karmada.proposed import ProposedBinding, ProposedBindingSpec
from kedge.api.meta import ObjectMeta
from kedge.plan.aligning.proposed import NotBound, bound_resource, proposed_spec


def binding(name: str, resource: BoundResource | None = None) -> ProposedBinding:
    clusters = (TargetCluster(name="a", replicas=4), TargetCluster(name="b", replicas=6))
    return ProposedBinding(
        spec=ProposedBindingSpec(clusters=clusters, resource=resource),
        metadata=ObjectMeta(name=name, namespace="shop"),
    )


@pytest.mark.parametrize(
    ("name", "api_version", "kind", "resource"),
    [
        ("demo-deployment", "apps/v1", "Deployment", "demo"),
        ("demo-deployment-deployment", "apps/v1", "Deployment", "demo-deployment"),
        ("demo-cloneset", "apps.kruise.io/v1alpha1", "CloneSet", "demo"),
        ("a.b-statefulset", "apps/v1", "StatefulSet", "a.b"),
    ],
)
def test_a_binding_means_the_workload_it_is_called_after(name: str, api_version: str, kind: str, resource: str) -> None:
    found = bound_resource(binding(name))
    assert found == BoundResource(api_version=api_version, kind=kind, name=resource, namespace="shop")


@pytest.mark.parametrize("namespace", ["", "shop"])
def test_a_binding_means_the_resource_of_its_namespace_that_it_names(namespace: str) -> None:
    named = BoundResource(api_version="v1", kind="ConfigMap", name="other", namespace=namespace)
    assert bound_resource(binding("demo-deployment", named)) == replace(named, namespace="shop")


def test_a_binding_that_names_a_resource_of_another_namespace_is_refused() -> None:
    named = BoundResource(api_version="v1", kind="Secret", name="key", namespace="bank")
    with pytest.raises(NotBound, match=r"spec\.resource\.namespace is bank, but the binding is in shop"):
        bound_resource(binding("key-secret", named))


@pytest.mark.parametrize("name", ["demo", "demo-configmap", "-deployment", "deployment"])
def test_a_binding_that_means_nothing_is_refused_in_words(name: str) -> None:
    with pytest.raises(NotBound, match=r"set spec\.resource, or call it name-deployment"):
        bound_resource(binding(name))


def test_the_binding_of_karmada_has_all_replicas_and_says_nothing_that_is_empty() -> None:
    assert proposed_spec(binding("demo-deployment")) == {
        "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "demo", "namespace": "shop"},
        "clusters": [{"name": "a", "replicas": 4}, {"name": "b", "replicas": 6}],
        "replicas": 10,
    }

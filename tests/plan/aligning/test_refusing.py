"""Why nothing is done about a binding."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.apps import Deployment
from kedge.api.karmada.bindings import (
    BindingSpec,
    BoundResource,
    ClusterResourceBinding,
    ResourceBinding,
    TargetCluster,
)
from kedge.api.karmada.keys import BINDING_NAME, BINDING_NAMESPACE, CLUSTER_BINDING_NAME
from kedge.api.karmada.works import Work
from kedge.api.meta import ObjectMeta
from kedge.api.resource import Resource
from kedge.plan.aligning.observed import AnyBinding, resource_of
from kedge.plan.aligning.refusing import refusal

SECRET = Resource("", "v1", "Secret", "secrets")
ROLE = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
DEPLOYMENT = Deployment.resource


def binding(
    kind: Resource,
    namespace: str = "",
    *,
    name: str = "b",
    of: str = "demo",
    is_cluster: bool = False,
    created: int = 1,
    clusters: tuple[str, ...] = ("a",),
    **spec: Any,
) -> AnyBinding:
    """A binding in `shop`, or of the whole cluster, of a resource in this namespace."""
    bound = BoundResource(api_version=kind.api_version, kind=kind.kind, name=of, namespace=namespace)
    targets = tuple(TargetCluster(name=one) for one in clusters)
    meta = ObjectMeta(
        name=name, namespace=None if is_cluster else "shop", creation_timestamp=datetime(2030, 1, created, tzinfo=UTC)
    )
    given = BindingSpec(resource=bound, clusters=targets, **spec)
    return ClusterResourceBinding(given, meta) if is_cluster else ResourceBinding(given, meta)


@pytest.mark.parametrize(
    ("kind", "namespace", "is_cluster", "words"),
    [
        (SECRET, "shop", False, ""),
        (SECRET, "", False, ""),
        (SECRET, "bank", False, "spec.resource.namespace is bank, but the binding is in shop"),
        (DEPLOYMENT, "bank", False, "create the binding in bank"),
        (ROLE, "", False, "ClusterRole demo is of the whole cluster: it takes a ClusterResourceBinding"),
        (ROLE, "shop", False, "ClusterRole demo is of the whole cluster"),
        (ROLE, "", True, ""),
        (SECRET, "bank", True, ""),
        (SECRET, "", True, "spec.resource.namespace is empty, but Secret is of a namespace"),
    ],
)
def test_a_binding_of_a_namespace_is_for_resources_of_that_namespace_alone(
    kind: Resource, namespace: str, is_cluster: bool, words: str
) -> None:
    found = refusal(binding(kind, namespace, is_cluster=is_cluster), kind)
    assert words in found
    assert bool(found) is bool(words)


@pytest.mark.parametrize(
    ("kind", "spec", "words"),
    [
        (
            SECRET,
            {"placement": {"replicaScheduling": {"replicaSchedulingType": "Foo"}}},
            "spec.placement cannot be read",
        ),
        (SECRET, {"of": ""}, "spec.resource.name is empty"),
        (None, {}, "the hub serves no Secret of v1"),
    ],
)
def test_what_cannot_be_read_is_refused(kind: Resource | None, spec: dict[str, Any], words: str) -> None:
    assert words in refusal(binding(SECRET, **spec), kind)


@pytest.mark.parametrize(
    ("clusters", "words"),
    [
        ((("a", 4), ("b", 6)), ""),
        ((("a", 4), ("b", 1), ("a", 6)), "spec.clusters names a 2 times, with 4 and 6 replicas: name it once"),
        ((("b", 0), ("b", 0), ("b", 1)), "spec.clusters names b 3 times, with 0, 0 and 1 replicas: name it once"),
    ],
)
def test_a_cluster_is_named_once(clusters: tuple[tuple[str, int], ...], words: str) -> None:
    given = binding(DEPLOYMENT)
    targets = tuple(TargetCluster(name=name, replicas=replicas) for name, replicas in clusters)
    twice = replace(given, spec=replace(given.spec, clusters=targets))
    assert refusal(twice, DEPLOYMENT) == words


def test_a_resource_without_a_namespace_is_in_that_of_its_binding() -> None:
    assert resource_of(binding(SECRET)).namespace == "shop"
    assert resource_of(binding(SECRET, "bank")).namespace == "bank"
    assert resource_of(binding(ROLE, is_cluster=True)).namespace == ""


def work(cluster: str, **notes: str) -> Work:
    return Work(metadata=ObjectMeta(name="demo", namespace=f"karmada-es-{cluster}", annotations=notes))


def of(name: str, namespace: str = "shop") -> dict[str, str]:
    return {BINDING_NAME: name, BINDING_NAMESPACE: namespace}


OWN = binding(DEPLOYMENT, created=2)
OLDER = binding(DEPLOYMENT, name="older")
SAME_AGE = binding(DEPLOYMENT, name="a", created=2)


@pytest.mark.parametrize(
    ("others", "works", "owner"),
    [
        ([], [], ""),
        ([OWN], [], ""),
        ([OLDER], [], "ResourceBinding shop/older"),
        ([SAME_AGE], [], "ResourceBinding shop/a"),
        ([binding(DEPLOYMENT, name="younger", created=3)], [], ""),
        ([binding(DEPLOYMENT, "bank", name="older")], [], ""),
        ([binding(DEPLOYMENT, name="older", of="web")], [], ""),
        ([OLDER], [work("a", **of("b"))], ""),
        ([OLDER], [work("c", **of("older"))], "ResourceBinding shop/older"),
        ([], [work("a", **of("b"))], ""),
        ([], [work("a", **of("other"))], "ResourceBinding shop/other"),
        ([], [work("a", **of("b", "bank"))], "ResourceBinding bank/b"),
        ([], [work("a", **{CLUSTER_BINDING_NAME: "all"})], "ClusterResourceBinding all"),
        ([], [work("a")], "Work karmada-es-a/demo, which is of no binding,"),
        ([], [work("c", **of("other"))], ""),
    ],
)
def test_a_resource_has_one_binding(others: list[AnyBinding], works: list[Work], owner: str) -> None:
    words = f"Deployment shop/demo is propagated by {owner} already: delete one" if owner else ""
    assert refusal(OWN, DEPLOYMENT, others, works) == words


def test_one_that_is_being_deleted_is_no_rival() -> None:
    leaving = binding(DEPLOYMENT, name="older")
    leaving = ResourceBinding(
        leaving.spec, ObjectMeta(name="older", namespace="shop", deletion_timestamp=datetime(2030, 1, 1, tzinfo=UTC))
    )
    assert refusal(OWN, DEPLOYMENT, [leaving]) == ""

"""What a Work asks for, as far as it can be understood, and in which order it is written."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.api.resource import Resource
from kedge.plan.applying.manifests import DesiredObject, InvalidManifest, apply_batches, batch_of, read_manifests

KINDS = {
    ("", "v1", "Namespace"): Resource("", "v1", "Namespace", "namespaces", namespaced=False),
    ("", "v1", "ConfigMap"): Resource("", "v1", "ConfigMap", "configmaps"),
    ("apps", "v1", "Deployment"): Resource("apps", "v1", "Deployment", "deployments"),
    ("rbac.authorization.k8s.io", "v1", "Role"): Resource("rbac.authorization.k8s.io", "v1", "Role", "roles"),
    ("example.com", "v1", "Thing"): Resource("example.com", "v1", "Thing", "things"),
}


def lookup(group: str, version: str, kind: str) -> Resource | None:
    return KINDS.get((group, version, kind))


def manifest(kind: str = "ConfigMap", name: str = "x", api_version: str = "v1", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", **more.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **more}


def read(*manifests: dict[str, Any]) -> list[str]:
    """Of each: its plural, or why it cannot be written."""
    found = read_manifests(manifests, lookup)
    return [one.reason if isinstance(one, InvalidManifest) else one.resource.plural for one in found]


def only(body: dict[str, Any]) -> DesiredObject:
    (found,) = read_manifests([body], lookup)
    assert isinstance(found, DesiredObject)
    return found


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "DecodingErred"),
        ({"kind": "ConfigMap"}, "DecodingErred"),
        ({"apiVersion": "v1"}, "DecodingErred"),
        ({"apiVersion": 1, "kind": [], "metadata": 7}, "DecodingErred"),
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": None}, "DecodingErred"),
        (manifest("Nothing"), "DecodingErred"),
        (manifest(api_version="v2"), "DecodingErred"),
        (manifest(metadata={"namespace": ""}), "DecodingErred"),
        (manifest(name="", metadata={"generateName": "x-"}), "FoundGenerateName"),
        (manifest(metadata={"generateName": "x-"}), "configmaps"),
        (manifest("Namespace", metadata={"namespace": ""}), "namespaces"),
        (manifest("Namespace"), "namespaces"),
    ],
)
def test_an_invalid_manifest_has_a_reason(body: dict[str, Any], reason: str) -> None:
    assert read(body) == [reason]


@pytest.mark.parametrize(
    ("body", "message", "unknown", "is_unidentified"),
    [
        ({"kind": "ConfigMap"}, "manifest 0 has no apiVersion or no kind: it cannot be told what it is", False, True),
        ({"apiVersion": "v1"}, "manifest 0 has no apiVersion or no kind: it cannot be told what it is", False, True),
        ({"apiVersion": "v1", "kind": "ConfigMap"}, "ConfigMap has no metadata.name", False, True),
        (
            manifest("Nothing", api_version="a.com/v1"),
            "the member serves no Nothing of a.com/v1: install its definition there, or place it as well",
            True,
            False,
        ),
        (
            manifest("Nothing"),
            "the member serves no Nothing of v1: install its definition there, or place it as well",
            True,
            False,
        ),
        (
            manifest(metadata={"namespace": ""}),
            "ConfigMap x says no metadata.namespace, which its kind needs",
            False,
            False,
        ),
    ],
)
def test_an_invalid_manifest_says_what_is_wrong_and_whether_it_is_identified(
    body: dict[str, Any], message: str, unknown: bool, is_unidentified: bool
) -> None:
    (found,) = read_manifests([body], lookup)
    assert isinstance(found, InvalidManifest)
    assert (found.message, found.kind_not_served, found.is_unidentified) == (message, unknown, is_unidentified)


def test_a_duplicate_is_named_by_kind_and_path() -> None:
    _, again = read_manifests([manifest(), manifest()], lookup)
    assert isinstance(again, InvalidManifest)
    assert again.message == "ConfigMap shop/x is there twice: the first counts, remove the other"
    _, other = read_manifests([manifest("Namespace"), manifest("Namespace")], lookup)
    assert isinstance(other, InvalidManifest)
    assert other.message.startswith("Namespace x is there twice")


def test_two_invalid_manifests_are_no_duplicates() -> None:
    assert read(manifest("Nothing"), manifest("Nothing")) == ["DecodingErred", "DecodingErred"]


def test_a_desired_object_has_its_name_and_namespace() -> None:
    placed = only(manifest())
    assert (placed.namespace, placed.name, placed.identifier.resource) == ("shop", "x", "configmaps")
    assert only(manifest("Namespace")).namespace is None


def test_the_first_of_two_duplicates_counts() -> None:
    assert read(manifest(), manifest(name="y"), manifest()) == ["configmaps", "configmaps", "Duplicated"]


def test_only_fields_that_the_hub_sets_are_kept() -> None:
    metadata = {
        "uid": "1",
        "resourceVersion": "2",
        "generation": 3,
        "creationTimestamp": "2030-01-01T00:00:00Z",
        "managedFields": [],
        "ownerReferences": [{"name": "on-the-hub"}],
        "labels": {"a": "b"},
        "annotations": {},
        "finalizers": ["f"],
    }
    kept = only(manifest(metadata=metadata, data={"a": "1"}, status={"x": 1})).manifest
    assert kept == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "x", "namespace": "shop", "labels": {"a": "b"}, "finalizers": ["f"]},
        "data": {"a": "1"},
    }


def test_a_cluster_wide_object_has_no_namespace() -> None:
    found = only(manifest("Namespace"))
    assert found.identifier.namespace == ""
    assert "namespace" not in found.manifest["metadata"]


def test_the_key_of_an_object_does_not_depend_on_version_or_ordinal() -> None:
    kinds = {**KINDS, ("apps", "v1beta1", "Deployment"): Resource("apps", "v1beta1", "Deployment", "deployments")}
    old, new = read_manifests(
        [manifest("Deployment", api_version="apps/v1beta1"), manifest("Deployment", api_version="apps/v1")],
        lambda *kind: kinds.get(kind),
    )
    assert old.identity == new.identity


def test_the_digest_tells_whether_a_manifest_changed() -> None:
    one, same, other = (only(manifest(data=data)) for data in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}, {"a": "2"}))
    assert one.digest == same.digest != other.digest


WAVES = """
    namespaces priorityclasses
    networkpolicies resourcequotas limitranges podsecuritypolicies poddisruptionbudgets serviceaccounts secrets \
    configmaps storageclasses persistentvolumes persistentvolumeclaims customresourcedefinitions ingressclasses
    clusterroles roles
    clusterrolebindings rolebindings
    services daemonsets pods replicationcontrollers replicasets deployments horizontalpodautoscalers statefulsets \
    jobs cronjobs ingresses
    apiservices validatingwebhookconfigurations mutatingwebhookconfigurations
""".strip().splitlines()


@pytest.mark.parametrize(
    ("plural", "wave"),
    [*((plural, wave) for wave, plurals in enumerate(WAVES) for plural in plurals.split()), ("things", 999)],
)
def test_kinds_are_applied_in_kubefleets_batches(plural: str, wave: int) -> None:
    assert batch_of(plural) == wave


def test_batches_come_in_order_and_keep_the_order_of_the_work() -> None:
    bodies = [
        manifest("Thing", api_version="example.com/v1"),
        manifest("Deployment", api_version="apps/v1"),
        manifest("Role", api_version="rbac.authorization.k8s.io/v1"),
        manifest(name="b"),
        manifest(name="a"),
        manifest("Namespace"),
    ]
    found = [one for one in read_manifests(bodies, lookup) if isinstance(one, DesiredObject)]
    waves = [[(one.resource.plural, one.name) for one in wave] for wave in apply_batches(found)]
    assert waves == [
        [("namespaces", "x")],
        [("configmaps", "b"), ("configmaps", "a")],
        [("roles", "x")],
        [("deployments", "x")],
        [("things", "x")],
    ]

"""What a Work asks for, as far as it can be understood, and in which order it is written."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.api.resource import Resource
from kedge.plan.applying.manifests import Misread, Placed, understand
from kedge.plan.applying.waves import in_waves, wave_of

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
    found = understand(manifests, lookup)
    return [one.reason if isinstance(one, Misread) else one.resource.plural for one in found]


def only(body: dict[str, Any]) -> Placed:
    (found,) = understand([body], lookup)
    assert isinstance(found, Placed)
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
def test_what_cannot_be_understood_says_why(body: dict[str, Any], reason: str) -> None:
    assert read(body) == [reason]


@pytest.mark.parametrize(
    ("body", "message", "unknown", "means_any"),
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
def test_what_cannot_be_written_says_what_is_wrong_and_what_it_may_be(
    body: dict[str, Any], message: str, unknown: bool, means_any: bool
) -> None:
    (found,) = understand([body], lookup)
    assert isinstance(found, Misread)
    assert (found.message, found.unknown, found.means_any) == (message, unknown, means_any)


def test_a_duplicate_is_named_as_people_name_it() -> None:
    _, again = understand([manifest(), manifest()], lookup)
    assert isinstance(again, Misread)
    assert again.message == "ConfigMap shop/x is there twice: the first counts, remove the other"
    _, other = understand([manifest("Namespace"), manifest("Namespace")], lookup)
    assert isinstance(other, Misread)
    assert other.message.startswith("Namespace x is there twice")


def test_two_that_cannot_be_understood_are_no_duplicates() -> None:
    assert read(manifest("Nothing"), manifest("Nothing")) == ["DecodingErred", "DecodingErred"]


def test_an_object_says_where_it_lives() -> None:
    placed = only(manifest())
    assert (placed.namespace, placed.name, placed.identifier.resource) == ("shop", "x", "configmaps")
    assert only(manifest("Namespace")).namespace is None


def test_the_first_of_two_counts() -> None:
    assert read(manifest(), manifest(name="y"), manifest()) == ["configmaps", "configmaps", "Duplicated"]


def test_only_what_is_the_hubs_to_say_is_kept() -> None:
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


def test_the_identity_of_an_object_does_not_depend_on_its_version_or_place() -> None:
    kinds = {**KINDS, ("apps", "v1beta1", "Deployment"): Resource("apps", "v1beta1", "Deployment", "deployments")}
    old, new = understand(
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
def test_waves(plural: str, wave: int) -> None:
    assert wave_of(plural) == wave


def test_what_others_need_comes_first_and_the_rest_in_the_order_of_the_work() -> None:
    bodies = [
        manifest("Thing", api_version="example.com/v1"),
        manifest("Deployment", api_version="apps/v1"),
        manifest("Role", api_version="rbac.authorization.k8s.io/v1"),
        manifest(name="b"),
        manifest(name="a"),
        manifest("Namespace"),
    ]
    found = [one for one in understand(bodies, lookup) if isinstance(one, Placed)]
    waves = [[(one.resource.plural, one.name) for one in wave] for wave in in_waves(found)]
    assert waves == [
        [("namespaces", "x")],
        [("configmaps", "b"), ("configmaps", "a")],
        [("roles", "x")],
        [("deployments", "x")],
        [("things", "x")],
    ]

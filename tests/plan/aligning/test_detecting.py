"""Which policy a resource is propagated by, and the binding that stands for both."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.policies import ClusterPropagationPolicy, PropagationPolicy
from kedge.api.meta import ObjectMeta
from kedge.api.resource import Resource
from kedge.plan.aligning.detecting import (
    came_from_policy,
    chosen_policy,
    claim_of,
    detected_binding,
    detected_so_far,
    detected_spec,
    holder_of,
    is_detected,
    is_propagated,
    meant_kinds,
)
from kedge.plan.aligning.supporting import AnyPolicy

UID = "0f7b3b3e-6a0e-4a43-9d5d-0f4ad5a2b3c1"
KIND = {"apiVersion": "apps/v1", "kind": "Deployment"}
WEB: dict[str, Any] = {
    **KIND,
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "web"}, "uid": UID, "resourceVersion": "7"},
    "spec": {"replicas": 10},
}
BY_NAME, BY_LABEL = {**KIND, "name": "web"}, {**KIND, "labelSelector": {"matchLabels": {"app": "web"}}}


def policy(name: str, selector: dict[str, Any] = KIND, **spec: Any) -> PropagationPolicy:
    body = {"metadata": {"name": name, "namespace": "shop", "uid": f"uid-{name}"}, "spec": spec}
    return msgspec.convert({**body, "spec": {"resourceSelectors": [selector], **spec}}, PropagationPolicy)


def cluster_policy(name: str, selector: dict[str, Any] = KIND, **spec: Any) -> ClusterPropagationPolicy:
    body = {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": {"resourceSelectors": [selector], **spec}}
    return msgspec.convert(body, ClusterPropagationPolicy)


@pytest.mark.parametrize(
    ("policies", "chosen"),
    [
        ([], None),
        ([policy("b"), policy("a")], "a"),
        ([policy("a"), policy("b", BY_LABEL)], "b"),
        ([policy("a", BY_LABEL), policy("b", BY_NAME)], "b"),
        ([policy("a", BY_NAME), policy("b", priority=1)], "b"),
        ([cluster_policy("a", BY_NAME, priority=9), policy("b")], "b"),
        ([cluster_policy("b"), cluster_policy("a")], "a"),
        ([policy("a", {**KIND, "name": "other"}), cluster_policy("b")], "b"),
        ([policy("a", BY_LABEL), policy("b", resourceSelectors=[KIND, BY_NAME])], "b"),
        ([policy("a", {**KIND, "kind": "StatefulSet"})], None),
        ([policy("a", {**KIND, "namespace": "other"})], None),
    ],
)
def test_of_several_policies_the_nearest_the_highest_the_most_exact_and_the_first_counts(
    policies: list[AnyPolicy], chosen: str | None
) -> None:
    found = chosen_policy(WEB, policies)
    assert (found.metadata.name if found else None) == chosen


def test_a_policy_means_resources_of_its_own_namespace_only() -> None:
    elsewhere = {**WEB, "metadata": {**WEB["metadata"], "namespace": "other"}}
    assert chosen_policy(elsewhere, [policy("a", BY_NAME)]) is None
    assert chosen_policy(elsewhere, [cluster_policy("a", BY_NAME)]) is not None


@pytest.mark.parametrize(
    ("policies", "chosen"),
    [
        ([policy("held"), policy("better", priority=9)], "held"),
        ([policy("held"), policy("better", priority=9, preemption="Always")], "better"),
        ([policy("held", priority=9), policy("a", preemption="Always")], "held"),
        ([policy("held", {**KIND, "name": "other"}), policy("a")], "a"),
        ([cluster_policy("held"), policy("a")], "held"),
        ([cluster_policy("held"), policy("a", preemption="Always")], "a"),
        ([policy("held"), policy("a", priority=1), policy("b", preemption="Always", priority=2)], "b"),
        ([policy("held"), policy("a", preemption="Always")], "held"),
        ([policy("held"), policy("exact", BY_NAME, preemption="Always")], "held"),
        ([cluster_policy("held"), cluster_policy("a", BY_NAME, preemption="Always")], "held"),
        ([cluster_policy("held"), cluster_policy("a", preemption="Always", priority=1)], "a"),
        ([cluster_policy("held", priority=9), policy("a", preemption="Always")], "a"),
        ([policy("held"), cluster_policy("a", preemption="Always", priority=9)], "held"),
    ],
)
def test_who_holds_a_resource_keeps_it_unless_a_better_one_preempts(policies: list[AnyPolicy], chosen: str) -> None:
    found = chosen_policy(WEB, policies, "uid-held")
    assert found is not None
    assert found.metadata.name == chosen


def test_kinds_that_policies_mean_are_named_once() -> None:
    found = meant_kinds(
        [policy("a"), cluster_policy("b", BY_NAME), policy("c", {"apiVersion": "v1", "kind": "Secret"})]
    )
    assert found == (("apps/v1", "Deployment"), ("v1", "Secret"))


def test_a_binding_is_as_karmada_would_store_it() -> None:
    found = detected_binding(WEB, policy("all", conflictResolution="Overwrite", preserveResourcesOnDeletion=True))
    own_id = found["metadata"]["labels"].pop("resourcebinding.karmada.io/permanent-id")
    assert len(own_id) == 36
    assert found == {
        "metadata": {
            "name": "web-deployment",
            "namespace": "shop",
            "labels": {"propagationpolicy.karmada.io/permanent-id": "uid-all"},
            "annotations": {
                "propagationpolicy.karmada.io/namespace": "shop",
                "propagationpolicy.karmada.io/name": "all",
            },
            "finalizers": ["karmada.io/binding-controller"],
            "ownerReferences": [{**KIND, "name": "web", "uid": UID, "controller": True, "blockOwnerDeletion": False}],
        },
        "spec": {
            "resource": {**KIND, "name": "web", "namespace": "shop", "uid": UID, "resourceVersion": "7"},
            "replicas": 10,
            "placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}},
            "schedulerName": "default-scheduler",
            "conflictResolution": "Overwrite",
            "suspension": None,
            "preserveResourcesOnDeletion": True,
        },
    }


def test_a_workload_that_leaves_out_its_replicas_has_one() -> None:
    clones = {**WEB, "apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "spec": {}}
    maps = {**WEB, "apiVersion": "v1", "kind": "ConfigMap", "spec": {}}
    assert detected_spec(clones, policy("all"))["replicas"] == 1
    assert detected_spec(maps, policy("all"))["replicas"] is None


def test_a_placement_is_kept_as_it_was_given() -> None:
    weights = {"staticWeightList": [{"targetCluster": {"clusterNames": ["a"]}, "weight": 2}]}
    given = {
        "clusterAffinity": {"clusterNames": ["a", "b"]},
        "replicaScheduling": {"replicaSchedulingType": "Divided", "weightPreference": weights},
    }
    assert detected_spec(WEB, policy("all", placement=given))["placement"] == given


def test_a_resource_of_the_cluster_has_a_binding_of_the_cluster() -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "system:view", "uid": UID, "resourceVersion": "1"},
    }
    found = detected_binding(role, cluster_policy("all"))["metadata"]
    assert (found["name"], "namespace" in found) == ("system.view-clusterrole", False)
    assert found["finalizers"] == ["karmada.io/cluster-resource-binding-controller"]
    assert found["labels"]["clusterpropagationpolicy.karmada.io/permanent-id"] == "uid-all"
    assert found["annotations"] == {"clusterpropagationpolicy.karmada.io/name": "all"}
    assert "clusterresourcebinding.karmada.io/permanent-id" in found["labels"]


def test_a_claim_can_be_read_back_and_taken_away() -> None:
    for one in (policy("a"), cluster_policy("b")):
        labels = {name: value for name, value in claim_of(one).labels.items() if value}
        assert holder_of(ObjectMeta(labels=labels)) == one.metadata.uid
    assert set(claim_of(None).labels.values()) == {None}
    assert set(claim_of(None).annotations.values()) == {None}
    assert holder_of(ObjectMeta()) is None


def detected(obj: dict[str, Any] = WEB) -> ObjectMeta:
    """The metadata of a binding that a policy brought and let go of."""
    meta = msgspec.convert(detected_binding(obj, cluster_policy("all"))["metadata"], ObjectMeta)
    return replace(meta, labels={name: value for name, value in meta.labels.items() if value != "uid-all"})


WEB_ROLE: dict[str, Any] = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRole",
    "metadata": {"name": "web", "uid": UID, "resourceVersion": "1"},
}
OTHER_UID = UID.replace("0", "1")


@pytest.mark.parametrize(
    ("meta", "obj", "expected"),
    [
        (detected(), WEB, True),
        (detected(WEB_ROLE), WEB_ROLE, True),
        (ObjectMeta(labels={"propagationpolicy.karmada.io/permanent-id": "uid-all"}), WEB, True),
        (ObjectMeta(), WEB, False),
        (ObjectMeta(labels=detected().labels), WEB, False),
        (replace(detected(), labels={"resourcebinding.karmada.io/permanent-id": OTHER_UID}), WEB, False),
        (detected(), {**WEB, "metadata": {**WEB["metadata"], "uid": OTHER_UID}}, False),
    ],
    ids=("let go", "of the cluster", "held", "by hand", "no owner", "owned, by hand", "of one that is gone"),
)
def test_a_binding_that_a_policy_brought_is_told_from_one_that_was_written_by_hand(
    meta: ObjectMeta, obj: dict[str, Any], expected: bool
) -> None:
    assert came_from_policy(meta, obj) is expected


def binding(obj: dict[str, Any], by: AnyPolicy) -> ResourceBinding:
    spec = {name: value for name, value in detected_spec(obj, by).items() if value is not None}
    stored = msgspec.json.encode({"metadata": {"name": "x"}, "spec": spec})
    return msgspec.json.decode(stored, type=ResourceBinding)


@pytest.mark.parametrize(
    "changed",
    [
        policy("a", placement={"clusterAffinity": {"clusterNames": ["x"]}}),
        policy("a", conflictResolution="Overwrite"),
        policy("a", preserveResourcesOnDeletion=True),
        policy("a", suspension={"dispatching": True}),
        policy("a", placement={"replicaScheduling": {"replicaSchedulingType": "Divided"}}),
        policy("a", placement={"replicaScheduling": {"replicaDivisionPreference": "Weighted"}}),
    ],
)
def test_a_binding_is_written_when_its_policy_changed_and_only_then(changed: PropagationPolicy) -> None:
    for before, after in ((policy("a"), changed), (changed, policy("a"))):
        there = detected_so_far(binding(WEB, before).spec)
        assert is_detected(there, detected_spec(WEB, before), WEB)
        assert not is_detected(there, detected_spec(WEB, after), WEB)


def test_a_count_of_pods_on_a_workload_is_no_news_but_a_change_of_data_is() -> None:
    config: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**WEB["metadata"]}}
    for obj, is_news in ((WEB, False), (config, True)):
        newer = {**obj, "metadata": {**obj["metadata"], "resourceVersion": "8"}}
        there = detected_so_far(binding(obj, policy("a")).spec)
        assert is_detected(there, detected_spec(obj, policy("a")), obj)
        assert is_detected(there, detected_spec(newer, policy("a")), newer) is not is_news
    scaled = {**WEB, "spec": {"replicas": 12}}
    assert not is_detected(detected_so_far(binding(WEB, policy("a")).spec), detected_spec(scaled, policy("a")), scaled)


@pytest.mark.parametrize(
    ("kind", "meta", "expected"),
    [
        (Resource("apps", "v1", "Deployment", "deployments"), {"name": "web", "namespace": "shop"}, True),
        (Resource("", "v1", "ConfigMap", "configmaps"), {"name": "kube-root-ca.crt", "namespace": "shop"}, False),
        (Resource("apps", "v1", "Deployment", "deployments"), {"name": "x", "namespace": "kube-system"}, False),
        (Resource("apps", "v1", "Deployment", "deployments"), {"name": "x", "namespace": "karmada-es-a"}, False),
        (Resource("apps", "v1", "Deployment", "deployments"), {"name": "x", "namespace": "karmada-system"}, False),
        (Resource("apps", "v1", "Deployment", "deployments"), {"name": "x", "namespace": "karmada-cluster"}, False),
        (Resource("", "v1", "Namespace", "namespaces", namespaced=False), {"name": "karmada-es-a"}, False),
        (Resource("", "v1", "Namespace", "namespaces", namespaced=False), {"name": "shop"}, True),
        (Resource("work.karmada.io", "v1alpha1", "Work", "works"), {"name": "x", "namespace": "shop"}, False),
        (Resource("karmada.io", "v1alpha2", "ResourceBinding", "resourcebindings"), {"name": "x"}, False),
        (Resource("notkarmada.io", "v1", "Thing", "things"), {"name": "x", "namespace": "shop"}, True),
        (Resource("example-1.karmada.io", "v1", "Foo", "foos"), {"name": "x", "namespace": "shop"}, True),
        (Resource("apps", "v1", "Deployment", "deployments"), {"name": "x", "namespace": "fleet-trucks"}, True),
        (Resource("apps", "v1", "Deployment", "deployments"), {"name": "x", "namespace": "fleet-system"}, False),
        (Resource("apps", "v1", "Deployment", "deployments"), {"name": "x", "namespace": "default"}, True),
        (Resource("", "v1", "Namespace", "namespaces", namespaced=False), {"name": "fleet-trucks"}, True),
        (Resource("", "v1", "Namespace", "namespaces", namespaced=False), {"name": "default"}, False),
        (Resource("", "v1", "Pod", "pods"), {"name": "x", "namespace": "shop"}, False),
        (
            Resource("apps", "v1", "Deployment", "deployments"),
            {"name": "web", "namespace": "shop", "deletionTimestamp": "2030-01-01T00:00:00Z"},
            False,
        ),
    ],
)
def test_what_is_the_hubs_own_is_not_propagated(kind: Resource, meta: dict[str, Any], expected: bool) -> None:
    assert is_propagated(kind, {"metadata": meta}) is expected

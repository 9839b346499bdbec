"""What a decision about one binding needs, from the objects that the hub holds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.karmada.bindings import ClusterResourceBinding, ResourceBinding
from kedge.api.karmada.clusters import Cluster
from kedge.api.karmada.keys import LEDGER
from kedge.api.karmada.overrides import ClusterOverridePolicy, OverridePolicy
from kedge.api.karmada.works import Work
from kedge.plan.aligning.observed import AnyBinding, binding_input, cluster_of, works_of
from kedge.plan.aligning.overriding import AnyOverridePolicy

RESOURCE = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "shop"}


def binding(*clusters: str, placement: dict[str, Any] | None = None, **meta: Any) -> ResourceBinding:
    spec = {"resource": RESOURCE, "clusters": [{"name": name} for name in clusters], "placement": placement or {}}
    return msgspec.convert({"metadata": {"name": "web", "namespace": "shop", **meta}, "spec": spec}, ResourceBinding)


def member(name: str, status: str = "True") -> Cluster:
    ready = {"type": "Ready", "status": status, "reason": "x", "lastTransitionTime": "2030-01-01T00:00:00Z"}
    body = {"metadata": {"name": name, "labels": {"at": name}}, "status": {"conditions": [{**ready, "message": ""}]}}
    return msgspec.convert(body, Cluster)


def work(cluster: str, notes: dict[str, str] | None = None) -> Work:
    meta = {"name": "web-x", "namespace": f"karmada-es-{cluster}", "annotations": notes or {}}
    return msgspec.convert({"metadata": meta, "spec": {}}, Work)


MEMBERS = {"a": member("a"), "b": member("b", "Unknown"), "c": member("c"), "d": member("d")}


def test_clusters_are_those_it_is_scheduled_to_and_those_that_have_a_work_as_far_as_they_exist() -> None:
    found = binding_input(binding("b", "a", "nowhere"), {}, {"c": work("c"), "gone": work("gone")}, MEMBERS, ())
    assert [*found.clusters] == ["a", "b", "c"]
    assert {name: one.is_reachable for name, one in found.clusters.items()} == {"a": True, "b": False, "c": True}
    assert [one.work is not None for one in found.clusters.values()] == [False, False, True]
    assert found.clusters["a"].candidate.labels == {"at": "a"}


def test_overrides_are_those_of_the_cluster_and_of_the_namespace_of_the_resource() -> None:
    def policy(name: str, namespace: str) -> OverridePolicy:
        return msgspec.convert({"metadata": {"name": name, "namespace": namespace}, "spec": {}}, OverridePolicy)

    of_cluster = msgspec.convert({"metadata": {"name": "all"}, "spec": {}}, ClusterOverridePolicy)
    overrides: list[AnyOverridePolicy] = [policy("own", "shop"), policy("other", "play"), of_cluster]
    bindings: tuple[AnyBinding, ...] = (binding(), CLUSTER_BINDING)
    for one in bindings:
        found = binding_input(one, {}, {}, {}, overrides)
        assert [policy.metadata.name for policy in found.overrides] == ["own", "all"]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "view"}
    of_role = msgspec.convert({"metadata": {"name": "view"}, "spec": {"resource": role}}, ClusterResourceBinding)
    assert binding_input(of_role, {}, {}, {}, overrides).overrides == (of_cluster,)


def test_a_binding_keeps_its_ledger_and_says_whether_it_is_deleted() -> None:
    there = binding_input(binding(annotations={LEDGER: "{}"}), None, {}, {}, ())
    assert (there.ledger, there.is_deleting, there.template) == ("{}", False, None)
    assert binding_input(binding(deletionTimestamp="2030-01-01T00:00:00Z"), None, {}, {}, ()).is_deleting


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        (None, True),
        ({"clusterAffinity": {"clusterNames": ["a"]}}, False),
        ({"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}, False),
        ({"replicaScheduling": {"replicaSchedulingType": "Divided"}}, True),
    ],
)
def test_replicas_are_divided_if_a_placement_says_so_or_there_is_none(
    placement: dict[str, Any] | None, *, expected: bool
) -> None:
    assert binding_input(binding(placement=placement), None, {}, {}, ()).is_divided is expected


CLUSTER_BINDING = msgspec.convert({"metadata": {"name": "web"}, "spec": {"resource": RESOURCE}}, ClusterResourceBinding)
NOTES = {"resourcebinding.karmada.io/namespace": "shop", "resourcebinding.karmada.io/name": "web"}


@pytest.mark.parametrize(
    ("found", "notes", "expected"),
    [
        (binding(), NOTES, ["a"]),
        (binding(), {**NOTES, "resourcebinding.karmada.io/name": "other"}, []),
        (binding(), {**NOTES, "resourcebinding.karmada.io/namespace": "other"}, []),
        (binding(), {"clusterresourcebinding.karmada.io/name": "web"}, []),
        (CLUSTER_BINDING, {"clusterresourcebinding.karmada.io/name": "web"}, ["a"]),
        (CLUSTER_BINDING, {"clusterresourcebinding.karmada.io/name": "other"}, []),
        (CLUSTER_BINDING, NOTES, []),
    ],
)
def test_a_work_says_which_binding_it_is_of(found: AnyBinding, notes: dict[str, str], expected: list[str]) -> None:
    assert [*works_of(found, [work("a", notes)])] == expected


def test_a_work_is_for_the_cluster_of_its_namespace() -> None:
    assert cluster_of(work("member-1")) == "member-1"
    assert cluster_of(Work()) == ""

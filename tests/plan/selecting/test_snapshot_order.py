"""The order of what a snapshot holds."""

from __future__ import annotations

from random import Random

from kedge.api.resource import Resource
from kedge.plan.selecting.selection import snapshot_order

PEERS = (
    "PriorityClass Namespace NetworkPolicy ResourceQuota LimitRange PodDisruptionBudget ServiceAccount Secret "
    "ConfigMap StorageClass PersistentVolume PersistentVolumeClaim CustomResourceDefinition ClusterRole "
    "ClusterRoleBinding Role RoleBinding Service DaemonSet Pod ReplicationController ReplicaSet Deployment "
    "HorizontalPodAutoscaler StatefulSet Job CronJob IngressClass Ingress APIService MutatingWebhookConfiguration "
    "ValidatingWebhookConfiguration"
)


def test_kinds_come_in_kubefleets_order_and_others_after_them_by_name() -> None:
    kinds = [*PEERS.split(), "Apple", "Zebra"]
    mixed = [*kinds]
    Random(1).shuffle(mixed)
    assert sorted(mixed, key=lambda kind: snapshot_order(Resource("g", "v1", kind, "x"), "ns", "a")) == kinds


def test_of_one_kind_objects_come_by_namespace_then_by_name_then_by_group() -> None:
    wanted = [(None, "z", "b"), ("a", "y", "b"), ("a", "z", "a"), ("a", "z", "b"), ("b", "a", "a")]
    mixed = wanted[::-1]
    assert (
        sorted(mixed, key=lambda each: snapshot_order(Resource(each[2], "v1", "Widget", "x"), each[0], each[1]))
        == wanted
    )

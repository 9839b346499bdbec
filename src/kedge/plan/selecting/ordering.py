"""Ordering: in which order selected objects stand in a snapshot. The same objects always stand the same way.

What others need comes first, as KubeFleet orders it (kubefleet.md §4.1); the order in which a member writes them is its
own affair.
"""

from __future__ import annotations

from typing import Final

from kedge.api.resource import Resource

_FIRST: Final = (
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
)
_RANK: Final = {kind: rank for rank, kind in enumerate(_FIRST)}


def place(resource: Resource, namespace: str | None, name: str) -> tuple[int, str, str, str, str]:
    """What to sort an object by."""
    return _RANK.get(resource.kind, len(_FIRST)), resource.kind, namespace or "", name, resource.group

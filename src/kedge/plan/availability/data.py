"""Data: kinds that only hold something. They are available as soon as they are there."""

from __future__ import annotations

from kedge.plan.availability.reading import Object, name_of
from kedge.plan.availability.verdict import Verdict, available

KINDS = frozenset(
    (
        *(("", kind) for kind in ("ConfigMap", "LimitRange", "Namespace", "ResourceQuota", "Secret", "ServiceAccount")),
        *(("rbac.authorization.k8s.io", kind) for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")),
        *(("networking.k8s.io", kind) for kind in ("IngressClass", "NetworkPolicy")),
        *(("storage.k8s.io", kind) for kind in ("CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass")),
        ("apps", "ControllerRevision"),
        ("scheduling.k8s.io", "PriorityClass"),
    )
)


def judge(obj: Object) -> Verdict:
    return available(f"{name_of(obj)} is there")

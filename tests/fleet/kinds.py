"""Kinds: how the tests ask for what a fleet consists of, in the versions its users use."""

from __future__ import annotations

from msgspec.structs import replace

from kedge.api.resource import Resource
from kedge.kube.codec import Codec, Untyped, untyped

_CLUSTERS, _PLACING = "cluster.kubernetes-fleet.io", "placement.kubernetes-fleet.io"
_RBAC = "rbac.authorization.k8s.io"


def _kind(group: str, kind: str, plural: str = "", *, namespaced: bool = False) -> Codec[Untyped]:
    return untyped(Resource(group, "v1", kind, plural or f"{kind.lower()}s", namespaced=namespaced))


MEMBERS = _kind(_CLUSTERS, "MemberCluster")
INTERNAL = _kind(_CLUSTERS, "InternalMemberCluster", namespaced=True)
PLACEMENTS = _kind(_PLACING, "ClusterResourcePlacement")
POLICIES = _kind(_PLACING, "ClusterSchedulingPolicySnapshot")
SNAPSHOTS = _kind(_PLACING, "ClusterResourceSnapshot")
BINDINGS = _kind(_PLACING, "ClusterResourceBinding")
WORKS = _kind(_PLACING, "Work", namespaced=True)
APPLIED = _kind(_PLACING, "AppliedWork")
STRATEGIES = _kind(_PLACING, "ClusterStagedUpdateStrategy", "clusterstagedupdatestrategies")
RUNS = _kind(_PLACING, "ClusterStagedUpdateRun")
APPROVALS = _kind(_PLACING, "ClusterApprovalRequest")
ROLES = _kind(_RBAC, "Role", namespaced=True)
ROLE_BINDINGS = _kind(_RBAC, "RoleBinding", namespaced=True)
NAMESPACES = _kind("", "Namespace")
NODES = _kind("", "Node")
ACCOUNTS = _kind("", "ServiceAccount", namespaced=True)
QUOTAS = _kind("", "ResourceQuota", namespaced=True)
EVENTS = _kind("", "Event", namespaced=True)
PODS = _kind("", "Pod", namespaced=True)
CONFIG_MAPS = _kind("", "ConfigMap", namespaced=True)
DEPLOYMENTS = _kind("apps", "Deployment", namespaced=True)
DEFINITIONS = _kind("apiextensions.k8s.io", "CustomResourceDefinition")

ON_THE_HUB = (
    *(MEMBERS, INTERNAL, PLACEMENTS, POLICIES, SNAPSHOTS, BINDINGS, WORKS, STRATEGIES, RUNS, APPROVALS),
    *(ROLES, ROLE_BINDINGS, NAMESPACES, DEPLOYMENTS),
)
ON_A_MEMBER = (APPLIED, NAMESPACES, DEPLOYMENTS, CONFIG_MAPS)
EVERY = (*ON_THE_HUB, APPLIED, CONFIG_MAPS, NODES, ACCOUNTS, QUOTAS, DEFINITIONS)


def of(obj: Untyped) -> Codec[Untyped]:
    """How to ask for objects of the kind of this one, in its version."""
    found = next(kind for kind in EVERY if kind.resource.kind == obj["kind"])
    return untyped(replace(found.resource, version=obj.get("apiVersion", "v1").rpartition("/")[2]))

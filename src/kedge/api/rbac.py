"""The rbac group: who may do what. Written for members joining a fleet."""

from __future__ import annotations

from typing import ClassVar, Final

from msgspec import field

from kedge.api.meta import ObjectMeta, Value
from kedge.api.resource import Resource

GROUP: Final = "rbac.authorization.k8s.io"


class PolicyRule(Value, frozen=True, gc=False):
    """Verbs allowed on resources. Go programs write no verbs as null."""

    verbs: tuple[str, ...] | None = None
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = field(name="nonResourceURLs", default=())


class Subject(Value, frozen=True, gc=False):
    """A user, a group or a service account."""

    kind: str
    name: str
    api_group: str | None = None
    namespace: str | None = None


class RoleRef(Value, frozen=True, gc=False):
    """Which role is granted."""

    api_group: str
    kind: str
    name: str


class Role(Value, frozen=True, gc=False):
    """What may be done in a namespace. A server sends no rules as null."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1", "Role", "roles")
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    rules: tuple[PolicyRule, ...] | None = None


class ClusterRole(Value, frozen=True, gc=False):
    """What may be done anywhere. A server sends no rules as null."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1", "ClusterRole", "clusterroles", namespaced=False)
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    rules: tuple[PolicyRule, ...] | None = None


class RoleBinding(Value, frozen=True, gc=False):
    """Who has a role in a namespace."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1", "RoleBinding", "rolebindings")
    role_ref: RoleRef
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    subjects: tuple[Subject, ...] = ()


class ClusterRoleBinding(Value, frozen=True, gc=False):
    """Who has a role everywhere."""

    resource: ClassVar[Resource] = Resource(GROUP, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
    role_ref: RoleRef
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    subjects: tuple[Subject, ...] = ()

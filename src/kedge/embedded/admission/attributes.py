"""Attributes: what a write is, as admission webhooks see it.

A write to a subresource that has a kind of its own (`scale`, `eviction`, `binding`) shows objects of that kind, and the
resource that it is of. A write to a namespace is in that namespace.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.admission import KindName, ResourceName
from kedge.api.resource import Resource
from kedge.embedded.kind import NAMESPACES
from kedge.embedded.request_info import Caller, RequestInfo
from kedge.kube.codec import Untyped

Operation: TypeAlias = Literal["CREATE", "UPDATE", "DELETE"]


class Attributes(Struct, frozen=True):
    """One write. `obj` is what is to be stored, `old` what is stored."""

    operation: Operation
    kind: KindName
    resource: ResourceName
    subresource: str
    namespace: str
    name: str
    obj: Untyped | None
    old: Untyped | None
    options: Untyped
    caller: Caller

    @property
    def dry_run(self) -> bool:
        return bool(self.options.get("dryRun"))

    @property
    def is_of_namespace(self) -> bool:
        """Whether it is about a namespace itself."""
        return self.resource == _NAMESPACES

    @property
    def served(self) -> Resource:
        """The resource, as refusals name it."""
        return Resource(self.resource.group, self.resource.version, self.kind.kind, self.resource.resource)

    def with_object(self, obj: Untyped | None) -> Attributes:
        return replace(self, obj=obj)


def attributes(
    info: RequestInfo,
    operation: Operation,
    options: Untyped,
    *,
    obj: Untyped | None = None,
    old: Untyped | None = None,
    kind: Resource | None = None,
) -> Attributes:
    """What a request does; `kind` is that of the objects, if it is not the request's."""
    path, shown = info.path, kind or info.kind.resource
    name = path.name or (obj or {}).get("metadata", {}).get("name", "")
    return Attributes(
        operation,
        KindName(shown.group, shown.version, shown.kind),
        ResourceName(path.group, path.version, path.plural),
        path.subresource,
        name if info.kind.resource == NAMESPACES else path.namespace,
        name,
        obj,
        old,
        options,
        info.caller,
    )


_NAMESPACES = ResourceName("", "v1", "namespaces")

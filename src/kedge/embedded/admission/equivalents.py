"""Equivalents: other versions of the resource of a request, and its objects converted to them.

A webhook with matchPolicy Equivalent is asked in the version of its rule, whichever version the write is in.
"""

from __future__ import annotations

from msgspec.structs import replace

from kedge.api.admission import KindName, ResourceName
from kedge.embedded.admission.attributes import Attributes
from kedge.embedded.kind import Kind, Registry
from kedge.kube.codec import Untyped

_OLDEST = 0  # as if it had been stored before any change of its CRD: nothing is taken for converted


class Equivalents:
    """The versions of the custom kinds of one server. Each built-in kind counts in the version it is asked in."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def of(self, resource: ResourceName) -> list[ResourceName]:
        """The other versions of a resource."""
        kind = self._kind(resource)
        if kind is None or kind.custom is None:
            return []
        same = [one.resource for one in self._registry.kinds() if _same_resource(one, resource)]
        return [ResourceName(one.group, one.version, one.plural) for one in same if one.version != resource.version]

    def kind_in(self, asked: Attributes, resource: ResourceName) -> KindName:
        """The kind of the objects of a write, in the version of another resource. A Scale is the same in all."""
        own = self._kind(asked.resource)
        is_own = own is not None and asked.kind == KindName(own.resource.group, own.resource.version, own.resource.kind)
        return replace(asked.kind, version=resource.version) if is_own else asked.kind

    def converted(self, asked: Attributes, resource: ResourceName) -> Attributes:
        """The write, with its objects in the version of another resource."""
        obj, old = (self._converted(one, asked.resource, resource) for one in (asked.obj, asked.old))
        return replace(asked, obj=obj, old=old)

    def converted_back(self, obj: Untyped, asked: Attributes, resource: ResourceName) -> Untyped:
        """An object of another version, in the version of the write."""
        found = self._converted(obj, resource, asked.resource)
        assert found is not None
        return found

    def _converted(self, obj: Untyped | None, resource: ResourceName, other: ResourceName) -> Untyped | None:
        source, target = self._kind(resource), self._kind(other)
        if obj is None or resource == other or not (source and source.custom and target and target.custom):
            return obj
        if obj["kind"] != source.resource.kind:  # a Scale is the same in every version
            return obj
        return target.custom.to_served(source.custom.to_stored(obj), _OLDEST)

    def _kind(self, resource: ResourceName) -> Kind | None:
        return self._registry.find(resource.group, resource.version, resource.resource)


def _same_resource(kind: Kind, resource: ResourceName) -> bool:
    return (kind.resource.group, kind.resource.plural) == (resource.group, resource.resource)

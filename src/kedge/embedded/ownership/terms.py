"""Terms: on what terms the fields of one kind are owned, in one of its versions.

    terms = Terms(resource, schema, status=True)

Made once for each kind and version that is served, and shared.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any, TypeAlias

from kedge.api.openapi.model import Schema
from kedge.api.resource import Resource
from kedge.embedded.ownership import fields, shapes
from kedge.embedded.ownership.compare import Comparison, compare
from kedge.embedded.ownership.fields import Fields, without
from kedge.embedded.ownership.merge import merged
from kedge.embedded.ownership.resets import resets
from kedge.embedded.ownership.shapes import Shape
from kedge.embedded.patching import merge_patch

Untyped: TypeAlias = dict[str, Any]

_NOBODYS = ("name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields")
NEVER_OWNED = fields.of(
    [["f:apiVersion"], ["f:kind"], ["f:metadata"], ["f:metadata", "f:resourceVersion"]]
    + [["f:metadata", f"f:{name}"] for name in _NOBODYS]
)

# Where a schema does not tell what is always there of an object: this is, too,
_ALWAYS_THERE: Mapping[tuple[str, str], Untyped] = {
    ("", "events"): {
        **dict.fromkeys(("eventTime", "firstTimestamp", "lastTimestamp")),
        **dict.fromkeys(("reportingComponent", "reportingInstance"), ""),
    },
    ("apps", "statefulsets"): {"spec": {"serviceName": ""}},
}
# and this is not, though it is required; as a merge patch.
_NOT_ALWAYS: Mapping[tuple[str, str], Untyped] = {
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"): {"spec": {"validationActions": None}},
}


class Terms:
    """How the fields of one kind are owned."""

    def __init__(
        self,
        resource: Resource,
        schema: Schema | None,
        *,
        status: bool,
        custom: bool = False,
        served: Collection[str] | None = None,
    ) -> None:
        self.resource = resource
        self.api_version = resource.api_version
        self.custom = custom  # a CRD defines it
        self.status = status  # it has a status that is written apart
        self.served = _served(resource, custom, served)  # those who speak other versions are forgotten; None: nobody is
        self.shape: Shape = shapes.of_object(schema, custom=custom)
        self._resets: dict[str, Fields] = {}

    @cached_property
    def blank(self) -> Untyped:
        """What there is of an object before it is made."""
        if self.custom:
            return {"metadata": {}}
        kind = (self.resource.group, self.resource.plural)
        known = {"metadata": {}, **shapes.blank(self.shape)}
        found: Untyped = merge_patch(merged(self.shape, known, _ALWAYS_THERE.get(kind, {})), _NOT_ALWAYS.get(kind, {}))
        return found

    def serves(self, api_version: str) -> bool:
        """Whether owners who speak this version are remembered."""
        return self.served is None or api_version in self.served

    def resets(self, subresource: str) -> Fields:
        """What a write there leaves as it is."""
        if subresource not in self._resets:
            self._resets[subresource] = resets(self.resource, subresource, status=self.status, custom=self.custom)
        return self._resets[subresource]

    def changes(self, old: Untyped | None, new: Untyped, subresource: str = "") -> Comparison:
        """What a write changes, of what it can; `old` is None if it makes the object."""
        found = compare(self.shape, self.blank if old is None else old, new)
        left = self.resets(subresource)
        return Comparison(without(found.added, left), without(found.modified, left), without(found.removed, left))


def _served(resource: Resource, custom: bool, served: Collection[str] | None) -> frozenset[str] | None:
    """Of a custom kind it has to be said; a built-in one is served in one version."""
    if served is None and custom:
        return None
    return frozenset({resource.api_version, *(served or ())})

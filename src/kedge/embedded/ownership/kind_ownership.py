"""Kind ownership: how the fields of one kind are owned, in one of its versions.

    ownership = KindOwnership(resource, schema, status=True)

Made once for each served kind and version, and shared. The reset fields are those that a write cannot change and hence
not own: a write to the main resource leaves the status, a write to the status the rest. Kinds differ in how much
metadata a write to their status may change.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property

from kedge.api.openapi.model import Schema
from kedge.api.resource import Resource
from kedge.embedded.json_patch import merge_patch
from kedge.embedded.ownership import field_set, merge_schema
from kedge.embedded.ownership.compare import Comparison, compare
from kedge.embedded.ownership.field_set import LEAF, FieldSet, recursive_difference
from kedge.embedded.ownership.merge import merge_applied
from kedge.embedded.ownership.merge_schema import MergeSchema
from kedge.kube.codec import Untyped

_STATUS = field_set.field_set([["f:status"]])
_SPEC = field_set.field_set([["f:spec"]])
_ALL_BUT_STATUS = field_set.field_set([["f:spec"], ["f:metadata"]])

# Beside the usual: what writing the status of a kind leaves as it is.
_BESIDE_STATUS: Mapping[tuple[str, str], FieldSet] = {
    ("apps", "deployments"): field_set.field_set([["f:spec"], ["f:metadata", "f:labels"]]),
    ("", "pods"): field_set.field_set(
        [["f:spec"], ["f:metadata", "f:deletionTimestamp"], ["f:metadata", "f:ownerReferences"]]
    ),
    ("certificates.k8s.io", "certificatesigningrequests"): field_set.field_set(
        [["f:spec"], ["f:status", "f:conditions"]]
    ),
    ("apiregistration.k8s.io", "apiservices"): _ALL_BUT_STATUS,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): _ALL_BUT_STATUS,
    ("storage.k8s.io", "volumeattachments"): _ALL_BUT_STATUS,
}
_MAIN: Mapping[tuple[str, str], FieldSet] = {
    ("certificates.k8s.io", "certificatesigningrequests"): field_set.field_set([["f:spec"], ["f:status"]]),
}


def reset_fields(resource: Resource, subresource: str, *, status: bool, custom: bool) -> FieldSet:
    """The fields that a write to this resource, or to a subresource of it, cannot change.

    `status` tells whether the kind has a status that is written apart, `custom` whether a CRD defines it.
    """
    if custom:
        return {"status": _ALL_BUT_STATUS, "": _STATUS if status else LEAF}.get(subresource, LEAF)
    kind = (resource.group, resource.plural)
    match subresource:
        case "":
            return _MAIN.get(kind, _STATUS if status else LEAF)
        case "status":
            return _BESIDE_STATUS.get(kind, _SPEC)
        case "finalize":
            return _STATUS
    return LEAF


_SERVER_FIELDS = (
    "name",
    "namespace",
    "creationTimestamp",
    "selfLink",
    "uid",
    "clusterName",
    "generation",
    "managedFields",
)
NEVER_OWNED = field_set.field_set(
    [["f:apiVersion"], ["f:kind"], ["f:metadata"], ["f:metadata", "f:resourceVersion"]]
    + [["f:metadata", f"f:{name}"] for name in _SERVER_FIELDS]
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


class KindOwnership:
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
        self.served = _served(resource, custom, served)  # entries of other versions are dropped; None keeps all
        self.schema: MergeSchema = merge_schema.object_merge_schema(schema, custom=custom)
        self._resets: dict[str, FieldSet] = {}

    @cached_property
    def empty(self) -> Untyped:
        """What exists of an object before it is created."""
        if self.custom:
            return {"metadata": {}}
        kind = (self.resource.group, self.resource.plural)
        known = {"metadata": {}, **merge_schema.empty_object(self.schema)}
        found: Untyped = merge_patch(
            merge_applied(self.schema, known, _ALWAYS_THERE.get(kind, {})), _NOT_ALWAYS.get(kind, {})
        )
        return found

    def serves(self, api_version: str) -> bool:
        """Whether entries of this version are kept."""
        return self.served is None or api_version in self.served

    def resets(self, subresource: str) -> FieldSet:
        """The fields that a write there cannot change."""
        if subresource not in self._resets:
            self._resets[subresource] = reset_fields(self.resource, subresource, status=self.status, custom=self.custom)
        return self._resets[subresource]

    def changes(self, old: Untyped | None, new: Untyped, subresource: str = "") -> Comparison:
        """What a write changes, without reset fields; `old` is None for a create."""
        found = compare(self.schema, self.empty if old is None else old, new)
        left = self.resets(subresource)
        return Comparison(
            recursive_difference(found.added, left),
            recursive_difference(found.modified, left),
            recursive_difference(found.removed, left),
        )


def _served(resource: Resource, custom: bool, served: Collection[str] | None) -> frozenset[str] | None:
    """The served versions: given for a custom kind, one for a built-in kind."""
    if served is None and custom:
        return None
    return frozenset({resource.api_version, *(served or ())})

"""Resets: what a write cannot change, however it tries, and therefore cannot come to own.

Writing the main resource leaves the status as it is; writing the status leaves the rest. Kinds differ in how much of
the metadata a write to their status takes along.
"""

from __future__ import annotations

from collections.abc import Mapping

from kedge.api.resource import Resource
from kedge.embedded.ownership import fields
from kedge.embedded.ownership.fields import LEAF, Fields

_STATUS = fields.of([["f:status"]])
_SPEC = fields.of([["f:spec"]])
_ALL_BUT_STATUS = fields.of([["f:spec"], ["f:metadata"]])

# Beside the usual: what writing the status of a kind leaves as it is.
_BESIDE_STATUS: Mapping[tuple[str, str], Fields] = {
    ("apps", "deployments"): fields.of([["f:spec"], ["f:metadata", "f:labels"]]),
    ("", "pods"): fields.of([["f:spec"], ["f:metadata", "f:deletionTimestamp"], ["f:metadata", "f:ownerReferences"]]),
    ("certificates.k8s.io", "certificatesigningrequests"): fields.of([["f:spec"], ["f:status", "f:conditions"]]),
    ("apiregistration.k8s.io", "apiservices"): _ALL_BUT_STATUS,
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"): _ALL_BUT_STATUS,
    ("flowcontrol.apiserver.k8s.io", "flowschemas"): _ALL_BUT_STATUS,
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"): _ALL_BUT_STATUS,
    ("networking.k8s.io", "servicecidrs"): _ALL_BUT_STATUS,
    ("resource.k8s.io", "resourceclaims"): _ALL_BUT_STATUS,
    ("storage.k8s.io", "volumeattachments"): _ALL_BUT_STATUS,
}
_MAIN: Mapping[tuple[str, str], Fields] = {
    ("certificates.k8s.io", "certificatesigningrequests"): fields.of([["f:spec"], ["f:status"]]),
}
_APPROVAL = fields.of([["f:spec"], ["f:status", "f:certificate"]])


def resets(resource: Resource, subresource: str, *, status: bool, custom: bool) -> Fields:
    """What a write to this resource, or to a subresource of it, leaves as it is.

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
        case "approval":
            return _APPROVAL
        case "finalize":
            return _STATUS
    return LEAF

"""Candidates: what is remembered of an object of the hub, to know whether it is selected and whether it changed.

That is its identity, its labels and a digest of what would go to members: a change of its status alone changes
nothing here, and a cache of thousands stays small.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kedge.api.fleet import is_reserved
from kedge.api.meta import ObjectMeta
from kedge.api.resource import Resource
from kedge.plan.digest import digest
from kedge.plan.selecting.sanitising import sanitised

_KEPT: Final = ObjectMeta()
_OWNED: Final = frozenset({("apps", "ReplicaSet"), ("apps", "ControllerRevision")})
_OF_AN_ACCOUNT: Final = "kubernetes.io/service-account-token"
_MANAGED_SLICE: Final = "endpointslice.kubernetes.io/managed-by"


class Candidate(Struct, frozen=True, gc=False):
    """An object that may be selected. Without a digest it never is: it belongs to the hub, or is on its way out."""

    metadata: ObjectMeta
    digest: str

    @property
    def may_go(self) -> bool:
        """Whether it may be placed at all."""
        return bool(self.digest)


def candidate(resource: Resource, found: Mapping[str, Any]) -> Candidate:
    """What is remembered of this object."""
    meta = msgspec.convert(found.get("metadata") or {}, ObjectMeta)
    if stays(resource, meta, found):
        return Candidate(_identity(meta), "")
    return Candidate(replace(_identity(meta), labels=meta.labels), digest(sanitised(resource, found)))


def stays(resource: Resource, meta: ObjectMeta, found: Mapping[str, Any]) -> bool:
    """Whether this object is the hub's own, or made there by a controller that members have as well."""
    if meta.deletion_timestamp is not None:
        return True
    if meta.namespace and is_reserved(meta.namespace) and meta.namespace != "default":
        return True
    match resource.group, resource.kind:
        case key if key in _OWNED:
            return bool(meta.owner_references)
        case "", "Namespace":
            return is_reserved(meta.name)
        case "", "ConfigMap":
            return meta.name == "kube-root-ca.crt"
        case "", "ServiceAccount":
            return meta.name == "default"
        case "", "Secret":
            return bool(found.get("type") == _OF_AN_ACCOUNT)
        case "discovery.k8s.io", "EndpointSlice":
            return _MANAGED_SLICE in meta.labels
    return False


def _identity(meta: ObjectMeta) -> ObjectMeta:
    return replace(
        _KEPT,
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        deletion_timestamp=meta.deletion_timestamp,
    )

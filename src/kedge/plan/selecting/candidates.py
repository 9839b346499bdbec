"""Candidates: what is remembered of an object of the hub, to know whether it is selected and whether it changed.

That is its identity, its labels and a digest of the manifest that would go to members. A change of its status alone
changes nothing here, and a cache of thousands stays small. `without_hub_fields` gives a new object and leaves the given
one as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kedge.api.fleet import is_reserved
from kedge.api.meta import ObjectMeta
from kedge.api.resource import Resource
from kedge.plan.digest import digest

_EMPTY: Final = ObjectMeta()
_OWNED_KINDS: Final = frozenset({("apps", "ReplicaSet"), ("apps", "ControllerRevision")})
_SERVICE_ACCOUNT_TYPE: Final = "kubernetes.io/service-account-token"
_SLICE_MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"


class Candidate(Struct, frozen=True, gc=False):
    """An object that may be selected. Without a digest it never is: it belongs to the hub, or is being deleted."""

    metadata: ObjectMeta
    digest: str

    @property
    def may_be_placed(self) -> bool:
        """Whether it may be placed."""
        return bool(self.digest)


def candidate(resource: Resource, found: Mapping[str, Any]) -> Candidate:
    """What is remembered of this object."""
    meta = msgspec.convert(found.get("metadata") or {}, ObjectMeta)
    if is_hub_object(resource, meta, found):
        return Candidate(_identity(meta), "")
    return Candidate(replace(_identity(meta), labels=meta.labels), digest(without_hub_fields(resource, found)))


def is_hub_object(
    resource: Resource, meta: ObjectMeta, found: Mapping[str, Any], *, reserves: Callable[[str], bool] = is_reserved
) -> bool:
    """Whether this object stays on the hub: it is the hub's own, or created by a controller that members have too.

    `reserves`: whether a namespace belongs to the system.
    """
    if meta.deletion_timestamp is not None:
        return True
    if meta.namespace and reserves(meta.namespace) and meta.namespace != "default":
        return True
    match resource.group, resource.kind:
        case key if key in _OWNED_KINDS:
            return bool(meta.owner_references)
        case "", "Namespace":
            return reserves(meta.name)
        case "", "ConfigMap":
            return meta.name == "kube-root-ca.crt"
        case "", "ServiceAccount":
            return meta.name == "default"
        case "", "Secret":
            return bool(found.get("type") == _SERVICE_ACCOUNT_TYPE)
        case "discovery.k8s.io", "EndpointSlice":
            return _SLICE_MANAGED_BY in meta.labels
    return False


def _identity(meta: ObjectMeta) -> ObjectMeta:
    return replace(
        _EMPTY,
        name=meta.name,
        namespace=meta.namespace,
        uid=meta.uid,
        resource_version=meta.resource_version,
        deletion_timestamp=meta.deletion_timestamp,
    )


# The manifest that goes to members


Manifest: TypeAlias = dict[str, Any]

_SERVER_METADATA: Final = frozenset(
    {
        "resourceVersion",
        "uid",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "managedFields",
        "ownerReferences",
        "selfLink",
    }
)
_SERVER_ANNOTATIONS: Final = frozenset(
    {"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision"}
)
_JOB_LABELS: Final = frozenset({"controller-uid", "batch.kubernetes.io/controller-uid"})


def without_hub_fields(resource: Resource, found: Mapping[str, Any]) -> Manifest:
    """The manifest of this object for members. It has apiVersion and kind even where the server left them out, as in
    lists.
    """
    cleaned = _without(found, {"status"})
    cleaned |= {"apiVersion": resource.api_version, "kind": resource.kind}
    cleaned["metadata"] = _metadata(found.get("metadata") or {})
    special = _SPEC_CLEANERS.get((resource.api_version, resource.kind))
    if special is not None and isinstance(cleaned.get("spec"), Mapping):
        cleaned["spec"] = special(cleaned["spec"])
    return cleaned


def _metadata(metadata: Mapping[str, Any]) -> Manifest:
    cleaned = _without(metadata, _SERVER_METADATA)
    return _replaced(cleaned, "annotations", _without(cleaned.get("annotations") or {}, _SERVER_ANNOTATIONS))


def _service(spec: Mapping[str, Any]) -> Manifest:
    """A service without the addresses and ports that this cluster assigned. `clusterIP: None` stays."""
    headless = spec.get("clusterIP") == "None"
    cleaned = _without(
        spec, {"healthCheckNodePort"} if headless else {"healthCheckNodePort", "clusterIP", "clusterIPs"}
    )
    return _replaced(cleaned, "ports", [_without(port, {"nodePort"}) for port in spec.get("ports") or ()])


def _job(spec: Mapping[str, Any]) -> Manifest:
    """A job without the labels that this cluster generated for its pods, unless the user manages the selector."""
    if spec.get("manualSelector") is True:
        return dict(spec)
    selector, template = dict(spec.get("selector") or {}), dict(spec.get("template") or {})
    meta = _without(template.get("metadata") or {}, {"creationTimestamp"})
    meta = _replaced(meta, "labels", _without(meta.get("labels") or {}, _JOB_LABELS))
    selector = _replaced(selector, "matchLabels", _without(selector.get("matchLabels") or {}, _JOB_LABELS))
    return _replaced(_replaced(dict(spec), "template", _replaced(template, "metadata", meta)), "selector", selector)


_SPEC_CLEANERS: Final[Mapping[tuple[str, str], Callable[[Mapping[str, Any]], Manifest]]] = {
    ("v1", "Service"): _service,
    ("batch/v1", "Job"): _job,
}


def _without(value: Mapping[str, Any], keys: frozenset[str] | set[str]) -> Manifest:
    return {key: item for key, item in value.items() if key not in keys}


def _replaced(value: Manifest, key: str, new: Any) -> Manifest:
    """The same with another value under this key; without the key if the value is empty."""
    return {**value, key: new} if new else _without(value, {key})

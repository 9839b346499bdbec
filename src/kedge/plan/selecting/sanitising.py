"""Sanitising: what of an object goes to members. What the hub's server filled in for itself does not.

Promises a new object, and leaves the one given as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from kedge.api.resource import Resource

Manifest: TypeAlias = dict[str, Any]

_METADATA: Final = frozenset(
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
_ANNOTATIONS: Final = frozenset(
    {"kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision"}
)
_JOB_LABELS: Final = frozenset({"controller-uid", "batch.kubernetes.io/controller-uid"})


def sanitised(resource: Resource, found: Mapping[str, Any]) -> Manifest:
    """What of this object goes to members. It says what it is, also where the server did not, as in lists."""
    kept = _without(found, {"status"})
    kept |= {"apiVersion": resource.api_version, "kind": resource.kind}
    kept["metadata"] = _metadata(found.get("metadata") or {})
    special = _SPECIAL.get((resource.api_version, resource.kind))
    if special is not None and isinstance(kept.get("spec"), Mapping):
        kept["spec"] = special(kept["spec"])
    return kept


def _metadata(metadata: Mapping[str, Any]) -> Manifest:
    kept = _without(metadata, _METADATA)
    return _replaced(kept, "annotations", _without(kept.get("annotations") or {}, _ANNOTATIONS))


def _service(spec: Mapping[str, Any]) -> Manifest:
    """A service without the addresses and ports this cluster gave it. That it has no address is said on purpose."""
    headless = spec.get("clusterIP") == "None"
    kept = _without(spec, {"healthCheckNodePort"} if headless else {"healthCheckNodePort", "clusterIP", "clusterIPs"})
    return _replaced(kept, "ports", [_without(port, {"nodePort"}) for port in spec.get("ports") or ()])


def _job(spec: Mapping[str, Any]) -> Manifest:
    """A job without the labels this cluster made up for its pods, unless the user sees to them."""
    if spec.get("manualSelector") is True:
        return dict(spec)
    selector, template = dict(spec.get("selector") or {}), dict(spec.get("template") or {})
    meta = _without(template.get("metadata") or {}, {"creationTimestamp"})
    meta = _replaced(meta, "labels", _without(meta.get("labels") or {}, _JOB_LABELS))
    selector = _replaced(selector, "matchLabels", _without(selector.get("matchLabels") or {}, _JOB_LABELS))
    return _replaced(_replaced(dict(spec), "template", _replaced(template, "metadata", meta)), "selector", selector)


_SPECIAL: Final[Mapping[tuple[str, str], Callable[[Mapping[str, Any]], Manifest]]] = {
    ("v1", "Service"): _service,
    ("batch/v1", "Job"): _job,
}


def _without(value: Mapping[str, Any], keys: frozenset[str] | set[str]) -> Manifest:
    return {key: item for key, item in value.items() if key not in keys}


def _replaced(value: Manifest, key: str, new: Any) -> Manifest:
    """The same with another value under this key; without it, if there is nothing left."""
    return {**value, key: new} if new else _without(value, {key})

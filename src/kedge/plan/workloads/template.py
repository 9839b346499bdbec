"""Pod templates: what tells one from another, whether or not a server has filled in what it leaves out.

The hash is of the template without what says nothing: nulls, empty lists, members that hold their Kubernetes default
(the table below; imagePullPolicy by the tag of its image, requests by their limits), quantities in one spelling, and
labels that controllers add (`pod-template-hash` and the like). So the template a user wrote, the one a server stored
and the one in a ReplicaSet have one hash. Defaults outside the table, and what admission of a cluster adds, make
another hash: two hashes that differ may mean the same, two that are equal never mean something else.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from kedge.api.numbers import Quantity
from kedge.plan.digest import digest
from kedge.plan.fields import Object

_CONTAINER: Final = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_PROBE: Final = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_VOLUME: Final = {"defaultMode": 420}
DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "template": {"metadata": {}},
    "metadata": {"labels": {}, "annotations": {}},
    "spec": {
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "securityContext": {},
        "nodeSelector": {},
        "hostNetwork": False,
        "hostPID": False,
        "hostIPC": False,
    },
    "containers": {**_CONTAINER, "resources": {}},
    "initContainers": {**_CONTAINER, "resources": {}},
    "resources": {"limits": {}, "requests": {}},
    "ports": {"protocol": "TCP"},
    "livenessProbe": _PROBE,
    "readinessProbe": _PROBE,
    "startupProbe": _PROBE,
    "httpGet": {"path": "/", "scheme": "HTTP"},
    "grpc": {"service": ""},
    "fieldRef": {"apiVersion": "v1"},
    "configMap": _VOLUME,
    "secret": _VOLUME,
    "projected": _VOLUME,
    "downwardAPI": _VOLUME,
    "hostPath": {"type": ""},
    "serviceAccountToken": {"expirationSeconds": 3600},
}
"""What a server fills in, by the member that holds it."""
ADDED_LABELS: Final = frozenset(
    {
        "pod-template-hash",
        "controller-revision-hash",
        "pod-template-generation",
        "controller-uid",
        "job-name",
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
    }
)


def template_hash(template: Object) -> str:
    """The same for templates that mean the same, as far as that can be told: 16 hex digits."""
    return _hash(msgspec.json.encode(template))


@lru_cache(maxsize=1000)  # the workloads of a hundred clusters have the same one, and are looked at again and again
def _hash(template: bytes) -> str:
    return digest(_short("template", msgspec.json.decode(template)))[:16]


def _short(name: str, value: Any) -> Any:
    """The value of a member without what says nothing."""
    if isinstance(value, Mapping):
        return _short_map(name, value)
    if isinstance(value, list):
        return [_short(name, item) for item in value]
    return value


def _short_map(name: str, value: Object) -> dict[str, Any]:
    defaults = DEFAULTS.get(name, {})
    parts = {key: _short(key, part) for key, part in _implied(name, value).items()}
    return {
        key: part
        for key, part in parts.items()
        if part is not None and part != [] and (key not in defaults or not _same(part, defaults[key]))
    }


def _same(one: Any, other: Any) -> bool:
    return bool(one == other and isinstance(one, bool) == isinstance(other, bool))


def _implied(name: str, value: Object) -> Object:
    """The map without what its other members imply."""
    match name:
        case "metadata":
            return {**value, "labels": _own_labels(value.get("labels")), "creationTimestamp": None}
        case "spec" if value.get("serviceAccount") == value.get("serviceAccountName"):
            return {**value, "serviceAccount": None}
        case "containers" | "initContainers" if value.get("imagePullPolicy") == _pull_policy(value.get("image")):
            return {**value, "imagePullPolicy": None}
        case "resources":
            return _implied_resources(value)
    return value


def _own_labels(labels: Any) -> Any:
    if not isinstance(labels, Mapping):
        return labels
    return {key: value for key, value in labels.items() if key not in ADDED_LABELS}


def _pull_policy(image: Any) -> str:
    """What is pulled anew each time: an image without a tag, or with the tag latest."""
    text = str(image).rpartition("/")[2]
    pinned = "@" in text or (":" in text and not text.endswith(":latest"))
    return "IfNotPresent" if pinned else "Always"


def _implied_resources(value: Object) -> Object:
    limits, requests = _amounts(value.get("limits")), _amounts(value.get("requests"))
    if isinstance(limits, Mapping) and isinstance(requests, Mapping):
        requests = {key: amount for key, amount in requests.items() if limits.get(key) != amount}
    return {**value, "limits": limits, "requests": requests}


def _amounts(value: Any) -> Any:
    return {key: _amount(part) for key, part in value.items()} if isinstance(value, Mapping) else value


def _amount(value: Any) -> Any:
    try:
        return str(Quantity.parse(value))
    except ValueError:
        return value

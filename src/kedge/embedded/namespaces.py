"""Namespaces: what is special about the kind all others live in.

A namespace that is deleted stays, terminating, and takes in nothing new, until whoever empties it (in Kubernetes the
namespace controller, a client like any other) strikes `kubernetes` off its `spec.finalizers` through /finalize.
"""

from __future__ import annotations

from kedge.embedded.kind import NAMESPACES as RESOURCE
from kedge.embedded.kind import Kind
from kedge.embedded.statuses import Refused, forbidden, not_found
from kedge.embedded.store import Store, Untyped, part
from kedge.kube.errors import Cause

FROM_THE_START = ("default", "kube-node-lease", "kube-public", "kube-system")
_IMMORTAL = ("default", "kube-public", "kube-system")
_KIND = Kind(RESOURCE)
_NAME_LABEL = "kubernetes.io/metadata.name"


def dressed(obj: Untyped) -> Untyped:
    """A new namespace, as the server completes it."""
    return {**labelled(obj), "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def labelled(obj: Untyped) -> Untyped:
    """A namespace with the label that says its name."""
    metadata = obj["metadata"]
    labels = {**metadata.get("labels", {}), _NAME_LABEL: metadata["name"]}
    return {**obj, "metadata": {**metadata, "labels": labels}}


def finalized(old: Untyped, new: Untyped) -> Untyped:
    """What a write to /finalize changes: who still has to be done with the namespace."""
    return {**old, "spec": {**part(old, "spec"), "finalizers": part(new, "spec").get("finalizers") or []}}


def terminating(obj: Untyped) -> Untyped:
    return {**obj, "status": {**part(obj, "status"), "phase": "Terminating"}}


def is_held(obj: Untyped) -> bool:
    """Whether someone still has to be done with it."""
    return bool(part(obj, "spec").get("finalizers"))


def refuse_immortal(name: str) -> None:
    if name in _IMMORTAL:
        raise forbidden(RESOURCE, name, "this namespace may not be deleted")


def refuse_closed(store: Store, kind: Kind, namespace: str, name: str) -> None:
    """Refuse a new object in a namespace that is not there, or is going away."""
    found = store.all(_KIND).get(namespace)
    if found is None:
        raise not_found(RESOURCE, namespace)
    if found.decode()["metadata"].get("deletionTimestamp"):
        raise _going_away(kind, namespace, name)


def _going_away(kind: Kind, namespace: str, name: str) -> Refused:
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = Cause("metadata.namespace", f"namespace {namespace} is being terminated", "NamespaceTerminating")
    return forbidden(kind.resource, name, why, cause)

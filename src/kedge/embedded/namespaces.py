"""Namespaces: what is special about namespaces, and the object quotas in them.

A deleted namespace stays, terminating, and accepts no new objects, until `background.namespace_deletion` removes
`kubernetes` from its `spec.finalizers` through /finalize. Of a ResourceQuota only the number of objects of a kind
counts (`count/deployments.apps: "2"`); its status is not written.
"""

from __future__ import annotations

from kedge.api.numbers import Quantity
from kedge.api.resource import Resource
from kedge.embedded.kind import NAMESPACES as RESOURCE
from kedge.embedded.kind import Kind
from kedge.embedded.statuses import Refused, forbidden, not_found
from kedge.embedded.store import Store, part
from kedge.kube.codec import Untyped
from kedge.kube.errors import Cause

INITIAL_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PROTECTED = ("default", "kube-public", "kube-system")
_KIND = Kind(RESOURCE)
_NAME_LABEL = "kubernetes.io/metadata.name"


def new_namespace(obj: Untyped) -> Untyped:
    """A new namespace, with its label, finalizer and phase."""
    return {**with_name_label(obj), "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def with_name_label(obj: Untyped) -> Untyped:
    """A namespace with the label of its name."""
    metadata = obj["metadata"]
    labels = {**metadata.get("labels", {}), _NAME_LABEL: metadata["name"]}
    return {**obj, "metadata": {**metadata, "labels": labels}}


def with_finalizers_of(old: Untyped, new: Untyped) -> Untyped:
    """The namespace with the finalizers that were written to /finalize."""
    return {**old, "spec": {**part(old, "spec"), "finalizers": part(new, "spec").get("finalizers") or []}}


def terminating(obj: Untyped) -> Untyped:
    return {**obj, "status": {**part(obj, "status"), "phase": "Terminating"}}


def has_finalizers(obj: Untyped) -> bool:
    """Whether a finalizer in its spec holds it."""
    return bool(part(obj, "spec").get("finalizers"))


def refuse_protected(name: str) -> None:
    if name in _PROTECTED:
        raise forbidden(RESOURCE, name, "this namespace may not be deleted")


def refuse_missing_or_terminating(store: Store, kind: Kind, namespace: str, name: str) -> None:
    """Refuse a new object in a namespace that is missing or terminating."""
    found = store.all(_KIND).get(namespace)
    if found is None:
        raise not_found(RESOURCE, namespace)
    if found.decode()["metadata"].get("deletionTimestamp"):
        raise _is_terminating(kind, namespace, name)


def _is_terminating(kind: Kind, namespace: str, name: str) -> Refused:
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    cause = Cause("metadata.namespace", f"namespace {namespace} is being terminated", "NamespaceTerminating")
    return forbidden(kind.resource, name, why, cause)


_QUOTAS = Kind(Resource("", "v1", "ResourceQuota", "resourcequotas"))


def refuse_over_quota(store: Store, kind: Kind, namespace: str, name: str) -> None:
    """Refuse a new object if a quota allows no more of its kind."""
    word = f"count/{kind.resource.plural}" + (f".{kind.resource.group}" if kind.resource.group else "")
    for quota in store.all(_QUOTAS).at(store.number).within(f"{namespace}/"):
        limit = part(part(quota.decode(), "spec"), "hard").get(word)
        used = store.all(kind).at(store.number).count(f"{namespace}/") if limit is not None else 0
        if limit is not None and Quantity.parse(limit) < Quantity.parse(used + 1):
            why = f"exceeded quota: {quota.name}, requested: {word}=1, used: {word}={used}, limited: {word}={limit}"
            raise forbidden(kind.resource, name, why)

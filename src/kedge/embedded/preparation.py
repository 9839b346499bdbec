"""Preparation: an object as the server prepares it for create and update.

Pure: the sent object and the stored one give the one to store. For all kinds: identity never changes, status and the
rest are written apart, and the generation counts the changes of the spec.
"""

from __future__ import annotations

from kedge.embedded import namespaces
from kedge.embedded.generator import Generator
from kedge.embedded.kind import NAMESPACES, Kind
from kedge.embedded.store import encode
from kedge.kube.codec import Untyped

# Set by the server: what clients send is ignored.
_FROM_THE_SERVER = ("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "uid")
_IDENTITY = ("name", "namespace", "resourceVersion")
_NOT_FOR_CLIENTS = frozenset((*_FROM_THE_SERVER, "managedFields"))


def prepare_create(kind: Kind, obj: Untyped, namespace: str, generator: Generator) -> Untyped:
    """A new object, with uid, creation time and a name from `generateName` if needed."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _NOT_FOR_CLIENTS}
    metadata.pop("namespace", None)
    metadata |= {"uid": generator.uid(), "creationTimestamp": generator.now()}
    if namespace:
        metadata["namespace"] = namespace
    if kind.generation:
        metadata["generation"] = 1
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = generator.name(metadata["generateName"])
    whole = {**(_without_status(obj) if kind.status else obj), "metadata": metadata}
    return namespaces.new_namespace(whole) if kind.resource == NAMESPACES and "name" in metadata else whole


def with_old_status(kind: Kind, old: Untyped, new: Untyped) -> Untyped:
    """The new object with the old status, which is written apart."""
    return _without_status(new) | _status_of(old) if kind.status else new


def prepare_update(kind: Kind, old: Untyped, new: Untyped, subresource: str = "") -> Untyped:
    """The object after a write of `new` to it, or to a subresource of it."""
    metadata = _metadata(old["metadata"], new["metadata"])
    if subresource == "status":
        kept = {**_without_status(old), **_status_of(new)}
        return {**kept, "metadata": _beside_status(kind, old["metadata"], metadata)}
    if subresource == "finalize":
        return namespaces.with_finalizers_of(old, new)
    result = {**new, "metadata": metadata}
    if kind.resource == NAMESPACES:
        result = namespaces.with_name_label(namespaces.with_finalizers_of(result, old))
    return _with_generation(kind, old, result)


def _beside_status(kind: Kind, old: Untyped, new: Untyped) -> Untyped:
    """The metadata after a write to /status."""
    if not kind.status_takes_metadata:
        return old
    if kind.status_takes_labels:
        return new
    labels = {"labels": old["labels"]} if "labels" in old else {}
    return {key: value for key, value in new.items() if key != "labels"} | labels


def _metadata(old: Untyped, new: Untyped) -> Untyped:
    lasting = (*_IDENTITY, *_FROM_THE_SERVER)
    theirs = {key: value for key, value in new.items() if key not in lasting and key != "managedFields"}
    return {**theirs, **{key: old[key] for key in lasting if key in old}}


def _with_generation(kind: Kind, old: Untyped, new: Untyped) -> Untyped:
    if not kind.generation or not _spec_changed(kind, old, new):
        return new
    return {**new, "metadata": {**new["metadata"], "generation": old["metadata"].get("generation", 0) + 1}}


def _spec_changed(kind: Kind, old: Untyped, new: Untyped) -> bool:
    fields = (old.keys() | new.keys()) - {"metadata"}  # where the status is written apart, it is the old one here
    if any(not _same(old.get(field), new.get(field)) for field in fields):
        return True
    annotations = [obj["metadata"].get("annotations") for obj in (old, new)]
    return kind.generation_counts_annotations and annotations[0] != annotations[1]


def _same(one: object, other: object) -> bool:
    # Equal is not enough: to Python 1 is True. A patch shares what it leaves alone, so this is mostly the first test.
    return one is other or (one == other and encode(one) == encode(other))


def _status_of(obj: Untyped) -> Untyped:
    return {"status": obj["status"]} if "status" in obj else {}


def _without_status(obj: Untyped) -> Untyped:
    return {key: value for key, value in obj.items() if key != "status"}

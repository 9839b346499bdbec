"""Objects: what an object looks like once the server has taken it in.

Pure: an object as sent, and the one there is, give the one to keep. Promises what all kinds share: who it is never
changes, status and the rest are written apart, and the generation counts the changes of what is wanted.
"""

from __future__ import annotations

from kedge.embedded import namespaces
from kedge.embedded.kind import NAMESPACES, Kind
from kedge.embedded.stamps import Stamps
from kedge.embedded.store import Untyped, encode

# Clients may send these, and it changes nothing.
_FROM_THE_SERVER = ("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "uid")
_IDENTITY = ("name", "namespace", "resourceVersion")
_NOT_FOR_CLIENTS = frozenset((*_FROM_THE_SERVER, "managedFields"))


def born(kind: Kind, obj: Untyped, namespace: str, stamps: Stamps) -> Untyped:
    """A new object. One without a name gets it from `generateName`, if it has that."""
    metadata = {key: value for key, value in obj["metadata"].items() if key not in _NOT_FOR_CLIENTS}
    metadata.pop("namespace", None)
    metadata |= {"uid": stamps.uid(), "creationTimestamp": stamps.now()}
    if namespace:
        metadata["namespace"] = namespace
    if kind.generation:
        metadata["generation"] = 1
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = stamps.name(metadata["generateName"])
    whole = {**(_without_status(obj) if kind.status else obj), "metadata": metadata}
    return namespaces.dressed(whole) if kind.resource == NAMESPACES and "name" in metadata else whole


def with_status_of(kind: Kind, old: Untyped, new: Untyped) -> Untyped:
    """What is wanted of an object, with the status it has: that is written apart."""
    return _without_status(new) | _status_of(old) if kind.status else new


def changed(kind: Kind, old: Untyped, new: Untyped, subresource: str = "") -> Untyped:
    """The object after a write of `new` (with the status it keeps) to it, or to a subresource of it."""
    metadata = _metadata(old["metadata"], new["metadata"])
    if subresource == "status":
        kept = {**_without_status(old), **_status_of(new)}
        return {**kept, "metadata": _beside_status(kind, old["metadata"], metadata)}
    if subresource == "finalize":
        return namespaces.finalized(old, new)
    result = {**new, "metadata": metadata}
    if kind.resource == NAMESPACES:
        result = namespaces.labelled(namespaces.finalized(result, old))
    return _counted(kind, old, result)


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


def _counted(kind: Kind, old: Untyped, new: Untyped) -> Untyped:
    if not kind.generation or not _wants_else(kind, old, new):
        return new
    return {**new, "metadata": {**new["metadata"], "generation": old["metadata"].get("generation", 0) + 1}}


def _wants_else(kind: Kind, old: Untyped, new: Untyped) -> bool:
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

"""Observed: what is kept of an object that a Work placed: who it is, what it looks like, and whether it works.

A member may have very many objects. So of each only digests are kept, which tell whether something changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from kedge.api.meta import ObjectMeta
from kedge.plan.applying.ownership import is_applied_work
from kedge.plan.availability import Verdict, judge

_COMPARED: Final = ("labels", "annotations", "ownerReferences", "finalizers")
_KEPT: Final = ("name", "namespace", "uid", "resourceVersion", "generation", "deletionTimestamp")
_ENCODER: Final = msgspec.json.Encoder(order="sorted")


class ObservedObject(Struct, frozen=True):
    """What is kept of an object."""

    metadata: ObjectMeta
    content: bytes
    """A digest of what somebody may have changed: everything but the status and what the server counts."""
    status: bytes
    """A digest of its status."""
    verdict: Verdict

    def differs_from(self, other: ObservedObject) -> bool:
        """Whether they differ in more than their versions."""
        return _identity(self) != _identity(other)


def observe(obj: Mapping[str, Any]) -> ObservedObject:
    """What is kept of an object."""
    return ObservedObject(metadata_of(obj), content_of(obj), status_of(obj), judge(obj))


def content_of(obj: Mapping[str, Any]) -> bytes:
    """Tells whether an object was changed: its status and versions do not count."""
    metadata = obj.get("metadata") or {}
    rest = {name: value for name, value in obj.items() if name not in ("metadata", "status")}
    return _digest([rest, *(metadata.get(name) for name in _COMPARED)])


def status_of(obj: Mapping[str, Any]) -> bytes:
    """Tells whether the status of an object changed."""
    return _digest([obj.get("status"), (obj.get("metadata") or {}).get("generation")])


def metadata_of(obj: Mapping[str, Any]) -> ObjectMeta:
    """The metadata that is kept; of the owners, the AppliedWorks."""
    found = obj.get("metadata") or {}
    owners = [owner for owner in found.get("ownerReferences") or () if is_applied_work(owner)]
    kept = {name: found[name] for name in _KEPT if name in found}
    return msgspec.convert({**kept, "ownerReferences": owners}, ObjectMeta)


def is_placed(obj: Mapping[str, Any]) -> bool:
    """Whether an AppliedWork owns it."""
    return any(map(is_applied_work, (obj.get("metadata") or {}).get("ownerReferences") or ()))


def _identity(found: ObservedObject) -> tuple[object, ...]:
    return (found.content, found.status, found.metadata.uid, found.metadata.deletion_timestamp)


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(_ENCODER.encode(value), digest_size=16).digest()

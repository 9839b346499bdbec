"""Patches: changes to an object that name only what they change.

Each can carry preconditions (uid, resourceVersion): the server then refuses it if the object is not the one that was
looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

import msgspec
from msgspec import Struct

from kedge.kube.requests import preconditions, with_preconditions

APPLY = "application/apply-patch+yaml"  # JSON is YAML, and every server takes it under this name


class Patch(Protocol):
    """A change in one of the forms the API takes."""

    content_type: ClassVar[str]

    def encode(self, uid: str | None, resource_version: str | None) -> bytes: ...


class MergePatch(Struct, frozen=True):
    """RFC 7386: what is given replaces what is there, null removes it, lists are replaced whole."""

    content_type: ClassVar[str] = "application/merge-patch+json"
    body: Mapping[str, Any]

    def encode(self, uid: str | None, resource_version: str | None) -> bytes:
        return msgspec.json.encode(with_preconditions(self.body, uid, resource_version))


class StrategicPatch(Struct, frozen=True):
    """Kubernetes' own merge, for built-in kinds: lists of named things are merged by name."""

    content_type: ClassVar[str] = "application/strategic-merge-patch+json"
    body: Mapping[str, Any]

    def encode(self, uid: str | None, resource_version: str | None) -> bytes:
        return msgspec.json.encode(with_preconditions(self.body, uid, resource_version))


class JsonPatch(Struct, frozen=True):
    """RFC 6902: a sequence of operations, all or none."""

    content_type: ClassVar[str] = "application/json-patch+json"
    operations: Sequence[Mapping[str, Any]]

    def encode(self, uid: str | None, resource_version: str | None) -> bytes:
        # Added, not tested: a failed test would be an invalid patch, another version than the newest is a conflict.
        wanted = preconditions(uid, resource_version).items()
        added = [{"op": "add", "path": f"/metadata/{name}", "value": value} for name, value in wanted]
        return msgspec.json.encode([*self.operations, *added])


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The merge patch that makes new of old. Lists are replaced whole."""
    changed = {name: _change(old.get(name), value) for name, value in new.items() if old.get(name) != value}
    return changed | {name: None for name in old if name not in new}


def without_managed_fields(change: Mapping[str, Any]) -> dict[str, Any]:
    """The same change of an object itself, not of its status, which also empties the list of who wrote which field.

    A server keeps that list, `metadata.managedFields`, for those who apply objects. Of a binding it is more than half,
    and more than half of what a write of one costs the server (docs/measurements.md), while clusters wait for these
    writes one after another. An emptied list is not begun anew, unless somebody applies the object. So this is for
    objects that only Kedge writes.
    """
    return {**change, "metadata": {**change.get("metadata", {}), "managedFields": [{}]}}


def _change(old: Any, new: Any) -> Any:
    return difference(old, new) if isinstance(old, Mapping) and isinstance(new, Mapping) else new

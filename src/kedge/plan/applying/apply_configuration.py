"""Apply configuration: what is written for a manifest, and the annotations that remember it on the object itself.

`spec-hash` is the digest of the manifest. `last-applied-configuration` holds all of it, so that the next one can tell
what is no longer asked for. The text is the one that KubeFleet's agent writes (JSON as Go prints it, and a new line),
so that either agent can continue where the other stopped.

When a Work changes from client-side to server-side apply, its fields belong to the same manager by `Update`. Then
server-side apply would not remove them, and would conflict with itself. So they are changed to `Apply` first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec

from kedge.api.fleet import LAST_APPLIED, SPEC_HASH
from kedge.api.openapi.builtin import DEFINITIONS, schema_of
from kedge.api.openapi.model import Schema
from kedge.api.resource import Resource
from kedge.plan.applying.manifests import DesiredObject
from kedge.plan.applying.ownership import WorkOwner
from kedge.plan.applying.three_way_merge import Object, three_way_merge

MAX_ANNOTATION_BYTES: Final = 256 * 1024
"""How large all annotations of an object together may be."""

_GO_ESCAPED: Final = re.compile("[<>&\u2028\u2029]")
_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_META: Final = {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
_CUSTOM_SCHEMA: Final = Schema({"type": "object", "properties": {"metadata": _META}}, DEFINITIONS)


def with_owner_and_hash(placed: DesiredObject, owner: WorkOwner) -> dict[str, Any]:
    """The manifest with its owner and the hash of the manifest."""
    metadata = placed.manifest["metadata"]
    annotations = {**_annotations_to_keep(metadata), SPEC_HASH: placed.digest}
    owned = {**metadata, "annotations": annotations, "ownerReferences": [owner.reference]}
    return {**placed.manifest, "metadata": owned}


def with_last_applied(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same with the last-applied annotation; None if that would be too large."""
    annotations = {**config["metadata"]["annotations"], LAST_APPLIED: _as_go_writes(config)}
    if sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items()) > MAX_ANNOTATION_BYTES:
        return None
    return {**config, "metadata": {**config["metadata"], "annotations": annotations}}


def merged_object(resource: Resource, wanted: Mapping[str, Any], live: Object, owner: WorkOwner) -> dict[str, Any]:
    """What a live object should be: what is asked for, and what others have set."""
    schema = _schema(resource.group, resource.version, resource.kind)
    merged = three_way_merge(schema, last_applied(live), wanted, live)
    owners = owner.among(live["metadata"].get("ownerReferences") or ())
    return {**merged, "metadata": {**merged["metadata"], "ownerReferences": owners}}


def last_applied(live: Object) -> dict[str, Any]:
    """The configuration in the last-applied annotation; empty if there is none."""
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED, "")
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return {}
    return found if isinstance(found, dict) else {}


def without_last_applied(obj: Object) -> dict[str, Any]:
    """The object without the last-applied annotation, which is not updated any more."""
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "annotations": _annotations_to_keep(metadata)}}


@cache
def _schema(group: str, version: str, kind: str) -> Schema:
    """How the lists of a kind merge: as published for built-in kinds; for custom kinds only those of the metadata."""
    if "." in group and not group.endswith(".k8s.io"):
        return _CUSTOM_SCHEMA
    try:
        return schema_of(group, version, kind)
    except LookupError:
        return _CUSTOM_SCHEMA


def _annotations_to_keep(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in metadata.get("annotations", {}).items() if name != LAST_APPLIED}


def _as_go_writes(config: Mapping[str, Any]) -> str:
    text = _ENCODER.encode(config).decode()
    return _GO_ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


# From client-side to server-side apply


ManagedFields: TypeAlias = Mapping[str, Any]


def upgraded_managed_fields(entries: Sequence[ManagedFields], manager: str) -> list[ManagedFields] | None:
    """The managed fields with the manager's updates changed to applies; None if there is nothing to change."""
    updates = [entry for entry in entries if _is_by(entry, manager, "Update")]
    if not updates:
        return None
    applies = [entry for entry in entries if _is_by(entry, manager, "Apply")]
    fields: dict[str, Any] = {}
    for entry in (*applies, *updates):
        fields = _union(fields, entry.get("fieldsV1") or {})
    rest = [entry for entry in entries if entry not in updates and entry not in applies]
    return [*rest, {**(applies or updates)[0], "operation": "Apply", "fieldsV1": fields}]


def _is_by(entry: ManagedFields, manager: str, operation: str) -> bool:
    return entry.get("manager") == manager and entry.get("operation") == operation and not entry.get("subresource")


def _union(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    both = {name: _union(one[name], other[name]) for name in one if name in other}
    return {**one, **other, **both}

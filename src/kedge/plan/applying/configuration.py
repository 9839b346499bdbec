"""Configuration: what is written for a manifest, and the annotations that remember it on the object itself.

`spec-hash` says which manifest it was; `last-applied-configuration` says all of it, so that the next one can tell what
it no longer asks for. The text is the one KubeFleet's agent writes (JSON as Go prints it, and a new line), so that
either agent can go on where the other stopped.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

from kedge.api.fleet import LAST_APPLIED, SPEC_HASH
from kedge.api.openapi.builtin import DEFINITIONS, schema_of
from kedge.api.openapi.model import Schema
from kedge.api.resource import Resource
from kedge.plan.applying.manifests import Placed
from kedge.plan.applying.merging import Object, three_way
from kedge.plan.applying.owning import Owner

MOST: Final = 256 * 1024
"""How many bytes the annotations of an object may have together."""

_IN_HTML: Final = re.compile("[<>&\u2028\u2029]")
_ENCODER: Final = msgspec.json.Encoder(order="sorted")
_META: Final = {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
_CUSTOM: Final = Schema({"type": "object", "properties": {"metadata": _META}}, DEFINITIONS)


def configured(placed: Placed, owner: Owner) -> dict[str, Any]:
    """The object as it is asked for: the manifest, whose it is, and which manifest it was."""
    metadata = placed.manifest["metadata"]
    annotations = {**_annotations_to_keep(metadata), SPEC_HASH: placed.digest}
    owned = {**metadata, "annotations": annotations, "ownerReferences": [owner.reference]}
    return {**placed.manifest, "metadata": owned}


def remembered(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """The same, with the annotation that says all of it; None if that would be too large for an annotation."""
    annotations = {**config["metadata"]["annotations"], LAST_APPLIED: _written(config)}
    if sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items()) > MOST:
        return None
    return {**config, "metadata": {**config["metadata"], "annotations": annotations}}


def target(resource: Resource, wanted: Mapping[str, Any], live: Object, owner: Owner) -> dict[str, Any]:
    """What a live object should be: what is asked for, and all that others have to say of it."""
    schema = _schema(resource.group, resource.version, resource.kind)
    merged = three_way(schema, last_applied(live), wanted, live)
    owners = owner.among(live["metadata"].get("ownerReferences") or ())
    return {**merged, "metadata": {**merged["metadata"], "ownerReferences": owners}}


def last_applied(live: Object) -> dict[str, Any]:
    """What the object was asked to be the last time; nothing if it does not say."""
    text = (live["metadata"].get("annotations") or {}).get(LAST_APPLIED, "")
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return {}
    return found if isinstance(found, dict) else {}


def without_last_applied(obj: Object) -> dict[str, Any]:
    """The object without the annotation that says what was asked for: nobody keeps it up any more."""
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "annotations": _annotations_to_keep(metadata)}}


@cache
def _schema(group: str, version: str, kind: str) -> Schema:
    """How the lists of a kind merge: a built-in one's as published; of a custom one only those of its metadata."""
    if "." in group and not group.endswith(".k8s.io"):
        return _CUSTOM
    try:
        return schema_of(group, version, kind)
    except LookupError:
        return _CUSTOM


def _annotations_to_keep(metadata: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for name, value in metadata.get("annotations", {}).items() if name != LAST_APPLIED}


def _written(config: Mapping[str, Any]) -> str:
    text = _ENCODER.encode(config).decode()
    return _IN_HTML.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"

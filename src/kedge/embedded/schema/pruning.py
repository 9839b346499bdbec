"""Pruning: a sent object as a custom kind, without what its schema does not name.

    pruned(schema, sent)

Promises only members that the schema knows, or keeps unread (`x-kubernetes-preserve-unknown-fields`); metadata, its
own and that of embedded objects, as every kind has it; whole numbers as integers (`1.0` is `1`). Checks no types but
metadata's: validation does, and says which. Gives the same object if nothing had to go, and shares what stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import is_
from typing import Any, TypeAlias

import msgspec

from kedge.api.openapi.builtin import named
from kedge.api.openapi.model import Schema
from kedge.embedded.schema import builtin_decoding
from kedge.embedded.schema.builtin_decoding import DecodedStruct
from kedge.embedded.schema.type_errors import TypeMismatch
from kedge.kube.codec import Untyped

Json: TypeAlias = Any

OBJECT_META = named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
_OF_EVERY_OBJECT = ("apiVersion", "kind", "metadata")
_NOTHING = Schema({})
_WITH_INSIDE = (dict, list, float)
_EXACT = 2**53  # beyond it a float no longer says which whole number it was


def pruned(schema: Schema, obj: Untyped, known: Untyped | None = None) -> DecodedStruct:
    """An object as its custom kind has it; raises TypeMismatch if its metadata, or that of an object in it, is none.

    `known` is an object that was pruned before: members that are the very same in it are not looked at again.
    """
    unknown: list[str] = []
    try:
        return DecodedStruct(_object(schema, obj, unknown, known or {}), bool(unknown))
    except TypeMismatch as mismatch:
        raise _located(schema, obj) or mismatch from None


def embedded_metadata(schema: Schema, value: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """The metadata of each object that the schema says is in a value, and its path."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from embedded_metadata(schema.items or _NOTHING, item, f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    if path and schema.is_object and value.get("metadata") is not None:
        yield f"{path}.metadata", value["metadata"]
    for name, item in value.items():
        if (inner := schema.at(name)) is not None:
            yield from embedded_metadata(inner, item, f"{path}.{name}" if path else name)


def _object(schema: Schema, obj: Untyped, unknown: list[str], known: Untyped) -> Untyped:
    """An object: what every object has is read as that, the rest is its kind's."""
    own = {
        name: item
        for name, item in obj.items()
        if name not in _OF_EVERY_OBJECT and item is not known.get(name, _NOTHING)
    }
    changes = _members(schema, own, unknown)
    metadata = obj.get("metadata")
    if metadata is not None and metadata is not known.get("metadata"):
        found = builtin_decoding.decode_struct(OBJECT_META, metadata)
        unknown.extend(["metadata"] * found.has_unknown)
        metadata = found.obj
    if changes is own and metadata is obj.get("metadata"):
        return obj
    merged = {**obj, **changes, **({} if metadata is None else {"metadata": metadata})}
    return {name: item for name, item in merged.items() if name not in own or name in changes}


def _members(schema: Schema, value: Untyped, unknown: list[str]) -> Untyped:
    changes: Untyped = {}
    gone: list[str] = []
    keeps = schema.raw.get("x-kubernetes-preserve-unknown-fields")
    properties, values = schema.properties, schema.values
    for name, item in value.items():
        inner = properties.get(name, values)
        if inner is None:
            if not keeps:
                gone.append(name)
        elif type(item) in _WITH_INSIDE and (new := _pruned(inner, item, unknown)) is not item:
            changes[name] = new
    unknown += gone
    if gone:
        return {name: changes.get(name, item) for name, item in value.items() if name not in gone}
    return {**value, **changes} if changes else value


def _pruned(schema: Schema, value: Json, unknown: list[str]) -> Json:
    if type(value) is dict:
        return _object(schema, value, unknown, {}) if schema.is_object else _members(schema, value, unknown)
    if type(value) is float:
        return int(value) if value.is_integer() and abs(value) < _EXACT else value
    if type(value) is not list:
        return value
    if schema.items is None and schema.raw.get("x-kubernetes-preserve-unknown-fields"):
        return value
    items = schema.items or _NOTHING
    new = [_pruned(items, item, unknown) for item in value]
    return value if all(map(is_, new, value)) else new


def _located(schema: Schema, obj: Untyped) -> TypeMismatch | None:
    """The first object inside whose metadata is none, with its path; None if it is the object's own metadata."""
    if (metadata := obj.get("metadata")) is not None and _type_mismatch(metadata):
        return None
    for path, value in embedded_metadata(schema, obj):
        if mismatch := _type_mismatch(value):
            shown = msgspec.json.encode(value, order="sorted").decode()
            return TypeMismatch(f"{path}: Invalid value: {shown}: {mismatch}")
    return None


def _type_mismatch(metadata: Json) -> TypeMismatch | None:
    try:
        builtin_decoding.decode_struct(OBJECT_META, metadata)
    except TypeMismatch as mismatch:
        return mismatch
    return None

"""Schema: the structural OpenAPI v3 schema of a type, for one edition of a CRD.

Promises what kube-apiserver asks of a structural schema, in a stable order. Assumes types made of `Value`s, tuples,
mappings from text, enums and scalars. Refuses (SchemaError, with the path) what it cannot say exactly.

Descriptions are the sentences that stand below a type's fields in its source: the same wherever it is installed.
Refuses (OSError) where it is not, rather than leave them out.
"""

from __future__ import annotations

import ast
import inspect
import sys
import types
from collections.abc import Iterator, Mapping
from copy import deepcopy
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from kedge.api.markers import Edition, Rule, Schema, said_of
from kedge.api.meta import ObjectMeta, SignedMeta

Node: TypeAlias = dict[str, Any]

_METAS = (ObjectMeta, SignedMeta)
"""What the server describes by itself."""
_PLAIN: Mapping[Any, Node] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    datetime: {"type": "string", "format": "date-time"},
    Any: {"x-kubernetes-preserve-unknown-fields": True},
    frozenset((int, str)): {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
}
_WORDS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
    "max_items": "maxItems",
    "min_properties": "minProperties",
    "max_properties": "maxProperties",
    "pattern": "pattern",
    "format": "format",
    "enum": "enum",
    "default": "default",
    "nullable": "nullable",
    "rules": "x-kubernetes-validations",
    "list_type": "x-kubernetes-list-type",
    "list_map_keys": "x-kubernetes-list-map-keys",
    "map_type": "x-kubernetes-map-type",
    "preserve_unknown_fields": "x-kubernetes-preserve-unknown-fields",
    "embedded_resource": "x-kubernetes-embedded-resource",
}
_ORDER = (
    *("description", "type", "anyOf", "enum", "default", "nullable", "format", "pattern"),
    *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
    *("required", "properties", "additionalProperties", "items"),
)
_ONLY_FOR = {
    "minimum": ("integer", "number", "int-or-string"),
    "maximum": ("integer", "number"),
    "minLength": ("string",),
    "maxLength": ("string", "int-or-string"),
    "pattern": ("string", "int-or-string"),
    "enum": ("string",),
    "minItems": ("array",),
    "maxItems": ("array",),
    "x-kubernetes-list-type": ("array",),
    "x-kubernetes-list-map-keys": ("array",),
    "x-kubernetes-map-type": ("object",),
    "x-kubernetes-embedded-resource": ("object",),
    "minProperties": ("object",),
    "maxProperties": ("object",),
}


class SchemaError(TypeError):
    """A type that no structural schema can describe."""


def object_schema(kind: type[Struct], edition: Edition, markers: tuple[Schema, ...] = ()) -> Node:
    """The schema of a whole object: that of its kind, with what every object has around it."""
    node = _Walk(edition).node(kind, first_paragraph(kind.__doc__), path="", said_here=markers)
    node["properties"] = {**_TYPE_META, "metadata": {"type": "object"}} | node["properties"]
    return node


_TYPE_META = {
    "apiVersion": {"description": "The API group and version this object is written in.", "type": "string"},
    "kind": {"description": "What this object is.", "type": "string"},
}


class _Walk:
    """One walk down a type, in one edition."""

    def __init__(self, edition: Edition) -> None:
        self.edition = edition
        self.inside: list[type] = []

    def node(self, annotation: Any, doc: str, path: str, said_here: tuple[Schema, ...] = ()) -> Node:
        bare, markers = unwrap(annotation)
        node = _described(doc or _own_doc(bare)) | self.shape(bare, path)
        node |= _written(said_of(self.edition, (*markers, *said_here)))
        _check(node, path)
        return _ordered(node)

    def shape(self, bare: Any, path: str) -> Node:
        """What the type alone says."""
        if bare in _PLAIN:
            return deepcopy(_PLAIN[bare])
        if isinstance(bare, type) and issubclass(bare, Struct):
            return self.object(bare, path)
        if isinstance(bare, type) and issubclass(bare, Enum):
            return {"type": "string", "enum": [member.value for member in bare]}
        origin, arguments = get_origin(bare), get_args(bare)
        if origin is tuple and arguments[1:] == (...,):
            return {"type": "array", "items": self.node(arguments[0], "", f"{path}[]")}
        if origin is Mapping and arguments[0] is str:
            return self.map(arguments[1], path)
        raise SchemaError(f"{path or 'the object'}: no structural schema can say {bare!r}")

    def map(self, value: Any, path: str) -> Node:
        if value is Any:
            return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        return {"type": "object", "additionalProperties": self.node(value, "", f"{path}{{}}")}

    def object(self, kind: type[Struct], path: str) -> Node:
        if kind in self.inside:
            raise SchemaError(f"{path}: {kind.__name__} holds itself, and a structural schema must end")
        self.inside.append(kind)
        described = list(self.properties(kind, path))
        self.inside.pop()
        properties = {field.encode_name: node for field, node in described}
        required = sorted(field.encode_name for field, _ in described if self.is_required(field))
        return {"type": "object", "properties": properties} | ({"required": required} if required else {})

    def properties(self, kind: type[Struct], path: str) -> Iterator[tuple[FieldInfo, Node]]:
        for field, doc in _layout(kind):
            if field.type not in _METAS and not self.words(field).get("absent"):
                yield field, self.node(field.type, doc, f"{path}.{field.encode_name}".lstrip("."))

    def is_required(self, field: FieldInfo) -> bool:
        has_default = field.default is not NODEFAULT or field.default_factory is not NODEFAULT
        return bool(self.words(field).get("required", not has_default))

    def words(self, field: FieldInfo) -> Mapping[str, Any]:
        return said_of(self.edition, unwrap(field.type)[1])


@cache
def _layout(kind: type[Struct]) -> tuple[tuple[FieldInfo, str], ...]:
    """A type's fields by their wire names, each with what its source says of it."""
    docs = field_docs(kind)
    ordered = sorted(fields(kind), key=lambda field: field.encode_name)
    return tuple((field, docs.get(field.name, "")) for field in ordered)


def unwrap(annotation: Any) -> tuple[Any, tuple[Schema, ...]]:
    """A type without its markers and its None, and the markers, innermost first. Several types come as a set."""
    if get_origin(annotation) is Annotated:
        inner, *extras = get_args(annotation)
        bare, markers = unwrap(inner)
        return bare, (*markers, *(extra for extra in extras if isinstance(extra, Schema)))
    if get_origin(annotation) in (Union, types.UnionType):
        members = tuple(member for member in get_args(annotation) if member is not types.NoneType)
        return unwrap(members[0]) if len(members) == 1 else (frozenset(members), ())
    return annotation, ()


def _described(doc: str) -> Node:
    return {"description": doc} if doc else {}


def _own_doc(bare: Any) -> str:
    return first_paragraph(bare.__doc__) if isinstance(bare, type) and issubclass(bare, Struct) else ""


def _written(words: Mapping[str, Any]) -> Node:
    """Words of a marker, as OpenAPI spells them."""
    return {_WORDS[word]: _plain(value) for word, value in words.items() if word in _WORDS}


def _plain(value: Any) -> Any:
    if isinstance(value, Rule):
        return {"rule": value.cel, "message": value.message}
    if isinstance(value, Enum):
        return value.value
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _ordered(node: Node) -> Node:
    known = {word: node[word] for word in _ORDER if word in node}
    return known | {word: node[word] for word in sorted(node) if word not in _ORDER}


def _check(node: Node, path: str) -> None:
    """Refuse what kube-apiserver would refuse or ignore."""
    kind = node.get("type", "int-or-string")
    for word, kinds in _ONLY_FOR.items():
        if word in node and kind not in kinds:
            raise SchemaError(f"{path}: {word} says nothing about type {kind}")
    if "enum" in node and node.get("default", node["enum"][0]) not in node["enum"]:
        raise SchemaError(f"{path}: the default {node['default']!r} is none of {node['enum']}")
    if (node.get("x-kubernetes-list-type") == "map") != ("x-kubernetes-list-map-keys" in node):
        raise SchemaError(f"{path}: a list of type map needs its keys, and no other list has any")
    for key in node.get("x-kubernetes-list-map-keys", ()):
        _check_key(node["items"], key, path)


def _check_key(item: Node, key: str, path: str) -> None:
    known = item.get("properties", {}).get(key)
    if known is None or not (key in item.get("required", ()) or "default" in known):
        raise SchemaError(f"{path}: the list's key {key!r} must be a required or defaulted field of its items")


# Descriptions


def first_paragraph(text: str | None) -> str:
    """A docstring's opening, on one line; empty if there is none."""
    return " ".join(inspect.cleandoc(text).split("\n\n")[0].split()) if text else ""


def field_docs(kind: type) -> Mapping[str, str]:
    """Attribute name → what the string below it says, those of base classes included."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, Struct) and base is not Struct:
            found |= _module_docs(base.__module__).get(base.__name__, {})
    return found


@cache
def _module_docs(module: str) -> Mapping[str, Mapping[str, str]]:
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: dict(_attribute_docs(node)) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def _attribute_docs(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in zip(node.body, node.body[1:], strict=False):
        match field, below:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, first_paragraph(text)

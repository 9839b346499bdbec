"""CEL types: what CEL sees of a value with a schema.

Static types, to refuse a rule that reads a member which cannot exist; and the values as rules expect them: whole
numbers as doubles where the schema says `number`, bytes where it says `byte`, and members whose names are no CEL names
under their escaped ones (`__namespace__`, `a__dash__b`). Times and durations stay strings: `cel_type_check` rewrites
the rules that read them.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from kedge.api.openapi.model import Schema
from kedge.embedded.custom.ratcheting import NO_OLD_VALUE, old_item, old_member
from kedge.embedded.go_text import go_json

Converter: TypeAlias = Callable[[Any], Any]

_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_SCALARS = {"boolean": "bool", "integer": "int", "number": "double"}
_TEXTS = {"byte": "bytes", "date": "timestamp", "date-time": "timestamp", "duration": "duration"}
_EXPANDED = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


class CelType:
    """A static type: an object with its fields, a map or list with what is in it, or a scalar."""

    def __init__(self, name: str, schema: Schema | None = None, *, is_root: bool = False) -> None:
        self.name = name
        self._schema = schema
        self._is_root = is_root

    @cached_property
    def fields(self) -> Mapping[str, CelType]:
        """An object's members, by their CEL names."""
        if self._schema is None:
            return {}
        found = {
            escaped_name(name): cel_type_of(one, is_root=one.is_object) for name, one in self._schema.properties.items()
        }
        own = {name: one for name, one in found.items() if name and one is not None}
        return {**own, **_ROOT_FIELDS} if self._is_root else own

    @cached_property
    def inside(self) -> CelType:
        """What a map or list holds."""
        below = self._schema and (self._schema.items if self.name == "list" else self._schema.values)
        return (below and cel_type_of(below, is_root=below.is_object)) or DYN

    def __str__(self) -> str:
        match self.name:
            case "list":
                return f"list({self.inside})"
            case "map":
                return f"map(string, {self.inside})"
        return self.name


class _Fields(CelType):
    """An object whose fields are known without a schema."""

    def __init__(self, fields: Mapping[str, CelType]) -> None:
        super().__init__("object")
        self.__dict__["fields"] = fields


DYN = CelType("dyn")
_STRING = CelType("string")
_ROOT_FIELDS: Mapping[str, CelType] = {
    "apiVersion": _STRING,
    "kind": _STRING,
    "metadata": _Fields({"name": _STRING, "generateName": _STRING}),
}


def cel_type_of(schema: Schema, *, is_root: bool = False) -> CelType | None:
    """The type of values with a schema; None if rules cannot see them."""
    if schema.raw.get("x-kubernetes-int-or-string"):
        return DYN
    match schema.type:
        case "object" if schema.values is not None and "additionalProperties" in schema.raw:
            return CelType("map", schema) if cel_type_of(schema.values) is not None else None
        case "object":
            return CelType("object", schema, is_root=is_root)
        case "array":
            return (
                CelType("list", schema) if schema.items is not None and cel_type_of(schema.items) is not None else None
            )
        case "string":
            return CelType(_TEXTS.get(schema.format, "string"))
    return CelType(_SCALARS[schema.type]) if schema.type in _SCALARS else None


def escaped_name(name: str) -> str:
    """The CEL name of a member; empty if it can have none."""
    if name in _RESERVED:
        return f"__{name}__"
    if not name or name[0].isdigit() or re.search(r"[^a-zA-Z0-9_./-]", name):
        return ""
    return re.sub(r"__|[-./]", lambda found: _EXPANDED[found.group()], name)


def cel_value(schema: Schema, value: Any) -> Any:
    """A value as rules see it. Shares what needs no change."""
    convert = schema.once(_converter)
    return value if convert is None else convert(value)


NeededMembers: TypeAlias = "dict[str, NeededMembers] | None"


def needed_members(schema: Schema, ways: Iterable[Sequence[str]]) -> NeededMembers:
    """The members that a rule reads (by their CEL names); None if all."""
    found: dict[str, list[Sequence[str]]] = {}
    for way in ways:
        if not way:
            return None
        found.setdefault(way[0], []).append(way[1:])
    if schema.type != "object":
        return None
    names = {escaped_name(name): name for name in schema.properties}
    return {names.get(name, name): _needs_below(schema, names.get(name, name), rest) for name, rest in found.items()}


def _needs_below(schema: Schema, name: str, ways: list[Sequence[str]]) -> NeededMembers:
    below = schema.at(name)
    return None if below is None else needed_members(below, ways)


def reduce_to(value: Any, needed: NeededMembers) -> Any:
    """Only the needed members of a value: converting a whole object costs more than evaluating the rule."""
    if needed is None or not isinstance(value, dict):
        return value
    return {name: reduce_to(value[name], inner) for name, inner in needed.items() if name in value}


def in_order_of(schema: Schema | None, new: Any, old: Any) -> Any:
    """The old value with its sets and keyed lists in the order of the new one, if they differ in nothing else.

    CEL compares lists item by item; to Kubernetes the order of such lists means nothing.
    """
    if schema is None or not schema.once(_has_unordered):
        return old
    if isinstance(new, dict) and isinstance(old, dict):
        return {
            name: one
            if (was := old_member(schema, new, old, name)) is NO_OLD_VALUE
            else in_order_of(schema.at(name), new.get(name), was)
            for name, one in old.items()
        }
    if not isinstance(new, list) or not isinstance(old, list) or len(new) != len(old):
        return old
    return _reordered(schema, new, old)


def _reordered(schema: Schema, new: list[Any], old: list[Any]) -> list[Any]:
    if schema.list_type == "set":
        return new if sorted(map(go_json, new)) == sorted(map(go_json, old)) else old
    if schema.list_type != "map":
        return old
    found = [old_item(schema, old, one) for one in new]
    if any(one is NO_OLD_VALUE for one in found):
        return old
    return [in_order_of(schema.items, one, was) for one, was in zip(new, found, strict=True)]


def _has_unordered(schema: Schema) -> bool:
    below = [*schema.properties.values(), schema.values, schema.items]
    return schema.list_type != "atomic" or any(one is not None and one.once(_has_unordered) for one in below)


def _converter(schema: Schema) -> Converter | None:
    """How values of one node are converted; None if they are fine as they are."""
    match schema.type:
        case "number":
            return lambda value: float(value) if type(value) is int else value
        case "string" if schema.format == "byte":
            return _bytes
        case "string" if schema.format == "date":
            return lambda value: f"{value}T00:00:00Z" if isinstance(value, str) else value
        case "array" if schema.items is not None and (inner := schema.items.once(_converter)):
            return lambda value: [inner(one) for one in value] if isinstance(value, list) else value
        case "object":
            return _members(schema)
    return None


def _members(schema: Schema) -> Converter | None:
    if schema.values is not None and "additionalProperties" in schema.raw:
        inner = schema.values.once(_converter)
        return inner and (
            lambda value: {key: inner(one) for key, one in value.items()} if isinstance(value, dict) else value
        )
    names = {name: cel for name in schema.properties if (cel := escaped_name(name)) not in ("", name)}
    inside = {name: inner for name, one in schema.properties.items() if (inner := one.once(_converter))}
    if not names and not inside:
        return None

    def convert(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {names.get(key, key): inside[key](one) if key in inside else one for key, one in value.items()}

    return convert


def _bytes(value: Any) -> Any:
    try:
        return base64.b64decode(value, validate=True)
    except (ValueError, TypeError):
        return value

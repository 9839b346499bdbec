"""Built-in decoding: a sent object as a built-in kind, the way a Go struct decodes and encodes it.

    decoded = decode_struct(schema_of("apps", "v1", "Deployment"), sent)

Promises the object with known members only, each of its type; without nulls; without empty members, where Go omits them
(`paused: false`, but not `replicas: 0`); quantities and times in canonical form. Gives the same object if nothing had
to change, and shares what did not. Raises `TypeMismatch`, in kube-apiserver's words, for a member of the wrong type.
What Go writes for absent members is added by `zero_values`.

Each definition becomes a function when first needed, kept for the life of the process: writes are frequent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from kedge.api.openapi.builtin import named
from kedge.api.openapi.model import Schema
from kedge.embedded.schema import canonical_values
from kedge.embedded.schema.type_errors import GO_TYPES, TypeMismatch, go_type_of, type_mismatch
from kedge.kube.codec import Untyped

Json: TypeAlias = Any
_Decoder: TypeAlias = Callable[[Json, list[str]], Json]  # a value, and where to note unknown names -> the value as read

QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
MICRO_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_SCHEMA = f"{_EXTENSIONS}.JSONSchemaProps"
_STRUCT_WITHOUT_MEMBERS = f"{_EXTENSIONS}.CustomResourceSubresourceStatus"

_RANGES = {"int32": 2**31, "int64": 2**63}
_NOTHING = object()  # what a reader gives for a value that is to be left out


class DecodedStruct(Struct, frozen=True):
    """An object as it was read, and whether it had members that its kind does not know."""

    obj: Untyped
    has_unknown: bool = False


# How to read one member: a value of exactly that type is taken as it is, anything else is read; whether it stays when
# empty; and the Go struct it is embedded with, which Go's errors name. A tuple: it is taken apart for every member.
_Member: TypeAlias = tuple[type | None, _Decoder | None, bool, str]


def decode_struct(schema: Schema, obj: Untyped, known: Untyped | None = None) -> DecodedStruct:
    """An object as its kind has it; raises TypeMismatch.

    `known` is an object that was read before: members that are the very same in it are not looked at again.
    """
    unknown: list[str] = []
    fresh = obj if known is None else {name: item for name, item in obj.items() if item is not known.get(name)}
    found = _decoder(schema)(fresh, unknown)
    if fresh is not obj and len(fresh) < len(obj):
        found = {name: item for name, item in obj.items() if name not in fresh} | found
    return DecodedStruct(found, bool(unknown))


_UNKNOWN: _Member = (None, None, False, "")
_STRUCTS: dict[str, _Decoder] = {}  # by the name of the definition


def _decoder(schema: Schema, go_type: str = "") -> _Decoder:
    match schema.name:
        case "":
            return _unnamed(schema, go_type or go_type_of(schema))
        case name if name == QUANTITY:
            return _quantity
        case name if name == TIME:
            return _text(canonical_values.canonical_time)
        case name if name == MICRO_TIME:
            return _text(canonical_values.canonical_micro_time)
        case name if name == f"{_SCHEMA}OrArray":
            return _schema_or_array
        case name if name == f"{_SCHEMA}OrBool":
            return _schema_or_bool
    if not schema.properties and schema.name != _STRUCT_WITHOUT_MEMBERS:
        return _unnamed(schema, go_type_of(schema))
    if schema.name not in _STRUCTS:
        _STRUCTS[schema.name] = _struct(schema)
    return _STRUCTS[schema.name]


def _unnamed(schema: Schema, go_type: str) -> _Decoder:
    if schema.int_or_string:
        return _int_or_string
    if schema.items is not None:
        return _list(schema.items, go_type)
    if schema.values is not None and not schema.keeps_unknown:
        return _map(schema.values, go_type)
    match schema.type, schema.format:
        case "string", "byte":
            return _bytes(go_type)
        case "string", _:
            return _exactly(str, go_type)
        case "boolean", _:
            return _exactly(bool, go_type)
        case "integer", form:
            return _integer(go_type, _RANGES.get(form, 2**63), form or "int")
        case "number", _:
            return _number(go_type)
    return _as_it_is


def _struct(schema: Schema) -> _Decoder:
    """A reader of the members of a struct. They are compiled when first needed: a struct may hold itself."""
    struct = schema.name.rsplit(".", 1)[-1]
    go_type = go_type_of(schema)
    members: dict[str, _Member] = {}

    def read_struct(value: Json, unknown: list[str]) -> Json:
        if type(value) is not dict:
            raise type_mismatch(value, go_type, "struct")
        if not members:
            members.update({name: _member(node) for name, node in schema.properties.items()})
        changes: Untyped = {}
        try:
            for name, item in value.items():
                plain, read_item, keeps_empty, via = members.get(name, _UNKNOWN)
                if type(item) is plain:
                    if item or keeps_empty:
                        continue
                    item_read = _NOTHING
                elif read_item is None:
                    unknown.append(name)
                    item_read = _NOTHING
                elif item is None:
                    item_read = _NOTHING
                else:
                    item_read = read_item(item, unknown)
                    if not item_read and not keeps_empty:
                        item_read = _NOTHING
                    elif item_read is item:
                        continue
                changes[name] = item_read
        except TypeMismatch as mismatch:
            mismatch.inside(struct, via, name)
            raise
        return _with(value, changes) if changes else value

    return read_struct


def _with(value: Untyped, changes: Untyped) -> Untyped:
    merged = {**value, **changes}
    return {name: item for name, item in merged.items() if item is not _NOTHING}


def _member(schema: Schema) -> _Member:
    plain: type | None = None
    if not schema.name and not schema.int_or_string and schema.format != "byte":
        plain = {"string": str, "boolean": bool}.get(schema.type)
    raw = schema.raw
    # A time that stands for none reads as empty, and is left out wherever it is; so is a list or map that must be
    # there: nothing in it is written as null, which is filling's.
    keeps = schema.name not in (TIME, MICRO_TIME) and bool(
        schema.name or raw.get("x-go-pointer") or (raw.get("x-go-always") and schema.type not in ("array", "object"))
    )
    return plain, _decoder(schema), keeps, str(raw.get("x-go-via", ""))


def _list(items: Schema, go_type: str) -> _Decoder:
    read_item = _decoder(items, _inner(go_type, "[]"))
    plain = str if items.type == "string" and not items.name and items.format != "byte" else None
    empty = _empty(items)

    def read_list(value: Json, unknown: list[str]) -> Json:
        if type(value) is not list:
            raise type_mismatch(value, go_type, "slice")
        changed = None
        for index, item in enumerate(value):
            if type(item) is plain:
                continue
            item_read = empty if item is None else read_item(item, unknown)
            if item_read is not item:
                changed = changed or [*value]
                changed[index] = item_read
        return changed or value

    return read_list


def _map(values: Schema, go_type: str) -> _Decoder:
    read_item = _decoder(values, _inner(go_type, "map[string]"))
    plain = str if values.type == "string" and not values.name and values.format != "byte" else None
    empty = _empty(values)

    def read_map(value: Json, unknown: list[str]) -> Json:
        if type(value) is not dict:
            raise type_mismatch(value, go_type, "map")
        changes: Untyped = {}
        for name, item in value.items():
            if type(item) is plain:
                continue
            item_read = empty if item is None else read_item(item, unknown)
            if item_read is not item:
                changes[name] = item_read
        return {**value, **changes} if changes else value

    return read_map


def _inner(go_type: str, outer: str) -> str:
    return go_type.removeprefix(outer) if go_type.startswith(outer) else ""


def _empty(schema: Schema) -> Json:
    """What null means in a list or a map, where there is no leaving out."""
    if schema.name == QUANTITY:
        return "0"
    if schema.items is not None or (not schema.properties and schema.values is not None):
        return None
    return {"string": "", "boolean": False, "integer": 0, "number": 0}.get(schema.type, {})


def _exactly(kind: type, go_type: str) -> _Decoder:
    def read_exactly(value: Json, _unknown: list[str]) -> Json:
        if type(value) is not kind:
            raise type_mismatch(value, go_type, GO_TYPES[kind])
        return value

    return read_exactly


def _integer(go_type: str, bound: int, sort: str) -> _Decoder:
    def read_integer(value: Json, _unknown: list[str]) -> Json:
        if type(value) is int and -bound <= value < bound:
            return value
        if type(value) in (int, float):
            raise TypeMismatch(f"number {value}", go_type, sort, GO_TYPES[type(value)])
        raise type_mismatch(value, go_type, sort)

    return read_integer


def _number(go_type: str) -> _Decoder:
    def read_number(value: Json, _unknown: list[str]) -> Json:
        if type(value) not in (int, float):
            raise type_mismatch(value, go_type, "float64")
        return value

    return read_number


_read_int32 = _integer("int32", 2**31, "")


def _int_or_string(value: Json, unknown: list[str]) -> Json:
    return value if type(value) is str else _read_int32(value, unknown)


def _quantity(value: Json, _unknown: list[str]) -> Json:
    text = value if type(value) is str else str(value) if type(value) in (int, float) else ""
    try:
        canonical = canonical_values.canonical_quantity(text)
    except ValueError as error:
        raise TypeMismatch(str(error)) from None
    return value if canonical == value else canonical


def _text(canonical: Callable[[str], str], go_type: str = "string") -> _Decoder:
    def read_text(value: Json, _unknown: list[str]) -> Json:
        if type(value) is not str:
            raise type_mismatch(value, go_type, "")
        try:
            found = canonical(value)
        except ValueError as error:
            raise TypeMismatch(str(error)) from None
        return value if found == value else found

    return read_text


def _bytes(go_type: str) -> _Decoder:
    return _text(canonical_values.canonical_base64, go_type)


def _schema_or_array(value: Json, unknown: list[str]) -> Json:
    if type(value) is not list:
        return _nested_schema(value, unknown)
    read = [_nested_schema(one, unknown) for one in value]
    return value if all(new is old for new, old in zip(read, value, strict=True)) else read


def _schema_or_bool(value: Json, unknown: list[str]) -> Json:
    if type(value) not in (dict, bool):
        raise TypeMismatch("boolean or JSON schema expected")
    return _nested_schema(value, unknown)


def _nested_schema(value: Json, _unknown: list[str]) -> Json:
    """A schema that is one of several forms: what it does not know is dropped, and nobody is told."""
    return _decoder(named(_SCHEMA))(value, []) if type(value) is dict else value


def _as_it_is(value: Json, _unknown: list[str]) -> Json:
    return value

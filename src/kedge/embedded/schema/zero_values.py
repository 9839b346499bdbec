"""Zero values: what Go writes for absent members, because its structs always have them.

    with_zero_values(schema_of("apps", "v1", "Deployment"), obj)["status"]      # {} if there was none

For built-in kinds, after all defaults. Gives the same object if nothing was missing, and shares what did not change. A
schema from elsewhere never misses anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from operator import is_
from typing import Any, TypeAlias

from kedge.api.openapi.builtin import named
from kedge.api.openapi.model import Schema
from kedge.embedded.schema.builtin_decoding import MICRO_TIME, QUANTITY, TIME
from kedge.kube.codec import Untyped

Json: TypeAlias = Any
_SetZeros: TypeAlias = Callable[[Json], Json]

_ZEROS: Mapping[str, Json] = {"string": "", "boolean": False, "integer": 0, "number": 0}


def with_zero_values(schema: Schema, obj: Untyped, known: Untyped | None = None) -> Untyped:
    """The object with every member that Go would write.

    `known` is an object that was filled before: members that are the very same in it are not looked at again.
    """
    if not schema.name:
        return obj
    same = {name: item for name, item in obj.items() if item is known.get(name)} if known else {}
    rest = {name: item for name, item in obj.items() if name not in same} if same else obj
    found = {**_struct(schema.name)(rest), **same}
    return obj if len(found) == len(obj) and all(found[name] is item for name, item in obj.items()) else found


@cache
def _struct(name: str) -> _SetZeros:
    schema = named(name)
    always = {member: _zero(node) for member, node in schema.properties.items() if node.raw.get("x-go-always")}
    names = always.keys()
    inner: dict[str, _SetZeros] | None = None  # found when first needed: a struct may hold itself

    def fill(value: Json) -> Json:
        nonlocal inner
        if inner is None:
            inner = _zero_setters(schema)
        changes: Untyped = {}
        if not names <= value.keys():
            changes = {member: zero for member, zero in always.items() if member not in value}
        for member, old in value.items():
            if member in inner and old and (new := inner[member](old)) is not old:
                changes[member] = new
        return {**value, **changes} if changes else value

    return fill


def _zero_setters(schema: Schema) -> dict[str, _SetZeros]:
    found = ((member, _zero_setter(node)) for member, node in schema.properties.items())
    return {member: filler for member, filler in found if filler is not None}


def _zero_setter(schema: Schema) -> _SetZeros | None:
    """What fills a value of this schema; None if nothing is ever missing in one."""
    if schema.name and schema.properties:
        return _struct(schema.name) if _ever_sets(schema.name) else None
    if schema.items is not None:
        return _each_item(_zero_setter(schema.items))
    if schema.values is not None and not schema.keeps_unknown:
        return _each_value(_zero_setter(schema.values))
    return None


def _each_item(fill: _SetZeros | None) -> _SetZeros | None:
    def fill_items(value: Json) -> Json:
        assert fill is not None
        new = [fill(item) for item in value]
        return value if all(map(is_, new, value)) else new

    return fill_items if fill else None


def _each_value(fill: _SetZeros | None) -> _SetZeros | None:
    def fill_values(value: Json) -> Json:
        assert fill is not None
        changes = {name: new for name, item in value.items() if (new := fill(item)) is not item}
        return {**value, **changes} if changes else value

    return fill_values if fill else None


@cache
def _ever_sets(name: str) -> bool:
    return any(node.raw.get("x-go-always") for one in _within(name) for node in named(one).properties.values())


@cache
def _within(name: str) -> tuple[str, ...]:
    """The definition and all it can hold."""
    found: dict[str, None] = {}
    todo = [name]
    while todo:
        one = todo.pop()
        if one not in found:
            found[one] = None
            todo += [inner for node in named(one).properties.values() if (inner := _referenced(node))]
    return tuple(found)


def _referenced(schema: Schema) -> str:
    while not schema.name and (inner := schema.items or schema.values) is not None:
        schema = inner
    return schema.name if schema.properties else ""


def _zero(schema: Schema) -> Json:
    """What Go writes for nothing. Shared: never changed in place."""
    if schema.raw.get("x-go-pointer") or schema.name in (TIME, MICRO_TIME):
        return None
    if schema.name == QUANTITY:
        return "0"
    if schema.int_or_string:
        return 0
    if schema.name and schema.properties:
        return _struct(schema.name)({})
    return _ZEROS.get(schema.type)

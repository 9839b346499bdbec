"""Defaults: an object with the defaults of its schema.

As in Kubernetes: a null that may not be null is replaced by the default, or dropped if there is none; a missing member
gets its default, and that value gets its own defaults in turn. Idempotent. Nothing is changed in place: unchanged parts
are shared, and a value that lacks nothing is returned as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import UNSET

from kedge.api.openapi.model import Schema

Completer: TypeAlias = Callable[[Any, Any], Any]


def with_schema_defaults(schema: Schema, value: Any, known: Any = None) -> Any:
    """The value with the defaults of its schema. Parts shared with `known`, which has them, are skipped."""
    return schema.once(_completer)(value, known)


def _completer(schema: Schema) -> Completer:
    """How values of one node are completed."""
    fill = {name: one.default for name, one in schema.properties.items() if one.default not in (UNSET, None)}

    def complete(value: Any, known: Any) -> Any:
        if type(value) is dict:
            return _members(schema, fill, value, known if type(known) is dict else {})
        if type(value) is list and schema.items is not None:
            return _items(schema.items, value)
        return value

    return complete


def _members(schema: Schema, fill: dict[str, Any], value: dict[str, Any], known: dict[str, Any]) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    dropped: list[str] = []
    for name, one in value.items():
        if one is not None and type(one) not in (dict, list):
            continue
        below, was = schema.properties.get(name, schema.values), known.get(name)
        if below is None or (one is was and one is not None):
            continue
        made = _replaced(below, one, was)
        if made is None and one is None and not below.nullable:
            dropped.append(name)
        elif made is not one:
            changed[name] = made
    missing = {
        name: with_schema_defaults(schema.properties[name], one) for name, one in fill.items() if name not in value
    }
    if not changed and not dropped and not missing:
        return value
    kept = {name: one for name, one in value.items() if name not in dropped} if dropped else value
    return {**kept, **changed, **missing}


def _replaced(schema: Schema, one: Any, known: Any = None) -> Any:
    """A value, or what stands for a null that may not be one, completed."""
    if one is None and not schema.nullable and schema.default is not UNSET:
        one = schema.default
    return schema.once(_completer)(one, known) if type(one) in (dict, list) else one


def _items(schema: Schema, value: list[Any]) -> list[Any]:
    made = [_replaced(schema, one) for one in value]
    return value if all(new is old for new, old in zip(made, value, strict=True)) else made

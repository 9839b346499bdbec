"""Ratcheting: which part of an object corresponds to which part of its old state, and whether it is unchanged.

An unchanged part is accepted even if the schema would refuse it today. Members correspond by name. List items
correspond only by their keys, in lists with `x-kubernetes-list-type: map`; other lists are compared as a whole.
"""

from __future__ import annotations

from typing import Any, Final

from kedge.api.openapi.model import Schema


class _NoOldValue:
    def __repr__(self) -> str:
        return "NO_OLD_VALUE"


NO_OLD_VALUE: Final = _NoOldValue()
"""Stands for no old value; null is a value."""


def old_member(schema: Schema, new: Any, old: Any, name: str) -> Any:
    """The old value of a member, or `NO_OLD_VALUE`."""
    if not (isinstance(new, dict) and isinstance(old, dict)) or name not in old or schema.at(name) is None:
        return NO_OLD_VALUE
    return old[name]


def old_item(schema: Schema, old: Any, new_item: Any) -> Any:
    """The old item with the same keys, or `NO_OLD_VALUE`."""
    if schema.list_type != "map" or not isinstance(old, list) or not isinstance(new_item, dict):
        return NO_OLD_VALUE
    keys = _keys(schema, new_item)
    return next((one for one in old if isinstance(one, dict) and _keys(schema, one) == keys), NO_OLD_VALUE)


def unchanged(schema: Schema | None, new: Any, old: Any) -> bool:
    """Whether two values are equal, the order of keyed items apart. What has no schema counts as changed."""
    if schema is None or type(new) is not type(old):
        return False
    if isinstance(new, dict):
        return new.keys() == old.keys() and all(unchanged(schema.at(key), new[key], old[key]) for key in new)
    if not isinstance(new, list):
        return bool(new == old)
    if schema.list_type != "map":
        return identical(new, old)
    return len(new) == len(old) and all(unchanged(schema.items, one, old_item(schema, old, one)) for one in new)


def identical(one: Any, other: Any) -> bool:
    """Equality that tells 1, 1.0 and true apart, as JSON does."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(identical(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(identical, one, other))
    return bool(one == other)


def _keys(schema: Schema, one: dict[str, Any]) -> list[Any]:
    return [(type(one.get(key)), one.get(key)) for key in schema.list_keys]

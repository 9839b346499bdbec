"""Correlation: which part of an object is the same part of what it was before, and whether it is unchanged.

What is unchanged may stay as it is, even if a schema would refuse it today: Kubernetes calls that ratcheting. Members
correlate by name, items of a list only by their keys where the list has any (`x-kubernetes-list-type: map`); items of
other lists are the whole list's business.
"""

from __future__ import annotations

from typing import Any, Final

from kedge.api.openapi.model import Schema


class _Nothing:
    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = _Nothing()
"""Where there is nothing to compare with; null is a value."""


def member(schema: Schema, new: Any, old: Any, name: str) -> Any:
    """The old value of a member, or `NOTHING`."""
    if not (isinstance(new, dict) and isinstance(old, dict)) or name not in old or schema.at(name) is None:
        return NOTHING
    return old[name]


def item(schema: Schema, old: Any, new_item: Any) -> Any:
    """The old item that this one follows, or `NOTHING`."""
    if schema.list_type != "map" or not isinstance(old, list) or not isinstance(new_item, dict):
        return NOTHING
    keys = _keys(schema, new_item)
    return next((one for one in old if isinstance(one, dict) and _keys(schema, one) == keys), NOTHING)


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
    return len(new) == len(old) and all(unchanged(schema.items, one, item(schema, old, one)) for one in new)


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

"""Three-way merge: what an object should be, from what it is, what was asked for last, and what is asked for now.

    target = three_way_merge(schema, last_applied, wanted, live)

What is asked for is set. What was asked for and no longer is, is removed. Everything else belongs to others and stays.
Lists are replaced, unless the schema says that they merge: then their items are identified by their keys and merged
like maps. That is what `kubectl apply` does, with three differences. Items are identified by all their keys (a port by
number *and* protocol), so that the second of two does not replace the first. If labels, or a list that merges, are no
longer asked for at all, those of others stay. And the merge is done here, not by the server, so that the result is the
same on every server and for every kind. It must be written with the resourceVersion that was read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from msgspec import UNSET

from kedge.api.numbers import Quantity
from kedge.api.openapi.model import ANY, Schema
from kedge.api.openapi.ordering import in_both_orders

Json: TypeAlias = Any
Object: TypeAlias = Mapping[str, Any]
ItemKey: TypeAlias = Callable[[Json], Json]
"""The key of an item of a list; None if it has none."""

_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"


def three_way_merge(
    schema: Schema, last: Object, wanted: Object, live: Object, *, retain: bool = False
) -> dict[str, Any]:
    """What a map should be. With `retain` (retainKeys), fields that are not asked for are removed too."""
    target: dict[str, Any] = {}
    for name, value in live.items():
        if name not in wanted:
            left = (
                None if retain else _others_part(schema.at(name) or ANY, last[name], value) if name in last else value
            )
            if left is not None:
                target[name] = left
        elif wanted[name] is not None:
            target[name] = value
    for name, value in wanted.items():
        member = schema.at(name) or ANY
        if value is not None and not (name not in live and _is_dropped_by_server(member, value)):
            target[name] = _merged_value(member, last.get(name), value, live.get(name))
    return target


def _is_dropped_by_server(schema: Schema, wanted: Json) -> bool:
    """Whether it is empty and the server leaves it out: writing it would never end."""
    return (wanted == [] and schema.type == "array") or (wanted == {} and _is_map(schema))


def _is_map(schema: Schema) -> bool:
    """Whether it is a map with free keys, and not a struct: an empty struct may mean something."""
    return schema.values is not None and not schema.properties


def _others_part(schema: Schema, last: Json, live: Json) -> Json:
    """What others put into a map or list that is no longer asked for at all; None if there is nothing."""
    if isinstance(last, Mapping) and isinstance(live, Mapping) and _is_map(schema):
        return {name: value for name, value in live.items() if name not in last} or None
    if isinstance(last, list) and isinstance(live, list) and "merge" in schema.merge_strategy:
        return _merged_list(schema, last, [], live) or None
    return None


def _merged_value(schema: Schema, last: Json, wanted: Json, live: Json) -> Json:
    strategy = schema.merge_strategy
    if isinstance(wanted, Mapping) and isinstance(live, Mapping) and "replace" not in strategy:
        before = last if isinstance(last, Mapping) else {}
        return three_way_merge(schema, before, wanted, live, retain="retainKeys" in strategy)
    if isinstance(wanted, list) and isinstance(live, list) and "merge" in strategy:
        return _merged_list(schema, last if isinstance(last, list) else [], wanted, live)
    return live if _is_equal(schema, wanted, live) else _without_nulls(wanted)


def _merged_list(schema: Schema, last: list[Json], wanted: list[Json], live: list[Json]) -> list[Json]:
    """A list of items with keys: those asked for and those of others, in an order that respects both."""
    key_of = _item_key(schema)
    asked, there = _by_key(key_of, wanted), _by_key(key_of, live)
    if asked is None or there is None:
        return [_without_nulls(item) for item in wanted]  # items without keys: the list is replaced
    before = _by_key(key_of, last) or {}
    kept = {key: item for key, item in there.items() if key in asked or key not in before}
    merged = kept | {key: _merged_item(schema, before.get(key), item, there.get(key)) for key, item in asked.items()}
    return [merged[key] for key in in_both_orders(list(merged), list(asked), _order_before(there, merged))]


def _order_before(there: Mapping[Json, Json], merged: Mapping[Json, Json]) -> list[Json]:
    """The order before; new items take the places of removed ones, at the end, as kube-apiserver does it."""
    kept = [key for key in there if key in merged]
    new = [key for key in merged if key not in there]
    return [*kept, *new[: len(there) - len(kept)]]


def _merged_item(schema: Schema, last: Json, wanted: Json, live: Json) -> Json:
    if not (isinstance(wanted, Mapping) and isinstance(live, Mapping)):
        return _without_nulls(wanted)
    before = last if isinstance(last, Mapping) else {}
    return three_way_merge(schema.items or ANY, before, wanted, live, retain="retainKeys" in schema.merge_strategy)


def _by_key(key_of: ItemKey, items: Sequence[Json]) -> dict[Json, Json] | None:
    """The items by key; None if an item has no key, or two have the same."""
    found = {key: item for item in items if (key := key_of(item)) is not None}
    return found if len(found) == len(items) else None


def _item_key(schema: Schema) -> ItemKey:
    if not schema.merge_key:
        return _itself
    keys = schema.list_keys if schema.merge_key in schema.list_keys else (schema.merge_key,)
    items = schema.items or ANY
    defaults = {key: member.default for key in keys if (member := items.at(key)) is not None}

    def key_of(item: Json) -> Json:
        if not isinstance(item, Mapping):
            return None
        found = tuple(item.get(key, defaults.get(key, UNSET)) for key in keys)
        return None if UNSET in found or not all(isinstance(part, str | int) for part in found) else found

    return key_of


def _itself(item: Json) -> Json:
    return item if isinstance(item, str | int) else None


def _is_equal(schema: Schema, wanted: Json, live: Json) -> bool:
    """Whether nothing has to be written: a quantity may be spelled in another way."""
    if schema.name == _QUANTITY and isinstance(wanted, str) and isinstance(live, str):
        return _quantities_equal(wanted, live)
    return _is_same_json(wanted, live)


def _quantities_equal(one: str, other: str) -> bool:
    try:
        return Quantity.parse(one) == Quantity.parse(other)
    except ValueError:
        return one == other


def _is_same_json(one: Json, other: Json) -> bool:
    """Equal, and the same to JSON: `True` is not `1`, in a list either."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_is_same_json(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_is_same_json, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _without_nulls(value: Json) -> Json:
    if isinstance(value, Mapping):
        return {name: _without_nulls(item) for name, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value

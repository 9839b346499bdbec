"""Strategic merge: a patch that merges lists by keys.

    strategic_merge(schema_of("apps", "v1", "Deployment"), deployment, patch)

Maps are merged, null removes, lists are replaced unless the schema says that they merge: by the key it names, or as
sets of primitives. Directives inside the patch say otherwise: `$patch` (replace, delete), `$retainKeys`,
`$setElementOrder/x`, `$deleteFromPrimitiveList/x`. Pure: neither value is changed, and what the patch does not touch
is shared with the result. Refuses, as kube-apiserver does and with its codes, patches that contradict themselves.
For built-in kinds only: a custom one has no merge keys of this sort, and the server says 415.
"""

from __future__ import annotations

from operator import is_
from typing import Any, TypeAlias

from kedge.api.openapi.model import ANY, Schema
from kedge.api.openapi.ordering import in_both_orders, place
from kedge.embedded.go_text import go_print
from kedge.embedded.statuses import Refused, bad_request, internal_error
from kedge.kube.codec import Untyped

Json: TypeAlias = Any

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder"
_DELETE = "$deleteFromPrimitiveList"
_BAD_RETAIN = "invalid patch format of retainKeys"
_BAD_ORDER = "invalid patch format of setElementOrder list"
_BAD_DELETE = "invalid patch format of primitive list"


def strategic_merge(schema: Schema, target: Untyped, patch: Untyped) -> Untyped:
    """The target with the patch merged into it."""
    if _PATCH in patch:
        return _directed(patch)
    old = _retained(target, patch)
    result = dict(old)
    rest = {key: value for key, value in patch.items() if key != _RETAIN}
    for key in [key for key in rest if key.startswith(_ORDER)]:
        name, order = _name(key, _ORDER, _BAD_ORDER), rest.pop(key)
        if name in result or name in rest:
            result[name] = _ordered(schema, name, result.get(name), rest.pop(name, None), order)
    # Deletions first: Go takes members as they come, and both orders mean the same.
    for key in sorted(rest, key=lambda key: not key.startswith(_DELETE)):
        _merge_member(schema, result, key, rest[key])
    return target if _same_members(result, target) else result


def _merge_member(schema: Schema, result: Untyped, key: str, value: Json) -> None:
    """Merge one member of a patch into what is to become the result."""
    deleting = key.startswith(_DELETE)
    name = _name(key, _DELETE, _BAD_DELETE) if deleting else key
    there = result.get(name)
    if value is None:
        result.pop(name, None)
    elif deleting and not (isinstance(there, list) and isinstance(value, list)):
        return
    elif isinstance(there, dict) and isinstance(value, dict):
        result[name] = _merged_map(schema, name, there, value)
    elif isinstance(there, list) and isinstance(value, list):
        result[name] = _merged_list(_node(schema, name), there, value, deleting=deleting)
    elif (plain := _undirected(value)) is _GONE:
        result.pop(name, None)
    else:
        result[name] = plain


def _merged_map(schema: Schema, name: str, old: Untyped, patch: Untyped) -> Untyped:
    node = _node(schema, name)
    return patch if _strategy(node) == "replace" else strategic_merge(node, old, patch)


def _directed(patch: Untyped) -> Untyped:
    match patch[_PATCH]:
        case "replace":
            return {name: value for name, value in patch.items() if name != _PATCH}
        case "delete":
            return {}
    raise internal_error(f"unknown patch type: {go_print(patch[_PATCH])} in map: {go_print(patch)}")


def _retained(old: Untyped, patch: Untyped) -> Untyped:
    """What is left of the old members if the patch says which to retain."""
    if _RETAIN not in patch:
        return old
    retained = patch[_RETAIN]
    if not isinstance(retained, list) or any(
        value is not None and name not in retained and not name.startswith((_RETAIN, _ORDER, _DELETE))
        for name, value in patch.items()
    ):
        raise bad_request(_BAD_RETAIN)
    return {name: value for name, value in old.items() if name in retained}


def _merged_list(node: Schema, old: list[Json], patch: list[Json], *, deleting: bool = False) -> list[Json]:
    if not deleting and _strategy(node) != "merge":
        return patch
    if not (old or patch):
        return old
    if not _holds_maps(old, patch):
        result = _merged_primitives(old, patch, deleting=deleting)
    elif node.merge_key:
        result = _merged_things(node, old, patch)
    else:
        raise internal_error(f"cannot merge lists without merge key for {(node.items or ANY).name.rsplit('.', 1)[-1]}")
    return old if len(result) == len(old) and all(map(is_, result, old)) else result


def _merged_primitives(old: list[Json], patch: list[Json], *, deleting: bool) -> list[Json]:
    if deleting:
        return [item for item in old if place(patch, item) is None]
    new = [item for item in dict.fromkeys(patch) if place(old, item) is None]
    return in_both_orders([*dict.fromkeys(old), *new], patch, old)


def _merged_things(node: Schema, old: list[Json], patch: list[Json]) -> list[Json]:
    """A list of named things: those in both are merged, those only in the patch are added."""
    key = node.merge_key
    plain = [item for item in patch if _PATCH not in item]
    doomed = [_key_of(item, key) for item in patch if _is_deletion(item)]
    left = [item for item in old if not any(_equal(item.get(key), one) for one in doomed)]
    if any(item.get(_PATCH) == "replace" for item in patch):
        return plain
    result = list(left)
    for item in plain:
        _key_of(item, key)
        at = place(result, item, key)
        if at is None:
            result.append(item)
        else:
            result[at] = strategic_merge(node.items or ANY, result[at], item)
    for item in result:
        _key_of(item, key)
    return in_both_orders(result, plain, left, key)


def _is_deletion(item: Untyped) -> bool:
    directive = item.get(_PATCH)
    if directive == "merge":
        raise internal_error("merging lists cannot yet be specified in the patch")
    if directive not in (None, "delete", "replace"):
        raise internal_error(f"unknown patch type: {go_print(directive)} in map: {go_print(item)}")
    return bool(directive == "delete")


def _ordered(schema: Schema, name: str, old: Json, patch: Json, order: Json) -> list[Json]:
    """A list in the order the patch gives; what it does not name stays where it was among the rest."""
    if not isinstance(order, list):
        raise _no_list(order)
    for value in (old, patch):
        if not isinstance(value, list | None):
            raise _no_list(value)
    node = _node(schema, name)
    key = node.merge_key
    _refuse_other_order(patch or [], order, key)
    if patch is None:
        merged = old
    elif old is None:
        merged = _undirected(patch)
    else:
        merged = _merged_list(node, old, patch)
    if not (old or patch):
        raise internal_error("no elements in any of the given slices")
    if key:
        for item in (*merged, *order):
            _key_of(item, key)
    return in_both_orders(merged, order, _order_before(old or [], merged, key), key)


def _order_before(old: list[Json], merged: list[Json], key: str) -> list[Json]:
    """The order that things had; in the place of each that was deleted stands one of the new ones, at the end.

    That is so because kube-apiserver reuses the list that was there, and it shows: what neither order names goes
    before a new thing only if something was deleted.
    """
    kept = [item for item in old if place(merged, item, key) is not None]
    new = [item for item in merged if place(old, item, key) is None]
    return [*kept, *new[: len(old) - len(kept)]]


def _refuse_other_order(patch: list[Json], order: list[Json], key: str) -> None:
    """A patch may not name things in another order than it asks for."""
    if not (patch and order):
        return
    wanted = iter(order)
    for item in patch:
        if key and isinstance(item, dict) and _PATCH in item:
            continue
        if not any(_equal(_identity(one, key), _identity(item, key)) for one in wanted):
            raise internal_error(
                f"The order in patch list:\n{go_print(patch)}\n doesn't match {_ORDER} list:\n{go_print(order)}\n"
            )


def _identity(item: Json, key: str) -> Json:
    return _key_of(item, key) if key else item


def _key_of(item: Json, key: str) -> Json:
    if not isinstance(item, dict):
        raise internal_error(f"expected a map[string]interface {{}}, but received a {_go_type(item)}")
    if key not in item:
        raise internal_error(f"map: {go_print(item)} does not contain declared merge key: {key}")
    return item[key]


def _holds_maps(*lists: list[Json]) -> bool:
    kinds = list(dict.fromkeys(type(item) for items in lists for item in items))
    if kinds[0] is list:
        raise Refused(422, "", "lists of lists are not supported", details={})
    if len(kinds) > 1:
        raise internal_error(f"list element types are not identical: {go_print(list(lists))}")
    return kinds[0] is dict


_GONE = object()


def _undirected(value: Json) -> Json:
    """A value that is taken as it comes: without nulls and directives. `_GONE` if it is itself one."""
    if isinstance(value, dict):
        if _PATCH in value:
            return _GONE
        plain = {name: _undirected(item) for name, item in value.items() if item is not None}
        return {name: item for name, item in plain.items() if item is not _GONE}
    if isinstance(value, list):
        return [plain for item in value if (plain := _undirected(item)) is not _GONE]
    return value


def _node(schema: Schema, name: str) -> Schema:
    if schema.properties and (node := schema.properties.get(name)) is not None:
        return node
    if schema.values is not None and not schema.properties:
        raise internal_error("merging an object in json but data type is not struct, instead is: map")
    struct = schema.name.rsplit(".", 1)[-1]
    raise internal_error(f'unable to find api field in struct {struct} for the json field "{name}"')


def _strategy(node: Schema) -> str:
    return next((one for one in node.merge_strategy if one != "retainKeys"), "")


def _name(key: str, prefix: str, otherwise: str) -> str:
    start, slash, name = key.partition("/")
    if not slash or start != prefix:
        raise bad_request(otherwise)
    return name


def _no_list(value: Json) -> Refused:
    return internal_error(f"expected a []interface {{}}, but received a {_go_type(value)}")


def _go_type(value: Json) -> str:
    names = {dict: "map[string]interface {}", list: "[]interface {}", str: "string", bool: "bool", int: "int64"}
    return names.get(type(value), "float64")


def _equal(one: Json, other: Json) -> bool:
    return type(one) is type(other) and bool(one == other)


def _same_members(one: Untyped, other: Untyped) -> bool:
    return len(one) == len(other) and all(one[name] is other.get(name, _GONE) for name in one)

"""Type check: whether a value conforms to a merge schema, and why not, in kube-apiserver's words.

Only what can be owned can be applied: members the schema names, of the right type, and list items with unique keys.
Everything else is left to validation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import msgspec

from kedge.embedded.ownership import field_set
from kedge.embedded.ownership.merge_schema import Form, Json, MergeSchema, MissingKeys

_SCALARS: dict[str, tuple[tuple[type, ...], str]] = {
    "": ((int, float, str, bool), "expected any scalar, got &{{{value}}}"),
    "string": ((str,), "expected string, got &value.valueUnstructured{{Value:{value}}}"),
    "boolean": ((bool,), "expected boolean, got &{{{value}}}"),
    "integer": ((int, float), "expected numeric (int or float), got {type}"),
    "number": ((int, float), "expected numeric (int or float), got {type}"),
}
_GO_TYPES = {str: "string", bool: "bool", list: "[]interface {}"}


def conforms(schema: MergeSchema, value: Json) -> bool:
    """Whether a value has no problems: the same as `type_problems`, but faster."""
    form = schema.form(value)
    if form == "map" and isinstance(value, dict):
        return all(map(partial(_member_conforms, schema.members, schema.rest), value.items()))
    if form == "list" and isinstance(value, list):
        return all(map(partial(conforms, schema.item), value)) and (
            schema.keys is None or _have_unique_keys(schema, value)
        )
    return value is None or not _wrong_type(schema, form, value)


def _member_conforms(members: Mapping[str, MergeSchema], rest: MergeSchema | None, member: tuple[str, Json]) -> bool:
    schema = members.get(member[0]) or rest
    return schema is not None and conforms(schema, member[1])


def _have_unique_keys(schema: MergeSchema, items: list[Json]) -> bool:
    try:
        return len({schema.step(item) for item in items}) == len(items)
    except MissingKeys:
        return False


def type_problems(schema: MergeSchema, value: Json) -> Iterable[str]:
    """What keeps a value from being of this schema, each as a place and a reason."""
    match schema.form(value):
        case "map" if isinstance(value, dict):
            yield from _map_problems(schema, value)
        case "list" if isinstance(value, list):
            yield from _list_problems(schema, value)
        case form if value is not None:
            if why := _wrong_type(schema, form, value):
                yield f": {why}"


def _map_problems(schema: MergeSchema, value: dict[str, Json]) -> Iterable[str]:
    for name, part in value.items():
        found = schema.members.get(name) or schema.rest
        if found is None:
            yield f".{name}: field not declared in schema"
            return  # as Kubernetes, which looks no further in this map
        yield from (f".{name}{problem}" for problem in type_problems(found, part))


def _list_problems(schema: MergeSchema, value: list[Json]) -> Iterable[str]:
    seen: set[str] = set()
    for index, item in enumerate(value):
        try:
            step = f"i:{index}" if schema.keys is None else schema.step(item)
        except MissingKeys as error:
            yield f": element {index}: {error}"
            return
        if step in seen:
            yield f": duplicate entries for key {field_set.path_text([step])}"
        seen.add(step)
        yield from (f"{field_set.path_text([step])}{problem}" for problem in type_problems(schema.item, item))


def _wrong_type(schema: MergeSchema, form: Form, value: Json) -> str:
    if form != "scalar":
        return f"expected {form}, got &{{{_go(value)}}}"
    fits, expected = _SCALARS[schema.scalar]
    if isinstance(value, fits) and (isinstance(value, bool) <= (bool in fits)):
        return ""
    return expected.format(type=_GO_TYPES.get(type(value), "map[string]interface {}"), value=_go(value))


def _go(value: Json) -> str:
    """A value as Go prints it, nearly."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

"""Fitting: whether a value is of a shape, and what keeps it from being so, in kube-apiserver's words.

Only what can be owned can be applied: members the schema names, of the type it says, and list items that can be told
apart. Everything else about a value is left to validation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial

import msgspec

from kedge.embedded.ownership import fields
from kedge.embedded.ownership.shapes import Form, Json, Shape, Unkeyed

_SCALARS: dict[str, tuple[tuple[type, ...], str]] = {
    "": ((int, float, str, bool), "expected any scalar, got &{{{value}}}"),
    "string": ((str,), "expected string, got &value.valueUnstructured{{Value:{value}}}"),
    "boolean": ((bool,), "expected boolean, got &{{{value}}}"),
    "integer": ((int, float), "expected numeric (int or float), got {type}"),
    "number": ((int, float), "expected numeric (int or float), got {type}"),
}
_GO_TYPES = {str: "string", bool: "bool", list: "[]interface {}"}


def fits(shape: Shape, value: Json) -> bool:
    """Whether a value has no problems: the same question, answered faster."""
    form = shape.form(value)
    if form == "map" and isinstance(value, dict):
        return all(map(partial(_member_fits, shape.members, shape.rest), value.items()))
    if form == "list" and isinstance(value, list):
        return all(map(partial(fits, shape.item), value)) and (shape.keys is None or _told_apart(shape, value))
    return value is None or not _misfit(shape, form, value)


def _member_fits(members: Mapping[str, Shape], rest: Shape | None, member: tuple[str, Json]) -> bool:
    shape = members.get(member[0]) or rest
    return shape is not None and fits(shape, member[1])


def _told_apart(shape: Shape, items: list[Json]) -> bool:
    try:
        return len({shape.step(item) for item in items}) == len(items)
    except Unkeyed:
        return False


def problems(shape: Shape, value: Json) -> Iterable[str]:
    """What keeps a value from being of this shape, each as a place and a reason."""
    match shape.form(value):
        case "map" if isinstance(value, dict):
            yield from _map_problems(shape, value)
        case "list" if isinstance(value, list):
            yield from _list_problems(shape, value)
        case form if value is not None:
            if why := _misfit(shape, form, value):
                yield f": {why}"


def _map_problems(shape: Shape, value: dict[str, Json]) -> Iterable[str]:
    for name, part in value.items():
        found = shape.members.get(name) or shape.rest
        if found is None:
            yield f".{name}: field not declared in schema"
            return  # as Kubernetes, which looks no further in this map
        yield from (f".{name}{problem}" for problem in problems(found, part))


def _list_problems(shape: Shape, value: list[Json]) -> Iterable[str]:
    seen: set[str] = set()
    for index, item in enumerate(value):
        try:
            step = f"i:{index}" if shape.keys is None else shape.step(item)
        except Unkeyed as error:
            yield f": element {index}: {error}"
            return
        if step in seen:
            yield f": duplicate entries for key {fields.text([step])}"
        seen.add(step)
        yield from (f"{fields.text([step])}{problem}" for problem in problems(shape.item, item))


def _misfit(shape: Shape, form: Form, value: Json) -> str:
    if form != "scalar":
        return f"expected {form}, got &{{{_go(value)}}}"
    fits, expected = _SCALARS[shape.scalar]
    if isinstance(value, fits) and (isinstance(value, bool) <= (bool in fits)):
        return ""
    return expected.format(type=_GO_TYPES.get(type(value), "map[string]interface {}"), value=_go(value))


def _go(value: Json) -> str:
    """A value as Go prints it, nearly."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

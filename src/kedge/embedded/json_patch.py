"""JSON patch: JSON patches (RFC 6902) and merge patches (RFC 7386), applied to an object.

Pure functions of JSON values; unchanged parts are shared between old and new, and neither is mutated. `json_patch` is
as lenient as kube-apiserver: replacing, testing or copying a missing member takes it for null, and indexes may count
from the end. It refuses everything else that cannot be done, without saying which operation failed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from kedge.embedded.statuses import bad_patch

Json: TypeAlias = Any  # what a JSON text can hold
Edit: TypeAlias = Callable[[Json, str], Json]  # a container and the last step to a place in it -> the new container


def merge_patch(target: Json, patch: Json) -> Json:
    """RFC 7386: what is given replaces what is there, null removes it, lists are replaced whole."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patch(result.get(key), value)
    return result


def json_patch(target: Json, operations: Sequence[Mapping[str, Json]]) -> Json:
    """RFC 6902: the operations in their order, all or none."""
    for operation in operations:
        target = _carry_out(target, operation)
    return target


def same_json(one: Json, other: Json) -> bool:
    """Whether two values are the same JSON: numbers by their value, and true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _carry_out(target: Json, operation: Mapping[str, Json]) -> Json:
    path = _steps(operation.get("path"))
    value = operation.get("value")
    match operation.get("op"):
        case "add":
            return _at(target, path, lambda place, step: _added(place, step, value))
        case "remove":
            return _at(target, path, _removed)
        case "replace":
            return _at(target, path, lambda place, step: _replaced(place, step, value)) if path else value
        case "move":
            source = _steps(operation.get("from"))
            moved = _found(target, source, required=True)
            without = _at(target, source, _removed)
            return _at(without, path, lambda place, step: _added(place, step, moved))
        case "copy":
            copied = _found(target, _steps(operation.get("from")))
            return _at(target, path, lambda place, step: _added(place, step, copied))
        case "test" if same_json(_found(target, path), value):
            return target
    raise bad_patch()


def _steps(pointer: Json) -> list[str]:
    """The steps of a JSON pointer (RFC 6901)."""
    if not isinstance(pointer, str) or not (pointer == "" or pointer.startswith("/")):
        raise bad_patch()
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _found(target: Json, path: list[str], *, required: bool = False) -> Json:
    """What stands at a place; a member that is not there is null, unless required."""
    if not path:
        raise bad_patch()
    *way, last = path
    for step in way:
        target = _child(target, step)
    if isinstance(target, dict) and last not in target and not required:
        return None
    return _child(target, last)


def _child(place: Json, step: str) -> Json:
    if isinstance(place, dict) and step in place:
        return place[step]
    if isinstance(place, list):
        return place[_index(step, len(place))]
    raise bad_patch()


def _at(target: Json, path: list[str], edit: Edit) -> Json:
    """The target with its container at the end of the path edited; containers on the way are copied."""
    if not path:
        raise bad_patch()
    step, *rest = path
    if not rest:
        return edit(target, step)
    return _with(target, step, _at(_child(target, step), rest, edit))


def _with(place: Json, step: str, value: Json) -> Json:
    if isinstance(place, dict):
        return {**place, step: value}
    index = _index(step, len(place))
    return [*place[:index], value, *place[index + 1 :]]


def _added(place: Json, step: str, value: Json) -> Json:
    if isinstance(place, dict):
        return {**place, step: value}
    if not isinstance(place, list):
        raise bad_patch()
    # One longer than the list is: there is a place behind its last element, and -1 means that one.
    index = len(place) if step == "-" else _index(step, len(place) + 1)
    return [*place[:index], value, *place[index:]]


def _removed(place: Json, step: str) -> Json:
    if isinstance(place, dict) and step in place:
        return {key: value for key, value in place.items() if key != step}
    if not isinstance(place, list):
        raise bad_patch()
    index = _index(step, len(place))
    return [*place[:index], *place[index + 1 :]]


def _replaced(place: Json, step: str, value: Json) -> Json:
    if not isinstance(place, dict | list):
        raise bad_patch()
    return _with(place, step, value)


def _index(step: str, length: int) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", step):
        raise bad_patch()
    index = int(step)
    if not -length <= index < length:
        raise bad_patch()
    return index % length

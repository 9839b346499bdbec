"""Field set: a set of fields of an object, as `fieldsV1` writes it.

    {"f:spec": {"f:replicas": {}, "f:ports": {'k:{"port":80}': {".": {}, "f:port": {}}}}}

A key leads one step down: `f:` to a member, `k:` to the list item with these keys, `v:` to the item that is this value,
`i:` to the item of this index. A node without keys is in the set; one with keys is only the way to others, unless it
also has the key `.`. The empty dict is the empty set: nobody owns "the object".

Sets are plain dicts, so that reading and writing them is reading and writing JSON. None is ever changed: every function
here gives a new one, which shares what it can with its arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, reduce
from typing import Any, TypeAlias

import msgspec

from kedge.embedded.go_text import go_json

FieldSet: TypeAlias = dict[str, Any]  # of Fields: the type is recursive, which msgspec does not take

HERE = "."
LEAF: FieldSet = {}  # shared by all that end here
_REMEMBERED = 4096  # steps to list items: the same few names come again and again
_KINDS = {".": 0, "f": 1, "k": 2, "v": 3, "i": 4}  # in this order Kubernetes writes them


class Malformed(ValueError):
    """Not a valid `fieldsV1`."""


def set_node(here: bool, below: FieldSet) -> FieldSet | None:
    """A node that is in the set or not, with what lies below it. None if both are empty."""
    if not here:
        return below or None
    return {HERE: LEAF, **below} if below else LEAF


def is_member(place: FieldSet) -> bool:
    """Whether a node is itself in the set."""
    return not place or HERE in place


def single_field(*steps: str) -> FieldSet:
    """The set of one field, given by its keys."""
    return reduce(lambda below, step: {step: below}, reversed(steps), LEAF)


def field_set(paths: Iterable[Iterable[str]]) -> FieldSet:
    """The set of these fields."""
    return reduce(union, (single_field(*steps) for steps in paths), LEAF)


def paths(fields: FieldSet, way: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every field in the set: those of one level first, then what lies below each; in Kubernetes' order."""
    steps = [step for step in ordered_keys(fields) if step != HERE]
    for step in steps:
        if is_member(fields[step]):
            yield (*way, step)
    for step in steps:
        yield from paths(fields[step], (*way, step))


def path_text(way: Iterable[str]) -> str:
    """A field as messages name it: `.spec.containers[name="web"].image`."""
    return "".join(map(_step_text, way))


# Sets of sets


def union(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in either."""
    if one is other or not other:
        return one
    if not one:
        return other
    result = dict(one)
    for step, place in other.items():
        found = result.get(step)
        result[step] = place if found is None else _both(found, place)
    return result


def difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in the one but not in the other. A field and what lies below it are independent."""
    return _each(one, other, _less) if one and other else one


def recursive_difference(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in the one, without what is in the other and all below that."""
    return _each(one, other, _cut) if one and other else one


def intersection(one: FieldSet, other: FieldSet) -> FieldSet:
    """What is in both."""
    result: FieldSet = {}
    for step, place in one.items():
        found = other.get(step)
        if found is not None and step != HERE and (shared := _shared(place, found)) is not None:
            result[step] = shared
    return result


def is_superset(one: FieldSet, other: FieldSet) -> bool:
    """Whether everything in the other is in the one."""
    return one == other or not difference(other, one)


def _each(one: FieldSet, other: FieldSet, less: Any) -> FieldSet:
    result: FieldSet = {}
    for step, place in one.items():
        found = other.get(step)
        left = place if found is None or step == HERE else less(place, found)
        if left is not None and step != HERE:
            result[step] = left
    return result


def _both(one: FieldSet, other: FieldSet) -> FieldSet:
    if not one and not other:
        return LEAF
    here = is_member(one) or is_member(other)
    below = union(_below(one), _below(other))
    return below if not here else {HERE: LEAF, **below}


def _less(one: FieldSet, other: FieldSet) -> FieldSet | None:
    if not one:
        return None if is_member(other) else one
    return set_node(is_member(one) and not is_member(other), difference(_below(one), _below(other)))


def _cut(one: FieldSet, other: FieldSet) -> FieldSet | None:
    return None if is_member(other) else set_node(is_member(one), recursive_difference(_below(one), _below(other)))


def _shared(one: FieldSet, other: FieldSet) -> FieldSet | None:
    return set_node(is_member(one) and is_member(other), intersection(one, other))


def _below(place: FieldSet) -> FieldSet:
    if HERE not in place:
        return place
    return {step: below for step, below in place.items() if step != HERE}


# Writing and reading


def encode(fields: FieldSet) -> bytes:
    """As `fieldsV1`, keys in Kubernetes' order."""
    return msgspec.json.encode(ordered(fields))


def ordered(fields: FieldSet) -> FieldSet:
    """The same set with its keys in Kubernetes' order."""
    return {step: ordered(fields[step]) if fields[step] else LEAF for step in ordered_keys(fields)}


def ordered_keys(fields: FieldSet) -> list[str]:
    keys = sorted(fields)
    if len(keys) < 2 or keys[-1] < "g":  # only members, which is most: their order is that of their names
        return keys
    return sorted(keys, key=_rank)


def parse_fields_v1(raw: Any) -> FieldSet:
    """The set that a client sent. Steps of an unknown kind are left out; raises `Malformed`."""
    if not isinstance(raw, dict):
        raise Malformed(f"{raw!r} is no set of fields")
    result: FieldSet = {}
    for step, place in raw.items():
        if step == HERE:
            result[HERE] = LEAF
        elif (known := _checked_step(step)) is not None:
            result[known] = parse_fields_v1(place)
    return LEAF if result.keys() == {HERE} else result


def _checked_step(step: str) -> str | None:
    """The step as we write it; None if it is of an unknown kind."""
    kind, colon, rest = step[:1], step[1:2], step[2:]
    if colon != ":":
        raise Malformed(f"{step!r} is no step to a field: it has no kind and colon")
    match kind:
        case "f":
            return step
        case "k":
            return key_step(_object(rest))
        case "v":
            return value_step(_json(rest))
        case "i":
            return f"i:{_index(rest)}"
    return None


def key_step(keys: dict[str, Any]) -> str:
    """To the list item with these keys."""
    try:
        return _key_step(tuple(keys.items()))
    except TypeError:  # a map or list as a key: no schema allows that, but a client may have written it down
        return "k:" + go_json(dict(sorted(keys.items())))


@lru_cache(_REMEMBERED, typed=True)
def value_step(value: str | int | float | bool) -> str:
    """To the list item that is this value."""
    return "v:" + go_json(value)


@lru_cache(_REMEMBERED, typed=True)
def _key_step(keys: tuple[tuple[str, Any], ...]) -> str:
    return "k:" + go_json(dict(sorted(keys)))


def _json(written: str) -> Any:
    try:
        return msgspec.json.decode(written)
    except ValueError as error:
        raise Malformed(f"{written!r} is no JSON: {error}") from None


def _object(written: str) -> dict[str, Any]:
    found = _json(written)
    if not isinstance(found, dict):
        raise Malformed(f"{written!r} names no keys of a list item")
    return found


def _index(written: str) -> int:
    try:
        return int(written)
    except ValueError:
        raise Malformed(f"{written!r} is no index") from None


@lru_cache(_REMEMBERED)
def _rank(step: str) -> tuple[Any, ...]:
    kind = _KINDS[step[0]]
    match step[0]:
        case "k":
            return kind, tuple((name, _value_rank(value)) for name, value in _json(step[2:]).items())
        case "v":
            return kind, _value_rank(_json(step[2:]))
        case "i":
            return kind, int(step[2:])
    return kind, step


def _value_rank(value: Any) -> tuple[int, Any]:
    """Numbers before texts before truths."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    return (1, value) if isinstance(value, str) else (3, go_json(value))


def _step_text(step: str) -> str:
    match step[0]:
        case "k":
            pairs = (f"{name}={go_json(value)}" for name, value in _json(step[2:]).items())
            return f"[{','.join(pairs)}]"
        case "v":
            return f"[={step[2:]}]"
        case "i":
            return f"[{step[2:]}]"
    return f".{step[2:]}"

"""Lists: what occurs twice where it may not, in lists that are sets and in those whose items have keys.

Only the second occurrence is reported, as kube-apiserver does; nested lists are looked at too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kedge.api.openapi.model import Schema
from kedge.embedded.custom import causes
from kedge.kube.errors import Cause


def duplicates(schema: Schema | None, value: Any, path: str = "") -> Iterator[Cause]:
    """What occurs twice in a value, or below it."""
    if schema is None or not schema.once(_has_keyed_lists):
        return
    if isinstance(value, list):
        yield from _of_list(schema, value, path)
    elif isinstance(value, dict):
        for key, one in value.items():
            if key in schema.properties:
                yield from duplicates(schema.properties[key], one, f"{path}.{key}".removeprefix("."))
            elif schema.values is not None:
                yield from duplicates(schema.values, one, f"{path}[{key}]")


def _of_list(schema: Schema, value: list[Any], path: str) -> Iterator[Cause]:
    match schema.list_type:
        case "set":
            yield from (causes.duplicate(f"{path}[{index}]", value[index]) for index in _seconds(value))
        case "map":
            yield from _of_map(schema, value, path)
        case _:
            pass
    for index, one in enumerate(value):
        yield from duplicates(schema.items, one, f"{path}[{index}]")


def _of_map(schema: Schema, value: list[Any], path: str) -> Iterator[Cause]:
    for index, one in enumerate(value):
        if one is not None and not isinstance(one, dict):
            yield causes.invalid(f"{path}[{index}]", one, "must be an object for an array of list-type map")
            return
    keys = [{key: one[key] for key in schema.list_keys if key in one} if one else {} for one in value]
    yield from (causes.duplicate(f"{path}[{index}]", keys[index]) for index in _seconds(keys))


def _seconds(values: Sequence[Any]) -> list[int]:
    """Where something stands for the second time."""
    seen: dict[str, int] = {}
    found = []
    for index, value in enumerate(values):
        text = causes.compact(value)
        seen[text] = seen.get(text, 0) + 1
        if seen[text] == 2:
            found.append(index)
    return found


def _has_keyed_lists(schema: Schema) -> bool:
    """Whether there is any list to look at, here or below: most nodes have none."""
    below = [*schema.properties.values(), schema.values, schema.items]
    return schema.list_type != "atomic" or any(one is not None and one.once(_has_keyed_lists) for one in below)

"""Unknown fields: members of a sent object that its kind does not have, and members that occur twice.

    found = in_builtin(schema, obj, raw)        # ('unknown field "spec.foo"', 'duplicate field "spec.replicas"')

In the words and the order of kube-apiserver: for a built-in kind in the order of the text, at most a hundred; for a
custom kind duplicates first, then what was pruned, by path. `raw` is the text that the object was decoded from, since
a decoded object has lost its duplicates. Without it there are none.

Searching takes longer than decoding, so call `has_duplicates` first, and only if `fieldValidation` asks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias

import msgspec

from kedge.api.openapi.model import Schema
from kedge.embedded.schema.pruning import OBJECT_META, embedded_metadata
from kedge.kube.codec import Untyped

Json: TypeAlias = Any

_MOST = 100  # as many as kube-apiserver tells of a built-in kind


class _Pairs(list[tuple[str, Any]]):
    """An object as the text has it: its members in order, also those it has twice."""


def has_duplicates(raw: bytes, decoded: Json) -> bool:
    """Whether a text has a member twice somewhere; `decoded` is what was read from it."""
    # Most clients send what our own encoder would: then every byte is accounted for.
    return msgspec.json.encode(decoded) != raw and _counts_differ(raw)


def _counts_differ(raw: bytes) -> bool:
    twice: list[bool] = []
    json.loads(raw, object_pairs_hook=lambda pairs: twice.append(len(dict(pairs)) < len(pairs)))
    return any(twice)


def duplicates(raw: bytes) -> Iterator[str]:
    """The paths of members that a text has twice, each once, in order."""
    yield from dict.fromkeys(_duplicates(_paired(raw), ""))


def in_builtin(schema: Schema, obj: Untyped, raw: bytes = b"") -> tuple[str, ...]:
    """What is wrong with the members of a built-in object, in words."""
    found = _unknown_in_builtin(schema, _paired(raw) if raw else obj, "")
    return tuple(islice(dict.fromkeys(found), _MOST))


def in_custom(schema: Schema, obj: Untyped, pruned: Untyped, raw: bytes = b"") -> tuple[str, ...]:
    """What is wrong with the members of a custom object, in words; `pruned` is what was left of it."""
    own = _unknown_in_builtin(OBJECT_META, obj.get("metadata"), "metadata")
    inside = list(embedded_metadata(schema, obj))
    apart = {"metadata", *(path for path, _ in inside)}
    dropped = sorted(_dropped(obj, pruned, "", apart))
    theirs = sorted(word for path, metadata in inside for word in _unknown_in_builtin(OBJECT_META, metadata, path))
    twice = (f'duplicate field "{path}"' for path in (duplicates(raw) if raw else ()))
    return tuple(dict.fromkeys((*twice, *own, *(_unknown(path) for path in dropped), *theirs)))


def sorted_members(value: Json) -> Json:
    """A value with the members of every object in the order of their names."""
    if isinstance(value, dict):
        return {name: sorted_members(value[name]) for name in sorted(value)}
    return [sorted_members(item) for item in value] if isinstance(value, list) else value


def _unknown_in_builtin(schema: Schema, value: Json, path: str) -> Iterator[str]:
    if isinstance(value, list) and not isinstance(value, _Pairs):
        for index, item in enumerate(value):
            yield from _unknown_in_builtin(schema.items, item, f"{path}[{index}]") if schema.items else ()
    members = _members(value)
    if members is None or not (schema.properties or schema.values) or schema.keeps_unknown:
        return
    seen: set[str] = set()
    for name, item in members:
        at = f"{path}.{name}" if path else name
        if (inner := schema.at(name)) is None:
            yield _unknown(at)
            continue
        if name in seen:
            yield f'duplicate field "{_escaped(at)}"'
        seen.add(name)
        yield from _unknown_in_builtin(inner, item, at)


def _dropped(before: Json, after: Json, path: str, apart: set[str]) -> Iterator[str]:
    """The paths of members that were there before and are not after."""
    if isinstance(before, list) and isinstance(after, list):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _dropped(one, other, f"{path}[{index}]", apart)
    if not (isinstance(before, dict) and isinstance(after, dict)) or before is after:
        return
    for name, item in before.items():
        at = f"{path}.{name}" if path else name
        if at in apart:
            continue
        if name in after:
            yield from _dropped(item, after[name], at, apart)
        else:
            yield at


def _duplicates(value: Json, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, item in value:
            at = f"{path}.{name}" if path else name
            if name in seen:
                yield at
            seen.add(name)
            yield from _duplicates(item, at)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _duplicates(item, f"{path}[{index}]")


def _members(value: Json) -> Iterable[tuple[str, Json]] | None:
    if isinstance(value, _Pairs):
        return value
    return value.items() if isinstance(value, dict) else None


def _paired(raw: bytes) -> Json:
    return json.loads(raw, object_pairs_hook=_Pairs)


def _unknown(path: str) -> str:
    return f'unknown field "{_escaped(path)}"'


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"')

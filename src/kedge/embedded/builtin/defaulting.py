"""Defaulting: the defaults of a value's members.

    probe = struct(zero={"periodSeconds": 10}, httpGet=struct({"path": "/"}))
    probe({"httpGet": {}})          # {"httpGet": {"path": "/"}, "periodSeconds": 10}

A default function gives the value with its defaults, and the very same value if it lacked none. It is idempotent.
Nothing is changed in place: an added default is shared by every object it was added to. Assumes values of the right
types, without nulls: they are decoded against the schema first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from kedge.kube.codec import Untyped

Default: TypeAlias = Callable[[Any], Any]
StructDefault: TypeAlias = Callable[[Untyped], Untyped]

_NOTHING: Mapping[str, Any] = {}


def struct(
    defaults: Mapping[str, Any] = _NOTHING,
    /,
    *,
    zero: Mapping[str, int] = _NOTHING,
    null: tuple[str, ...] = (),
    then: StructDefault | None = None,
    **parts: Default,
) -> StructDefault:
    """Set missing members, then default the parts, then the whole.

    An empty string counts as missing. `zero` has the numbers for which 0 counts as missing, too: Go cannot tell them
    apart. `null` has the lists that are shown as null when they are empty or missing.
    """
    constants, numbers, nested = tuple(defaults.items()), tuple(zero.items()), tuple(parts.items())

    def fill(value: Untyped) -> Untyped:
        new = value
        for key, default in constants:
            if key not in value or (value[key] == "" and default != ""):
                new = {**value} if new is value else new
                new[key] = default
        for key, number in numbers:
            if not value.get(key):
                new = {**value} if new is value else new
                new[key] = number
        for key in null:
            if value.get(key, ()) in ([], ()):
                new = {**value} if new is value else new
                new[key] = None
        for key, part in nested:
            if (inner := new.get(key)) is not None and (filled := part(inner)) is not inner:
                new = {**value} if new is value else new
                new[key] = filled
        return new if then is None else then(new)

    return fill


def each(fill: Default) -> Default:
    """Default every item of a list."""

    def fill_all(items: list[Any]) -> list[Any]:
        filled = [fill(item) for item in items]
        return items if all(new is old for new, old in zip(filled, items, strict=True)) else filled

    return fill_all


def cached(fill: StructDefault, most: int = 1024) -> StructDefault:
    """The same function with a cache by the encoded value, for values that recur."""
    known: dict[bytes, Untyped | None] = {}  # None: it lacked nothing

    def recall(value: Untyped) -> Untyped:
        text = msgspec.json.encode(value)
        if text in known:
            return known[text] or value
        filled = fill(value)
        if len(known) >= most:
            known.clear()
        known[text] = None if filled is value else filled
        return filled

    return recall


def in_sequence(*fills: StructDefault) -> StructDefault:
    def fill(value: Untyped) -> Untyped:
        for each_fill in fills:
            value = each_fill(value)
        return value

    return fill

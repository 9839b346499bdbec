"""Filling: what a value's left-out members stand for.

    probe = struct(zero={"periodSeconds": 10}, httpGet=struct({"path": "/"}))
    probe({"httpGet": {}})          # {"httpGet": {"path": "/"}, "periodSeconds": 10}

A fill gives the value with its defaults, and the very same value if it lacked none; filling twice is filling once.
Nothing is changed in place: what it adds is shared by every object it was added to. Assumes values of the right
types, without nulls: reading them against the schema comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from kedge.embedded.rules import Untyped

Fill: TypeAlias = Callable[[Any], Any]
Whole: TypeAlias = Callable[[Untyped], Untyped]

_NOTHING: Mapping[str, Any] = {}


def struct(
    defaults: Mapping[str, Any] = _NOTHING,
    /,
    *,
    zero: Mapping[str, int] = _NOTHING,
    null: tuple[str, ...] = (),
    then: Whole | None = None,
    **parts: Fill,
) -> Whole:
    """Fill what lacks, then the parts, then the whole.

    An empty text counts as left out. `zero` has the numbers whose 0 does, too: Go cannot tell them apart. `null` has
    the lists that show as null when they are empty or left out.
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


def each(fill: Fill) -> Fill:
    """Fill every item of a list."""

    def fill_all(items: list[Any]) -> list[Any]:
        filled = [fill(item) for item in items]
        return items if all(new is old for new, old in zip(filled, items, strict=True)) else filled

    return fill_all


def remembered(fill: Whole, most: int = 1024) -> Whole:
    """The same fill, for values that come again and again: it knows by its text what it made of one."""
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


def one_after_another(*fills: Whole) -> Whole:
    def fill(value: Untyped) -> Untyped:
        for each_fill in fills:
            value = each_fill(value)
        return value

    return fill

"""Sharing: objects of one kind say mostly the same, so that what is equal in many is kept once.

Strings that come again (names, labels, reasons) become one string each; parts without a date or a map in them (a
strategy, a list of containers) become one value each. A cache of a thousand Deployments is half as large for it. What
is shared is equal to what was there: nobody can tell, since nothing here ever changes.

Only frozen Structs are gone through, field by field, by their types; a dict is left as it is.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import cache
from itertools import zip_longest
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeGuard, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import force_setattr

KNOWN = 2048
"""How many parts of one type are remembered. Strings need no limit: the interpreter forgets those that nobody holds."""

_ITS_OWN = frozenset({"uid", "resource_version"})
_SCALARS = (str, int, bool, NoneType)  # no floats: 1 and 1.0 are equal, and not the same

Share = Callable[[Any, Any], Any]
"""What to hold instead of a value; the second is what the object before held there."""


class Step(NamedTuple):
    """What to do with one field; `telling`: whether two values that are equal there say the same."""

    name: str
    shared: Share
    telling: bool


class Plan(NamedTuple):
    """What to do with the fields of one type: those that hold a string, and those that hold more."""

    words: tuple[str, ...]
    parts: tuple[Step, ...]


def share(found: object, before: object = None) -> None:
    """Have an object hold what others hold already, where that is equal. For one that nobody has seen yet.

    `before` is the same object as it was: mostly little has changed, and it is enough to hold on to the rest.
    """
    if not isinstance(found, Struct):
        return
    words, parts = _plan(type(found))
    if before is None:
        for name in words:
            value = getattr(found, name)
            if value:
                force_setattr(found, name, sys.intern(value))
    for name, shared, telling in parts:
        value = getattr(found, name)
        if value:
            held = getattr(before, name) if before is not None else None
            force_setattr(found, name, held if telling and held == value else shared(value, held))


@cache
def _plan(kind: type[Struct]) -> Plan:
    if not _frozen(kind):
        return Plan((), ())
    hints = get_type_hints(kind, include_extras=False)
    words = tuple(name for name in kind.__struct_fields__ if _given(hints[name]) is str and name not in _ITS_OWN)
    steps = ((name, _share_of(hints[name])) for name in kind.__struct_fields__)
    parts = tuple(Step(name, shared, _telling(hints[name])) for name, shared in steps if shared is not None)
    return Plan(words, parts)


def _share_of(hint: Any) -> Share | None:
    """How values of this type are shared, if at all."""
    hint = _given(hint)
    if get_origin(hint) is Mapping and get_args(hint) == (str, str):
        return _words
    if _frozen(hint):
        return _same(hint) if _telling(hint, timeless=True) else _within
    if get_origin(hint) is tuple:
        return _same(hint) if _telling(hint, timeless=True) else _each
    return None


def _words(value: Mapping[str, str], _: object) -> dict[str, str]:
    return {sys.intern(key): sys.intern(word) for key, word in value.items()}


def _within(value: object, before: object) -> object:
    share(value, before)
    return value


def _each(value: tuple[object, ...], before: tuple[object, ...] | None) -> tuple[object, ...]:
    for part, held in zip_longest(value, (before or ())[: len(value)]):
        share(part, held)
    return value


@cache
def _same(hint: Any) -> Same:  # noqa: ARG001 - one for each type
    return Same()


class Same:
    """The values of one type that are there already. Of one only: (1,) equals (True,)."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}

    def __call__(self, value: Any, _: object) -> Any:
        known = self.known.get(value)
        if known is not None:
            return known
        if len(self.known) >= KNOWN:
            self.known.clear()
        for part in value if isinstance(value, tuple) else (value,):
            share(part)
        self.known[value] = value
        return value


def _telling(hint: Any, *, timeless: bool = False, inside: frozenset[type] = frozenset()) -> bool:
    """Whether two values of this type that are equal say the same; and, if wanted, may come again: no date, no map.

    `inside` are the types that this one is part of, and of which the same is asked already.
    """
    hint = _given(hint)
    if hint in _SCALARS or hint in inside:
        return True
    if hint is datetime:
        return not timeless
    if _frozen(hint):
        hints = get_type_hints(hint)
        inner, inside = [hints[name] for name in hint.__struct_fields__], inside | {hint}
    elif get_origin(hint) in {Mapping, tuple, Union, UnionType}:
        inner = [part for part in get_args(hint) if part is not ...]
        if (timeless and get_origin(hint) is Mapping) or (int in inner and bool in inner):
            return False  # a map has no hash, and True equals 1
    else:
        return False
    return all(_telling(part, timeless=timeless, inside=inside) for part in inner)


def _given(hint: Any) -> Any:
    """The type of a value that is there."""
    if get_origin(hint) is Annotated:
        return _given(get_args(hint)[0])
    if get_origin(hint) in {Union, UnionType}:
        rest = [inner for inner in get_args(hint) if inner is not NoneType]
        return _given(rest[0]) if len(rest) == 1 else hint
    return hint


def _frozen(hint: Any) -> TypeGuard[type[Struct]]:
    return isinstance(hint, type) and issubclass(hint, Struct) and hint.__struct_config__.frozen

"""Memory: keeps large caches small, and keeps the garbage collector from stopping the event loop.

Interning: objects of one kind are mostly alike, so equal parts of many objects are kept once. Strings that recur
(names, labels, reasons) become one string each; parts without a date or a map in them (a strategy, a list of
containers) become one value each. This halves a cache of a thousand Deployments. A shared value is equal to the one it
replaces, and nothing here ever changes, so nobody can tell. Only frozen Structs are handled, field by field, by their
types.

Garbage collection: while a cache fills, everything allocated stays, so each collection walks the whole cache to free
nothing. Collection is paused until the load is done, and what was loaded is then frozen: no later collection walks it.
Reference counting goes on as always.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from itertools import zip_longest
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeGuard, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import force_setattr

MOST_KNOWN = 2048
"""How many parts of one type are remembered. Strings need no limit: the interpreter drops those that nobody holds."""

_UNIQUE = frozenset({"uid", "resource_version"})
_SCALARS = (str, int, bool, NoneType)  # no floats: 1 and 1.0 are equal, and not the same

Share = Callable[[Any, Any], Any]
"""Returns the value to hold instead of the first argument; the second is what the object held there before."""


class FieldRule(NamedTuple):
    """How to share one field; `equal_means_same`: whether two equal values are interchangeable there."""

    name: str
    shared: Share
    equal_means_same: bool


class TypeRules(NamedTuple):
    """How to share the fields of one type: those that hold a string, and those that hold more."""

    strings: tuple[str, ...]
    parts: tuple[FieldRule, ...]


def share(found: object, before: object = None) -> None:
    """Make an object share equal values with others. Only for an object that nobody else has seen yet.

    `before` is the previous version of the object: mostly little has changed, so its values are reused first.
    """
    if not isinstance(found, Struct):
        return
    strings, parts = _rules(type(found))
    if before is None:
        for name in strings:
            value = getattr(found, name)
            if value:
                force_setattr(found, name, sys.intern(value))
    for name, shared, equal_means_same in parts:
        value = getattr(found, name)
        if value:
            held = getattr(before, name) if before is not None else None
            force_setattr(found, name, held if equal_means_same and held == value else shared(value, held))


@cache
def _rules(kind: type[Struct]) -> TypeRules:
    if not _frozen(kind):
        return TypeRules((), ())
    hints = get_type_hints(kind, include_extras=False)
    strings = tuple(name for name in kind.__struct_fields__ if _given(hints[name]) is str and name not in _UNIQUE)
    steps = ((name, _share_of(hints[name])) for name in kind.__struct_fields__)
    parts = tuple(
        FieldRule(name, shared, _equal_means_same(hints[name])) for name, shared in steps if shared is not None
    )
    return TypeRules(strings, parts)


def _share_of(hint: Any) -> Share | None:
    """How values of this type are shared, if at all."""
    hint = _given(hint)
    if get_origin(hint) is Mapping and get_args(hint) == (str, str):
        return _interned_map
    if _frozen(hint):
        return _known_values(hint) if _equal_means_same(hint, timeless=True) else _shared_inside
    if get_origin(hint) is tuple:
        return _known_values(hint) if _equal_means_same(hint, timeless=True) else _shared_each
    return None


def _interned_map(value: Mapping[str, str], _: object) -> dict[str, str]:
    return {sys.intern(key): sys.intern(word) for key, word in value.items()}


def _shared_inside(value: object, before: object) -> object:
    share(value, before)
    return value


def _shared_each(value: tuple[object, ...], before: tuple[object, ...] | None) -> tuple[object, ...]:
    for part, held in zip_longest(value, (before or ())[: len(value)]):
        share(part, held)
    return value


@cache
def _known_values(hint: Any) -> KnownValues:  # noqa: ARG001 - one for each type
    return KnownValues()


class KnownValues:
    """The known values of one type. Of one type only, since (1,) equals (True,)."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}

    def __call__(self, value: Any, _: object) -> Any:
        known = self.known.get(value)
        if known is not None:
            return known
        if len(self.known) >= MOST_KNOWN:
            self.known.clear()
        for part in value if isinstance(value, tuple) else (value,):
            share(part)
        self.known[value] = value
        return value


def _equal_means_same(hint: Any, *, timeless: bool = False, inside: frozenset[type] = frozenset()) -> bool:
    """Whether equal values of this type are interchangeable; with `timeless`, also likely to recur: no date, no map.

    `inside` are the types that contain this one, and are being checked already.
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
    return all(_equal_means_same(part, timeless=timeless, inside=inside) for part in inner)


def _given(hint: Any) -> Any:
    """The type of a value that is not None."""
    if get_origin(hint) is Annotated:
        return _given(get_args(hint)[0])
    if get_origin(hint) in {Union, UnionType}:
        rest = [inner for inner in get_args(hint) if inner is not NoneType]
        return _given(rest[0]) if len(rest) == 1 else hint
    return hint


def _frozen(hint: Any) -> TypeGuard[type[Struct]]:
    return isinstance(hint, type) and issubclass(hint, Struct) and hint.__struct_config__.frozen


# Garbage collection

LARGE = 5_000
"""From this many objects on, freezing pays off. Freezing also keeps whatever garbage there is at that moment, so it is
not done for every small list."""

_loads = 0
_collecting = False  # whether to go on collecting after the last load


class Load:
    """One load in progress; `size` is its number of objects so far."""

    size = 0


@contextmanager
def bulk_load() -> Iterator[Load]:
    """Pause garbage collection while many objects are loaded that will stay. Loads may overlap."""
    global _loads, _collecting  # noqa: PLW0603  # the collector is one per process, and so is this count
    if _loads == 0:
        _collecting = gc.isenabled()
        gc.disable()
    _loads += 1
    load = Load()
    try:
        yield load
    finally:
        _loads -= 1
        if load.size >= LARGE:
            gc.freeze()
        if _loads == 0 and _collecting:
            gc.enable()


def freeze_heap() -> None:
    """Collect once more, then freeze everything that is allocated: it will stay, and is never walked again."""
    gc.collect()
    gc.freeze()

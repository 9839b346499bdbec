r"""JSONPath, as columns and selectable fields use it: what a path finds in an object.

    found = path(".status.conditions[?(@.type=='Ready')].status")
    found(obj)                    # the values, in their order; none where something on the way is missing

Members (`.a`, `['a']`, `.a\.b`), indexes, slices, `[*]`, `.*`, `..a`, unions of names, and filters that compare a
member with a literal or ask whether it is there. A path that cannot be read is refused (`BadPath`).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

Step: TypeAlias = Callable[[Any], Iterator[Any]]
Path: TypeAlias = Callable[[Any], list[Any]]

_NAME = re.compile(r"\.((?:\\.|[^.\[\]\\'\"])+)")
_BRACKET = re.compile(r"\[((?:'(?:\\.|[^'])*'|\"(?:\\.|[^\"])*\"|[^\]'\"])*)\]")
_FILTER = re.compile(r"\?\((.*)\)$")
_COMPARED = re.compile(r"^@(?P<left>.*?)\s*(?P<sign>==|!=|<=|>=|<|>)\s*(?P<right>.+)$")
_QUOTED = re.compile(r"""^(['"])(.*)\1$""")
_SIGNS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class BadPath(ValueError):
    """A path that cannot be read."""


@lru_cache(maxsize=1024)
def path(text: str) -> Path:
    """What finds the values of a path."""
    steps = tuple(_steps(text))

    def find(obj: Any) -> list[Any]:
        found = [obj]
        for step in steps:
            found = [inner for one in found for inner in step(one)]
        return found

    return find


def _steps(text: str) -> Iterator[Step]:
    at = 0
    while at < len(text):
        if text.startswith("..", at):
            yield _everything
            at += 1
        elif text[at] == "." and at + 1 == len(text):
            return
        elif found := _NAME.match(text, at):
            yield _every if found[1] == "*" else _member(re.sub(r"\\(.)", r"\1", found[1]))
            at = found.end()
        elif found := _BRACKET.match(text, at):
            yield _bracket(found[1].strip())
            at = found.end()
        elif text[at] == "." and text[at + 1] == "[":
            at += 1
        else:
            raise BadPath(f"{text}: nothing can be read from {text[at:]!r} on")


def _bracket(inner: str) -> Step:
    if inner == "*":
        return _every
    if found := _FILTER.match(inner):
        return _filter(found[1].strip())
    if re.fullmatch(r"-?\d+", inner):
        return _index(int(inner))
    if re.fullmatch(r"-?\d*(:-?\d*){1,2}", inner):
        return _slice(slice(*(int(part) if part else None for part in inner.split(":"))))
    names = [_QUOTED.match(part.strip()) for part in inner.split(",")]
    if all(names):
        return _members([re.sub(r"\\(.)", r"\1", found[2]) for found in names if found])
    raise BadPath(f"[{inner}] is no index, name or filter")


def _member(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _members(names: list[str]) -> Step:
    steps = [_member(name) for name in names]
    return lambda value: (one for step in steps for one in step(value))


def _every(value: Any) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _everything(value: Any) -> Iterator[Any]:
    yield value
    for one in _every(value):
        yield from _everything(one)


def _index(at: int) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= at < len(value):
            yield value[at]

    return step


def _slice(part: slice) -> Step:
    return lambda value: iter(value[part] if isinstance(value, list) else ())


def _filter(text: str) -> Step:
    found = _COMPARED.match(text)
    if found is None:
        if not text.startswith("@"):
            raise BadPath(f"?({text}) does not begin with @")
        there = path(text[1:])
        return lambda value: (one for one in _every(value) if there(one))
    left, holds, right = path(found["left"]), _SIGNS[found["sign"]], _literal(found["right"])
    return lambda value: (one for one in _every(value) if _compares(left(one), holds, right))


def _compares(found: list[Any], holds: Callable[[Any, Any], Any], right: Any) -> bool:
    try:
        return len(found) == 1 and bool(holds(found[0], right))
    except TypeError:
        return False


def _literal(text: str) -> Any:
    if quoted := _QUOTED.match(text):
        return quoted[2]
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        raise BadPath(f"{text} is neither a text nor a number") from None

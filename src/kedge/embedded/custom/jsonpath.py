"""JSONPath, and field paths by schema: how a CRD points at members of its objects.

    found = compile_path(".status.conditions[?(@.type=='Ready')].status")
    found(obj)                    # the values, in their order; none where something on the way is missing

JSONPath is for columns: members (`.a`, `['a']`, `.a\\.b`), indexes, slices, `[*]`, `.*`, `..a`, unions of names, and
filters that compare a member with a literal or test that it exists. A path that cannot be read raises `BadPath`.

Rules and selectable fields have simple paths: `.spec.replicas`, `.spec['some.key']`. `schema_at` follows one in a
schema.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec

from kedge.api.openapi.model import Schema

PathStep: TypeAlias = Callable[[Any], Iterator[Any]]
CompiledPath: TypeAlias = Callable[[Any], list[Any]]

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
def compile_path(text: str) -> CompiledPath:
    """A function that finds the values of a path."""
    steps = tuple(_steps(text))

    def find(obj: Any) -> list[Any]:
        found = [obj]
        for step in steps:
            found = [inner for one in found for inner in step(one)]
        return found

    return find


def _steps(text: str) -> Iterator[PathStep]:
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


def _bracket(inner: str) -> PathStep:
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


def _member(name: str) -> PathStep:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _members(names: list[str]) -> PathStep:
    steps = [_member(name) for name in names]
    return lambda value: (one for step in steps for one in step(value))


def _every(value: Any) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _everything(value: Any) -> Iterator[Any]:
    yield value
    for one in _every(value):
        yield from _everything(one)


def _index(at: int) -> PathStep:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list) and -len(value) <= at < len(value):
            yield value[at]

    return step


def _slice(part: slice) -> PathStep:
    return lambda value: iter(value[part] if isinstance(value, list) else ())


def _filter(text: str) -> PathStep:
    found = _COMPARED.match(text)
    if found is None:
        if not text.startswith("@"):
            raise BadPath(f"?({text}) does not begin with @")
        there = compile_path(text[1:])
        return lambda value: (one for one in _every(value) if there(one))
    left, holds, right = compile_path(found["left"]), _SIGNS[found["sign"]], _literal(found["right"])
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


_STEP = re.compile(r"\.(?P<name>[^.\[\]']+)|\['(?P<quoted>(?:[^'\\]|\\.)*)'\]")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class PathError(ValueError):
    """A path that is invalid or leads to no field."""


def schema_at(schema: Schema, path: str, *, quoted: bool = True) -> tuple[str, Schema]:
    """The path as errors name it, and the schema it leads to."""
    at, here, shown = 0, schema, ""
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise PathError(f"expected [ or . but got: {path[at:]}")
        if step["quoted"] is not None and not quoted:
            raise PathError("array notation is not allowed")
        here, shown = _taken(here, _name(step), shown)
        at = step.end()
    return shown, here


def _taken(schema: Schema, name: str, shown: str) -> tuple[Schema, str]:
    if schema.properties:
        if name not in schema.properties:
            raise PathError("does not refer to a valid field")
        return schema.properties[name], f"{shown}.{name}".removeprefix(".")
    if schema.values is None or "additionalProperties" not in schema.raw:
        raise PathError("does not refer to a valid field")
    return schema.values, f"{shown}[{name}]"


def _name(step: re.Match[str]) -> str:
    if step["name"] is not None:
        return step["name"]
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), step["quoted"])

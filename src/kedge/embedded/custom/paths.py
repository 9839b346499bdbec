"""Paths: how a CRD points at a member of its objects: `.spec.replicas`, `.spec['some.key']`.

`below` reads the paths of rules and selectable fields, and says where they lead by the schema.
"""

from __future__ import annotations

import re

from kedge.api.openapi.model import Schema

_STEP = re.compile(r"\.(?P<name>[^.\[\]']+)|\['(?P<quoted>(?:[^'\\]|\\.)*)'\]")
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class PathError(ValueError):
    """A path that leads nowhere, or is none."""


def below(schema: Schema, path: str, *, quoted: bool = True) -> tuple[str, Schema]:
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

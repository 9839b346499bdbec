"""Validating: what in a value does not fit its schema, with kube-apiserver's fields and words.

    shape = Shape(schema)
    shape.problems(obj, old)        # causes, none if all is well

A shape is compiled as it is used, part by part, and shared by all servers of the process. What was wrong already and
has not changed is tolerated (ratcheting), where an old value is given. `uniqueItems` is not looked at: a CRD may not
have it. Of several alternatives that all fail (`anyOf`) the one with the fewest problems is reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kedge.api.openapi.model import Raw, Schema
from kedge.embedded.custom import alternatives, causes, formats, scalars
from kedge.embedded.custom.correlation import NOTHING, item, member, unchanged
from kedge.embedded.custom.findings import FINE, Check, Finding, located, under, wrong
from kedge.embedded.custom.scalars import BIGGEST, SMALLEST
from kedge.kube.errors import Cause

_PYTHON: Mapping[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (float, int),
    "object": (dict,),
    "string": (str,),
}


class Shape:
    """One schema, compiled to checks."""

    def __init__(self, schema: Schema) -> None:
        self._check = _checked(schema, at_root=True)

    def problems(self, value: Any, old: Any = NOTHING, *, field: str = "") -> list[Cause]:
        """What is wrong with a value; `field` is where it stands, if not at the root."""
        found = self._check(value, NOTHING)
        if found and old is not NOTHING:  # the costly way, only where it can make a difference
            found = self._check(value, old)
        return located(found, field)


def _checked(schema: Schema, *, at_root: bool = False) -> Check:
    """Everything a schema demands of a value, in the order Kubernetes looks."""
    types, form = _types(schema), formats.checked(schema.raw)
    plain = {python for name in types for python in _PYTHON.get(name, ())} if types else set(scalars.NAMES)
    typed = scalars.typed(schema, types, form)
    parts: dict[type, tuple[Check, ...]] = {}

    def check(value: Any, old: Any) -> Sequence[Finding]:
        python = type(value)
        if python is int and not SMALLEST <= value <= BIGGEST:  # Go reads such a number as a float
            value, python = float(value), float
        found: Sequence[Finding] = FINE if python in plain else typed(value)
        if (looks := parts.get(python)) is None:
            looks = parts[python] = tuple(_parts(schema, python, types, form, at_root))
        for part in looks:
            if more := part(value, old):
                found = [*found, *more]
        return FINE if found and old is not NOTHING and unchanged(schema, value, old) else found

    return check


def _types(schema: Schema) -> tuple[str, ...]:
    if schema.raw.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (schema.type,) if schema.type else ()


def _parts(schema: Schema, python: type, types: tuple[str, ...], form: str, at_root: bool) -> list[Check]:
    """What is to be looked at in a value of one of Python's types."""
    raw = schema.raw
    parts: list[Check] = [] if python is type(None) else _alternatives(raw)
    if python is str:
        parts += scalars.text(raw) + ([scalars.formatted(form)] if form and "string" in (types or ("string",)) else [])
    elif python in (int, float):
        parts += scalars.number(raw, types, form)
    elif python is list:
        parts += _list(schema)
    if "enum" in raw:
        parts.append(scalars.enum(raw["enum"]))
    if python is dict:
        parts += _object(schema, at_root)
    return parts


# Lists and objects


def _list(schema: Schema) -> list[Check]:
    parts: list[Check] = []
    if (items := schema.items) is not None:
        parts.append(_items(schema, items))
    if (least := schema.raw.get("minItems")) is not None:
        parts.append(_at_least(least, "items"))
    if (most := schema.raw.get("maxItems")) is not None:
        parts.append(_at_most(most))
    return parts


def _items(schema: Schema, items: Schema) -> Check:
    made: list[Check] = []

    def check(value: list[Any], old: Any) -> Sequence[Finding]:
        if not made:
            made.append(_checked(items))
        found: list[Finding] = []
        for index, one in enumerate(value):
            was = NOTHING if old is NOTHING else item(schema, old, one)
            if more := made[0](one, was):
                found += under(f"[{index}]", more)
        return found

    return check


def _object(schema: Schema, at_root: bool) -> list[Check]:
    parts: list[Check] = []
    if (least := schema.raw.get("minProperties")) is not None:
        parts.append(_at_least(least, "properties"))
    if (most := schema.raw.get("maxProperties")) is not None:
        parts.append(_at_most(most))
    if schema.properties or schema.values is not None:
        parts.append(_members(schema, at_root))
    if schema.required:
        parts.append(_required(schema.required))
    return parts


class _Member(NamedTuple):
    """How the values of one member are checked; those of a type in `fine` need not be."""

    fine: frozenset[type]
    check: Check


def _member_of(schema: Schema) -> _Member:
    types, form = _types(schema), formats.checked(schema.raw)
    plain = [python for name in types for python in _PYTHON.get(name, ()) if python in (str, bool, float)]
    fine = (python for python in plain if not _parts(schema, python, types, form, at_root=False))
    return _Member(frozenset(fine), _checked(schema))


def _members(schema: Schema, at_root: bool) -> Check:
    made: dict[str, _Member | None] = {}
    of_any = None if schema.values is None else _member_of(schema.values)

    def member_at(name: str) -> _Member | None:
        known = schema.properties.get(name)
        if known is None:
            return of_any
        found = made[name] = _member_of(known)
        return found

    def check(value: dict[str, Any], old: Any) -> Sequence[Finding]:
        found: list[Finding] = []
        for name, one in value.items():
            look = made.get(name) or member_at(name)
            if look is None or type(one) in look.fine:
                continue
            # The type of the whole object is converted before it is compared: it says nothing about a change.
            fresh = old is NOTHING or (at_root and name in ("apiVersion", "kind"))
            if more := look.check(one, NOTHING if fresh else member(schema, value, old, name)):
                found += under(f".{name}", more)
        return found

    return check


def _required(names: tuple[str, ...]) -> Check:
    def check(value: dict[str, Any], _old: Any) -> Sequence[Finding]:
        absent = [name for name in names if name not in value]
        return [(f".{name}", lambda field, _path: causes.missing(field)) for name in absent] if absent else FINE

    return check


def _at_least(least: int, what: str) -> Check:
    def check(value: Any, _old: Any) -> Sequence[Finding]:
        return FINE if len(value) >= least else wrong(len(value), f"should have at least {least} {what}")

    return check


def _at_most(most: int) -> Check:
    def check(value: Any, _old: Any) -> Sequence[Finding]:
        size = len(value)
        return FINE if size <= most else [("", lambda field, _path: causes.too_many(field, size, most))]

    return check


# Alternatives


def _alternatives(raw: Raw) -> list[Check]:
    made: list[Check] = []
    if any_of := raw.get("anyOf"):
        made.append(alternatives.any_of([_checked(Schema(one)) for one in any_of]))
    if one_of := raw.get("oneOf"):
        made.append(alternatives.one_of([_checked(Schema(one)) for one in one_of]))
    if all_of := raw.get("allOf"):
        made.append(alternatives.all_of([_checked(Schema(one)) for one in all_of]))
    if (never := raw.get("not")) is not None:
        made.append(alternatives.none_of(_checked(Schema(never))))
    return made

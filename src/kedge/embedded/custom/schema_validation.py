"""Schema validation: what in a value does not match its schema, with kube-apiserver's fields and words.

    validator = SchemaValidator(schema)
    validator.problems(obj, old)        # causes, none if all is well

A validator is compiled as it is used, part by part, and shared by all servers of the process. With an old value, what
was invalid already and has not changed is accepted (ratcheting). `uniqueItems` is ignored: a CRD may not have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from kedge.api.openapi.model import Raw, Schema
from kedge.embedded.custom import formats, go_causes, schema_checks
from kedge.embedded.custom.ratcheting import NO_OLD_VALUE, old_item, old_member, unchanged
from kedge.embedded.custom.schema_checks import (
    BIGGEST,
    NO_FINDINGS,
    SMALLEST,
    Check,
    Finding,
    as_causes,
    below,
    invalid_value,
)
from kedge.kube.errors import Cause

_PYTHON: Mapping[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (float, int),
    "object": (dict,),
    "string": (str,),
}


class SchemaValidator:
    """One schema, compiled to checks."""

    def __init__(self, schema: Schema) -> None:
        self._check = _checked(schema, at_root=True)

    def problems(self, value: Any, old: Any = NO_OLD_VALUE, *, field: str = "") -> list[Cause]:
        """What is wrong with a value; `field` is where it stands, if not at the root."""
        found = self._check(value, NO_OLD_VALUE)
        if found and old is not NO_OLD_VALUE:  # the costly way, only where it can make a difference
            found = self._check(value, old)
        return as_causes(found, field)


def _checked(schema: Schema, *, at_root: bool = False) -> Check:
    """Everything a schema demands of a value, in the order Kubernetes looks."""
    types, form = _types(schema), formats.checked_format(schema.raw)
    plain = {python for name in types for python in _PYTHON.get(name, ())} if types else set(schema_checks.TYPE_NAMES)
    typed = schema_checks.type_checks(schema, types, form)
    parts: dict[type, tuple[Check, ...]] = {}

    def check(value: Any, old: Any) -> Sequence[Finding]:
        python = type(value)
        if python is int and not SMALLEST <= value <= BIGGEST:  # Go reads such a number as a float
            value, python = float(value), float
        found: Sequence[Finding] = NO_FINDINGS if python in plain else typed(value)
        if (looks := parts.get(python)) is None:
            looks = parts[python] = tuple(_parts(schema, python, types, form, at_root))
        for part in looks:
            if more := part(value, old):
                found = [*found, *more]
        return NO_FINDINGS if found and old is not NO_OLD_VALUE and unchanged(schema, value, old) else found

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
        parts += schema_checks.text_checks(raw) + (
            [schema_checks.format_checks(form)] if form and "string" in (types or ("string",)) else []
        )
    elif python in (int, float):
        parts += schema_checks.number_checks(raw, types, form)
    elif python is list:
        parts += _list(schema)
    if "enum" in raw:
        parts.append(schema_checks.enum_checks(raw["enum"]))
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
            was = NO_OLD_VALUE if old is NO_OLD_VALUE else old_item(schema, old, one)
            if more := made[0](one, was):
                found += below(f"[{index}]", more)
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


class _MemberCheck(NamedTuple):
    """How the values of one member are checked; those of a type in `fine` need not be."""

    fine: frozenset[type]
    check: Check


def _member_of(schema: Schema) -> _MemberCheck:
    types, form = _types(schema), formats.checked_format(schema.raw)
    plain = [python for name in types for python in _PYTHON.get(name, ()) if python in (str, bool, float)]
    fine = (python for python in plain if not _parts(schema, python, types, form, at_root=False))
    return _MemberCheck(frozenset(fine), _checked(schema))


def _members(schema: Schema, at_root: bool) -> Check:
    made: dict[str, _MemberCheck | None] = {}
    of_any = None if schema.values is None else _member_of(schema.values)

    def member_at(name: str) -> _MemberCheck | None:
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
            fresh = old is NO_OLD_VALUE or (at_root and name in ("apiVersion", "kind"))
            if more := look.check(one, NO_OLD_VALUE if fresh else old_member(schema, value, old, name)):
                found += below(f".{name}", more)
        return found

    return check


def _required(names: tuple[str, ...]) -> Check:
    def check(value: dict[str, Any], _old: Any) -> Sequence[Finding]:
        absent = [name for name in names if name not in value]
        return (
            [(f".{name}", lambda field, _path: go_causes.required_value(field)) for name in absent]
            if absent
            else NO_FINDINGS
        )

    return check


def _at_least(least: int, what: str) -> Check:
    def check(value: Any, _old: Any) -> Sequence[Finding]:
        return NO_FINDINGS if len(value) >= least else invalid_value(len(value), f"should have at least {least} {what}")

    return check


def _at_most(most: int) -> Check:
    def check(value: Any, _old: Any) -> Sequence[Finding]:
        size = len(value)
        return NO_FINDINGS if size <= most else [("", lambda field, _path: go_causes.too_many(field, size, most))]

    return check


# Alternatives


def _alternatives(raw: Raw) -> list[Check]:
    made: list[Check] = []
    if any_of := raw.get("anyOf"):
        made.append(schema_checks.any_of([_checked(Schema(one)) for one in any_of]))
    if one_of := raw.get("oneOf"):
        made.append(schema_checks.one_of([_checked(Schema(one)) for one in one_of]))
    if all_of := raw.get("allOf"):
        made.append(schema_checks.all_of([_checked(Schema(one)) for one in all_of]))
    if (never := raw.get("not")) is not None:
        made.append(schema_checks.not_(_checked(Schema(never))))
    return made

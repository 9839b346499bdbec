"""Scalars: what a schema demands of texts, numbers and single values, and that values are of its types.

Each function makes checks of one kind from the words of a schema; none, if the schema has no such words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kedge.api.openapi.model import Raw, Schema
from kedge.api.patterns import compiled
from kedge.embedded.custom import causes, formats
from kedge.embedded.custom.correlation import identical
from kedge.embedded.custom.findings import FINE, Check, Finding, misfit, of_all, wrong

SMALLEST, BIGGEST = -(2**63), 2**63 - 1
_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (SMALLEST, BIGGEST), "": (SMALLEST, BIGGEST)}
_EXACT = 2**53  # beyond it a float is no whole number to Kubernetes
NAMES: Mapping[type, tuple[str, str]] = {  # type and format, as Go's decoder sees them
    bool: ("boolean", ""),
    dict: ("object", ""),
    float: ("number", "float64"),
    int: ("integer", "int64"),
    list: ("array", ""),
    str: ("string", ""),
    type(None): ("null", ""),
}


def typed(schema: Schema, types: tuple[str, ...], form: str) -> Callable[[Any], Sequence[Finding]]:
    wanted = ",".join(types)

    def check(value: Any) -> Sequence[Finding]:
        name, size = NAMES[type(value)]
        if value is None:
            return FINE if schema.nullable else misfit(wanted, "null")
        if name == "number" and "integer" in types and abs(value) < _EXACT and value == int(value):
            return FINE
        if form and name not in ("string", "array"):
            return misfit(form, size)
        if form and not {"number", "integer"} & set(types):
            return FINE  # a list where a formatted text should be: the format is not asked, and the type is let pass
        return misfit(wanted, name)

    return check


def text(raw: Raw) -> list[Check]:
    most, least, pattern = raw.get("maxLength"), raw.get("minLength"), raw.get("pattern")
    if most is None and least is None and not pattern:
        return []
    matches = compiled(pattern).search if pattern else None

    def check(value: str, _old: Any) -> Sequence[Finding]:
        if most is not None and len(value) > most:
            return [("", lambda field, _path: causes.too_long(field, most))]
        if least is not None and len(value) < least:
            return wrong(value, f"should be at least {least} chars long")
        if matches is not None and not matches(value):
            return wrong(value, f"should match '{pattern}'")
        return FINE

    return [check]


def formatted(form: str) -> Check:
    def check(value: str, _old: Any) -> Sequence[Finding]:
        if formats.fits(form, value):
            return FINE
        shown = causes.quoted(value)
        return [
            ("", lambda field, path: causes.misfit(field, value, f"{path} in body must be of type {form}: {shown}"))
        ]

    return check


def number(raw: Raw, types: tuple[str, ...], form: str) -> list[Check]:
    parts: list[Check] = [_in_range(form)] if types == ("integer",) else []
    if (factor := raw.get("multipleOf")) is not None:
        parts.append(_multiple(factor))
    if (least := raw.get("minimum")) is not None:
        parts.append(_bound(least, bool(raw.get("exclusiveMinimum")), "greater"))
    if (most := raw.get("maximum")) is not None:
        parts.append(_bound(most, bool(raw.get("exclusiveMaximum")), "less"))
    return parts


def _in_range(form: str) -> Check:
    smallest, biggest = _RANGES[form]
    what = f"integer with format {form}" if form else "integer (default format)"

    def check(value: float, _old: Any) -> Sequence[Finding]:
        if smallest <= value <= biggest and value == int(value):
            return FINE
        return [("", lambda _field, path: of_all(f"Checked value must be of type {what} in {path}"))]

    return check


def _multiple(factor: float) -> Check:
    def check(value: float, _old: Any) -> Sequence[Finding]:
        by = int(factor) if isinstance(value, int) else factor
        if by <= 0:
            text = f"must be positive: {causes.number(by)}"
            return [("", lambda f, path: causes.invalid(f, by, f"factor MultipleOf declared for {path} {text}"))]
        quotient = 1 / by * value if by < 1 else value / by
        fits = value % by == 0 if isinstance(value, int) else abs(quotient - round(quotient)) < 1e-9
        return FINE if fits else wrong(value, f"should be a multiple of {causes.number(by)}")

    return check


def _bound(bound: float, exclusive: bool, side: str) -> Check:
    def check(value: float, _old: Any) -> Sequence[Finding]:
        limit = int(bound) if isinstance(value, int) else bound
        past = value < limit if side == "greater" else value > limit
        if not past and not (exclusive and value == limit):
            return FINE
        than = f"{side} than" if exclusive else f"{side} than or equal to"
        return wrong(value, f"should be {than} {causes.number(limit)}")

    return check


def enum(allowed: Sequence[Any]) -> Check:
    supported = [one if isinstance(one, str) else causes.compact(one) for one in allowed]
    numbers = [one for one in allowed if type(one) in (int, float)]

    def check(value: Any, _old: Any) -> Sequence[Finding]:
        if any(identical(value, one) for one in allowed) or (type(value) in (int, float) and value in numbers):
            return FINE
        return [("", lambda field, _path: causes.not_one_of(field, value, supported))]

    return check

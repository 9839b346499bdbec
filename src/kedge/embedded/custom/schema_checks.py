"""Schema checks: the checks that the keywords of a schema demand of a value, and what they find.

A `Check` gives findings. A finding has the path from the checked value and makes its cause once it is told the field
and the whole path, so that nothing is put together for values that are valid. Each function makes the checks of some
keywords; none, if the schema does not have them. If all of several alternatives fail, the findings of the one with the
fewest are reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from kedge.api.openapi.model import Raw, Schema
from kedge.api.patterns import compiled
from kedge.embedded.custom import formats, go_causes
from kedge.embedded.custom.ratcheting import NO_OLD_VALUE, identical
from kedge.embedded.go_text import go_json, go_number, go_quoted
from kedge.kube.errors import Cause

CauseAt: TypeAlias = Callable[[str, str], Cause]  # from the field and the path inside the checked value
Finding: TypeAlias = tuple[str, CauseAt]
Check: TypeAlias = Callable[[Any, Any], Sequence[Finding]]  # of a value and its old value, or NO_OLD_VALUE

NO_FINDINGS: tuple[Finding, ...] = ()


def invalid_value(value: Any, why: str) -> Sequence[Finding]:
    return [("", lambda field, path: go_causes.invalid_value(field, value, f"{path} in body {why}"))]


def wrong_type(wanted: str, got: str) -> Sequence[Finding]:
    """A value of another type."""
    return [
        ("", lambda field, path: go_causes.wrong_type(field, got, f'{path} in body must be of type {wanted}: "{got}"')),
    ]


def no_alternative(why: str) -> Finding:
    """Alternatives of which too few or too many fit."""
    return "", lambda _field, path: of_whole_value(f"{go_quoted(path)} {why}")


def of_whole_value(why: str) -> Cause:
    """A cause without a field: Kubernetes puts it on the whole checked value."""
    return go_causes.invalid_value("", "", why)


def below(prefix: str, found: Sequence[Finding]) -> list[Finding]:
    """Findings in a member or item, as findings in its parent."""
    return [(f"{prefix}{path}", said) for path, said in found]


def as_causes(found: Sequence[Finding], field: str) -> list[Cause]:
    """The causes of findings in the value of a field (empty for a whole object), each once."""
    made = (said(_join(field, path), path.removeprefix(".")) for path, said in found)
    return list(dict.fromkeys(_nowhere(cause, field) for cause in made))


def _nowhere(cause: Cause, field: str) -> Cause:
    return Cause(field, cause.message, cause.reason) if field and cause.field == go_causes.NO_FIELD else cause


def _join(field: str, path: str) -> str:
    inner = path.removeprefix(".")
    return f"{field}.{inner}" if field and inner else field or inner


SMALLEST, BIGGEST = -(2**63), 2**63 - 1
_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (SMALLEST, BIGGEST), "": (SMALLEST, BIGGEST)}
_EXACT = 2**53  # beyond it a float is no whole number to Kubernetes
TYPE_NAMES: Mapping[type, tuple[str, str]] = {  # type and format, as Go's decoder sees them
    bool: ("boolean", ""),
    dict: ("object", ""),
    float: ("number", "float64"),
    int: ("integer", "int64"),
    list: ("array", ""),
    str: ("string", ""),
    type(None): ("null", ""),
}


def type_checks(schema: Schema, types: tuple[str, ...], form: str) -> Callable[[Any], Sequence[Finding]]:
    wanted = ",".join(types)

    def check(value: Any) -> Sequence[Finding]:
        name, size = TYPE_NAMES[type(value)]
        if value is None:
            return NO_FINDINGS if schema.nullable else wrong_type(wanted, "null")
        if name == "number" and "integer" in types and abs(value) < _EXACT and value == int(value):
            return NO_FINDINGS
        if form and name not in ("string", "array"):
            return wrong_type(form, size)
        if form and not {"number", "integer"} & set(types):
            return NO_FINDINGS  # a list in place of a formatted text is let pass, as in Kubernetes
        return wrong_type(wanted, name)

    return check


def text_checks(raw: Raw) -> list[Check]:
    most, least, pattern = raw.get("maxLength"), raw.get("minLength"), raw.get("pattern")
    if most is None and least is None and not pattern:
        return []
    matches = compiled(pattern).search if pattern else None

    def check(value: str, _old: Any) -> Sequence[Finding]:
        if most is not None and len(value) > most:
            return [("", lambda field, _path: go_causes.too_long(field, most))]
        if least is not None and len(value) < least:
            return invalid_value(value, f"should be at least {least} chars long")
        if matches is not None and not matches(value):
            return invalid_value(value, f"should match '{pattern}'")
        return NO_FINDINGS

    return [check]


def format_checks(form: str) -> Check:
    def check(value: str, _old: Any) -> Sequence[Finding]:
        if formats.matches_format(form, value):
            return NO_FINDINGS
        shown = go_quoted(value)
        return [
            (
                "",
                lambda field, path: go_causes.wrong_type(
                    field, value, f"{path} in body must be of type {form}: {shown}"
                ),
            )
        ]

    return check


def number_checks(raw: Raw, types: tuple[str, ...], form: str) -> list[Check]:
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
            return NO_FINDINGS
        return [("", lambda _field, path: of_whole_value(f"Checked value must be of type {what} in {path}"))]

    return check


def _multiple(factor: float) -> Check:
    def check(value: float, _old: Any) -> Sequence[Finding]:
        by = int(factor) if isinstance(value, int) else factor
        if by <= 0:
            text = f"must be positive: {go_number(by)}"
            return [
                ("", lambda f, path: go_causes.invalid_value(f, by, f"factor MultipleOf declared for {path} {text}"))
            ]
        quotient = 1 / by * value if by < 1 else value / by
        fits = value % by == 0 if isinstance(value, int) else abs(quotient - round(quotient)) < 1e-9
        return NO_FINDINGS if fits else invalid_value(value, f"should be a multiple of {go_number(by)}")

    return check


def _bound(bound: float, exclusive: bool, side: str) -> Check:
    def check(value: float, _old: Any) -> Sequence[Finding]:
        limit = int(bound) if isinstance(value, int) else bound
        past = value < limit if side == "greater" else value > limit
        if not past and not (exclusive and value == limit):
            return NO_FINDINGS
        than = f"{side} than" if exclusive else f"{side} than or equal to"
        return invalid_value(value, f"should be {than} {go_number(limit)}")

    return check


def enum_checks(allowed: Sequence[Any]) -> Check:
    supported = [one if isinstance(one, str) else go_json(one) for one in allowed]
    numbers = [one for one in allowed if type(one) in (int, float)]

    def check(value: Any, _old: Any) -> Sequence[Finding]:
        if any(identical(value, one) for one in allowed) or (type(value) in (int, float) and value in numbers):
            return NO_FINDINGS
        return [("", lambda field, _path: go_causes.unsupported_value(field, value, supported))]

    return check


def any_of(checks: Sequence[Check]) -> Check:
    def check(value: Any, _old: Any) -> Sequence[Finding]:
        found = []
        for one in checks:
            if not (wrong := one(value, NO_OLD_VALUE)):
                return NO_FINDINGS
            found.append(wrong)
        return [no_alternative("must validate at least one schema (anyOf)"), *min(found, key=len)]

    return check


def one_of(checks: Sequence[Check]) -> Check:
    def check(value: Any, _old: Any) -> Sequence[Finding]:
        found = [one(value, NO_OLD_VALUE) for one in checks]
        fitting = sum(not wrong for wrong in found)
        if fitting == 1:
            return NO_FINDINGS
        text = "must validate one and only one schema (oneOf). "
        if fitting:
            return [no_alternative(f"{text}Found {fitting} valid alternatives")]
        return [no_alternative(f"{text}Found none valid"), *min(found, key=len)]

    return check


def all_of(checks: Sequence[Check]) -> Check:
    def check(value: Any, _old: Any) -> Sequence[Finding]:
        found = [wrong for one in checks if (wrong := one(value, NO_OLD_VALUE))]
        if not found:
            return NO_FINDINGS
        none = ". None validated" if len(found) == len(checks) else ""
        said = no_alternative(f"must validate all the schemas (allOf){none}")
        return [*(finding for wrong in found for finding in wrong), said]

    return check


def not_(never: Check) -> Check:
    def check(value: Any, _old: Any) -> Sequence[Finding]:
        return NO_FINDINGS if never(value, NO_OLD_VALUE) else [no_alternative("must not validate the schema (not)")]

    return check

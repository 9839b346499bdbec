"""Go causes: what is wrong with a custom object, worded as kube-apiserver words it.

Values are shown as Go prints them, since clients and their tests compare the texts. A rule on the whole object has no
field to name: Kubernetes then says `<nil>`.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from kedge.embedded import causes
from kedge.kube.errors import Cause

NO_FIELD = "<nil>"
RULES_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
_BLOCKING = frozenset(
    f"FieldValue{reason}" for reason in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid")
)
_HTML = str.maketrans({"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"})
_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}


def invalid_value(field: str, value: Any, why: str) -> Cause:
    return Cause(field or NO_FIELD, f"Invalid value: {go_value(value)}: {why}", "FieldValueInvalid")


def invalid_without_value(field: str, why: str) -> Cause:
    """An invalid value that is too big to be shown."""
    return Cause(field or NO_FIELD, f"Invalid value: {why}", "FieldValueInvalid")


def wrong_type(field: str, value: Any, why: str) -> Cause:
    """A value of another type."""
    return Cause(field or NO_FIELD, f"Invalid value: {go_value(value)}: {why}", "FieldValueTypeInvalid")


def required_value(field: str, why: str = "") -> Cause:
    return causes.required_value(field, why)


def forbidden(field: str, why: str) -> Cause:
    return causes.forbidden(field or NO_FIELD, why)


def unsupported_value(field: str, value: Any, supported: list[str]) -> Cause:
    known = ", ".join(go_quoted(one) for one in supported)
    text = f"Unsupported value: {go_value(value)}: supported values: {known}"
    return Cause(field or NO_FIELD, text, "FieldValueNotSupported")


def too_long(field: str, most: int) -> Cause:
    what = "byte" if most == 1 else "bytes"
    return Cause(field or NO_FIELD, f"Too long: may not be more than {most} {what}", "FieldValueTooLong")


def too_many(field: str, size: int, most: int) -> Cause:
    what = "item" if most == 1 else "items"
    return Cause(field or NO_FIELD, f"Too many: {size}: must have at most {most} {what}", "FieldValueTooMany")


def duplicate_value(field: str, value: Any) -> Cause:
    return Cause(field or NO_FIELD, f"Duplicate value: {go_value(value)}", "FieldValueDuplicate")


def blocks_rules(cause: Cause) -> bool:
    """Whether CEL rules cannot be evaluated on an object with this problem."""
    return cause.reason in _BLOCKING


def go_value(value: Any) -> str:
    """A value as Go prints it in an error."""
    if isinstance(value, str):
        return go_quoted(value)
    if isinstance(value, float):
        return go_number(value)
    return go_json(value)


class GoStruct(dict[str, Any]):
    """A value that is a struct in Go: its keys keep their order."""


def go_json(value: Any) -> str:
    """JSON as Go writes it: keys sorted, except in a struct, and characters of HTML escaped."""
    in_order = isinstance(value, GoStruct) or (
        isinstance(value, list) and any(isinstance(one, GoStruct) for one in value)
    )
    text = msgspec.json.encode(value, order=None if in_order else "deterministic").decode()
    return text.translate(_HTML)


def go_quoted(text: str) -> str:
    """A text in Go's quotes."""
    return '"' + "".join(map(_escaped, text)) + '"'


def go_number(value: float) -> str:
    """A number as Go's `%v` prints it: no exponent before twenty-one digits."""
    if isinstance(value, int):
        return str(value)
    if math.isfinite(value) and value == int(value) and abs(value) < 1e21:
        return str(int(value))
    return repr(value)


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char in _ESCAPES:
        return _ESCAPES[char]
    return char if char.isprintable() else f"\\x{ord(char):02x}" if ord(char) < 0x80 else f"\\u{ord(char):04x}"

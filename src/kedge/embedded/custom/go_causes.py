"""Go causes: what is wrong with a custom object, worded as kube-apiserver words it.

Values are shown as Go prints them, since clients and their tests compare the texts. A rule on the whole object has no
field to name: Kubernetes then says `<nil>`.
"""

from __future__ import annotations

from typing import Any

from kedge.embedded import causes
from kedge.embedded.go_text import go_quoted, go_value
from kedge.kube.errors import Cause

NO_FIELD = "<nil>"
RULES_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
_BLOCKING = frozenset(
    f"FieldValue{reason}" for reason in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid")
)


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

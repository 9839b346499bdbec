"""Causes: what is wrong with a field, as `details.causes` of a Status, in Kubernetes' words.

invalid_value("spec.replicas", -1, NOT_NEGATIVE)    # Invalid value: -1: must be greater than or equal to 0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kedge.kube.errors import Cause

NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"


def invalid_value(field: str, value: Any, why: str) -> Cause:
    return Cause(field, f"Invalid value: {json_text(value)}: {why}", "FieldValueInvalid")


def invalid_values(field: str, value: Any, problems: Iterable[str]) -> Iterator[Cause]:
    """One cause for each problem of a value."""
    return (invalid_value(field, value, problem) for problem in problems)


def required_value(field: str, why: str = "") -> Cause:
    return Cause(field, f"Required value: {why}" if why else "Required value", "FieldValueRequired")


def forbidden(field: str, why: str) -> Cause:
    return Cause(field, f"Forbidden: {why}", "FieldValueForbidden")


def duplicate_value(field: str, value: Any) -> Cause:
    return Cause(field, f"Duplicate value: {json_text(value)}", "FieldValueDuplicate")


def value_not_found(field: str, value: Any) -> Cause:
    """The value refers to something that does not exist."""
    return Cause(field, f"Not found: {json_text(value)}", "FieldValueNotFound")


def unsupported_value(field: str, value: Any, supported: Sequence[str]) -> Cause:
    """In the order they are given: Kubernetes sorts some and not others."""
    known = ", ".join(f'"{one}"' for one in supported)
    return Cause(field, f"Unsupported value: {json_text(value)}: supported values: {known}", "FieldValueNotSupported")


def too_long(field: str, limit: int) -> Cause:
    return Cause(field, f"Too long: may not be more than {limit} bytes", "FieldValueTooLong")


def must_not_be_negative(field: str, value: int | None) -> Iterator[Cause]:
    """The cause, if the number is set and below zero."""
    if value is not None and value < 0:
        yield invalid_value(field, value, NOT_NEGATIVE)


def must_be_one_of(field: str, value: str, supported: Sequence[str]) -> Iterator[Cause]:
    """The cause, if the value is none of those."""
    if value not in supported:
        yield unsupported_value(field, value, supported)


def sorted_by_key(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A map as Go writes it: sorted by its keys."""
    return None if found is None else dict(sorted(found.items()))


def json_text(value: Any) -> str:
    """A value as it stands in a message."""
    return msgspec.json.encode(value).decode()

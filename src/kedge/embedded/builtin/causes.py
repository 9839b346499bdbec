"""Causes: what is wrong with a field, in Kubernetes' words, with values as Python has them.

wrong("spec.replicas", -1, NOT_NEGATIVE)    # spec.replicas: Invalid value: -1: must be greater than or equal to 0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from kedge.kube.errors import Cause

NOT_NEGATIVE = "must be greater than or equal to 0"
IMMUTABLE = "field is immutable"


def wrong(field: str, value: Any, why: str) -> Cause:
    return Cause(field, f"Invalid value: {said(value)}: {why}", "FieldValueInvalid")


def all_wrong(field: str, value: Any, problems: Iterable[str]) -> Iterator[Cause]:
    """One cause for each thing that is wrong with a value."""
    return (wrong(field, value, problem) for problem in problems)


def required(field: str, why: str = "") -> Cause:
    return Cause(field, f"Required value: {why}" if why else "Required value", "FieldValueRequired")


def forbidden(field: str, why: str) -> Cause:
    return Cause(field, f"Forbidden: {why}", "FieldValueForbidden")


def duplicate(field: str, value: Any) -> Cause:
    return Cause(field, f"Duplicate value: {said(value)}", "FieldValueDuplicate")


def unknown(field: str, value: Any) -> Cause:
    """It names something that is not there."""
    return Cause(field, f"Not found: {said(value)}", "FieldValueNotFound")


def unsupported(field: str, value: Any, supported: Sequence[str]) -> Cause:
    """In the order they are given: Kubernetes sorts some and not others."""
    known = ", ".join(f'"{one}"' for one in supported)
    return Cause(field, f"Unsupported value: {said(value)}: supported values: {known}", "FieldValueNotSupported")


def too_long(field: str, limit: int) -> Cause:
    return Cause(field, f"Too long: may not be more than {limit} bytes", "FieldValueTooLong")


def negative(field: str, value: int | None) -> Iterator[Cause]:
    """The cause, if the number is there and below zero."""
    if value is not None and value < 0:
        yield wrong(field, value, NOT_NEGATIVE)


def one_of(field: str, value: str, supported: Sequence[str]) -> Iterator[Cause]:
    """The cause, if the value is none of those."""
    if value not in supported:
        yield unsupported(field, value, supported)


def in_order(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A map as Go writes it: by its keys."""
    return None if found is None else dict(sorted(found.items()))


def said(value: Any) -> str:
    """A value as it stands in a message."""
    return msgspec.json.encode(value).decode()

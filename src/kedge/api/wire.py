"""Reading objects that were not written by a server of ours: users' files, and what Go programs leave behind.

To Kubernetes a null is the same as nothing. Types name None only where a server sends it (`rules: null`), so the fast
path stays plain msgspec; here any null is forgiven, at the price of a second look when the first one failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def read(data: bytes | str, kind: type[T]) -> T:
    """An object from JSON. Raises `msgspec.ValidationError`, naming the path, if it does not fit."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        return read_plain(msgspec.json.decode(data), kind)


def read_plain(value: Any, kind: type[T]) -> T:
    """An object from plain data, such as YAML gives. Raises as `read` does."""
    return msgspec.convert(without_nulls(value), kind)


def without_nulls(value: Any) -> Any:
    """The same data without fields that are null."""
    if isinstance(value, Mapping):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value

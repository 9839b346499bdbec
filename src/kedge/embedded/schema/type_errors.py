"""Type errors: values of the wrong type for a built-in kind, in the words of Go's decoder.

Those words name Go's types and structs (`Go struct field DeploymentSpec.spec.replicas of type int32`), and clients show
them as they are: so a schema says what its Go types are called where its structure does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kedge.api.openapi.model import Schema

_JSON_TYPES = {str: "string", bool: "bool", int: "number", float: "number", dict: "object", list: "array"}
GO_TYPES = {str: "string", bool: "bool", int: "int64", float: "float64", dict: "map", list: "slice"}


class TypeMismatch(Exception):
    """A value of the wrong type, or one that cannot be decoded; the message is kube-apiserver's.

    `go_type` is what the value should be, `sort` its Go kind. Without them the message stands for itself.
    """

    def __init__(self, what: str, go_type: str = "", sort: str = "", found: str = "") -> None:
        super().__init__(what)
        self._what = what
        self._go_type = go_type
        self._sort = sort
        self._found = found
        self._struct = ""
        self._path: list[str] = []

    def inside(self, struct: str, *steps: str) -> None:
        """Say that it happened in a member of a struct."""
        self._struct = self._struct or struct
        self._path[:0] = [step for step in steps if step]

    def __str__(self) -> str:
        if not self._go_type:
            return self._what
        place = f"struct field {self._struct}.{'.'.join(self._path)} of type" if self._struct else "value of type"
        return f"json: cannot unmarshal {self._what} into Go {place} {self._go_type}"

    @property
    def after_merging(self) -> str:
        """The message for the result of a strategic merge, which never was JSON text."""
        match self._sort:
            case "struct":
                return f"cannot restore struct from: {self._found}"
            case "map" | "slice":
                return f"cannot restore {self._sort} from {self._found}"
            case "int32" | "int64" if self._found == "float64":
                return f"cannot convert float64 to {self._sort}"
            case "" if self._go_type:
                return f"json: cannot unmarshal {self._what} into Go value of type {self._go_type}"
        return f"unrecognized type: {self._sort}" if self._sort else self._what


def type_mismatch(value: Any, go_type: str, sort: str) -> TypeMismatch:
    """A value that should have been of another type."""
    return TypeMismatch(_JSON_TYPES[type(value)], go_type, sort, GO_TYPES[type(value)])


def go_type_of(schema: Schema) -> str:
    """The Go type of a value as Go's errors name it; `x-go-type` says it where the structure does not."""
    said: str = schema.raw.get("x-go-type", "")
    return said or _shown(schema)


def _shown(schema: Schema) -> str:
    if schema.name:
        return ".".join(schema.name.rsplit(".", 2)[1:])
    if schema.items is not None:
        return f"[]{go_type_of(schema.items)}"
    if schema.values is not None:
        return f"map[string]{go_type_of(schema.values)}"
    if (schema.type, schema.format) == ("string", "byte"):
        return "[]uint8"
    plain: Mapping[str, str] = {"boolean": "bool", "integer": schema.format or "int", "number": "float64"}
    return plain.get(schema.type, schema.type)

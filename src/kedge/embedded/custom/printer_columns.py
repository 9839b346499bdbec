"""Printer columns: the table columns of a custom kind: the name, and `additionalPrinterColumns` of the CRD.

A date is shown as an age, as kube-apiserver does; a value of another type than its column's is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from kedge.api.openapi.model import Raw
from kedge.embedded.custom.jsonpath import BadPath, compile_path
from kedge.embedded.go_text import go_json, go_number
from kedge.embedded.tables.builtin_columns import Column
from kedge.embedded.tables.cell_text import age
from kedge.kube.codec import Untyped

NAME_DESCRIPTION = (
    "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
    "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
    "idempotence and configuration definition. Cannot be updated. More info: "
    "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
)
AGE_DESCRIPTION = (
    "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed "
    "to be set in happens-before order across separate operations. Clients may not set this value. It is represented "
    "in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: "
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
)
_AGE: Raw = {"name": "Age", "type": "date", "description": AGE_DESCRIPTION, "jsonPath": ".metadata.creationTimestamp"}


class PrinterColumns:
    """The columns of one version of one custom kind."""

    def __init__(self, printed: Sequence[Raw] = ()) -> None:
        shown = printed or [_AGE]
        if not all(map(_readable, shown)):  # Kubernetes shows the name alone, if it cannot read a path
            shown = []
        self.definitions: tuple[Column, ...] = (_NAME, *map(_definition, shown))
        self._cells = tuple((compile_path(one["jsonPath"]), _CELLS[one["type"]]) for one in shown)

    def cells(self, obj: Untyped, now: datetime) -> list[Any]:
        """An object's cells, one for each column."""
        found = ((find(obj), cell) for find, cell in self._cells)
        return [obj["metadata"].get("name", ""), *(cell(values[0], now) if values else None for values, cell in found)]


_NAME: Column = {"name": "Name", "type": "string", "format": "name", "description": NAME_DESCRIPTION, "priority": 0}


def _definition(column: Raw) -> Column:
    said = column.get("description") or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}"
    return {
        "name": column["name"],
        "type": column["type"],
        "format": column.get("format", ""),
        "description": said,
        "priority": column.get("priority", 0),
    }


def _readable(column: Raw) -> bool:
    try:
        compile_path(column["jsonPath"])
    except BadPath:
        return False
    return True


def _text(value: Any, _now: datetime) -> Any:
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, bool):
        return str(value).lower()
    return go_json(value) if isinstance(value, dict | list) else go_number(value)


def _integer(value: Any, _now: datetime) -> Any:
    return int(value) if type(value) in (int, float) else None


def _number(value: Any, _now: datetime) -> Any:
    return value if type(value) in (int, float) else None


def _boolean(value: Any, _now: datetime) -> Any:
    return value if isinstance(value, bool) else None


def _date(value: Any, now: datetime) -> Any:
    if not isinstance(value, str):
        return None
    try:
        return age(value, now)
    except (ValueError, TypeError):
        return "<invalid>"


_CELLS: dict[str, Callable[[Any, datetime], Any]] = {
    "boolean": _boolean,
    "date": _date,
    "integer": _integer,
    "number": _number,
    "string": _text,
}

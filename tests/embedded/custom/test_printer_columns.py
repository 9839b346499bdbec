"""Columns of custom kinds: their definitions and cells."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kedge.embedded.custom.printer_columns import PrinterColumns

NOW = datetime(2025, 1, 1, 0, 5, tzinfo=UTC)
OBJ: dict[str, Any] = {
    "metadata": {"name": "x", "creationTimestamp": "2025-01-01T00:00:00Z"},
    "spec": {"size": 3, "share": 1.5, "on": True, "text": "hi", "labels": {"b": 1, "a": "<"}, "list": [1, 2]},
}


def cell(kind: str, where: str) -> Any:
    return PrinterColumns([{"name": "C", "type": kind, "jsonPath": where}]).cells(OBJ, NOW)[1]


@pytest.mark.parametrize(
    ("kind", "where", "shown"),
    [
        ("integer", ".spec.size", 3),
        ("integer", ".spec.share", 1),
        ("integer", ".spec.text", None),
        ("number", ".spec.share", 1.5),
        ("number", ".spec.size", 3),
        ("boolean", ".spec.on", True),
        ("boolean", ".spec.text", None),
        ("string", ".spec.text", "hi"),
        ("string", ".spec.size", "3"),
        ("string", ".spec.share", "1.5"),
        ("string", ".spec.on", "true"),
        ("string", ".spec.labels", '{"a":"\\u003c","b":1}'),
        ("string", ".spec.list", "[1,2]"),
        ("string", ".spec.list[*]", "1"),
        ("string", ".spec.missing", None),
        ("date", ".metadata.creationTimestamp", "5m"),
        ("date", ".spec.text", "<invalid>"),
        ("date", ".spec.size", None),
    ],
)
def test_a_cell_is_what_the_path_finds_in_the_columns_type(kind: str, where: str, shown: Any) -> None:
    assert cell(kind, where) == shown


def test_a_kind_without_columns_shows_name_and_age() -> None:
    columns = PrinterColumns()
    assert [one["name"] for one in columns.definitions] == ["Name", "Age"]
    assert columns.cells(OBJ, NOW) == ["x", "5m"]


def test_a_column_says_where_it_looks_if_nothing_better() -> None:
    made = PrinterColumns([{"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}]).definitions[1]
    assert made == {
        "name": "Size",
        "type": "integer",
        "format": "",
        "description": "Custom resource definition column (in JSONPath format): .spec.size",
        "priority": 1,
    }


def test_a_path_that_cannot_be_read_leaves_the_name_alone() -> None:
    assert PrinterColumns([{"name": "Bad", "type": "string", "jsonPath": ".spec["}]).cells(OBJ, NOW) == ["x"]

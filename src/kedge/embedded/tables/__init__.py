"""Tables: what `kubectl get` shows of an object: the columns of its kind, and a cell for each."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from kedge.embedded.registry import Kind
from kedge.embedded.rules import Untyped


def columns(kind: Kind) -> list[dict[str, Any]]:
    """The column definitions of a kind."""
    return [
        {"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0},
        {"name": "Created At", "type": "date", "format": "", "description": "", "priority": 0},
    ]


def cells(kind: Kind, obj: Untyped, now: datetime) -> list[Any]:
    """An object's cells, one for each column."""
    return [obj["metadata"]["name"], obj["metadata"].get("creationTimestamp")]


def marks(kind: Kind, obj: Untyped) -> dict[str, Any]:
    """What a row says beside its cells: the conditions of one that is over (`Completed`)."""
    return {}

"""Handover: from client-side to server-side apply, without a field being left that nobody owns any more.

What was written before belongs to the same manager in another way (`Update`), and server-side apply would neither take
it away when it is no longer asked for, nor change it without a conflict with oneself. So the fields are handed over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

Entry: TypeAlias = Mapping[str, Any]


def handed_over(entries: Sequence[Entry], manager: str) -> list[Entry] | None:
    """The managed fields of an object with the manager's updates made its applies; None if there is nothing to do."""
    updates = [entry for entry in entries if _is(entry, manager, "Update")]
    if not updates:
        return None
    applies = [entry for entry in entries if _is(entry, manager, "Apply")]
    fields: dict[str, Any] = {}
    for entry in (*applies, *updates):
        fields = _union(fields, entry.get("fieldsV1") or {})
    rest = [entry for entry in entries if entry not in updates and entry not in applies]
    return [*rest, {**(applies or updates)[0], "operation": "Apply", "fieldsV1": fields}]


def _is(entry: Entry, manager: str, operation: str) -> bool:
    return entry.get("manager") == manager and entry.get("operation") == operation and not entry.get("subresource")


def _union(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    both = {name: _union(one[name], other[name]) for name in one if name in other}
    return {**one, **other, **both}

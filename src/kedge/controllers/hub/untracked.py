"""Untracked: what only Kedge writes has no list of who wrote which of its fields.

A server keeps that list, `metadata.managedFields`, for those who apply objects. Of a binding it is more than half, and
more than half of what a write of one costs the server (docs/measurements.md), while clusters wait for these writes one
after another. A list that was emptied is not begun anew, unless somebody applies the object.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def untracked(change: Mapping[str, Any]) -> dict[str, Any]:
    """The same change of an object itself, not of a part of it like its status, which also empties the list."""
    return {**change, "metadata": {**change.get("metadata", {}), "managedFields": [{}]}}

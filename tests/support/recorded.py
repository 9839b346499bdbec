"""Recorded fleets, as typed objects: what was left out of the recording (times, messages) is filled in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from kedge.api.meta import Object

T = TypeVar("T", bound=Object)

FOLDER = Path(__file__).parents[1] / "fleet" / "traces"
WHEN = "2026-08-01T12:00:00Z"


def recorded(trace: str, kind: type[T]) -> list[T]:
    """The objects of a kind on the hub in the recording whose number this is."""
    return [msgspec.convert(_whole(found), kind) for found in _documents(trace) if found["kind"] == kind.resource.kind]


def _documents(trace: str) -> Iterator[dict[str, Any]]:
    (path,) = FOLDER.glob(f"{trace}-*.yaml")
    for found in yaml.load_all(path.read_text(), yaml.CSafeLoader):
        if found:
            yield found


def _whole(found: Any) -> Any:
    if isinstance(found, list):
        return [_whole(one) for one in found]
    if not isinstance(found, dict):
        return WHEN if found == "TIME" else found
    filled = {key: _whole(value) for key, value in found.items()}
    if {"type", "status", "reason"} <= filled.keys():
        filled = {"message": "", "lastTransitionTime": WHEN, **filled}
    if "ownerReferences" in filled:
        filled["ownerReferences"] = [{"uid": "UUID", **one} for one in filled["ownerReferences"]]
    return filled

"""Conditions of pods: set one, keep the others in place. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from kedge.api.condition import find_condition
from kedge.api.pods import PodCondition

Conditions = tuple[PodCondition, ...]


def with_condition(conditions: Conditions, new: PodCondition, now: datetime) -> Conditions:
    """The conditions with this one: in the place of the one of its type, or before the others.

    While the status stays the same, so does the time of its last change.
    """
    old = find_condition(conditions, new.type)
    since = old.last_transition_time if old is not None and old.status == new.status else now.replace(microsecond=0)
    new = replace(new, last_transition_time=since)
    if old is None:
        return (new, *conditions)
    return tuple(new if one.type == new.type else one for one in conditions)


def as_written(conditions: Iterable[PodCondition]) -> list[dict[str, Any]]:
    """As the API writes them: a probe nobody made is told, too."""
    return [{"lastProbeTime": None, **to_builtins(one)} for one in conditions]

"""Wording: whether two statuses of a Work differ in words only, which people read and nobody acts on."""

from __future__ import annotations

from msgspec.structs import replace

from kedge.api.condition import Condition
from kedge.api.work import ManifestCondition, WorkStatus


def is_wording(before: WorkStatus, after: WorkStatus) -> bool:
    """Whether nothing but the messages of conditions differs."""
    return _wordless(before) == _wordless(after)


def _wordless(status: WorkStatus) -> tuple[tuple[Condition, ...], tuple[ManifestCondition, ...]]:
    manifests = (replace(one, conditions=_silent(one.conditions)) for one in status.manifest_conditions)
    return _silent(status.conditions), tuple(manifests)


def _silent(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    return tuple(replace(one, message="") for one in conditions)

"""Wording: whether two statuses of a Work differ only in what people read and nobody acts on."""

from __future__ import annotations

from msgspec.structs import replace

from kedge.api.condition import Condition, is_true
from kedge.api.reasons import APPLIED, AVAILABLE
from kedge.api.work import ManifestCondition, WorkStatus


def is_wording(before: WorkStatus, after: WorkStatus) -> bool:
    """Whether nothing but the messages of conditions differs."""
    return _wordless(before) == _wordless(after)


def is_underway(before: WorkStatus, after: WorkStatus, generation: int) -> bool:
    """Whether all is applied and not yet available, and nobody takes this generation for available."""
    if is_true(before.conditions, AVAILABLE, generation=generation):
        return False
    return is_true(after.conditions, APPLIED) and not is_true(after.conditions, AVAILABLE)


def _wordless(status: WorkStatus) -> tuple[tuple[Condition, ...], tuple[ManifestCondition, ...]]:
    manifests = (replace(one, conditions=_silent(one.conditions)) for one in status.manifest_conditions)
    return _silent(status.conditions), tuple(manifests)


def _silent(conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    return tuple(replace(one, message="") for one in conditions)

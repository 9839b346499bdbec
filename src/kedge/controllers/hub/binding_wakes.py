"""Binding wakes: which changes of bindings matter to whoever moves them."""

from __future__ import annotations

from typing import Any

from kedge.api.condition import find_condition
from kedge.api.reasons import ROLLOUT_STARTED
from kedge.api.twins import Binding
from kedge.kube.store import Change


def matters(change: Change[Any]) -> bool:
    """Whether a plan may be another one: not if only what we said ourselves changed."""
    return change.old is None or change.new is None or _gist(change.old) != _gist(change.new)


def _gist(binding: Binding) -> tuple[object, ...]:
    meta, status = binding.metadata, binding.status
    ours = find_condition(status.conditions, ROLLOUT_STARTED)
    is_ours_true = ours is not None and ours.observed_generation == meta.generation
    others = tuple(one for one in status.conditions if one.type != ROLLOUT_STARTED)
    return (meta.generation, meta.deletion_timestamp, is_ours_true, others, status.failed_placements[:1])

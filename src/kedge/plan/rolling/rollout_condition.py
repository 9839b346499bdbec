"""Rollout condition: the RolloutStarted condition of a binding: whether it has the resources that are wanted."""

from __future__ import annotations

from datetime import datetime

from msgspec.structs import replace

from kedge.api.binding import BindingState
from kedge.api.condition import FALSE, TRUE, Condition, find_condition, new_condition, set_condition
from kedge.api.placement_kinds import Binding
from kedge.api.reasons import NOT_STARTED, ROLLOUT_STARTED, STARTED

Conditions = tuple[Condition, ...]


def rollout_started_condition(binding: Binding, why: str | None, now: datetime) -> Conditions:
    """The binding's conditions with RolloutStarted as it has to be; the others are kept.

    `why` is what it waits for, if it does. A cluster that is to be removed keeps what was said when it was placed, as
    scripts expect it, and only the words change; one that is being removed keeps everything.
    """
    conditions = binding.status.conditions
    if binding.metadata.deletion_timestamp is not None:
        return conditions
    if binding.spec.state == BindingState.unscheduled:
        return _with_message(conditions, why)
    if why is not None:
        return set_condition(conditions, _condition(binding, FALSE, NOT_STARTED, why, now))
    if binding.spec.state == BindingState.bound:
        given = f"{binding.spec.target_cluster} was given {binding.spec.resource_snapshot_name}"
        return set_condition(conditions, _condition(binding, TRUE, STARTED, given, now))
    return conditions


def lacks_rollout_condition(binding: Binding) -> bool:
    """Whether somebody waits for a word: no Works are made before this generation of the binding was spoken of."""
    if binding.spec.state == BindingState.unscheduled:
        return False
    said = find_condition(binding.status.conditions, ROLLOUT_STARTED)
    return said is None or said.observed_generation != binding.metadata.generation


def _with_message(conditions: Conditions, why: str | None) -> Conditions:
    said = find_condition(conditions, ROLLOUT_STARTED)
    return conditions if said is None or why is None else set_condition(conditions, replace(said, message=why))


def _condition(binding: Binding, status: str, reason: str, message: str, now: datetime) -> Condition:
    return new_condition(ROLLOUT_STARTED, status, reason, message, now=now, generation=binding.metadata.generation)

"""Condition order: the conditions that a placement goes through on each cluster, in order, with reasons and texts.

    RolloutStarted → Overridden → WorkSynchronized → Applied → Available

The order counts: nothing is reported of what follows a condition that is not True (kubefleet.md §4.7).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from kedge.api.condition import FALSE, TRUE, UNKNOWN
from kedge.api.reasons import (
    ALL_SYNCED,
    APPLIED,
    APPLY_FAILED,
    APPLY_PENDING,
    APPLY_SUCCEEDED,
    AVAILABLE,
    AVAILABLE_UNKNOWN,
    NO_OVERRIDE,
    NOT_STARTED,
    NOT_SYNCED,
    OVERRIDDEN,
    OVERRIDDEN_FAILED,
    OVERRIDDEN_PENDING,
    RESOURCE_AVAILABLE,
    RESOURCE_NOT_AVAILABLE,
    ROLLOUT_STARTED,
    STARTED,
    STARTED_UNKNOWN,
    SYNCED_UNKNOWN,
    WORK_SYNCHRONIZED,
)


class ConditionStep(Struct, frozen=True):
    """One condition: its type, the reasons by status, the event, and the texts for a count of clusters."""

    type: str
    reasons: Mapping[str, str]
    event: str
    """The reason of the event once the condition is True on every cluster."""
    done: str
    failed: str
    unknown: str


# Reporting differences instead of applying will have its own conditions in place of the last two.
CONDITION_STEPS: Final = (
    ConditionStep(
        ROLLOUT_STARTED,
        {TRUE: STARTED, FALSE: NOT_STARTED, UNKNOWN: STARTED_UNKNOWN},
        "PlacementRolloutStarted",
        "have started",
        "wait",
        "have not been looked at yet",
    ),
    ConditionStep(
        OVERRIDDEN,
        {TRUE: NO_OVERRIDE, FALSE: OVERRIDDEN_FAILED, UNKNOWN: OVERRIDDEN_PENDING},
        "PlacementOverriddenSucceeded",
        "need no override",
        "cannot get their objects",
        "have not got their objects yet",
    ),
    ConditionStep(
        WORK_SYNCHRONIZED,
        {TRUE: ALL_SYNCED, FALSE: NOT_SYNCED, UNKNOWN: SYNCED_UNKNOWN},
        "PlacementWorkSynchronized",
        "have their Works",
        "do not have their Works",
        "do not have their Works yet",
    ),
    ConditionStep(
        APPLIED,
        {TRUE: APPLY_SUCCEEDED, FALSE: APPLY_FAILED, UNKNOWN: APPLY_PENDING},
        "PlacementApplied",
        "have applied every object",
        "have not applied every object",
        "have not reported yet whether they applied every object",
    ),
    ConditionStep(
        AVAILABLE,
        {TRUE: RESOURCE_AVAILABLE, FALSE: RESOURCE_NOT_AVAILABLE, UNKNOWN: AVAILABLE_UNKNOWN},
        "PlacementAvailable",
        "have every object available",
        "have objects that are not available",
        "do not say whether every object is available",
    ),
)

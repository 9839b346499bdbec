"""Steps: what a placement goes through on each cluster, in order, and what each is called when it is reached or not.

    RolloutStarted → Overridden → WorkSynchronized → Applied → Available

The order counts: of what follows a step that was not taken, nothing is said (kubefleet.md §4.7).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from kedge.api.condition import FALSE, TRUE, UNKNOWN, Condition
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

LONGEST: Final = 1024


class Step(Struct, frozen=True):
    """One step: its condition's type, a placement's reasons by status, and the words."""

    type: str
    reasons: Mapping[str, str]
    event: str
    """What is told of a placement that has taken it on every cluster."""
    done: str
    failed: str
    unknown: str


# Reporting differences instead of applying will have its own steps in the place of the last two.
STEPS: Final = (
    Step(
        ROLLOUT_STARTED,
        {TRUE: STARTED, FALSE: NOT_STARTED, UNKNOWN: STARTED_UNKNOWN},
        "PlacementRolloutStarted",
        "have started",
        "wait",
        "have not been looked at yet",
    ),
    Step(
        OVERRIDDEN,
        {TRUE: NO_OVERRIDE, FALSE: OVERRIDDEN_FAILED, UNKNOWN: OVERRIDDEN_PENDING},
        "PlacementOverriddenSucceeded",
        "need no override",
        "cannot get their objects",
        "have not got their objects yet",
    ),
    Step(
        WORK_SYNCHRONIZED,
        {TRUE: ALL_SYNCED, FALSE: NOT_SYNCED, UNKNOWN: SYNCED_UNKNOWN},
        "PlacementWorkSynchronized",
        "have their Works",
        "do not have their Works",
        "do not have their Works yet",
    ),
    Step(
        APPLIED,
        {TRUE: APPLY_SUCCEEDED, FALSE: APPLY_FAILED, UNKNOWN: APPLY_PENDING},
        "PlacementApplied",
        "have applied every object",
        "have not applied every object",
        "have not reported yet whether they applied every object",
    ),
    Step(
        AVAILABLE,
        {TRUE: RESOURCE_AVAILABLE, FALSE: RESOURCE_NOT_AVAILABLE, UNKNOWN: AVAILABLE_UNKNOWN},
        "PlacementAvailable",
        "have every object available",
        "have objects that are not available",
        "do not say whether every object is available",
    ),
)


class Said(Struct, frozen=True):
    """One thing that is said of a placement or of one cluster of it; `since` if it is known since when."""

    type: str
    status: str
    reason: str
    message: str
    since: datetime | None = None

    def condition(self, old: Condition | None, generation: int, now: datetime) -> Condition:
        """As a condition; its time is that of the last change."""
        since = self.since
        if since is None:
            since = old.last_transition_time if old is not None and old.status == self.status else now
        return Condition(
            type=self.type,
            status=self.status,
            reason=self.reason,
            message=self.message if len(self.message) <= LONGEST else self.message[: LONGEST - 1] + "…",
            last_transition_time=since.replace(microsecond=0),
            observed_generation=generation,
        )

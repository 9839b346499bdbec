"""State: the state of a placement, of one of its clusters or of an object there, in one word."""

from __future__ import annotations

from enum import StrEnum

from kedge.api.condition import UNKNOWN, Condition
from kedge.api.reasons import AVAILABLE, ROLLOUT_STARTED, SCHEDULED


class State(StrEnum):
    """The state of a placement, a cluster or an object."""

    available = "available"
    moving = "moving"
    """It was given its resources, and is not available yet."""
    next = "next"
    """May move now, and has not yet."""
    waiting = "waiting"
    failed = "failed"
    unknown = "unknown"
    leaving = "leaving"
    paused = "paused"
    rolled_back = "rolled back"


def state_of(stopped: Condition, prefix: str = "") -> State:
    """The state of something whose first condition that is not True is this one."""
    step = stopped.type.removeprefix(prefix)
    if stopped.status == UNKNOWN:
        return State.unknown if step == AVAILABLE else State.moving
    if step in (SCHEDULED, ROLLOUT_STARTED):
        return State.waiting
    if step == AVAILABLE or stopped.reason.endswith(("InProgress", "Pending", "NotSynchronizedYet")):
        return State.moving
    return State.failed

"""Findings: what is known of a placement, a binding or a cluster, before it becomes a condition."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from kedge.api.condition import Condition, new_condition
from kedge.plan.text import cut

MAX_MESSAGE: Final = 1024


class Finding(Struct, frozen=True):
    """One thing that is known; `since` when, if that is known too."""

    type: str
    status: str
    reason: str
    message: str
    since: datetime | None = None

    def condition(self, old: Condition | None, generation: int, now: datetime) -> Condition:
        """The condition. Its time is `since`, else that of an old one with the same status, else now."""
        since = self.since
        if since is None:
            since = old.last_transition_time if old is not None and old.status == self.status else now
        message = cut(self.message, MAX_MESSAGE)
        return new_condition(
            self.type, self.status, self.reason, message, now=since.replace(microsecond=0), generation=generation
        )

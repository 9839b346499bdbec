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

    def condition(self, *, since: datetime, generation: int) -> Condition:
        """The condition with this time of transition; its message is cut to the limit."""
        message = cut(self.message, MAX_MESSAGE)
        return new_condition(
            self.type, self.status, self.reason, message, now=since.replace(microsecond=0), generation=generation
        )

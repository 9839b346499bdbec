"""Report delays: how soon a changed status of a Work is written to the hub.

Whatever anybody acts on is written at once. That a change is underway waits a moment, while everything is busy with it.
Messages alone ("1 of 100 replicas", "2 of 100 replicas", …) are for people, and change with every pod: they are written
at most every few seconds, the last of them always. What is written late has the times of when it was so.
"""

from __future__ import annotations

from typing import Final

from kedge.api.work import WorkStatus
from kedge.controllers.throttle import Throttle
from kedge.plan.applying.work_status import is_becoming_available, only_messages_differ

UNDERWAY_AFTER: Final = 1.5  # seconds until it is written that a change was applied: by then it has mostly arrived
MESSAGES_AFTER: Final = 2.0  # seconds after a write in which other messages are not worth one


class ReportDelays:
    """Of the Works of one member."""

    def __init__(self) -> None:
        self._underway = Throttle(UNDERWAY_AFTER)
        self._messages = Throttle(MESSAGES_AFTER)
        self._unwritten: dict[str, WorkStatus] = {}
        self._true: dict[str, WorkStatus] = {}

    def last(self, name: str, written: WorkStatus) -> WorkStatus:
        """The last status of a Work, whether it was written or not."""
        return self._unwritten.get(name, written)

    def last_true(self, name: str, written: WorkStatus) -> WorkStatus:
        """The same, of a Work whose status somebody else may have written."""
        return self._unwritten.get(name) or self._true.get(name, written)

    def is_true(self, name: str, status: WorkStatus) -> None:
        """This is the status that the Work has, and it is true."""
        self._true[name] = status

    def delay(self, name: str, status: WorkStatus) -> None:
        """This is the status, and it is not written yet."""
        self._unwritten[name] = status

    def before_write(self, name: str, generation: int, before: WorkStatus, after: WorkStatus) -> float:
        """Seconds until this status of that generation is written; 0 if now."""
        if is_becoming_available(before, after, generation) and (wait := self._underway.wait(name)):
            return wait
        return self._messages.remaining(name) if only_messages_differ(before, after) else 0.0

    def wrote(self, name: str) -> None:
        """The status of this Work was written."""
        self._reset(name)
        self._messages.restart(name)

    def forget(self, name: str) -> None:
        self._reset(name)
        self._messages.reset(name)
        self._true.pop(name, None)

    def clear(self) -> None:
        self._underway.clear()
        self._messages.clear()
        self._true.clear()
        self._unwritten.clear()

    def _reset(self, name: str) -> None:
        self._underway.reset(name)
        self._unwritten.pop(name, None)

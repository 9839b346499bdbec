"""Telling: how soon the hub is told of what changed about a Work.

Whatever anybody acts on is told at once. That a change is underway waits a moment, while everything is busy with it.
Words alone ("1 of 100 replicas", "2 of 100 replicas", …) are for people, and change with every pod: they are told at
most every few seconds, the last of them always. What is told late has the times of when it was so.

What is remembered here may be lost at any time: then words are told sooner.
"""

from __future__ import annotations

import asyncio
from typing import Final

from kedge.api.work import WorkStatus
from kedge.controllers.putting_off import PuttingOff
from kedge.plan.applying.wording import is_underway, is_wording

UNDERWAY_AFTER: Final = 1.5  # seconds until it is told that a change was applied: by then it has mostly arrived
REST: Final = 2.0  # seconds in which other words are not worth telling


class Telling:
    """Of the Works of one member."""

    def __init__(self) -> None:
        self._told: dict[str, float] = {}
        self._underway = PuttingOff(UNDERWAY_AFTER)
        self._unsaid: dict[str, WorkStatus] = {}
        self._known: dict[str, WorkStatus] = {}

    def before(self, name: str, said: WorkStatus) -> WorkStatus:
        """What there was to tell last of a Work that says this."""
        return self._unsaid.get(name, said)

    def last_known(self, name: str, said: WorkStatus) -> WorkStatus:
        """The same of a Work that somebody else has made say this."""
        return self._unsaid.get(name) or self._known.get(name, said)

    def know(self, name: str, status: WorkStatus) -> None:
        """This is what the Work says, and it is true."""
        self._known[name] = status

    def put_off(self, name: str, status: WorkStatus) -> None:
        """This is what there is to tell, and it waits."""
        self._unsaid[name] = status

    def rest(self, name: str, generation: int, before: WorkStatus, after: WorkStatus) -> float:
        """In how many seconds this is to be told of that generation; 0 if now."""
        if is_underway(before, after, generation) and (left := self._underway.left(name)):
            return left
        told = self._told.get(name)
        if told is None or not is_wording(before, after):
            return 0.0
        return max(0.0, told + REST - asyncio.get_running_loop().time())

    def told(self, name: str) -> None:
        """The hub was told of this Work."""
        self._told[name] = asyncio.get_running_loop().time()
        self._has_nothing(name)

    def forget(self, name: str) -> None:
        self._told.pop(name, None)
        self._known.pop(name, None)
        self._has_nothing(name)

    def clear(self) -> None:
        self._told.clear()
        self._known.clear()
        self._underway.clear()
        self._unsaid.clear()

    def _has_nothing(self, name: str) -> None:
        self._underway.told(name)
        self._unsaid.pop(name, None)

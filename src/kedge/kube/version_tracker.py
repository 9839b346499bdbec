"""Ledger: which of our own writes a cache has not shown yet.

A decision made on a cache that has not seen our last write would make that write again, or undo it. Kubernetes'
resourceVersions of one kind are numbers that grow, so a cache has caught up with a write once it has seen that number
or a later one, of whatever object. A write that changed nothing returns a number already seen.

What was read directly, because a watch lagged, is ahead of that watch: neither the lines it brings later nor a list
that was begun before may undo it. An object that was found to be gone has no number, but its uid never comes again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from kedge.api.meta import ObjectMeta
from kedge.kube.store import Key, key_of


def number(version: str) -> int:
    """A resourceVersion as a number; one that is none counts as seen already."""
    return int(version) if version.isdecimal() else 0


class Ledger:
    """Own writes that a cache has yet to see, and objects of which it knows more than its watch does."""

    def __init__(self) -> None:
        self._waiting: dict[Key, int] = {}
        self._ahead: dict[Key, int] = {}
        self._gone: dict[str, int] = {}  # by uid, the last version that was known
        self._wakes: dict[Key, asyncio.Event] = {}

    def wrote(self, key: Key, version: str, seen: str) -> None:
        """We wrote this version, while the cache had seen that one."""
        written = number(version)
        if written > max(number(seen), self._waiting.get(key, 0)):
            self._waiting[key] = written

    def caught_up(self, key: Key) -> bool:
        return key not in self._waiting

    async def wait(self, key: Key, within: float) -> bool:
        """Wait until our last write of this object has been seen; False if that takes too long."""
        if self.caught_up(key):
            return True
        wake = self._wakes.setdefault(key, asyncio.Event())
        try:
            async with asyncio.timeout(within):
                await wake.wait()
        except TimeoutError:
            return False
        return True

    def saw(self, version: str) -> None:
        """The cache has seen everything up to this version."""
        if not self._waiting and not self._ahead:
            return
        seen = number(version)
        for key in [key for key, written in self._waiting.items() if written <= seen]:
            self.settle(key)
        for key in [key for key, read in self._ahead.items() if read <= seen]:
            del self._ahead[key]

    def settle(self, key: Key) -> None:
        """Our writes of this object count as seen."""
        self._waiting.pop(key, None)
        if wake := self._wakes.pop(key, None):
            wake.set()

    def ahead(self, meta: ObjectMeta) -> None:
        """The cache holds this version of the object, read directly: what the watch brings before it is old news."""
        self._ahead[key_of(meta)] = number(meta.resource_version)

    def gone(self, meta: ObjectMeta) -> None:
        """The server was asked and has this object no more: whatever the watch brings of it is old news."""
        self._gone[meta.uid] = number(meta.resource_version)

    def ended(self, uid: str) -> None:
        """The watch, too, has told that this object is gone."""
        self._gone.pop(uid, None)

    def listed(self, version: str, uids: Iterable[str]) -> None:
        """A list of this version brought these objects: of one that was known by then, and is gone, nothing comes."""
        if self._gone:
            there, seen = set(uids), number(version)
            self._gone = {uid: known for uid, known in self._gone.items() if uid in there or known > seen}

    def is_old_news(self, meta: ObjectMeta) -> bool:
        """Whether the cache holds a later version than the watch or a list brings here, or knows that there is none."""
        if not self._ahead and not self._gone:
            return False
        return meta.uid in self._gone or number(meta.resource_version) < self._ahead.get(key_of(meta), 0)

    def is_ahead(self, key: Key) -> bool:
        """Whether the cache knows more of this object than its watch, or the list before that, has brought yet."""
        return key in self._ahead

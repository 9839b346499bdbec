"""Version tracker: which of our own writes a cache does not show yet, by their resourceVersions.

A decision made on a cache that has not seen our last write would make that write again, or undo it. The
resourceVersions of one kind are numbers that grow. So a cache has caught up with a write once it has seen that number
or a later one, of any object. A write that changed nothing returns a number that was seen already.

An object that was read directly, because a watch lagged, is ahead of that watch: neither later events nor a list that
was begun earlier may undo it. An object that was found to be gone has no number; its uid comes again only if the
server's etcd is restored, and then in a list that is begun later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from kedge.api.meta import ObjectMeta
from kedge.kube.store import Key, key_of


def as_number(version: str) -> int:
    """A resourceVersion as a number. One that is not numeric counts as seen."""
    return int(version) if version.isdecimal() else 0


class VersionTracker:
    """Own writes that a cache has yet to see, and objects that it has read ahead of its watch."""

    def __init__(self) -> None:
        self._waiting: dict[Key, int] = {}
        self._read_ahead: dict[Key, int] = {}
        self._found_gone: dict[str, int] = {}  # by uid, the last version that was known
        self._waiters: dict[Key, asyncio.Event] = {}

    def expect(self, key: Key, version: str, seen: str) -> None:
        """We wrote this version, while the cache had seen `seen`."""
        written = as_number(version)
        if written > max(as_number(seen), self._waiting.get(key, 0)):
            self._waiting[key] = written

    def caught_up(self, key: Key) -> bool:
        return key not in self._waiting

    async def wait(self, key: Key, within: float) -> bool:
        """Wait until our last write of this object has been seen. False if that takes too long."""
        if self.caught_up(key):
            return True
        wake = self._waiters.setdefault(key, asyncio.Event())
        try:
            async with asyncio.timeout(within):
                await wake.wait()
        except TimeoutError:
            return False
        return True

    def observed(self, version: str) -> None:
        """The cache has seen everything up to this version."""
        if not self._waiting and not self._read_ahead:
            return
        seen = as_number(version)
        for key in [key for key, written in self._waiting.items() if written <= seen]:
            self.settle(key)
        for key in [key for key, read in self._read_ahead.items() if read <= seen]:
            del self._read_ahead[key]

    def settle(self, key: Key) -> None:
        """Our writes of this object count as seen."""
        self._waiting.pop(key, None)
        if wake := self._waiters.pop(key, None):
            wake.set()

    def read_ahead(self, meta: ObjectMeta) -> None:
        """The cache holds this version of the object, read directly: earlier events of the watch are outdated."""
        self._read_ahead[key_of(meta)] = as_number(meta.resource_version)

    def found_gone(self, meta: ObjectMeta) -> None:
        """The server no longer has this object: all further events of it are outdated, until a new list is begun."""
        self._found_gone[meta.uid] = as_number(meta.resource_version)

    def deletion_seen(self, uid: str) -> None:
        """The watch has reported the deletion of this object."""
        self._found_gone.pop(uid, None)

    def list_begins(self) -> None:
        """A list is begun: it shows objects as they are from now on, also one that was gone and is restored."""
        self._found_gone.clear()

    def listed(self, version: str, uids: Iterable[str]) -> None:
        """A list of this version brought these objects. Those known to be gone by then will bring no more events."""
        if self._found_gone:
            there, seen = set(uids), as_number(version)
            self._found_gone = {uid: known for uid, known in self._found_gone.items() if uid in there or known > seen}

    def is_outdated(self, meta: ObjectMeta) -> bool:
        """Whether the cache holds a later version than this event or list, or knows that the object is gone."""
        if not self._read_ahead and not self._found_gone:
            return False
        return meta.uid in self._found_gone or as_number(meta.resource_version) < self._read_ahead.get(key_of(meta), 0)

    def was_read_ahead(self, key: Key) -> bool:
        """Whether the cache has read this object ahead of its watch."""
        return key in self._read_ahead

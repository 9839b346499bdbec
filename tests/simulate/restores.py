"""Restores: what a hub whose etcd was restored to an older state has lost, and for how long it may not know.

What was written between the backup and the restore never was: approvals, what runs said, revisions, moves of bindings.
Whoever had heard of it acts on it until they hear of the restore. That is excused for as long as one look may take.
"""

from __future__ import annotations

from msgspec import Struct

ONE_LOOK = 120.0  # seconds between what somebody heard and what they still do about it, at most


class Restore(Struct, frozen=True):
    """That the changes after `backup`, up to `last`, never were."""

    at: float
    backup: int
    last: int


class Restores:
    """Those of the hub; and when each member was last restored."""

    def __init__(self) -> None:
        self.is_underway = False  # of any server, at this very moment: what changes is nobody's decision
        self._done: list[Restore] = []
        self._of_members: dict[str, float] = {}

    def note(self, server: str, restore: Restore) -> None:
        if server == "hub":
            self._done.append(restore)
        else:
            self._of_members[server] = restore.at

    def is_restored_since(self, member: str, moment: float) -> bool:
        """Whether a member was restored at that moment or later: its agent brings back what it was given before."""
        return self._of_members.get(member, -1.0) >= moment

    def __bool__(self) -> bool:
        """Whether there was one."""
        return bool(self._done)

    def unaware_since(self, moment: float) -> float:
        """Since when somebody who acts at that moment may not have looked."""
        return min([moment, *(one.at for one in self._done if one.at <= moment < one.at + ONE_LOOK)])

    def have_undone(self, version: int) -> bool:
        """Whether a change never was."""
        return any(one.backup < version <= one.last for one in self._done)

    def is_void(self, version: int, moment: float) -> bool:
        """Whether a change never was, for anybody who acts at that moment: they have heard of the restore."""
        return any(one.backup < version <= one.last and moment > one.at + ONE_LOOK for one in self._done)

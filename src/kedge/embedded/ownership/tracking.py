"""Tracking: who owns what after a plain write.

Whoever gives a field a value owns it, alone; whoever removes one takes it from all. A write that gives no field a value
leaves no entry. An object that nobody owns anything of is not tracked any more, until somebody applies to it.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct

from kedge.embedded.ownership.entries import Entries, Entry, Manager, capped, entry_of, find, owning
from kedge.embedded.ownership.fields import LEAF, Fields, difference, union
from kedge.embedded.ownership.terms import NEVER_OWNED, Terms, Untyped

MAX_NAME = 128
UNKNOWN = "unknown"


class Step(Struct, frozen=True):
    """One plain write: who wrote, when, and what that did."""

    by: Manager
    time: str
    given: Fields  # what got a value, so that the writer owns it
    removed: Fields  # what is gone


def manager_name(field_manager: str, user_agent: str) -> str:
    """Who writes: as they say, or as the program they use calls itself."""
    if field_manager:
        return field_manager
    printable = "".join(sign for sign in user_agent.partition("/")[0] if sign.isprintable())
    return printable.encode()[:MAX_NAME].decode(errors="ignore") or UNKNOWN


def step(terms: Terms, old: Untyped | None, new: Untyped, *, manager: str, time: str, subresource: str = "") -> Step:
    """What a write of `new` to `old` does; None stands for an object that was not there."""
    changes = terms.changes(old, new, subresource)
    by = _updater(manager or UNKNOWN, terms.api_version, subresource)
    return Step(by, time, difference(changes.given, NEVER_OWNED), changes.removed)


@lru_cache(maxsize=1024)
def _updater(name: str, api_version: str, subresource: str) -> Manager:
    """One and the same for all its writes: every object remembers its last writers."""
    return Manager(name, "Update", api_version, subresource)


def tracked(entries: Entries, write: Step, served: frozenset[str] | None = None) -> Entries:
    """The entries after a write. Those of versions that are not served are dropped; None stands for all."""
    lost = union(write.given, write.removed)
    left = tuple(entry for entry in entries if served is None or entry.api_version in served)
    return capped(_with(losing(left, lost), write))


def losing(entries: Entries, lost: Fields) -> Entries:
    """The entries without what was lost, and without those that have nothing left."""
    if not lost:
        return entries
    left = ((entry, difference(entry.fields_v1, lost)) for entry in entries)
    return tuple(entry if fields is entry.fields_v1 else owning(entry, fields) for entry, fields in left if fields)


def _with(entries: Entries, write: Step) -> Entries:
    if not write.given:
        return entries
    there = find(entries, write.by)
    owned = union(there.fields_v1 if there else LEAF, write.given)
    return replaced(entries, there, entry_of(write.by, write.by.api_version, write.time, owned))


def replaced(entries: Entries, there: Entry | None, by: Entry) -> Entries:
    """The entries with one in place of another, or one more."""
    return (*(entry for entry in entries if entry is not there), by)

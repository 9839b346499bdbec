"""Managed fields: the entries in `metadata.managedFields`, one for each manager, and what a plain write does to them.

A manager is identified by its name, by apply or update, by the subresource it writes to and, unless it applies, by the
API version. The entries are in Kubernetes' order: appliers first, then by time, then by name.

Whoever gives a field a value owns it alone; whoever removes a field takes it from all. A write that gives no field a
value leaves no entry. An object without any owner is not tracked, until somebody applies to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from kedge.embedded.ownership.field_set import (
    HERE,
    LEAF,
    FieldSet,
    Malformed,
    difference,
    ordered,
    parse_fields_v1,
    union,
)
from kedge.embedded.ownership.kind_ownership import NEVER_OWNED, KindOwnership
from kedge.kube.codec import Untyped

Operation: TypeAlias = Literal["Apply", "Update"]

MAX_UPDATERS = 10
ANCIENT = "ancient-changes"


class Manager(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """A field manager."""

    manager: str
    operation: Operation
    api_version: str = ""
    subresource: str = ""

    @property
    def identity(self) -> str:
        """Its identity as Kubernetes writes it; entries are sorted by this text."""
        return msgspec.json.encode(self).decode()

    @property
    def text(self) -> str:
        """As messages name it."""
        named = f'"{self.manager}"' + (f' with subresource "{self.subresource}"' if self.subresource else "")
        return f"{named} using {self.api_version}" if self.operation == "Update" else named


class Entry(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What one manager owns."""

    manager: str = ""
    operation: Operation = "Update"
    api_version: str = ""
    time: str = ""
    fields_type: Literal["FieldsV1"] = "FieldsV1"
    fields_v1: FieldSet = field(name="fieldsV1", default_factory=dict)
    subresource: str = ""

    @property
    def by(self) -> Manager:
        version = self.api_version if self.operation == "Update" else ""
        return Manager(self.manager, self.operation, version, self.subresource)


Entries: TypeAlias = tuple[Entry, ...]
_decoder = msgspec.json.Decoder(Entries)


def with_fields(entry: Entry, fields: FieldSet) -> Entry:
    """The entry with other fields."""
    return msgspec.structs.replace(entry, fields_v1=fields)


def entry_of(by: Manager, api_version: str, time: str, fields: FieldSet) -> Entry:
    return Entry(by.manager, by.operation, api_version, time, "FieldsV1", fields, by.subresource)


def find_entry(entries: Iterable[Entry], by: Manager) -> Entry | None:
    return next((entry for entry in entries if entry.by == by), None)


def sorted_entries(entries: Iterable[Entry]) -> Entries:
    """As they are listed."""
    return tuple(sorted(entries, key=lambda e: (e.operation, e.time, e.manager, e.api_version, e.subresource)))


def merge_oldest_updaters(entries: Entries) -> Entries:
    """The entries with the oldest updaters merged, if there are too many."""
    updaters = sorted((e for e in entries if e.operation == "Update"), key=lambda e: (e.time, e.by.identity))
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return entries
    return _merged_oldest(entries, updaters, excess)


def _merged_oldest(entries: Entries, oldest_first: Sequence[Entry], excess: int) -> Entries:
    left = {entry.by: entry for entry in entries}
    first: dict[str, Manager] = {}  # of each version, whom the others join
    for entry in oldest_first:
        if not excess:
            break
        bucket = Manager(ANCIENT, "Update", entry.api_version)
        if entry.api_version not in first:
            first[entry.api_version] = entry.by
            continue
        if bucket not in left:
            left[bucket] = left.pop(first[entry.api_version])
        together = union(entry.fields_v1, left[bucket].fields_v1)
        left.pop(entry.by)
        left[bucket] = entry_of(bucket, entry.api_version, entry.time, together)
        excess -= 1
    return tuple(left.values())


def decode_entries(raw: bytes) -> Entries:
    """What we wrote ourselves."""
    return _last_of_each_manager(_decoder.decode(raw))


def _last_of_each_manager(entries: Iterable[Entry]) -> Entries:
    """The last of several entries for one manager. Writing to the scale can leave several."""
    return tuple({entry.by: entry for entry in entries}.values())


def encode_entries(entries: Entries) -> bytes:
    """As JSON, in order."""
    return msgspec.json.encode([_written(entry) for entry in sorted_entries(entries)])


def _written(entry: Entry) -> dict[str, Any]:
    found = {
        "manager": entry.manager,
        "operation": entry.operation,
        "apiVersion": entry.api_version,
        "time": entry.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": ordered(entry.fields_v1),
        "subresource": entry.subresource,
    }
    return {name: value for name, value in found.items() if value != ""}


def parse_entries(raw: Any) -> Entries:
    """The entries that a client sent. Raises `Malformed`."""
    if not isinstance(raw, list):
        raise Malformed(f"{raw!r} is no list of entries")
    try:
        return _last_of_each_manager([_read(entry) for entry in raw])
    except msgspec.ValidationError as error:
        raise Malformed(str(error)) from None


def _read(raw: Any) -> Entry:
    if not isinstance(raw, dict) or not all(raw.get(name) for name in ("apiVersion", "fieldsType", "operation")):
        raise Malformed("an entry says what was done, in which version, and how its fields are written")
    entry = msgspec.convert({name: value for name, value in raw.items() if value is not None}, Entry)
    fields = parse_fields_v1(entry.fields_v1)
    return with_fields(entry, {step: place for step, place in fields.items() if step != HERE} or LEAF)


def is_reset(raw: Any) -> bool:
    """Whether a client asks to drop all entries: by an empty list, or by one empty entry."""
    return raw in ([], [{}])


MAX_NAME = 128
UNKNOWN = "unknown"


class TrackedWrite(Struct, frozen=True):
    """One plain write: by whom, when, and what it changed."""

    by: Manager
    time: str
    given: FieldSet  # fields that got a value: the writer owns them
    removed: FieldSet  # fields that were removed


def manager_name(field_manager: str, user_agent: str) -> str:
    """The field manager: as given, or from the User-Agent."""
    if field_manager:
        return field_manager
    printable = "".join(sign for sign in user_agent.partition("/")[0] if sign.isprintable())
    return printable.encode()[:MAX_NAME].decode(errors="ignore") or UNKNOWN


def tracked_write(
    ownership: KindOwnership, old: Untyped | None, new: Untyped, *, manager: str, time: str, subresource: str = ""
) -> TrackedWrite:
    """The write of `new` to `old`, which is None for a create."""
    changes = ownership.changes(old, new, subresource)
    by = _updater(manager or UNKNOWN, ownership.api_version, subresource)
    return TrackedWrite(by, time, difference(changes.given, NEVER_OWNED), changes.removed)


@lru_cache(maxsize=1024)
def _updater(name: str, api_version: str, subresource: str) -> Manager:
    """One shared value for all writes of a manager: every object keeps its last writers."""
    return Manager(name, "Update", api_version, subresource)


def after_write(entries: Entries, write: TrackedWrite, served: frozenset[str] | None = None) -> Entries:
    """The entries after a write. Entries of versions not in `served` are dropped; None keeps all."""
    lost = union(write.given, write.removed)
    left = tuple(entry for entry in entries if served is None or entry.api_version in served)
    return merge_oldest_updaters(_with(without_fields(left, lost), write))


def without_fields(entries: Entries, lost: FieldSet) -> Entries:
    """The entries without these fields, and without entries that become empty."""
    if not lost:
        return entries
    left = ((entry, difference(entry.fields_v1, lost)) for entry in entries)
    return tuple(entry if fields is entry.fields_v1 else with_fields(entry, fields) for entry, fields in left if fields)


def _with(entries: Entries, write: TrackedWrite) -> Entries:
    if not write.given:
        return entries
    there = find_entry(entries, write.by)
    owned = union(there.fields_v1 if there else LEAF, write.given)
    return with_entry(entries, there, entry_of(write.by, write.by.api_version, write.time, owned))


def with_entry(entries: Entries, there: Entry | None, by: Entry) -> Entries:
    """The entries with one replaced or added."""
    return (*(entry for entry in entries if entry is not there), by)

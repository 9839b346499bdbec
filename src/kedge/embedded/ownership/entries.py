"""Entries: the list in `metadata.managedFields`, one for each manager.

A manager is told apart by its name, by whether it applies or updates, by the subresource it writes to and, unless it
applies, by the version it speaks. Promises the list in Kubernetes' order: those who apply
first, then by time, then by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct, field

from kedge.embedded.ownership.fields import HERE, LEAF, Fields, Malformed, checked, ordered, union

Operation: TypeAlias = Literal["Apply", "Update"]

MAX_UPDATERS = 10
ANCIENT = "ancient-changes"


class Manager(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Somebody who writes."""

    manager: str
    operation: Operation
    api_version: str = ""
    subresource: str = ""

    @property
    def identity(self) -> str:
        """What tells it apart, as Kubernetes writes it: it sorts by this text."""
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
    fields_v1: Fields = field(name="fieldsV1", default_factory=dict)
    subresource: str = ""

    @property
    def by(self) -> Manager:
        version = self.api_version if self.operation == "Update" else ""
        return Manager(self.manager, self.operation, version, self.subresource)


Entries: TypeAlias = tuple[Entry, ...]
_decoder = msgspec.json.Decoder(Entries)


def owning(entry: Entry, fields: Fields) -> Entry:
    """The same manager, owning this."""
    return msgspec.structs.replace(entry, fields_v1=fields)


def entry_of(by: Manager, api_version: str, time: str, fields: Fields) -> Entry:
    return Entry(by.manager, by.operation, api_version, time, "FieldsV1", fields, by.subresource)


def find(entries: Iterable[Entry], by: Manager) -> Entry | None:
    return next((entry for entry in entries if entry.by == by), None)


def in_order(entries: Iterable[Entry]) -> Entries:
    """As they are listed."""
    return tuple(sorted(entries, key=lambda e: (e.operation, e.time, e.manager, e.api_version, e.subresource)))


def capped(entries: Entries) -> Entries:
    """The entries with the oldest of too many updaters put together."""
    updaters = sorted((e for e in entries if e.operation == "Update"), key=lambda e: (e.time, e.by.identity))
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return entries
    return _put_together(entries, updaters, excess)


def _put_together(entries: Entries, oldest_first: Sequence[Entry], excess: int) -> Entries:
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


def decode(raw: bytes) -> Entries:
    """What we wrote ourselves."""
    return _one_each(_decoder.decode(raw))


def _one_each(entries: Iterable[Entry]) -> Entries:
    """Of several entries for one manager the last counts. Writing to the scale can leave such."""
    return tuple({entry.by: entry for entry in entries}.values())


def encode(entries: Entries) -> bytes:
    """As JSON, in order."""
    return msgspec.json.encode([_written(entry) for entry in in_order(entries)])


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


def read(raw: Any) -> Entries:
    """What a client says who owns what. Raises `Malformed`."""
    if not isinstance(raw, list):
        raise Malformed(f"{raw!r} is no list of entries")
    try:
        return _one_each([_read(entry) for entry in raw])
    except msgspec.ValidationError as error:
        raise Malformed(str(error)) from None


def _read(raw: Any) -> Entry:
    if not isinstance(raw, dict) or not all(raw.get(name) for name in ("apiVersion", "fieldsType", "operation")):
        raise Malformed("an entry says what was done, in which version, and how its fields are written")
    entry = msgspec.convert({name: value for name, value in raw.items() if value is not None}, Entry)
    fields = checked(entry.fields_v1)
    return owning(entry, {step: place for step, place in fields.items() if step != HERE} or LEAF)


def is_reset(raw: Any) -> bool:
    """Whether a client asks for all to be forgotten: by a list without entries, or with one that says nothing."""
    return raw in ([], [{}])

"""Field owners: who owns which fields of one object, kept beside each of its versions.

    owners = after_create(ownership, obj, manager="kubectl", time=now)
    owners = owners.after_update(ownership, old, new, manager="kubelet", time=now, subresource="status")
    applied = owners.after_apply(ownership, live, ApplyRequest(config, "web-team", now))
    owners.entries()                                  # as in metadata.managedFields

Promises what kube-apiserver would write, and computes it lazily: a create is only remembered, and a plain write adds
what it changed to a short list. Both are worked into the entries when somebody asks for them, or when the list gets
long. Asking for the entries changes nothing but how they are held. Keeps bytes, to save memory and garbage collection.

Takes objects as they were sent, with defaults, but before the server resets what a write may not change: as in
Kubernetes, whoever sends a field owns it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from kedge.embedded.ownership import managed_fields
from kedge.embedded.ownership.apply import ApplyRequest, apply
from kedge.embedded.ownership.field_set import FieldSet, Malformed, difference, union
from kedge.embedded.ownership.kind_ownership import KindOwnership
from kedge.embedded.ownership.managed_fields import MAX_UPDATERS, Entries, Manager, TrackedWrite
from kedge.kube.codec import Untyped

_MAX_PENDING = 16
_NONE = b"[]"
_NOTHING = b"{}"
_UPDATES = b'"operation":"Update"'
_METADATA_FIELDS = (
    "labels",
    "annotations",
    "finalizers",
    "generateName",
    "ownerReferences",
)  # whoever sends these owns them
_encode = msgspec.json.encode
_decode = msgspec.json.decode


class _Creation(Struct, frozen=True, gc=False):
    """The create of the object."""

    ownership: KindOwnership
    manager: str
    time: str
    body: bytes
    gives: bool  # whether its creator surely owns something

    def step(self) -> TrackedWrite:
        return managed_fields.tracked_write(
            self.ownership, None, _decode(self.body), manager=self.manager, time=self.time
        )


class _Write(Struct, frozen=True, gc=False):
    """A plain write: see `TrackedWrite`."""

    by: Manager
    time: str
    given: bytes
    removed: bytes
    served: frozenset[str] | None

    @property
    def gives(self) -> bool:
        return self.given != _NOTHING

    def step(self) -> TrackedWrite:
        return TrackedWrite(self.by, self.time, _decode(self.given), _decode(self.removed))


_Pending: TypeAlias = _Creation | _Write


class FieldOwners(Struct, eq=False, gc=False):
    """The field owners of one object."""

    _settled: bytes = _NONE  # the entries, as JSON
    _pending: tuple[_Pending, ...] = ()  # writes that are not in the entries yet

    def encoded(self) -> bytes:
        """The entries as JSON, in order."""
        if self._pending:
            self._settled, self._pending = managed_fields.encode_entries(self._all_entries()), ()
        return self._settled

    def entries(self) -> list[Untyped]:
        """The entries, as in `metadata.managedFields`."""
        found: list[Untyped] = _decode(self.encoded())
        return found

    @property
    def untracked(self) -> bool:
        """Whether nobody owns anything, so that plain writes are not tracked."""
        if self._pending and self._pending[-1].gives:
            return False
        return self.encoded() == _NONE

    def same_but_for_times(self, other: FieldOwners) -> bool:
        """Whether the same managers own the same fields, apart from times."""
        return self is other or _timeless(self) == _timeless(other)

    def after_update(
        self, ownership: KindOwnership, old: Untyped, new: Untyped, *, manager: str, time: str, subresource: str = ""
    ) -> FieldOwners:
        """The owners after a plain write, which may itself set `metadata.managedFields`."""
        base = self if subresource else self._or_sent(ownership, new)
        if base.untracked:
            return base
        found = managed_fields.tracked_write(ownership, old, new, manager=manager, time=time, subresource=subresource)
        if not (found.given or found.removed):
            return base
        return base._with(_Write(found.by, time, _written(found.given), _written(found.removed), ownership.served))

    def after_apply(self, ownership: KindOwnership, live: Untyped | None, asked: ApplyRequest) -> AppliedObject:
        """The object and its owners after an apply, which creates it if needed. Refuses conflicts."""
        outcome = apply(ownership, live, managed_fields.decode_entries(self.encoded()), asked)
        return AppliedObject(outcome.object, FieldOwners(managed_fields.encode_entries(outcome.entries)))

    def _or_sent(self, ownership: KindOwnership, new: Untyped) -> FieldOwners:
        sent = new.get("metadata", {}).get("managedFields")
        if sent is None or (not self._pending and sent == self.entries()):
            return self
        return _sent_owners(ownership, sent) or self

    def _with(self, write: _Write) -> FieldOwners:
        *earlier, last = self._pending or (None,)
        if isinstance(last, _Write) and self._has_few_managers() and (both := _combined(last, write)):
            return FieldOwners(self._settled, (*self._pending[:-1], both))
        if len(earlier) + 1 >= _MAX_PENDING:
            return FieldOwners(self.encoded(), (write,))
        return FieldOwners(self._settled, (*self._pending, write))

    def _has_few_managers(self) -> bool:
        """Whether there are too few managers for the oldest to be merged."""
        return self._settled.count(_UPDATES) + len(self._pending) < MAX_UPDATERS

    def _all_entries(self) -> Entries:
        entries = managed_fields.decode_entries(self._settled)
        for pending in self._pending:
            if isinstance(pending, _Creation):
                entries = managed_fields.after_write(entries, pending.step())
            elif entries:
                entries = managed_fields.after_write(entries, pending.step(), pending.served)
        return entries


class AppliedObject(Struct, frozen=True):
    """The object as applied, before defaults, and its owners."""

    object: Untyped
    owners: FieldOwners


NO_OWNERS = FieldOwners()


def after_create(ownership: KindOwnership, obj: Untyped, *, manager: str, time: str, body: bytes = b"") -> FieldOwners:
    """The owners of a new object; `body` is the encoded object, if the caller has it."""
    metadata = obj.get("metadata", {})
    base = _sent_owners(ownership, metadata.get("managedFields")) or NO_OWNERS
    gives = any(metadata.get(name) for name in _METADATA_FIELDS)
    return FieldOwners(base.encoded(), (_Creation(ownership, manager, time, body or _encode(obj), gives),))


def _sent_owners(ownership: KindOwnership, sent: Any) -> FieldOwners | None:
    """The owners that a client names; None if it does not."""
    if managed_fields.is_reset(sent):
        return FieldOwners()
    try:
        found = managed_fields.parse_entries(sent or [])
    except Malformed:
        return None  # clients that do not understand the entries must not be able to lose them
    known = tuple(entry for entry in found if entry.fields_v1 and ownership.serves(entry.api_version))
    return FieldOwners(managed_fields.encode_entries(known)) if found else None


def _written(found: FieldSet) -> bytes:
    return _encode(found) if found else _NOTHING


def _combined(first: _Write, then: _Write) -> _Write | None:
    """Two writes of one manager as one; None if that would not be the same."""
    if first.by != then.by or first.served != then.served or not first.gives:
        return None
    one, two = first.step(), then.step()
    given = union(difference(one.given, two.removed), two.given)
    if not given:
        return None  # the first gave its manager an entry with a time, if only to lose it again
    time = then.time if two.given else first.time
    return _Write(first.by, time, _encode(given), _written(union(one.removed, two.removed)), then.served)


def _timeless(owners: FieldOwners) -> list[Untyped]:
    return [{name: value for name, value in entry.items() if name != "time"} for entry in owners.entries()]

"""Owners: who owns which fields of one object, kept beside each of its versions.

    owners = after_create(terms, obj, manager="kubectl", time=now)
    owners = owners.after_update(terms, old, new, manager="kubelet", time=now, subresource="status")
    applied = owners.after_apply(terms, live, Application(config, "web-team", now))
    owners.entries()                                  # as in metadata.managedFields

Promises what kube-apiserver would write, and puts off what it can: a new object is only remembered, and a plain write
adds what it changed to a short list. Both are worked into the entries when somebody asks for them, or when the list
gets long. A value: asking for the entries changes nothing but how they are held. Keeps bytes, for the sake of memory
and of the garbage collector.

Takes objects as they were sent, with defaults filled in, but before the server puts back what a write may not change:
so does Kubernetes, and whoever sends a field owns it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from kedge.embedded.ownership import entries as lists
from kedge.embedded.ownership import tracking
from kedge.embedded.ownership.apply import Application, apply
from kedge.embedded.ownership.entries import MAX_UPDATERS, Entries, Manager
from kedge.embedded.ownership.fields import Fields, Malformed, difference, union
from kedge.embedded.ownership.terms import Terms, Untyped
from kedge.embedded.ownership.tracking import Step

_LONGEST = 16
_NONE = b"[]"
_NOTHING = b"{}"
_UPDATES = b'"operation":"Update"'
_MAKERS = ("labels", "annotations", "finalizers", "generateName", "ownerReferences")  # whoever sends these owns them
_encode = msgspec.json.encode
_decode = msgspec.json.decode


class _Birth(Struct, frozen=True, gc=False):
    """The object was made."""

    terms: Terms
    manager: str
    time: str
    body: bytes
    gives: bool  # whether its maker is known to own something

    def step(self) -> Step:
        return tracking.step(self.terms, None, _decode(self.body), manager=self.manager, time=self.time)


class _Write(Struct, frozen=True, gc=False):
    """A plain write: see `Step`."""

    by: Manager
    time: str
    given: bytes
    removed: bytes
    served: frozenset[str] | None

    @property
    def gives(self) -> bool:
        return self.given != _NOTHING

    def step(self) -> Step:
        return Step(self.by, self.time, _decode(self.given), _decode(self.removed))


_Pending: TypeAlias = _Birth | _Write


class Owners(Struct, eq=False, gc=False):
    """Who owns what of one object."""

    _settled: bytes = _NONE  # the entries, as JSON
    _pending: tuple[_Pending, ...] = ()  # what has not been worked into them

    def encoded(self) -> bytes:
        """The entries as JSON, in order."""
        if self._pending:
            self._settled, self._pending = lists.encode(self._worked_in()), ()
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

    def same_but_for_times(self, other: Owners) -> bool:
        """Whether the same managers own the same: a write that changes nothing else either is none."""
        return self is other or _timeless(self) == _timeless(other)

    def after_update(
        self, terms: Terms, old: Untyped, new: Untyped, *, manager: str, time: str, subresource: str = ""
    ) -> Owners:
        """The owners after a plain write, which may say in `metadata.managedFields` who they were before it."""
        base = self if subresource else self._unless_said(terms, new)
        if base.untracked:
            return base
        found = tracking.step(terms, old, new, manager=manager, time=time, subresource=subresource)
        if not (found.given or found.removed):
            return base
        return base._with(_Write(found.by, time, _written(found.given), _written(found.removed), terms.served))

    def after_apply(self, terms: Terms, live: Untyped | None, asked: Application) -> Applied:
        """The object and its owners after an apply, which makes it if there is none. Refuses conflicts."""
        outcome = apply(terms, live, lists.decode(self.encoded()), asked)
        return Applied(outcome.object, Owners(lists.encode(outcome.entries)))

    def _unless_said(self, terms: Terms, new: Untyped) -> Owners:
        sent = new.get("metadata", {}).get("managedFields")
        if sent is None or (not self._pending and sent == self.entries()):
            return self
        return _said(terms, sent) or self

    def _with(self, write: _Write) -> Owners:
        *earlier, last = self._pending or (None,)
        if isinstance(last, _Write) and self._few() and (both := _both(last, write)):
            return Owners(self._settled, (*self._pending[:-1], both))
        if len(earlier) + 1 >= _LONGEST:
            return Owners(self.encoded(), (write,))
        return Owners(self._settled, (*self._pending, write))

    def _few(self) -> bool:
        """Whether there cannot be so many managers that some are put together."""
        return self._settled.count(_UPDATES) + len(self._pending) < MAX_UPDATERS

    def _worked_in(self) -> Entries:
        entries = lists.decode(self._settled)
        for pending in self._pending:
            if isinstance(pending, _Birth):
                entries = tracking.tracked(entries, pending.step())
            elif entries:
                entries = tracking.tracked(entries, pending.step(), pending.served)
        return entries


class Applied(Struct, frozen=True):
    """The object as applied, before defaults are filled in, and its owners then."""

    object: Untyped
    owners: Owners


NOBODY = Owners()


def after_create(terms: Terms, obj: Untyped, *, manager: str, time: str, body: bytes = b"") -> Owners:
    """The owners of a new object; `body` is the object encoded, where somebody keeps that anyway."""
    metadata = obj.get("metadata", {})
    base = _said(terms, metadata.get("managedFields")) or NOBODY
    gives = any(metadata.get(name) for name in _MAKERS)
    return Owners(base.encoded(), (_Birth(terms, manager, time, body or _encode(obj), gives),))


def read(encoded: bytes) -> Owners:
    """From the entries as `Owners.encoded` gave them."""
    return Owners(encoded)


def _said(terms: Terms, sent: Any) -> Owners | None:
    """The owners that a client names; None if it does not."""
    if lists.is_reset(sent):
        return Owners()
    try:
        found = lists.read(sent or [])
    except Malformed:
        return None  # clients that do not understand the entries must not be able to lose them
    known = tuple(entry for entry in found if entry.fields_v1 and terms.serves(entry.api_version))
    return Owners(lists.encode(known)) if found else None


def _written(found: Fields) -> bytes:
    return _encode(found) if found else _NOTHING


def _both(first: _Write, then: _Write) -> _Write | None:
    """Two writes of one manager as one; None if that would not be the same."""
    if first.by != then.by or first.served != then.served or not first.gives:
        return None
    one, two = first.step(), then.step()
    given = union(difference(one.given, two.removed), two.given)
    if not given:
        return None  # the first gave its manager an entry with a time, if only to lose it again
    time = then.time if two.given else first.time
    return _Write(first.by, time, _encode(given), _written(union(one.removed, two.removed)), then.served)


def _timeless(owners: Owners) -> list[Untyped]:
    return [{name: value for name, value in entry.items() if name != "time"} for entry in owners.entries()]

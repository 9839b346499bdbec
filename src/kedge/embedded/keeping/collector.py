"""Collector: objects go when all their owners are gone, as Kubernetes' garbage collector has it.

* Background (the default): the owner goes at once, its dependents after it.
* Foreground: the owner waits, held by the finalizer `foregroundDeletion`, for the dependents that block it.
* Orphan: the owner waits, held by `orphan`, until its dependents do not name it any more; they stay.

An owner is the object with that uid, not one that has its name by now. Dependents are deleted only if no owner is
left that lasts; otherwise they lose the references to those that do not. Whether an owner is gone cannot be told while
its kind is not served, unless it was seen to go: its dependents are left alone until CRDs change. So is what lives
in no namespace and names an owner of a kind that does: nobody knows in which.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import msgspec
from msgspec import Struct

from kedge.embedded.callers import Caller
from kedge.embedded.custom.definition import DEFINITIONS
from kedge.embedded.deletion import FOREGROUND, ORPHAN
from kedge.embedded.keeping.errands import Errands
from kedge.embedded.kind import Kind
from kedge.embedded.server import Server
from kedge.embedded.store import Change, Untyped, Version
from kedge.kube.codec import DELETED
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request

_CALLER = Caller("system:serviceaccount:kube-system:generic-garbage-collector", agent="kube-controller-manager")
Where: TypeAlias = tuple[str, str, str]  # group, plural, key


class _Owner(Struct, rename="camel"):
    uid: str
    block_owner_deletion: bool = False


class _Metadata(Struct, rename="camel"):
    uid: str
    owner_references: tuple[_Owner, ...] = ()
    finalizers: tuple[str, ...] = ()
    deletion_timestamp: str = ""


class _Object(Struct):
    metadata: _Metadata


_glance = msgspec.json.Decoder(_Object).decode  # of every write: a full decode would cost ten times as much


class _Known(Struct, frozen=True):
    """What is remembered of an object: who it is, and whose."""

    kind: Kind
    uid: str
    owners: tuple[str, ...]
    held: tuple[str, ...] = ()  # of its owners, those that wait for it when they are to go


class Collector:
    """Collects the garbage of one server, from `start` to `stop`."""

    def __init__(self, server: Server, delay: Callable[[], float]) -> None:
        self._server = server
        self._known: dict[Where, _Known] = {}
        self._places: dict[str, Where] = {}  # of objects, by uid
        self._dependents: dict[str, dict[Where, None]] = {}  # by uid of their owner
        self._gone: set[str] = set()  # owners that were seen to go, while dependents name them; never iterated
        self._left_alone: dict[Where, None] = {}  # dependents of which an owner's kind is not served
        self._errands = Errands(self._see_to, running=lambda: server.running, delay=delay)
        for kind in server.registry.kinds():
            for version in server.store.all(kind).at(server.store.number).within(""):
                self._learn(kind, version)
        server.store.follow(self._follow)

    def start(self) -> None:
        self._errands.start()

    def stop(self) -> None:
        self._errands.stop()

    def _follow(self, kind: Kind, change: Change) -> None:
        if kind.resource == DEFINITIONS:
            self._look_again()
        if change.type != DELETED:
            self._learn(kind, change.version)
            return
        known = self._forget(_where(kind, change.version.key))
        if dependents := self._dependents.get(known.uid):
            self._gone.add(known.uid)
            for dependent in dependents:
                self._errands.add(dependent)
        self._let_go(known.owners)

    def _look_again(self) -> None:
        """Other kinds are served: it may be known now what became of owners."""
        for dependent in self._left_alone:
            self._errands.add(dependent)
        self._left_alone.clear()

    def _let_go(self, owners: Iterable[str]) -> None:
        """Look at owners that may have waited for an object."""
        for owner in owners:
            if place := self._places.get(owner):
                self._errands.add(place)

    def _learn(self, kind: Kind, version: Version) -> None:
        if self._server.store.all(kind).get(version.key) is not version:
            return  # it was written, or deleted, within its own write: that came here first
        where, metadata = _where(kind, version.key), _glance(version.body).metadata
        owners = tuple(dict.fromkeys(owner.uid for owner in metadata.owner_references))
        held = tuple(owner.uid for owner in metadata.owner_references if owner.block_owner_deletion)
        before = self._known.get(where)
        if before is None or (before.owners, before.held) != (owners, held):
            self._remember(where, _Known(kind, metadata.uid, owners, held))
            if before is not None:
                self._leave(where, (owner for owner in before.owners if owner not in owners))
                self._let_go(before.held)
            if owners:
                self._errands.add(where)
        if metadata.deletion_timestamp and {FOREGROUND, ORPHAN}.intersection(metadata.finalizers):
            self._errands.add(where)

    def _remember(self, where: Where, known: _Known) -> None:
        self._known[where] = known
        self._places[known.uid] = where
        for owner in known.owners:
            self._dependents.setdefault(owner, {})[where] = None

    def _forget(self, where: Where) -> _Known:
        known = self._known.pop(where)
        self._places.pop(known.uid, None)
        self._left_alone.pop(where, None)
        self._leave(where, known.owners)
        return known

    def _leave(self, where: Where, owners: Iterable[str]) -> None:
        """An object does not name these owners any more."""
        for owner in owners:
            left = self._dependents[owner]
            left.pop(where, None)
            if not left:
                del self._dependents[owner]
                self._gone.discard(owner)

    def _see_to(self, where: Where) -> None:
        """Do what one object needs now. Whatever that changes brings back those it concerns."""
        known = self._known.get(where)
        obj = self._object(where)
        if known is None or obj is None:
            return
        finalizers = obj["metadata"].get("finalizers", [])
        if obj["metadata"].get("deletionTimestamp"):
            if ORPHAN in finalizers:
                self._orphan(where, known, obj)
            elif FOREGROUND in finalizers:
                self._go_after_dependents(where, known, obj)
        elif known.owners:
            self._see_to_owners(where, known, obj)

    def _orphan(self, where: Where, known: _Known, obj: Untyped) -> None:
        for dependent in tuple(self._dependents.get(known.uid, ())):
            self._strike_owners(dependent, (known.uid,))
        self._strike_finalizer(where, obj, ORPHAN)

    def _go_after_dependents(self, where: Where, known: _Known, obj: Untyped) -> None:
        dependents = tuple(self._dependents.get(known.uid, ()))
        for dependent in dependents:
            self._errands.add(dependent)
        if not any(self._blocks(dependent, known.uid) for dependent in dependents):
            self._strike_finalizer(where, obj, FOREGROUND)

    def _blocks(self, dependent: Where, owner: str) -> bool:
        obj = self._object(dependent)
        references = obj["metadata"].get("ownerReferences", []) if obj else []
        return any(one["uid"] == owner and one.get("blockOwnerDeletion") for one in references)

    def _see_to_owners(self, where: Where, known: _Known, obj: Untyped) -> None:
        """Delete an object without owners that last; of one that has such, strike the others."""
        references = obj["metadata"]["ownerReferences"]
        missing = [one for one in references if not self._is_there(one, obj)]
        if not all(self._is_gone(one, obj) for one in missing):
            self._left_alone[where] = None
            return
        waiting = [one["uid"] for one in references if self._waits_for(one)]
        gone = [one["uid"] for one in missing]
        if len(waiting) + len(gone) < len(references):
            if waiting or gone:
                self._strike_owners(where, (*waiting, *gone))
            return
        finalizers = obj["metadata"].get("finalizers", [])
        policy = "Orphan" if ORPHAN in finalizers else "Background"
        if FOREGROUND in finalizers or (waiting and self._dependents.get(known.uid)):
            policy = "Foreground"
        options = {"propagationPolicy": policy, "preconditions": {"uid": known.uid}}
        self._send("DELETE", where, options)

    def _is_there(self, reference: Untyped, dependent: Untyped) -> bool:
        place = self._places.get(reference["uid"])
        if place is None:
            return False
        namespace = place[2].rpartition("/")[0]
        return namespace in ("", dependent["metadata"].get("namespace", ""))

    def _is_gone(self, reference: Untyped, dependent: Untyped) -> bool:
        """Whether an owner that is not there is no more, or never was."""
        served = self._server.registry.served(reference["apiVersion"], reference["kind"])
        if served is None:
            return reference["uid"] in self._gone
        return not served.namespaced or "namespace" in dependent["metadata"]

    def _waits_for(self, reference: Untyped) -> bool:
        """Whether an owner is about to go, and waits for the dependent with this reference to it."""
        place = self._places.get(reference["uid"])
        owner = self._object(place) if place else None
        if owner is None or not reference.get("blockOwnerDeletion"):
            return False
        metadata = owner["metadata"]
        return bool(metadata.get("deletionTimestamp")) and FOREGROUND in metadata.get("finalizers", [])

    def _strike_owners(self, where: Where, owners: Iterable[str]) -> None:
        obj = self._object(where)
        if obj is None:
            return
        references = [one for one in obj["metadata"].get("ownerReferences", []) if one["uid"] not in owners]
        self._change(where, obj, {"ownerReferences": references or None})

    def _strike_finalizer(self, where: Where, obj: Untyped, finalizer: str) -> None:
        left = [one for one in obj["metadata"]["finalizers"] if one != finalizer]
        self._change(where, obj, {"finalizers": left or None})

    def _change(self, where: Where, obj: Untyped, metadata: Untyped) -> None:
        same = {key: obj["metadata"][key] for key in ("uid", "resourceVersion")}
        self._send("PATCH", where, {"metadata": {**same, **metadata}}, MergePatch.content_type)

    def _send(self, method: str, where: Where, body: Untyped, content_type: str = "application/json") -> None:
        # A refusal means that the object changed meanwhile or is gone: its change brings it back here.
        namespace, _, name = where[2].rpartition("/")
        path = self._known[where].kind.resource.path(namespace or None, name)
        request = Request(method, path, body=msgspec.json.encode(body), content_type=content_type)
        self._server.handle(request, _CALLER)

    def _object(self, where: Where) -> Untyped | None:
        known = self._known.get(where)
        found = self._server.store.all(known.kind).get(where[2]) if known else None
        return found.decode() if found else None


def _where(kind: Kind, key: str) -> Where:
    return kind.resource.group, kind.resource.plural, key

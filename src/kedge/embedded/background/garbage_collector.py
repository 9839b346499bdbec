"""Garbage collector: deletes objects whose owners are all gone, as the one of Kubernetes does.

* Background (the default): the owner is deleted at once, its dependents after it.
* Foreground: the finalizer `foregroundDeletion` holds the owner until the dependents that block it are gone.
* Orphan: the finalizer `orphan` holds the owner until no dependent refers to it; the dependents stay.

An owner is identified by its uid, not by its name. A dependent is deleted only if it has no owner left; otherwise the
references to missing owners are removed. Two cases stay undecided until CRDs change: the owner's kind is not served
(unless the owner was seen to be deleted), and a cluster-scoped dependent that refers to an owner of a namespaced kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import msgspec
from msgspec import Struct

from kedge.embedded.background.delayed_set import DelayedSet
from kedge.embedded.background.requests import RETRY_SECONDS, BackgroundRequests
from kedge.embedded.custom.crd import CRDS
from kedge.embedded.deletion import FOREGROUND, ORPHAN
from kedge.embedded.kind import Kind
from kedge.embedded.request_info import Caller
from kedge.embedded.server import Server
from kedge.embedded.store import Change, Version
from kedge.kube.codec import DELETED, Untyped
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request

_CALLER = Caller("system:serviceaccount:kube-system:generic-garbage-collector", agent="kube-controller-manager")
ObjectKey: TypeAlias = tuple[str, str, str]  # group, plural, key


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


_decode_metadata = msgspec.json.Decoder(_Object).decode  # runs on every write: a full decode costs ten times as much


class _KnownObject(Struct, frozen=True):
    """What is remembered of an object: its uid and its owners."""

    kind: Kind
    uid: str
    owners: tuple[str, ...]
    blocked: tuple[str, ...] = ()  # owners that wait for it in foreground deletion


class GarbageCollector:
    """Collects the garbage of one server, from `start` to `stop`."""

    def __init__(self, server: Server, delay: Callable[[], float]) -> None:
        self._server = server
        self._requests = BackgroundRequests(server)
        self._known: dict[ObjectKey, _KnownObject] = {}
        self._keys_by_uid: dict[str, ObjectKey] = {}
        self._dependents: dict[str, dict[ObjectKey, None]] = {}  # by uid of their owner
        self._gone: set[str] = set()  # deleted owners that dependents still refer to; never iterated
        self._undecided: dict[ObjectKey, None] = {}  # dependents with an owner whose kind is not served
        self._pending = DelayedSet(self._reconcile, running=lambda: server.running, delay=delay)
        for kind in server.registry.kinds():
            for version in server.store.all(kind).at(server.store.number).within(""):
                self._observe(kind, version)
        server.store.subscribe(self._on_change)

    def start(self) -> None:
        self._pending.start()

    def stop(self) -> None:
        self._pending.stop()
        self._requests.stop()

    def _on_change(self, kind: Kind, change: Change) -> None:
        if kind.resource == CRDS:
            self._recheck_undecided()
        if change.type != DELETED:
            self._observe(kind, change.version)
            return
        known = self._forget(_object_key(kind, change.version.key))
        if dependents := self._dependents.get(known.uid):
            self._gone.add(known.uid)
            for dependent in dependents:
                self._pending.add(dependent)
        self._enqueue_owners(known.owners)

    def _recheck_undecided(self) -> None:
        """Other kinds are served now: check the undecided dependents again."""
        for dependent in self._undecided:
            self._pending.add(dependent)
        self._undecided.clear()

    def _enqueue_owners(self, owners: Iterable[str]) -> None:
        """Check owners that may have waited for an object."""
        for owner in owners:
            if place := self._keys_by_uid.get(owner):
                self._pending.add(place)

    def _observe(self, kind: Kind, version: Version) -> None:
        if self._server.store.all(kind).get(version.key) is not version:
            return  # a nested write replaced or deleted it already, and that was seen first
        key, metadata = _object_key(kind, version.key), _decode_metadata(version.body).metadata
        owners = tuple(dict.fromkeys(owner.uid for owner in metadata.owner_references))
        blocked = tuple(owner.uid for owner in metadata.owner_references if owner.block_owner_deletion)
        before = self._known.get(key)
        if before is None or (before.owners, before.blocked) != (owners, blocked):
            self._remember(key, _KnownObject(kind, metadata.uid, owners, blocked))
            if before is not None:
                self._drop_dependent(key, (owner for owner in before.owners if owner not in owners))
                self._enqueue_owners(before.blocked)
            if owners:
                self._pending.add(key)
        if metadata.deletion_timestamp and {FOREGROUND, ORPHAN}.intersection(metadata.finalizers):
            self._pending.add(key)

    def _remember(self, key: ObjectKey, known: _KnownObject) -> None:
        self._known[key] = known
        self._keys_by_uid[known.uid] = key
        for owner in known.owners:
            self._dependents.setdefault(owner, {})[key] = None

    def _forget(self, key: ObjectKey) -> _KnownObject:
        known = self._known.pop(key)
        self._keys_by_uid.pop(known.uid, None)
        self._undecided.pop(key, None)
        self._drop_dependent(key, known.owners)
        return known

    def _drop_dependent(self, key: ObjectKey, owners: Iterable[str]) -> None:
        """Note that an object does not refer to these owners any more."""
        for owner in owners:
            left = self._dependents[owner]
            left.pop(key, None)
            if not left:
                del self._dependents[owner]
                self._gone.discard(owner)

    def _reconcile(self, key: ObjectKey) -> float | None:
        """Do what one object needs now. Each change brings back the objects that it concerns."""
        known = self._known.get(key)
        obj = self._object(key)
        if known is None or obj is None:
            return None
        finalizers = obj["metadata"].get("finalizers", [])
        if obj["metadata"].get("deletionTimestamp"):
            if ORPHAN in finalizers:
                return self._orphan(key, known, obj)
            if FOREGROUND in finalizers:
                self._delete_in_foreground(key, known, obj)
        elif known.owners:
            self._check_owners(key, known, obj)
        return None

    def _orphan(self, key: ObjectKey, known: _KnownObject, obj: Untyped) -> float | None:
        for dependent in tuple(self._dependents.get(known.uid, ())):
            self._remove_owner_references(dependent, (known.uid,))
        if self._server.has_webhooks and self._dependents.get(known.uid):
            return RETRY_SECONDS  # webhooks are being asked; without its finalizer, dependents would go with the owner
        self._remove_finalizer(key, obj, ORPHAN)
        return None

    def _delete_in_foreground(self, key: ObjectKey, known: _KnownObject, obj: Untyped) -> None:
        dependents = tuple(self._dependents.get(known.uid, ()))
        for dependent in dependents:
            self._pending.add(dependent)
        if not any(self._blocks(dependent, known.uid) for dependent in dependents):
            self._remove_finalizer(key, obj, FOREGROUND)

    def _blocks(self, dependent: ObjectKey, owner: str) -> bool:
        obj = self._object(dependent)
        references = obj["metadata"].get("ownerReferences", []) if obj else []
        return any(one["uid"] == owner and one.get("blockOwnerDeletion") for one in references)

    def _check_owners(self, key: ObjectKey, known: _KnownObject, obj: Untyped) -> None:
        """Delete an object that has no owner left; otherwise remove the references to missing owners."""
        references = obj["metadata"]["ownerReferences"]
        missing = [one for one in references if not self._is_there(one, obj)]
        if not all(self._is_gone(one, obj) for one in missing):
            self._undecided[key] = None
            return
        waiting = [one["uid"] for one in references if self._waits_for(one)]
        gone = [one["uid"] for one in missing]
        if len(waiting) + len(gone) < len(references):
            if waiting or gone:
                self._remove_owner_references(key, (*waiting, *gone))
            return
        finalizers = obj["metadata"].get("finalizers", [])
        policy = "Orphan" if ORPHAN in finalizers else "Background"
        if FOREGROUND in finalizers or (waiting and self._dependents.get(known.uid)):
            policy = "Foreground"
        options = {"propagationPolicy": policy, "preconditions": {"uid": known.uid}}
        self._send("DELETE", key, options)

    def _is_there(self, reference: Untyped, dependent: Untyped) -> bool:
        place = self._keys_by_uid.get(reference["uid"])
        if place is None:
            return False
        namespace = place[2].rpartition("/")[0]
        return namespace in ("", dependent["metadata"].get("namespace", ""))

    def _is_gone(self, reference: Untyped, dependent: Untyped) -> bool:
        """Whether a missing owner was deleted or never existed."""
        served = self._server.registry.served(reference["apiVersion"], reference["kind"])
        if served is None:
            return reference["uid"] in self._gone
        return not served.namespaced or "namespace" in dependent["metadata"]

    def _waits_for(self, reference: Untyped) -> bool:
        """Whether an owner is in foreground deletion and waits for the dependent with this reference."""
        place = self._keys_by_uid.get(reference["uid"])
        owner = self._object(place) if place else None
        if owner is None or not reference.get("blockOwnerDeletion"):
            return False
        metadata = owner["metadata"]
        return bool(metadata.get("deletionTimestamp")) and FOREGROUND in metadata.get("finalizers", [])

    def _remove_owner_references(self, key: ObjectKey, owners: Iterable[str]) -> None:
        obj = self._object(key)
        if obj is None:
            return
        references = [one for one in obj["metadata"].get("ownerReferences", []) if one["uid"] not in owners]
        self._change(key, obj, {"ownerReferences": references or None})

    def _remove_finalizer(self, key: ObjectKey, obj: Untyped, finalizer: str) -> None:
        left = [one for one in obj["metadata"]["finalizers"] if one != finalizer]
        self._change(key, obj, {"finalizers": left or None})

    def _change(self, key: ObjectKey, obj: Untyped, metadata: Untyped) -> None:
        same = {name: obj["metadata"][name] for name in ("uid", "resourceVersion")}
        self._send("PATCH", key, {"metadata": {**same, **metadata}}, MergePatch.content_type)

    def _send(self, method: str, key: ObjectKey, body: Untyped, content_type: str = "application/json") -> None:
        # A refusal means that the object changed meanwhile or is gone: that change brings it back here.
        namespace, _, name = key[2].rpartition("/")
        path = self._known[key].kind.resource.path(namespace or None, name)
        request = Request(method, path, body=msgspec.json.encode(body), content_type=content_type)
        self._requests.send(request, _CALLER, lambda: self._pending.add(key))

    def _object(self, key: ObjectKey) -> Untyped | None:
        known = self._known.get(key)
        found = self._server.store.all(known.kind).get(key[2]) if known else None
        return found.decode() if found else None


def _object_key(kind: Kind, key: str) -> ObjectKey:
    return kind.resource.group, kind.resource.plural, key

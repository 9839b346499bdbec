"""Store: every object of one server, in versions.

Promises:

* one counter for all: each write takes the next resourceVersion;
* a write names the version it was made from, and fails if that is not the newest any more;
* each version is encoded once, and its bytes are shared by all who read, list or watch it;
* a collection remembers its last `history` changes: it can say what changed since a version in them, and show itself
  as of then. For older versions it raises `HistoryExpired`, and never gives something incomplete.

Keeps bytes, not dicts: a fifth of the memory and nothing for the garbage collector. Whoever wants to change an object
decodes a copy. Does no I/O, knows no time, and checks no rule of Kubernetes.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from heapq import merge
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from kedge.embedded.kind import Kind
from kedge.embedded.ownership.field_owners import NO_OWNERS, FieldOwners
from kedge.kube.codec import ADDED, DELETED, MODIFIED, Untyped

EncodedEvents: TypeAlias = dict[tuple[str, str], bytes]  # the lines of one change, shared by its watchers
encode = msgspec.json.Encoder(order="deterministic").encode
_NONE: Mapping[str, str] = MappingProxyType({})  # one for all that have none


class Version(Struct, frozen=True, gc=False):
    """One object as of one write, and the values for selectors."""

    key: str
    number: int  # its resourceVersion
    body: bytes
    labels: Mapping[str, str]
    fields: Mapping[str, str]
    owners: FieldOwners  # of its fields; not in the body

    @property
    def namespace(self) -> str:
        return self.key.rpartition("/")[0]

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    def decode(self) -> Untyped:
        """A copy to work on."""
        result: Untyped = msgspec.json.decode(self.body)
        return result


class Change(Struct, frozen=True):
    """One write. A deleted object is there as it last was, with the resourceVersion of its deletion."""

    type: str
    version: Version
    previous: Version | None = None


Watcher: TypeAlias = Callable[[Change, EncodedEvents], None]
ChangeListener: TypeAlias = Callable[[Kind, Change], None]


class AlreadyExists(Exception):
    """There is an object of that name already."""

    def __init__(self, version: Version) -> None:
        super().__init__(version.key)
        self.version = version


class StaleVersion(Exception):
    """The object is not the version the write was made from."""


class HistoryExpired(Exception):
    """The version is too old. `oldest` is the oldest version that the collection remembers."""

    def __init__(self, oldest: int) -> None:
        super().__init__(oldest)
        self.oldest = oldest


class Collection:
    """All objects of one kind: as they are, and as they were not long ago."""

    def __init__(self, history: int) -> None:
        self._versions: dict[str, Version] = {}
        self._order: list[str] = []
        self._changes: deque[Change] = deque(maxlen=history)
        self._forgotten = 0
        self._watchers: dict[str, dict[int, Watcher]] = {}  # by the namespace they are told of; "" for all
        self._last_watcher = 0

    @property
    def watchers(self) -> int:
        """How many follow it."""
        return sum(map(len, self._watchers.values()))

    def get(self, key: str) -> Version | None:
        return self._versions.get(key)

    def since(self, number: int) -> list[Change]:
        """What changed after that version, oldest first."""
        if number < self._forgotten:
            raise HistoryExpired(self._forgotten)
        found: list[Change] = []
        for change in reversed(self._changes):
            if change.version.number <= number:
                break
            found.append(change)
        return found[::-1]

    def at(self, number: int) -> Snapshot:
        """The collection as of that version, for reading before the next write."""
        then: dict[str, Version | None] = {}
        for change in reversed(self.since(number)):
            then[change.version.key] = change.previous
        return Snapshot(self._versions, self._order, then)

    def subscribe(self, watcher: Watcher, namespace: str = "") -> Callable[[], None]:
        """Call the watcher with every change from now on, or with those in a namespace, within the write.

        Call what comes back to make it stop.
        """
        self._last_watcher += 1
        number = self._last_watcher
        self._watchers.setdefault(namespace, {})[number] = watcher

        def stop() -> None:
            told = self._watchers.get(namespace, {})
            told.pop(number, None)
            if not told:
                self._watchers.pop(namespace, None)

        return stop

    def record(self, change: Change) -> None:
        """Store a change, and call the watchers."""
        key = change.version.key
        if change.type == DELETED:
            del self._versions[key]
            del self._order[bisect_left(self._order, key)]
        else:
            self._versions[key] = change.version
        if change.type == ADDED:
            insort(self._order, key)
        if len(self._changes) == self._changes.maxlen:
            self._forgotten = self._changes[0].version.number
        self._changes.append(change)
        lines: EncodedEvents = {}
        for watcher in self._told_of(change.version.namespace):
            watcher(change, lines)

    def _told_of(self, namespace: str) -> list[Watcher]:
        here = self._watchers.get(namespace, {}) if namespace else {}
        return [*self._watchers.get("", {}).values(), *here.values()]


class Snapshot:
    """A collection as of one version: the newest versions, and what stood in place of those that came later."""

    def __init__(self, versions: Mapping[str, Version], order: list[str], then: Mapping[str, Version | None]) -> None:
        self._versions = versions
        self._order = order
        self._then = then
        self._deleted_since = sorted(key for key, version in then.items() if version and key not in versions)

    def within(self, prefix: str, start: str = "") -> Iterator[Version]:
        """The versions whose keys have this prefix and do not come before `start`, in the order of their keys."""
        here = _between(self._order, prefix, start)
        gone = _between(self._deleted_since, prefix, start)
        for key in merge(here, gone) if self._deleted_since else here:
            version = self._then[key] if key in self._then else self._versions[key]
            if version is not None:
                yield version

    def count(self, prefix: str, start: str = "") -> int:
        """How many `within` would give."""
        lasting = len(_range(self._order, prefix, start)) + len(_range(self._deleted_since, prefix, start))
        new = (key for key, version in self._then.items() if version is None and key in self._versions)
        return lasting - sum(1 for key in new if key.startswith(prefix) and key >= start)


class Store:
    """Every object of one server."""

    def __init__(self, *, history: int = 1000) -> None:
        if history < 1:
            raise ValueError(f"history is {history}: a store remembers at least one change of each kind")
        self.number = 0  # the newest resourceVersion
        self._history = history
        self._collections: dict[tuple[str, str], Collection] = {}
        self._listeners: list[ChangeListener] = []

    def subscribe(self, listener: ChangeListener) -> None:
        """Call the listener with every write from now on, within it."""
        self._listeners.append(listener)

    def all(self, kind: Kind) -> Collection:
        """The objects of this kind, the same for all its versions."""
        place = (kind.resource.group, kind.resource.plural)
        if place not in self._collections:
            self._collections[place] = Collection(self._history)
        return self._collections[place]

    def create(self, kind: Kind, key: str, obj: Untyped, owners: FieldOwners = NO_OWNERS) -> Version:
        """Store a new object. Raises `AlreadyExists`."""
        collection = self.all(kind)
        if existing := collection.get(key):
            raise AlreadyExists(existing)
        version = self._next(kind, key, obj, owners)
        self._record(kind, collection, Change(ADDED, version))
        return version

    def replace(self, kind: Kind, current: Version, obj: Untyped, owners: FieldOwners | None = None) -> Version:
        """Store a new state of the current object. Raises `StaleVersion`."""
        collection = self._unmoved(kind, current)
        version = self._next(kind, current.key, obj, current.owners if owners is None else owners)
        self._record(kind, collection, Change(MODIFIED, version, current))
        return version

    def remove(self, kind: Kind, current: Version) -> Version:
        """Remove the current object. Raises `StaleVersion`."""
        collection = self._unmoved(kind, current)
        version = self._next(kind, current.key, current.decode(), current.owners)
        self._record(kind, collection, Change(DELETED, version, current))
        return version

    def _record(self, kind: Kind, collection: Collection, change: Change) -> None:
        collection.record(change)
        for listener in self._listeners:
            listener(kind, change)

    def _unmoved(self, kind: Kind, current: Version) -> Collection:
        collection = self.all(kind)
        if collection.get(current.key) is not current:
            raise StaleVersion(current.key)
        return collection

    def _next(self, kind: Kind, key: str, obj: Untyped, owners: FieldOwners) -> Version:
        self.number += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self.number)}
        return version_of(kind, key, self.number, {**obj, "metadata": metadata}, owners)


def key_of(namespace: str, name: str) -> str:
    """The key of an object in its collection. Cluster-scoped ones have no namespace."""
    return f"{namespace}/{name}" if namespace else name


def part(obj: Untyped, name: str) -> Untyped:
    """A part of an object (`spec`, `status`); empty if it is no map: without a schema it can be anything."""
    found = obj.get(name)
    return found if isinstance(found, dict) else {}


def version_of(kind: Kind, key: str, number: int, obj: Untyped, owners: FieldOwners = NO_OWNERS) -> Version:
    """A version of an object: encoded, with the values for selectors."""
    labels = obj["metadata"].get("labels") or _NONE
    fields = {path: _text_at(obj, path, default) for path, default in kind.fields.items()}
    for name, paths in kind.fields_elsewhere.items():
        fields[name] = next(filter(None, (_text_at(obj, path, "") for path in paths)), "")
    return Version(key, number, encode(obj), labels, fields or _NONE, owners)


def _text_at(obj: Untyped, path: str, default: str) -> str:
    found: Any = obj
    for step in path.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    if found is None:
        return default
    return found if isinstance(found, str) else encode(found).decode()


def _range(order: list[str], prefix: str, start: str) -> range:
    first = bisect_left(order, max(prefix, start))
    last = bisect_left(order, prefix[:-1] + chr(ord(prefix[-1]) + 1)) if prefix else len(order)
    return range(first, max(first, last))


def _between(order: list[str], prefix: str, start: str) -> Iterator[str]:
    return (order[index] for index in _range(order, prefix, start))

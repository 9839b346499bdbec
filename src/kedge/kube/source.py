"""Source: where a controller's keys come from.

    Watch("hub", deployments)                                    # each object wakes itself
    Watch("hub", pods, to=owner_of(StatefulSet))                 # a pod wakes the StatefulSet that controls it
    Watch("cluster-1", works, to=lambda seen: [Key("hub", None, seen.meta.labels["parent"])])

A change wakes the keys that the object maps to now and those that it mapped to before, so that an object that moves
from one owner to another wakes both. Objects that existed when the cache was first filled come at low priority: later
changes go first.

`when` leaves out changes that do not count, such as a controller's own. It compares an object with what it was before.
That says nothing if the cache had to list again: an etcd that was restored to an older state takes back what was
written, and gives a generation a second time. So what a later list shows always counts.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from msgspec import Struct

from kedge.api.meta import Object, ObjectMeta
from kedge.kube.cache import Cache
from kedge.kube.queue import LOW, NORMAL, Key
from kedge.kube.store import Change

T = TypeVar("T")
Typed = TypeVar("Typed", bound=Object)

Wake: TypeAlias = Callable[[Key, int], None]
"""Enqueues a key, with a priority."""

log = logging.getLogger(__name__)


class Source(Protocol):
    """Anything that wakes keys."""

    @property
    def cluster(self) -> str:
        """Keys of this cluster are not looked at before the source is ready."""
        ...

    async def ready(self) -> None:
        """Wait until subscribing would tell of everything there is."""
        ...

    def subscribe(self, wake: Wake) -> None:
        """Wake the keys of everything there is, and from now on of everything that changes."""
        ...


class WatchedObject(Struct, Generic[T], frozen=True, gc=False):
    """One object, and the cluster it was watched on."""

    object: T
    meta: ObjectMeta
    cluster: str

    @property
    def key(self) -> Key:
        return Key(self.cluster, self.meta.namespace, self.meta.name)


Mapper: TypeAlias = Callable[[WatchedObject[T]], Iterable[Key]]
Predicate: TypeAlias = Callable[[Change[T]], bool]


def own_key(seen: WatchedObject[Any]) -> Iterable[Key]:
    """The object wakes itself."""
    return (seen.key,)


def owner_of(kind: type[Object]) -> Callable[[WatchedObject[Any]], Iterable[Key]]:
    """The object wakes its controlling owner, if that is of this kind."""
    resource = kind.resource

    def owner(seen: WatchedObject[Any]) -> Iterable[Key]:
        namespace = seen.meta.namespace if resource.namespaced else None
        return [
            Key(seen.cluster, namespace, owner.name)
            for owner in seen.meta.owner_references
            if owner.controller and owner.kind == resource.kind and _group(owner.api_version) == resource.group
        ]

    return owner


def generation_changed(change: Change[Typed]) -> bool:
    """Whether it is new, gone, terminating, or its spec changed: not a change of status or labels alone."""
    if change.old is None or change.new is None:
        return True
    old, new = change.old.metadata, change.new.metadata
    return old.generation != new.generation or old.deletion_timestamp != new.deletion_timestamp


class Watch(Generic[T]):
    """Enqueues keys as the objects of a cache change."""

    def __init__(
        self,
        cluster: str,
        cache: Cache[T],
        *,
        to: Mapper[T] = own_key,
        when: Predicate[T] | None = None,
        optional: bool = False,
    ) -> None:
        """`to` says whom an object wakes, `when` which changes of a watch count.

        An `optional` watch is ready as well if its kind is not served, or may not be read.
        """
        self._optional = optional
        self.cluster = cluster
        self._cache = cache
        self._to = to
        self._when = when

    def __str__(self) -> str:
        return f"{self._cache.codec.resource} of {self.cluster}"

    async def ready(self) -> None:
        await (self._cache.answered() if self._optional else self._cache.synced())

    def subscribe(self, wake: Wake) -> None:
        def changed(change: Change[T]) -> None:
            try:
                keys = self._keys(change) if self._counts(change) else ()
            except Exception:
                key = self._see(change.object).key
                log.exception("a change of %s %s wakes nobody", self._cache.codec.resource.kind, key)
                return
            for key in keys:
                wake(key, LOW if change.initial else NORMAL)

        self._cache.on_change(changed)

    def _counts(self, change: Change[T]) -> bool:
        return change.relisted or self._when is None or self._when(change)

    def _keys(self, change: Change[T]) -> Iterable[Key]:
        if self._to is own_key:
            return own_key(self._see(change.object))
        shown = (change.old, change.new)
        return dict.fromkeys(key for found in shown if found is not None for key in self._to(self._see(found)))

    def _see(self, found: T) -> WatchedObject[T]:
        return WatchedObject(found, self._cache.codec.meta(found), self.cluster)


class Signal:
    """Enqueues keys when told to: for what is not an object, such as a cluster that came back."""

    def __init__(self, cluster: str, at_start: Iterable[Key] = ()) -> None:
        """The keys `at_start` are woken once, when a controller begins."""
        self.cluster = cluster
        self._at_start = tuple(at_start)
        self._wakes: list[Wake] = []

    async def ready(self) -> None:
        """It is, always."""

    def subscribe(self, wake: Wake) -> None:
        self._wakes.append(wake)
        for key in self._at_start:
            wake(key, NORMAL)

    def wake(self, key: Key, priority: int = NORMAL) -> None:
        for wake in self._wakes:
            wake(key, priority)


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]

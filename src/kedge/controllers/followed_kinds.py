"""Followed kinds: watches of kinds that are known only once somebody asks for an object of them.

Such a kind may not be served yet, so that it is watched from the first time a controller looks at an object of it.
Whoever may not be watched has to be looked at again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

from kedge.api.resource import Resource
from kedge.kube.cache import Cache
from kedge.kube.cluster import Cluster
from kedge.kube.codec import PartialObject, metadata_of
from kedge.kube.queue import Key
from kedge.kube.source import Signal, Source, WatchedObject

KeysOf: TypeAlias = Callable[[str, WatchedObject[PartialObject]], Iterable[Key]]
"""Whom an object of this kind wakes."""


class FollowedKinds:
    """The kinds of one cluster that are watched since somebody looked at an object of them."""

    def __init__(self, cluster: Cluster, places: Sequence[str | None] = (None,), **options: Any) -> None:
        self._cluster = cluster
        self._places = places
        self._options = options
        self._caches: dict[Resource, tuple[Cache[PartialObject], ...]] = {}
        self._followers: list[tuple[Signal, KeysOf]] = []

    def source(self, keys: KeysOf) -> Source:
        """What wakes a controller when objects of these kinds change."""
        signal = Signal(self._cluster.name)
        self._followers.append((signal, keys))
        for resource in self._caches:
            self._subscribe(resource, signal, keys)
        return signal

    def look(self, resource: Resource) -> None:
        """Somebody looks at an object of this kind."""
        if resource in self._caches:
            return
        kind = metadata_of(resource)
        self._caches[resource] = tuple(
            self._cluster.cache(kind, place, optional=True, **self._options) for place in self._places
        )
        for signal, keys in self._followers:
            self._subscribe(resource, signal, keys)

    def drop(self, resource: Resource) -> None:
        """Nobody looks at objects of this kind any more. For caches that nobody else uses."""
        for cache in self._caches.pop(resource, ()):
            self._cluster.drop(cache)

    def is_watched(self, resource: Resource) -> bool:
        """Whether changes of this kind are told."""
        found = self._caches.get(resource, ())
        return bool(found) and all(one.is_synced for one in found)

    def _subscribe(self, resource: Resource, signal: Signal, keys: KeysOf) -> None:
        for cache in self._caches[resource]:
            self._cluster.watch(cache, to=partial(keys, resource.kind)).subscribe(signal.wake)

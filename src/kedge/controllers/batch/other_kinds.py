"""Other kinds: watches of workloads whose kind another distribution brings a handler for.

Such a kind is known by group and kind alone, and may not be served yet, so that it is watched from the first time a
rollout looks at a workload of it. Whoever may not be watched has to be looked at again and again.
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
"""The rollouts that looked at a workload of this kind last."""


class OtherKinds:
    """The kinds of one cluster that are watched since a rollout is about them."""

    def __init__(self, cluster: Cluster, places: Sequence[str | None], **options: Any) -> None:
        self._cluster = cluster
        self._places = places
        self._options = options
        self._caches: dict[Resource, tuple[Cache[PartialObject], ...]] = {}
        self._followers: list[tuple[Signal, KeysOf]] = []

    def source(self, keys: KeysOf) -> Source:
        """What wakes rollouts when workloads of these kinds change."""
        signal = Signal(self._cluster.name)
        self._followers.append((signal, keys))
        for resource in self._caches:
            self._subscribe(resource, signal, keys)
        return signal

    def look(self, resource: Resource) -> None:
        """A rollout is about a workload of this kind."""
        if resource in self._caches:
            return
        kind = metadata_of(resource)
        self._caches[resource] = tuple(
            self._cluster.cache(kind, place, optional=True, **self._options) for place in self._places
        )
        for signal, keys in self._followers:
            self._subscribe(resource, signal, keys)

    def is_watched(self, resource: Resource) -> bool:
        """Whether changes of this kind are told."""
        found = self._caches.get(resource, ())
        return bool(found) and all(one.is_synced for one in found)

    def _subscribe(self, resource: Resource, signal: Signal, keys: KeysOf) -> None:
        for cache in self._caches[resource]:
            self._cluster.watch(cache, to=partial(keys, resource.kind)).subscribe(signal.wake)

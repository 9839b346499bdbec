"""Placed caches: the objects of one kind in some namespaces, one cache for each; or in all of them, one for all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from kedge.controllers.gather import gather
from kedge.kube.cache import Cache
from kedge.kube.client import Kind
from kedge.kube.cluster import Cluster
from kedge.kube.queue import Key
from kedge.kube.source import Source, Wake, WatchedObject, own_key

T = TypeVar("T")


class PlacedCache(Generic[T]):
    """All objects of one kind that are looked at."""

    def __init__(self, cluster: Cluster, kind: Kind[T], namespaces: Sequence[str], **options: Any) -> None:
        places: Sequence[str | None] = namespaces or (None,)
        self._caches: dict[str | None, Cache[T]] = {place: cluster.cache(kind, place, **options) for place in places}

    @property
    def caches(self) -> tuple[Cache[T], ...]:
        return tuple(self._caches.values())

    @property
    def codec(self) -> Any:
        """Of the kind."""
        return self.caches[0].codec

    @property
    def is_synced(self) -> bool:
        """Whether all of them have been equal to the server once."""
        return all(one.is_synced for one in self.caches)

    def get(self, name: str, namespace: str | None) -> T | None:
        """One object."""
        cache = self._caches.get(namespace if namespace in self._caches else None)
        return cache.get(name, namespace) if cache is not None else None

    def by(self, index: str, value: str) -> tuple[T, ...]:
        """All that an index has."""
        return tuple(one for cache in self.caches for one in cache.by(index, value))


class Watches:
    """Several sources as one."""

    def __init__(self, cluster: str, sources: Iterable[Source]) -> None:
        self.cluster = cluster
        self._sources = tuple(sources)

    async def ready(self) -> None:
        await gather([one.ready for one in self._sources])

    def subscribe(self, wake: Wake) -> None:
        for one in self._sources:
            one.subscribe(wake)


def watch(
    cluster: Cluster, placed: PlacedCache[T], to: Callable[[WatchedObject[T]], Iterable[Key]] = own_key
) -> Watches:
    """Wake keys as the objects change, wherever they are."""
    return Watches(cluster.name, [cluster.watch(one, to=to) for one in placed.caches])

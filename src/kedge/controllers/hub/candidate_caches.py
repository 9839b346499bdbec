"""Candidate caches: the objects on the hub of the kinds that placements need, and of no others.

A kind is watched while somebody needs it: one cache for all of its objects, of each no more than a `Candidate`.
Trouble with one kind is told to those who need it, and is nobody else's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

from kedge.api.meta import ObjectMeta
from kedge.api.resource import Resource
from kedge.kube.cache import Cache
from kedge.kube.cluster import Cluster
from kedge.kube.codec import Codec, Untyped, untyped
from kedge.kube.store import Change
from kedge.plan.selecting.candidates import Candidate, candidate

Kept: TypeAlias = Candidate | Untyped
"""What a cache of candidates holds; the server's own form comes before, and when an object is gone."""

Changed: TypeAlias = Callable[[Resource, Candidate], None]
Troubled: TypeAlias = Callable[[Resource, bool], None]


class CandidateCaches:
    """The candidates of one hub: a `View` of it."""

    def __init__(self, hub: Cluster, *, changed: Changed, troubled: Troubled) -> None:
        """`changed` is told of every object that is new, gone or other than it was; `troubled`, that a
        kind can be seen now or cannot, and whether the server says that it does not serve it.
        """
        self._hub = hub
        self._changed = changed
        self._troubled = troubled
        self._caches: dict[Resource, Cache[Kept]] = {}

    def only(self, needed: Iterable[Resource]) -> None:
        """Follow these kinds, and no others."""
        wanted = dict.fromkeys(needed)
        for resource in [resource for resource in self._caches if resource not in wanted]:
            self._hub.drop(self._caches.pop(resource))
        for resource in wanted:
            if resource not in self._caches:
                self._follow(resource)

    def problem(self, resource: Resource) -> str:
        """Why objects of this kind cannot be seen. That there was no answer yet, or that it is too early, is none."""
        found = self._caches.get(resource)
        if found is None or found.is_synced or found.kind_is_missing or not found.is_refused:
            return ""
        return found.problem or ""

    def is_ready(self, resource: Resource) -> bool:
        found = self._caches.get(resource)
        return found is not None and found.is_synced

    def all(self, resource: Resource, namespace: str | None = None) -> Iterable[Candidate]:
        found = self._caches[resource]
        kept = found.all() if namespace is None else found.by("namespace", namespace)
        return [each for each in kept if isinstance(each, Candidate)]

    def get(self, resource: Resource, name: str, namespace: str | None = None) -> Candidate | None:
        found = self._caches[resource].get(name, namespace)
        return found if isinstance(found, Candidate) else None

    def _follow(self, resource: Resource) -> None:
        cache = self._hub.cache(_form(resource), transform=_remember(resource), indexes=_BY_NAMESPACE, optional=True)
        self._caches[resource] = cache
        cache.on_change(partial(self._tell, resource))
        cache.on_problem(lambda _: self._troubled(resource, cache.kind_is_missing))

    def _tell(self, resource: Resource, change: Change[Kept]) -> None:
        old, new = (_candidate(resource, found) for found in (change.old, change.new))
        if change.initial or (old and new and (old.digest, old.metadata.uid) == (new.digest, new.metadata.uid)):
            return
        for found in (old, new):
            if found is not None:
                self._changed(resource, found)


def _candidate(resource: Resource, found: Kept | None) -> Candidate | None:
    return candidate(resource, found) if isinstance(found, Mapping) else found


@functools.cache
def _form(resource: Resource) -> Codec[Kept]:
    return Codec(resource, Untyped, _meta)


@functools.cache
def _remember(resource: Resource) -> Callable[[Kept], Kept]:
    return lambda found: found if isinstance(found, Candidate) else candidate(resource, found)


def _meta(found: Kept) -> ObjectMeta:
    return found.metadata if isinstance(found, Candidate) else untyped(_ANY).meta(found)


def _namespace(found: Kept) -> Iterable[str]:
    meta = _meta(found)
    return (meta.namespace,) if meta.namespace else ()


_ANY: Final = Resource("", "v1", "", "")
_BY_NAMESPACE: Final[Mapping[str, Any]] = {"namespace": _namespace}

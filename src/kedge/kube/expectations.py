"""Expectations: what a reconcile has written, and whether the caches show it yet.

A decision made on a cache that does not show our own last write would make that write again, or undo it. So every
write of a `Cluster`'s client is recorded twice: with each cache of its kind, which is expected to show it
(`CacheExpectations`), and in the `WriteSet` of the reconcile that made it. The controller does not call that reconcile
again for the same key before the caches show its writes. Reconcilers need not do anything for that.

A write whose answer was lost may have happened or not. Then the cache is behind for that object until the server has
been asked. A delete is shown when the object is gone, has another uid, or has a deletionTimestamp. A write that
removed the last finalizer of a terminating object is shown when that is gone: its answer has the version of before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, TypeVar

from kedge.api.meta import ObjectMeta
from kedge.kube.cache import Cache
from kedge.kube.codec import Codec
from kedge.kube.store import Change

T = TypeVar("T")

_UNKNOWN = str(2**63)  # a version no watch will ever bring: only asking the server settles it


class _Deletion:
    """An object that we deleted, and the cache does not show that yet."""

    def __init__(self, uid: str, *, is_final: bool = False) -> None:
        """`is_final`: it is gone already, and not only terminating."""
        self.uid = uid
        self.is_final = is_final
        self.shown = asyncio.Event()

    def is_shown_by(self, meta: ObjectMeta) -> bool:
        """Whether the object of this name is another one now, or is terminating where that is enough."""
        return meta.uid != self.uid or (not self.is_final and meta.deletion_timestamp is not None)


class CacheExpectations(Generic[T]):
    """The writes that one cache has yet to show. Created together with the cache: it must not miss a change."""

    def __init__(self, cache: Cache[T]) -> None:
        self._cache = cache
        self._deletions: dict[tuple[str, str], _Deletion] = {}
        self._over = False
        cache.on_change(self._changed)

    def wrote(self, meta: ObjectMeta) -> None:
        """The server answered a write with this."""
        if _ended_the_object(meta):
            self._expect_deletion(meta.name, meta.namespace, _Deletion(meta.uid, is_final=True))
            return
        if self._cache.never_shows(meta):
            return
        self._cache.wrote(meta)
        _add_to_current(self, meta.name, meta.namespace)

    def removed(self, name: str, namespace: str | None, uid: str | None) -> None:
        """The server accepted our delete of this object; without a uid, of the one the cache shows."""
        found = self._cache.get(name, namespace)
        if found is not None:
            self._expect_deletion(name, namespace, _Deletion(uid or self._cache.codec.meta(found).uid))

    def _expect_deletion(self, name: str, namespace: str | None, deletion: _Deletion) -> None:
        """Expect the cache to show this deletion."""
        found = self._cache.get(name, namespace)
        if found is None or deletion.is_shown_by(self._cache.codec.meta(found)):
            return
        waiting = self._deletions.setdefault((namespace or "", name), deletion)
        if waiting.uid != deletion.uid:
            self._deletions[namespace or "", name] = deletion
        waiting.is_final |= deletion.is_final
        _add_to_current(self, name, namespace)

    def in_doubt(self, name: str, namespace: str | None) -> None:
        """A write of this object may have happened: there was no answer."""
        self._cache.wrote(ObjectMeta(name=name, namespace=namespace, resource_version=_UNKNOWN))
        _add_to_current(self, name, namespace)

    def stop_waiting(self) -> None:
        """The cluster is no longer followed: nobody may wait for what the cache will never show."""
        self._over = True

    def shown(self, name: str, namespace: str | None) -> bool:
        """Whether the cache shows all our writes of this object."""
        return self._over or ((namespace or "", name) not in self._deletions and self._cache.caught_up(name, namespace))

    async def settle(self, name: str, namespace: str | None, within: float) -> None:
        """Wait until the cache shows it; if that takes too long, have it ask the server."""
        deletion = self._deletions.get((namespace or "", name))
        if deletion is not None and not await _set(deletion.shown, within):
            del self._deletions[namespace or "", name]
            self.in_doubt(name, namespace)
            within = 0.0
        await self._cache.catch_up(name, namespace, within=within)

    def _changed(self, change: Change[T]) -> None:
        if not self._deletions:
            return
        meta = self._cache.codec.meta(change.object)
        key = (meta.namespace or "", meta.name)
        deletion = self._deletions.get(key)
        if deletion is not None and (change.new is None or deletion.is_shown_by(meta)):
            del self._deletions[key]
            deletion.shown.set()


class ClusterExpectations:
    """The writes that the caches of one cluster have yet to show. Observes the writes of its client."""

    def __init__(self) -> None:
        self._expected: list[tuple[Cache[Any], str | None, CacheExpectations[Any]]] = []

    def add_cache(self, cache: Cache[Any], namespace: str | None) -> None:
        """Expect our writes in this cache from now on. To be called when the cache is created."""
        self._expected.append((cache, namespace, CacheExpectations(cache)))

    def forget(self, cache: Cache[Any]) -> None:
        """This cache is no longer followed: nobody may wait for it."""
        for _, _, expected in [entry for entry in self._expected if entry[0] is cache]:
            expected.stop_waiting()
        self._expected = [entry for entry in self._expected if entry[0] is not cache]

    def wrote(self, form: Codec[Any], meta: ObjectMeta) -> None:
        for expected in self._expected_of(form, meta.namespace):
            expected.wrote(meta)

    def removed(self, form: Codec[Any], name: str, namespace: str | None, uid: str | None) -> None:
        for expected in self._expected_of(form, namespace):
            expected.removed(name, namespace, uid)

    def in_doubt(self, form: Codec[Any], name: str, namespace: str | None) -> None:
        for expected in self._expected_of(form, namespace):
            expected.in_doubt(name, namespace)

    def stop_waiting(self) -> None:
        """The cluster is no longer followed."""
        for _, _, expected in self._expected:
            expected.stop_waiting()

    def _expected_of(self, form: Codec[Any], namespace: str | None) -> list[CacheExpectations[Any]]:
        """Of the caches that may show this object. Another version of a kind has the same objects."""
        wanted = (form.resource.group, form.resource.plural)
        return [
            expected
            for cache, place, expected in self._expected
            if (cache.codec.resource.group, cache.codec.resource.plural) == wanted and place in (None, namespace)
        ]


class WriteSet:
    """The objects that one reconcile wrote."""

    def __init__(self) -> None:
        self._written: dict[tuple[CacheExpectations[Any], str, str | None], None] = {}

    def add(self, expected: CacheExpectations[Any], name: str, namespace: str | None) -> None:
        self._written[expected, name, namespace] = None

    def shown(self) -> bool:
        """Whether every cache shows all of it."""
        return all(expected.shown(name, namespace) for expected, name, namespace in self._written)

    async def settle(self, within: float) -> None:
        """Wait until every cache shows all of it. Raises `KubeError` if a server had to be asked, and failed."""
        deadline = asyncio.get_running_loop().time() + within
        for expected, name, namespace in self._written:
            if not expected.shown(name, namespace):
                left = max(0.0, deadline - asyncio.get_running_loop().time())
                await expected.settle(name, namespace, left)


_current_writes: ContextVar[WriteSet | None] = ContextVar("footprint", default=None)


@contextmanager
def record_writes() -> Iterator[WriteSet]:
    """Record every write made inside, also by tasks started inside."""
    writes = WriteSet()
    token = _current_writes.set(writes)
    try:
        yield writes
    finally:
        _current_writes.reset(token)


def _add_to_current(expected: CacheExpectations[Any], name: str, namespace: str | None) -> None:
    writes = _current_writes.get()
    if writes is not None:
        writes.add(expected, name, namespace)


def _ended_the_object(meta: ObjectMeta) -> bool:
    """Whether the write with this answer ended the object: no finalizer and no grace period holds it any more."""
    return meta.deletion_timestamp is not None and not meta.finalizers and not meta.deletion_grace_period_seconds


async def _set(event: asyncio.Event, within: float) -> bool:
    try:
        async with asyncio.timeout(within):
            await event.wait()
    except TimeoutError:
        return False
    return True

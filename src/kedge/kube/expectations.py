"""Writes: what a piece of work has written, and whether the caches show it yet.

A decision made on a cache that does not show our own last write would make that write again, or undo it. So every
write of a `Cluster`'s client is noted twice: with each cache of its kind, which then owes it (`OwnWrites`), and in the
`Footprint` of the reconcile that made it. The controller does not call that reconcile again for the same key before
its footprint shows. Nobody has to think of it.

A write whose answer was lost may have happened or not; what the caches show of that object counts as old until the
server has been asked. A delete is shown when the object is gone, is another one, or is on its way out; a write that
took the last finalizer off one on its way out is shown when it is gone: its answer still has the version of before.
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


class _Leaving:
    """An object we took away, and the cache has not shown that."""

    def __init__(self, uid: str, *, for_good: bool = False) -> None:
        """`for_good`: it is gone already, and not only on its way out."""
        self.uid = uid
        self.for_good = for_good
        self.shown = asyncio.Event()

    def shown_by(self, meta: ObjectMeta) -> bool:
        """Whether what has this name now is another, or is on its way out where that is enough."""
        return meta.uid != self.uid or (not self.for_good and meta.deletion_timestamp is not None)


class OwnWrites(Generic[T]):
    """What one cache owes us. Made together with the cache: it must not miss a change."""

    def __init__(self, cache: Cache[T]) -> None:
        self._cache = cache
        self._leaving: dict[tuple[str, str], _Leaving] = {}
        self._over = False
        cache.on_change(self._changed)

    def wrote(self, meta: ObjectMeta) -> None:
        """The server answered a write with this."""
        if _was_the_last(meta):
            self._leave(meta.name, meta.namespace, _Leaving(meta.uid, for_good=True))
            return
        self._cache.wrote(meta)
        _touch(self, meta.name, meta.namespace)

    def removed(self, name: str, namespace: str | None, uid: str | None) -> None:
        """The server took our delete of this object; without a uid, of the one the cache shows."""
        found = self._cache.get(name, namespace)
        if found is not None:
            self._leave(name, namespace, _Leaving(uid or self._cache.codec.meta(found).uid))

    def _leave(self, name: str, namespace: str | None, leaving: _Leaving) -> None:
        """The object is on its way: the cache has to show it."""
        found = self._cache.get(name, namespace)
        if found is None or leaving.shown_by(self._cache.codec.meta(found)):
            return
        waiting = self._leaving.setdefault((namespace or "", name), leaving)
        if waiting.uid != leaving.uid:
            self._leaving[namespace or "", name] = leaving
        waiting.for_good |= leaving.for_good
        _touch(self, name, namespace)

    def in_doubt(self, name: str, namespace: str | None) -> None:
        """A write of this object may have happened: there was no answer."""
        self._cache.wrote(ObjectMeta(name=name, namespace=namespace, resource_version=_UNKNOWN))
        _touch(self, name, namespace)

    def give_up(self) -> None:
        """The cluster is no longer ours to follow: nobody is to wait for what it will never show."""
        self._over = True

    def shown(self, name: str, namespace: str | None) -> bool:
        """Whether the cache shows all we wrote of this object."""
        return self._over or ((namespace or "", name) not in self._leaving and self._cache.caught_up(name, namespace))

    async def settle(self, name: str, namespace: str | None, within: float) -> None:
        """Wait until the cache shows it; if that takes too long, have it ask the server."""
        leaving = self._leaving.get((namespace or "", name))
        if leaving is not None and not await _set(leaving.shown, within):
            del self._leaving[namespace or "", name]
            self.in_doubt(name, namespace)
            within = 0.0
        await self._cache.catch_up(name, namespace, within=within)

    def _changed(self, change: Change[T]) -> None:
        if not self._leaving:
            return
        meta = self._cache.codec.meta(change.object)
        key = (meta.namespace or "", meta.name)
        leaving = self._leaving.get(key)
        if leaving is not None and (change.new is None or leaving.shown_by(meta)):
            del self._leaving[key]
            leaving.shown.set()


class ClusterWrites:
    """What the caches of one cluster owe us: the witness of its client."""

    def __init__(self) -> None:
        self._owed: list[tuple[Cache[Any], str | None, OwnWrites[Any]]] = []

    def expect_in(self, cache: Cache[Any], namespace: str | None) -> None:
        """From now on this cache, of one namespace or all, owes us what we write. To be called when it is made."""
        self._owed.append((cache, namespace, OwnWrites(cache)))

    def forget(self, cache: Cache[Any]) -> None:
        """This cache is no longer followed: nobody is to wait for it."""
        for _, _, owed in [entry for entry in self._owed if entry[0] is cache]:
            owed.give_up()
        self._owed = [entry for entry in self._owed if entry[0] is not cache]

    def wrote(self, form: Codec[Any], meta: ObjectMeta) -> None:
        for owed in self._by(form, meta.namespace):
            owed.wrote(meta)

    def removed(self, form: Codec[Any], name: str, namespace: str | None, uid: str | None) -> None:
        for owed in self._by(form, namespace):
            owed.removed(name, namespace, uid)

    def in_doubt(self, form: Codec[Any], name: str, namespace: str | None) -> None:
        for owed in self._by(form, namespace):
            owed.in_doubt(name, namespace)

    def give_up(self) -> None:
        """The cluster is no longer ours to follow."""
        for _, _, owed in self._owed:
            owed.give_up()

    def _by(self, form: Codec[Any], namespace: str | None) -> list[OwnWrites[Any]]:
        """Owed by the caches that may show this object; another version of a kind is the same objects."""
        wanted = (form.resource.group, form.resource.plural)
        return [
            owed
            for cache, place, owed in self._owed
            if (cache.codec.resource.group, cache.codec.resource.plural) == wanted and place in (None, namespace)
        ]


class Footprint:
    """The objects one piece of work wrote to."""

    def __init__(self) -> None:
        self._touched: dict[tuple[OwnWrites[Any], str, str | None], None] = {}

    def add(self, owed: OwnWrites[Any], name: str, namespace: str | None) -> None:
        self._touched[owed, name, namespace] = None

    def shown(self) -> bool:
        """Whether every cache shows all of it."""
        return all(owed.shown(name, namespace) for owed, name, namespace in self._touched)

    async def settle(self, within: float) -> None:
        """Wait until every cache shows all of it. Raises `KubeError` if a server had to be asked, and failed."""
        deadline = asyncio.get_running_loop().time() + within
        for owed, name, namespace in self._touched:
            if not owed.shown(name, namespace):
                left = max(0.0, deadline - asyncio.get_running_loop().time())
                await owed.settle(name, namespace, left)


_footprint: ContextVar[Footprint | None] = ContextVar("footprint", default=None)


@contextmanager
def recording() -> Iterator[Footprint]:
    """Note every write made inside, also by tasks started inside."""
    footprint = Footprint()
    token = _footprint.set(footprint)
    try:
        yield footprint
    finally:
        _footprint.reset(token)


def _touch(owed: OwnWrites[Any], name: str, namespace: str | None) -> None:
    footprint = _footprint.get()
    if footprint is not None:
        footprint.add(owed, name, namespace)


def _was_the_last(meta: ObjectMeta) -> bool:
    """Whether the write that was answered with this ended the object: nothing holds it any more, nor any time."""
    return meta.deletion_timestamp is not None and not meta.finalizers and not meta.deletion_grace_period_seconds


async def _set(event: asyncio.Event, within: float) -> bool:
    try:
        async with asyncio.timeout(within):
            await event.wait()
    except TimeoutError:
        return False
    return True

"""Cache: a store kept equal to what an API server has.

A `Reflector` lists and watches; the cache keeps what it brings, and tells its handlers of every difference, deletions
too. Handlers are called in order, once per change, after the store shows it. They must not block.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from kedge.api.meta import ObjectMeta
from kedge.kube.client import Client, Kind
from kedge.kube.codec import DELETED, Unreadable, codec
from kedge.kube.errors import NotFound
from kedge.kube.memory import share
from kedge.kube.reflector import Reflector, Sink
from kedge.kube.requests import Selector, selector
from kedge.kube.store import Change, Index, Key, Store, key_of
from kedge.kube.version_tracker import VersionTracker, as_number

T = TypeVar("T")
Handler = Callable[[Change[T]], None]
log = logging.getLogger(__name__)


class Cache(Generic[T]):
    """The objects of one kind on one server, as of a moment ago."""

    def __init__(
        self,
        client: Client,
        kind: Kind[T],
        namespace: str | None = None,
        *,
        labels: Selector = None,
        fields: Selector = None,
        only: Callable[[T], bool] | None = None,
        transform: Callable[[T], T] | None = None,
        indexes: Mapping[str, Index[T]] | None = None,
        rng: random.Random | None = None,
        silence: float = 75.0,
        logs_missing: bool = True,
    ) -> None:
        """`only` filters objects where no selector can; `transform` keeps only what is needed of an object.

        `silence`: how long a dead connection may look alive; `logs_missing`: whether to log a missing kind.
        """
        self.codec = codec(kind)
        self.unreadable: dict[Key, Unreadable] = {}
        self._client = client.without_retry()
        self._is_filtered = labels is not None or fields is not None
        self._labels = selector(labels) or ""
        self._only = only
        self._transform = transform
        self._store: Store[T] = Store(indexes)
        self._versions = VersionTracker()
        self._synced = asyncio.Event()
        self._answered = asyncio.Event()
        self._handlers: list[Handler[T]] = []
        self._reflector = Reflector(
            self._client,
            self.codec,
            Sink(
                self._wants,
                self._transformed,
                self._versions.list_begins,
                self._replace,
                self._take,
                self._take_unreadable,
                self._versions.observed,
            ),
            namespace,
            labels=labels,
            fields=fields,
            rng=rng or random.Random(),
            silence=silence,
            logs_missing=logs_missing,
        )
        self._reflector.on_problem(lambda _: self._note_answer())

    # Reading

    def get(self, name: str, namespace: str | None = None) -> T | None:
        return self._store.get((namespace or "", name))

    def all(self) -> tuple[T, ...]:
        return tuple(self._store)

    def by(self, index: str, value: str) -> tuple[T, ...]:
        """The objects of which the index says this value."""
        return self._store.by(index, value)

    def __len__(self) -> int:
        return len(self._store)

    @property
    def is_synced(self) -> bool:
        """Whether it has been equal to the server once. It stays true: old objects are better than none."""
        return self._synced.is_set()

    async def synced(self) -> None:
        """Wait until it has been equal to the server once."""
        await self._synced.wait()

    async def answered(self) -> None:
        """Wait until it has been equal to the server once, or the server has said that there is nothing to follow.

        That is: it serves no such kind, or forbids to follow it. For kinds that may be missing.
        """
        await self._answered.wait()

    def _note_answer(self) -> None:
        if self.is_synced or self.kind_is_missing or self.is_forbidden:
            self._answered.set()

    def on_change(self, handler: Handler[T]) -> None:
        """Tell this handler of every object that is here, and of every change from now on."""
        for found in self._store:
            handler(Change(None, found, initial=True))
        self._handlers.append(handler)

    # Following the server

    async def run(self) -> None:
        """Follow the server until cancelled."""
        await self._reflector.run()

    def retry_now(self) -> None:
        """The server is back: try at once, and as if nothing had failed yet."""
        self._reflector.retry_now()

    @property
    def problem(self) -> str | None:
        """Why the server cannot be followed now; None if it can."""
        return self._reflector.problem

    @property
    def kind_is_missing(self) -> bool:
        """Whether the server says that it serves no such kind."""
        return self._reflector.kind_is_missing

    @property
    def is_refused(self) -> bool:
        """Whether the server answered, and `problem` is its answer."""
        return self._reflector.is_refused

    @property
    def is_forbidden(self) -> bool:
        """Whether the server says that this caller may not follow the kind."""
        return self._reflector.is_forbidden

    def on_problem(self, handler: Callable[[str | None], None]) -> None:
        """Tell this handler of every new problem with the server, and when it is over (None)."""
        self._reflector.on_problem(handler)

    # Reading one's own writes

    def wrote(self, meta: ObjectMeta) -> None:
        """We wrote this object: the cache is behind until it shows that write."""
        self._versions.expect(key_of(meta), meta.resource_version, self._reflector.version)

    def never_shows(self, meta: ObjectMeta) -> bool:
        """Whether it is certain, by its labels, that an object that the cache does not show now will not be shown."""
        if not self._labels or self._store.get(key_of(meta)) is not None:
            return False
        return not all(_may_match(part, meta.labels) for part in self._labels.split(","))

    def caught_up(self, name: str, namespace: str | None = None) -> bool:
        """Whether the cache shows our own last write of this object."""
        return self._versions.caught_up((namespace or "", name))

    async def catch_up(self, name: str, namespace: str | None = None, *, within: float = 2.0) -> None:
        """Wait until the cache shows our own last write of this object; if the watch lags, read it from the server.

        A watch says nothing of an object outside its selectors, so those are read as well.
        """
        key = (namespace or "", name)
        if await self._versions.wait(key, within):
            return
        before = self._store.get(key)
        try:
            found = await self._client.get(self.codec, name, namespace)
        except NotFound:
            if before is not None:
                self._forget_deleted(key, self.codec.meta(before))
        else:
            self._keep_direct_read(key, found)
        self._versions.settle(key)

    def _keep_direct_read(self, key: Key, found: T) -> None:
        """Keep an object read directly, unless the watch was faster, or the selectors may exclude it."""
        meta = self.codec.meta(found)
        old = self._store.get(key)
        shown = as_number(self._reflector.version)
        if old is not None:
            shown = max(shown, as_number(self.codec.meta(old).resource_version))
        if as_number(meta.resource_version) < shown:
            return
        if not self._wants(found):
            self._versions.read_ahead(meta)
            self._forget(key)
        elif not self._is_filtered or old is not None:
            self._versions.read_ahead(meta)
            self._keep(key, self._transformed(found))

    def _forget_deleted(self, key: Key, before: ObjectMeta) -> None:
        """Remove an object that the server no longer has. One that took its name since stays."""
        self._versions.found_gone(before)
        shown = self._store.get(key)
        if shown is not None and self.codec.meta(shown).uid == before.uid:
            self._forget(key)

    # What the reflector brings

    def _wants(self, found: T) -> bool:
        return self._only is None or self._only(found)

    def _transformed(self, found: T, before: T | None = None) -> T:
        """What is kept of an object."""
        kept = found if self._transform is None else self._transform(found)
        share(kept, before)
        return kept

    def _replace(self, found: dict[Key, T], unreadable: dict[Key, Unreadable], version: str) -> None:
        """Make the store equal to a list and tell of every difference, except where we know something newer."""
        self._versions.observed(version)
        for key in self._store.keys():  # noqa: SIM118  # iterating a store gives objects
            if key not in found and not self._versions.was_read_ahead(key):
                self._forget(key, relisted=True)
        for key, new in found.items():
            if not self._same_version(key, new) and not self._versions.is_outdated(self.codec.meta(new)):
                self._keep(key, new, relisted=self._synced.is_set())
        self._versions.listed(version, (self.codec.meta(new).uid for new in found.values()))
        self.unreadable = unreadable
        self._report_unreadable(unreadable)
        self._synced.set()
        self._answered.set()

    def _same_version(self, key: Key, new: T) -> bool:
        old = self._store.get(key)
        return old is not None and self.codec.meta(old).resource_version == self.codec.meta(new).resource_version

    def _take(self, happened: str, found: T) -> str:
        meta = self.codec.meta(found)
        if not self._versions.is_outdated(meta):
            self._show(happened, key_of(meta), found)
        if happened == DELETED:
            self._versions.deletion_seen(meta.uid)
        self._versions.observed(meta.resource_version)
        return meta.resource_version

    def _show(self, happened: str, key: Key, found: T) -> None:
        if self.unreadable:
            self.unreadable.pop(key, None)
        if happened == DELETED:
            self._forget(key, found)
        elif not self._wants(found):
            self._forget(key)
        else:
            self._keep(key, self._transformed(found, self._store.get(key)))

    def _take_unreadable(self, found: Unreadable) -> str:
        """An object that cannot be read counts as absent: nobody may decide on its earlier state."""
        key = key_of(found.metadata)
        self.unreadable[key] = found
        self._report_unreadable({key: found})
        self._forget(key)
        self._versions.observed(found.metadata.resource_version)
        return found.metadata.resource_version

    def _report_unreadable(self, found: Mapping[Key, Unreadable]) -> None:
        for (namespace, name), item in found.items():
            log.warning("%s %s/%s cannot be read: %s", self.codec.resource, namespace, name, item.problem)

    def _keep(self, key: Key, new: T, *, relisted: bool = False) -> None:
        old = self._store.put(key, new)
        self._tell(Change(old, new, initial=not self._synced.is_set(), relisted=relisted))

    def _forget(self, key: Key, last: T | None = None, *, relisted: bool = False) -> None:
        old = self._store.remove(key)
        if old is not None:
            self._tell(Change(last if last is not None else old, None, relisted=relisted))

    def _tell(self, change: Change[T]) -> None:
        for handler in self._handlers:
            try:
                handler(change)
            except Exception:
                log.exception("a handler failed on a change of %s", self.codec.resource)


def _may_match(part: str, labels: Mapping[str, str]) -> bool:
    """Whether labels may be selected by one part of a selector: of `key`, `key=value` and `key==value` it is known."""
    key, equals, value = part.partition("=")
    if any(sign in part for sign in " !()"):
        return True
    return labels.get(key) == value.removeprefix("=") if equals else key in labels

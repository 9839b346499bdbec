"""Cache: a store kept equal to what an API server has, by list and watch.

It fills from a streamed list (one request that goes on as the watch), or from pages where a server knows no such
thing. Then it follows the watch, resumes where that broke off, and when the server no longer remembers (410) lists
anew and tells of every difference, deletions too. Trouble with the server never ends it: it waits, longer each time,
and says so in `problem`.

Handlers are called in order, once per change, after the store shows it; they must not block.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from typing import Generic, TypeVar

from kedge.api.meta import ObjectMeta
from kedge.kube.client import Client, Kind, Selector, WatchEvents
from kedge.kube.codec import DELETED, Bookmark, Unreadable, codec
from kedge.kube.errors import ApiError, BadRequest, Gone, Invalid, KubeError, NotFound
from kedge.kube.ledger import Ledger, number
from kedge.kube.limits import Backoff, Steps
from kedge.kube.memory.loading import bulk_load
from kedge.kube.memory.sharing import share
from kedge.kube.store import Change, Index, Key, Store, key_of

T = TypeVar("T")
Handler = Callable[[Change[T]], None]
log = logging.getLogger(__name__)

WATCH_SECONDS = (900.0, 1800.0)
"""How long a watch is asked to last. One that hangs is found by its silence, so it need not be short."""

SETTLED_AFTER = 10.0
"""A watch that lasted this many seconds was a good one: the next failure is a first failure."""

FILLED_WITHIN = 60.0
"""A streamed list that takes longer than this is read in pages instead."""


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
        """`only` says which objects count: others are as good as not there, where no selector can say so.

        `transform` keeps only what is needed of an object; `silence`: how long a dead connection may look alive;
        `logs_missing`: whether a kind that is not served is for the log, or somebody else sees to that.
        """
        self.codec = codec(kind)
        self.problem: str | None = "not connected yet"
        self.kind_is_missing = False  # the server says that it serves no such kind
        self.is_refused = False  # the server answered, and `problem` is its answer
        self.unreadable: dict[Key, Unreadable] = {}
        self._client = client.without_retry()
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._only = only
        self._transform = transform
        self._rng = rng or random.Random()
        self._silence = silence
        self._logs_missing = logs_missing
        self._backoff = Backoff(self._rng, Steps(first=0.8, longest=10.0))
        self._store: Store[T] = Store(indexes)
        self._ledger = Ledger()
        self._version = ""
        self._streamed_lists = True
        self._synced = asyncio.Event()
        self._hurried = asyncio.Event()
        self._handlers: list[Handler[T]] = []
        self._on_problem: list[Callable[[str | None], None]] = []

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
        """Whether it has been equal to the server once. It stays true: what is old is better than nothing."""
        return self._synced.is_set()

    async def synced(self) -> None:
        """Wait until it has been equal to the server once."""
        await self._synced.wait()

    def on_change(self, handler: Handler[T]) -> None:
        """Tell this handler of every change from now on, and first of all that is here already."""
        for found in self._store:
            handler(Change(None, found, initial=True))
        self._handlers.append(handler)

    def on_problem(self, handler: Callable[[str | None], None]) -> None:
        """Tell this handler whenever there is trouble with the server, or none any more (None)."""
        self._on_problem.append(handler)

    # Reading one's own writes

    def wrote(self, meta: ObjectMeta) -> None:
        """We wrote this object: what the cache shows of it is old until it has caught up with that."""
        self._ledger.wrote(key_of(meta), meta.resource_version, self._version)

    def caught_up(self, name: str, namespace: str | None = None) -> bool:
        """Whether the cache shows our own last write of this object."""
        return self._ledger.caught_up((namespace or "", name))

    async def catch_up(self, name: str, namespace: str | None = None, *, within: float = 2.0) -> None:
        """Wait until the cache shows our own last write of this object; if the watch lags, ask the server.

        A watch tells nothing of an object outside its selectors, so asking is also how those are settled.
        """
        key = (namespace or "", name)
        if await self._ledger.wait(key, within):
            return
        before = self._store.get(key)
        try:
            found = await self._client.get(self.codec, name, namespace)
        except NotFound:
            if before is not None:
                self._forget_ahead(key, self.codec.meta(before))
        else:
            self._keep_ahead(key, found)
        self._ledger.settle(key)

    def _keep_ahead(self, key: Key, found: T) -> None:
        """Keep an object read directly, unless the watch was faster, or the selectors may not want it."""
        meta = self.codec.meta(found)
        old = self._store.get(key)
        shown = max(number(self._version), number(self.codec.meta(old).resource_version) if old is not None else 0)
        if number(meta.resource_version) < shown:
            return
        if not self._counts(found):
            self._ledger.ahead(meta)
            self._forget(key)
        elif (self._labels is None and self._fields is None) or old is not None:
            self._ledger.ahead(meta)
            self._keep(key, self._trim(found))

    def _forget_ahead(self, key: Key, before: ObjectMeta) -> None:
        """Forget an object that was not there when the server was asked; one that took its name since stays."""
        self._ledger.gone(before)
        shown = self._store.get(key)
        if shown is not None and self.codec.meta(shown).uid == before.uid:
            self._forget(key)

    # Following

    async def run(self) -> None:
        """Follow the server until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            try:
                await self._follow_once()
                failure = None
            except KubeError as error:
                failure = error
            lasted = loop.time() - started >= SETTLED_AFTER
            if lasted:
                self._backoff.reset()
            if failure is not None or not lasted:  # what lasted and ended in good order goes on without a gap
                await self._pause(failure)

    def hurry(self) -> None:
        """The server is there again: try at once, and as if it had not failed yet."""
        self._backoff.reset()
        self._hurried.set()

    async def _pause(self, failure: KubeError | None) -> None:
        """Wait before the next try. A watch that ended in good order is no trouble, but it may not storm either."""
        pause = self._backoff.next()
        if isinstance(failure, Gone):
            self._version = ""
        elif failure is not None:
            self.kind_is_missing, self.is_refused = isinstance(failure, NotFound), isinstance(failure, ApiError)
            # Once: a server that is gone for an hour would fill the log with all that is followed there.
            is_said = failure.answer == self.problem or (self.kind_is_missing and not self._logs_missing)
            level = logging.DEBUG if is_said else logging.WARNING
            log.log(level, "watching %s: %s; trying again in %.1f s", self.codec.resource, failure.answer, pause)
            self._report(failure.answer)
        if isinstance(failure, ApiError) and failure.retry_after:
            pause = max(pause, failure.retry_after)
        self._hurried.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._hurried.wait()

    def _report(self, problem: str | None) -> None:
        if problem is None:
            self.kind_is_missing = self.is_refused = False
        if problem != self.problem:
            self.problem = problem
            for handler in self._on_problem:
                handler(problem)

    async def _follow_once(self) -> None:
        """List if need be, then watch until the watch ends."""
        if not self._version and self._streamed_lists:
            await self._watch_from_scratch()
        else:
            if not self._version:
                await self._list()
            await self._watch()

    async def _watch(self) -> None:
        async with self._open(resource_version=self._version) as events:
            self._report(None)
            await self._follow(events)

    async def _watch_from_scratch(self) -> None:
        """Fill from a streamed list, and go on with the watch it becomes."""
        try:
            async with self._open(initial_events=True) as events:
                if await self._fill(events):
                    await self._follow(events)
                else:
                    self._list_in_pages("a streamed list here does not say where it ends")
        except (BadRequest, Invalid) as error:
            if self._version:
                raise
            self._list_in_pages(error.answer)

    def _list_in_pages(self, why: str) -> None:
        log.info("watching %s: listing in pages from now on: %s", self.codec.resource, why)
        self._streamed_lists = False
        self._backoff.reset()

    def _open(
        self, *, resource_version: str | None = None, initial_events: bool = False
    ) -> AbstractAsyncContextManager[WatchEvents[T]]:
        return self._client.watch(
            self.codec,
            self._namespace,
            labels=self._labels,
            fields=self._fields,
            resource_version=resource_version,
            initial_events=initial_events,
            seconds=self._rng.uniform(*WATCH_SECONDS),
            silence=self._silence,
        )

    async def _fill(self, events: WatchEvents[T]) -> bool:
        """Take in a streamed list, up to its mark; False if no mark comes."""
        found: dict[Key, T] = {}
        unreadable: dict[Key, Unreadable] = {}
        with bulk_load() as load, suppress(TimeoutError):
            async with asyncio.timeout(FILLED_WITHIN):
                async for event in events:
                    if isinstance(event, Bookmark):
                        if event.initial_events_end:
                            load.size = len(found)
                            self._replace(found, unreadable, event.resource_version)
                            return True
                    elif isinstance(event.object, Unreadable):
                        unreadable[key_of(event.object.metadata)] = event.object
                    elif self._counts(event.object):
                        found[key_of(self.codec.meta(event.object))] = self._trim(event.object)
        return False

    async def _list(self) -> None:
        found: dict[Key, T] = {}
        unreadable: dict[Key, Unreadable] = {}
        version = ""
        pages = self._client.pages(self.codec, self._namespace, labels=self._labels, fields=self._fields)
        with bulk_load() as load:
            async for page in pages:
                counting = filter(self._counts, page.items)
                found.update((key_of(self.codec.meta(item)), self._trim(item)) for item in counting)
                unreadable.update((key_of(item.metadata), item) for item in page.unreadable)
                version = page.resource_version
                load.size = len(found)
        self._replace(found, unreadable, version)

    def _counts(self, found: T) -> bool:
        return self._only is None or self._only(found)

    def _trim(self, found: T, before: T | None = None) -> T:
        """What is kept of an object."""
        kept = found if self._transform is None else self._transform(found)
        share(kept, before)
        return kept

    def _replace(self, found: dict[Key, T], unreadable: dict[Key, Unreadable], version: str) -> None:
        """Make the store equal to a list, telling of every difference, but for what is known from after it."""
        self._saw(version)
        for key in self._store.keys():  # noqa: SIM118  # iterating a store gives objects
            if key not in found and not self._ledger.is_ahead(key):
                self._forget(key)
        for key, new in found.items():
            if not self._same_version(key, new) and not self._ledger.is_old_news(self.codec.meta(new)):
                self._keep(key, new)
        self._ledger.listed(version, (self.codec.meta(new).uid for new in found.values()))
        self.unreadable = unreadable
        self._report_unreadable(unreadable)
        self._synced.set()
        self._report(None)

    def _same_version(self, key: Key, new: T) -> bool:
        old = self._store.get(key)
        return old is not None and self.codec.meta(old).resource_version == self.codec.meta(new).resource_version

    async def _follow(self, events: WatchEvents[T]) -> None:
        async for event in events:
            if isinstance(event, Bookmark):
                self._saw(event.resource_version)
            elif isinstance(event.object, Unreadable):
                self._take_unreadable(event.object)
            else:
                self._take(event.type, event.object)

    def _take(self, happened: str, found: T) -> None:
        meta = self.codec.meta(found)
        if not self._ledger.is_old_news(meta):
            self._show(happened, key_of(meta), found)
        if happened == DELETED:
            self._ledger.ended(meta.uid)
        self._saw(meta.resource_version)

    def _show(self, happened: str, key: Key, found: T) -> None:
        if self.unreadable:
            self.unreadable.pop(key, None)
        if happened == DELETED:
            self._forget(key, found)
        elif not self._counts(found):
            self._forget(key)
        else:
            self._keep(key, self._trim(found, self._store.get(key)))

    def _take_unreadable(self, found: Unreadable) -> None:
        """What cannot be read is as good as not there: nobody may decide on what it was before."""
        key = key_of(found.metadata)
        self.unreadable[key] = found
        self._report_unreadable({key: found})
        self._forget(key)
        self._saw(found.metadata.resource_version)

    def _report_unreadable(self, found: Mapping[Key, Unreadable]) -> None:
        for (namespace, name), item in found.items():
            log.warning("%s %s/%s cannot be read: %s", self.codec.resource, namespace, name, item.problem)

    def _keep(self, key: Key, new: T) -> None:
        old = self._store.put(key, new)
        self._tell(Change(old, new, initial=not self._synced.is_set()))

    def _forget(self, key: Key, last: T | None = None) -> None:
        old = self._store.remove(key)
        if old is not None:
            self._tell(Change(last if last is not None else old, None))

    def _saw(self, version: str) -> None:
        self._version = version
        self._ledger.saw(version)

    def _tell(self, change: Change[T]) -> None:
        for handler in self._handlers:
            try:
                handler(change)
            except Exception:
                log.exception("a handler failed on a change of %s", self.codec.resource)

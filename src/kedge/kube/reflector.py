"""Reflector: lists and watches one kind on one server, and hands on everything that it learns.

It starts with a streamed list (one request that goes on as the watch), or with pages where a server cannot stream.
Then it follows the watch, and resumes where that broke off. When the server no longer remembers (410), it lists again.
No trouble with the server ever ends it: it waits, longer each time, and says so in `problem`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Generic, NamedTuple, TypeVar

from kedge.kube.client import Client
from kedge.kube.codec import Bookmark, Codec, Unreadable
from kedge.kube.errors import ApiError, BadRequest, Forbidden, Gone, Invalid, KubeError, NotFound
from kedge.kube.limits import Backoff, BackoffSteps
from kedge.kube.memory import bulk_load
from kedge.kube.requests import Selector
from kedge.kube.rest import WatchEvents
from kedge.kube.store import Key, key_of

T = TypeVar("T")
log = logging.getLogger(__name__)

WATCH_SECONDS = (900.0, 1800.0)
"""How long a watch is asked to last. One that hangs is found by its silence, so it need not be short."""

STABLE_AFTER = 10.0
"""A watch that lasted this many seconds was a good one: the next failure is a first failure."""

LIST_TIMEOUT = 60.0
"""A streamed list that takes longer than this is read in pages instead."""


class Sink(NamedTuple, Generic[T]):
    """Whoever is told. Functions rather than an object: a watch may bring thousands of events a second."""

    wants: Callable[[T], bool]
    """Whether an object counts."""
    trim: Callable[[T], T]
    """What to keep of an object."""
    list_begins: Callable[[], None]
    """A list is about to be asked for."""
    replace: Callable[[dict[Key, T], dict[Key, Unreadable], str], None]
    """This is all there is, as of this resourceVersion."""
    take: Callable[[str, T], str]
    """An object was added, modified or deleted; returns its resourceVersion."""
    take_unreadable: Callable[[Unreadable], str]
    """The same of an object that cannot be read."""
    saw: Callable[[str], None]
    """A bookmark: everything up to this resourceVersion has been told."""


class Reflector(Generic[T]):
    """Follows the objects of one kind on one server."""

    def __init__(
        self,
        client: Client,
        codec: Codec[T],
        sink: Sink[T],
        namespace: str | None = None,
        *,
        labels: Selector = None,
        fields: Selector = None,
        rng: random.Random,
        silence: float = 75.0,
        logs_missing: bool = True,
    ) -> None:
        """`silence`: how long a dead connection may look alive; `logs_missing`: whether to log a missing kind."""
        self.version = ""
        """The resourceVersion to go on from; empty if there is none."""
        self.problem: str | None = "not connected yet"
        self.kind_is_missing = False  # the server says that it serves no such kind
        self.is_refused = False  # the server answered, and `problem` is its answer
        self.is_forbidden = False  # the server refuses this caller
        self._client = client
        self._codec = codec
        self._sink = sink
        self._namespace = namespace
        self._labels = labels
        self._fields = fields
        self._rng = rng
        self._silence = silence
        self._logs_missing = logs_missing
        self._backoff = Backoff(rng, BackoffSteps(first=0.8, longest=10.0))
        self._streamed_lists = True
        self._retry_now = asyncio.Event()
        self._on_problem: list[Callable[[str | None], None]] = []

    def on_problem(self, handler: Callable[[str | None], None]) -> None:
        """Tell this handler of every new problem with the server, and when it is over (None)."""
        self._on_problem.append(handler)

    def retry_now(self) -> None:
        """The server is back: try at once, and as if nothing had failed yet."""
        self._backoff.reset()
        self._retry_now.set()

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
            lasted = loop.time() - started >= STABLE_AFTER
            if lasted:
                self._backoff.reset()
            if failure is not None or not lasted:  # a watch that lasted and ended normally goes on without a pause
                await self._pause(failure)

    async def _pause(self, failure: KubeError | None) -> None:
        """Wait before the next try. A watch that ended normally is no problem, but may not be opened too often."""
        pause = self._backoff.next()
        if isinstance(failure, Gone):
            self.version = ""
        elif failure is not None:
            self.kind_is_missing, self.is_refused = isinstance(failure, NotFound), isinstance(failure, ApiError)
            self.is_forbidden = isinstance(failure, Forbidden)
            # Once: a server that is gone for an hour would fill the log with every kind that is followed there.
            is_known = failure.answer == self.problem or (self.kind_is_missing and not self._logs_missing)
            level = logging.DEBUG if is_known else logging.WARNING
            log.log(level, "watching %s: %s; trying again in %.1f s", self._codec.resource, failure.answer, pause)
            self._set_problem(failure.answer)
        if isinstance(failure, ApiError) and failure.retry_after:
            pause = max(pause, failure.retry_after)
        self._retry_now.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await self._retry_now.wait()

    def _set_problem(self, problem: str | None) -> None:
        if problem is None:
            self.kind_is_missing = self.is_refused = self.is_forbidden = False
        if problem != self.problem:
            self.problem = problem
            for handler in self._on_problem:
                handler(problem)

    async def _follow_once(self) -> None:
        """List if necessary, then watch until the watch ends."""
        if not self.version:
            self._sink.list_begins()
        if not self.version and self._streamed_lists:
            await self._watch_from_scratch()
        else:
            if not self.version:
                await self._list()
            await self._watch()

    async def _watch(self) -> None:
        async with self._open(resource_version=self.version) as events:
            self._set_problem(None)
            await self._follow(events)

    async def _watch_from_scratch(self) -> None:
        """Read a streamed list, and go on with the watch it becomes."""
        try:
            async with self._open(initial_events=True) as events:
                if await self._read_streamed_list(events):
                    await self._follow(events)
                else:
                    self._list_in_pages("a streamed list here does not say where it ends")
        except (BadRequest, Invalid) as error:
            if self.version:
                raise
            self._list_in_pages(error.answer)

    def _list_in_pages(self, why: str) -> None:
        log.info("watching %s: listing in pages from now on: %s", self._codec.resource, why)
        self._streamed_lists = False
        self._backoff.reset()

    def _open(
        self, *, resource_version: str | None = None, initial_events: bool = False
    ) -> AbstractAsyncContextManager[WatchEvents[T]]:
        return self._client.watch(
            self._codec,
            self._namespace,
            labels=self._labels,
            fields=self._fields,
            resource_version=resource_version,
            initial_events=initial_events,
            seconds=self._rng.uniform(*WATCH_SECONDS),
            silence=self._silence,
        )

    async def _read_streamed_list(self, events: WatchEvents[T]) -> bool:
        """Read a streamed list up to the bookmark that ends it; False if none comes."""
        found: dict[Key, T] = {}
        unreadable: dict[Key, Unreadable] = {}
        sink = self._sink
        with bulk_load() as load, suppress(TimeoutError):
            async with asyncio.timeout(LIST_TIMEOUT):
                async for event in events:
                    if isinstance(event, Bookmark):
                        if event.initial_events_end:
                            load.size = len(found)
                            self._replace(found, unreadable, event.resource_version)
                            return True
                    elif isinstance(event.object, Unreadable):
                        unreadable[key_of(event.object.metadata)] = event.object
                    elif sink.wants(event.object):
                        found[key_of(self._codec.meta(event.object))] = sink.trim(event.object)
        return False

    async def _list(self) -> None:
        found: dict[Key, T] = {}
        unreadable: dict[Key, Unreadable] = {}
        version, sink = "", self._sink
        pages = self._client.pages(self._codec, self._namespace, labels=self._labels, fields=self._fields)
        with bulk_load() as load:
            async for page in pages:
                wanted = filter(sink.wants, page.items)
                found.update((key_of(self._codec.meta(item)), sink.trim(item)) for item in wanted)
                unreadable.update((key_of(item.metadata), item) for item in page.unreadable)
                version = page.resource_version
                load.size = len(found)
        self._replace(found, unreadable, version)

    def _replace(self, found: dict[Key, T], unreadable: dict[Key, Unreadable], version: str) -> None:
        self.version = version
        self._sink.replace(found, unreadable, version)
        self._set_problem(None)

    async def _follow(self, events: WatchEvents[T]) -> None:
        take, take_unreadable, saw = self._sink.take, self._sink.take_unreadable, self._sink.saw
        async for event in events:
            if isinstance(event, Bookmark):
                self.version = event.resource_version
                saw(event.resource_version)
            elif isinstance(event.object, Unreadable):
                self.version = take_unreadable(event.object)
            else:
                self.version = take(event.type, event.object)

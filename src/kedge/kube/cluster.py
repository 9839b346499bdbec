"""Cluster: one API server, with everything a controller needs of it.

    maps = cluster.cache(ConfigMap, labels={"greet": "yes"})      # shared with whoever asks for the same
    await cluster.client.apply(ConfigMap, {"metadata": {...}, "data": {...}}, manager="greeter")

The caches are told to expect what its client writes, so that nobody decides on an older state (`expectations`). It
connects, fails and recovers by itself; `state` says whether it can be reached.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from kedge.api.resource import Resource
from kedge.kube.cache import Cache
from kedge.kube.client import Client, Kind
from kedge.kube.clock import Clock
from kedge.kube.codec import codec
from kedge.kube.events import EventObserver, Recorder
from kedge.kube.expectations import ClusterExpectations
from kedge.kube.logs import only_about
from kedge.kube.random_sources import branch
from kedge.kube.reachability import Probe, Reachability, State
from kedge.kube.requests import Selector, selector
from kedge.kube.source import Mapper, Predicate, Watch, own_key
from kedge.kube.store import Index

T = TypeVar("T")
COLLECT_FOR: Final = 1.0  # seconds in which kinds that are missing are collected into one log line
MOST_NAMED: Final = 3
log = logging.getLogger(__name__)


class Cluster:
    """One API server, by name."""

    def __init__(
        self,
        name: str,
        client: Client,
        *,
        clock: Clock,
        rng: random.Random,
        component: str = "kedge",
        essential: bool = True,
        probe: Probe | None = None,
        if_missing: str = "",
        event_observer: EventObserver | None = None,
    ) -> None:
        """`component` signs its events; without an `essential` cluster the process is not ready.

        `if_missing` says what to do about kinds that are needed and not served. `event_observer` is told of its events.
        """
        self.name = name
        needed = partial(missing_sentence, name, advice=if_missing)
        self._missing = (
            MissingKinds(
                name, partial(self._missing_kinds, optional=False), needed, "kinds that are needed", logging.ERROR
            ),
            MissingKinds(
                name,
                partial(self._missing_kinds, optional=True),
                partial(missing_optional_sentence, name),
                "optional kinds",
                logging.INFO,
            ),
        )
        self._expectations = ClusterExpectations()
        self.client = client.observed_by(self._expectations)
        self.essential = essential
        self.events = Recorder(client, component, clock=clock, rng=branch(rng), cluster=name, observer=event_observer)
        self._rng = rng
        self._reachability = Reachability(name, client.transport, clock=clock, rng=branch(rng), probe=probe)
        self._caches: dict[object, Cache[Any]] = {}
        self._following: dict[Cache[Any], asyncio.Task[None]] = {}
        self._optional: set[Cache[Any]] = set()
        self._tasks: asyncio.TaskGroup | None = None
        self._reachability.on_state(self._on_reachable)

    # State

    @property
    def state(self) -> State:
        return self._reachability.state

    def on_state(self, handler: Callable[[State], None]) -> None:
        """Tell this handler of every state from now on."""
        self._reachability.on_state(handler)

    def problems(self) -> list[str]:
        """What is wrong, a line each: with the connection, and with each cache that cannot follow."""
        found = [] if self.state.phase == "connected" else [str(self.state)]
        needed = [cache for cache in self._caches.values() if cache not in self._optional]
        return found + [f"{cache.codec.resource}: {cache.problem}" for cache in needed if cache.problem]

    def _missing_kinds(self, *, optional: bool) -> list[Resource]:
        found = (cache for cache in self._caches.values() if (cache in self._optional) is optional)
        return [cache.codec.resource for cache in found if cache.kind_is_missing]

    def _check_missing(self) -> None:
        for one in self._missing:
            one.check_soon()

    async def run(self) -> None:
        """Connect, and keep every cache up to date, until cancelled."""
        async with asyncio.TaskGroup() as self._tasks:
            self._tasks.create_task(self._reachability.run(), name=f"{self.name}: reach")
            self._tasks.create_task(self.events.run(), name=f"{self.name}: events")
            for cache in self._caches.values():
                self._follow(self._tasks, cache)

    async def close(self) -> None:
        """Close the client, and wait no longer for the caches."""
        self._expectations.stop_waiting()
        for one in self._missing:
            one.close()
        await self.client.close()

    # Reading

    def cache(
        self,
        kind: Kind[T],
        namespace: str | None = None,
        *,
        labels: Selector = None,
        fields: Selector = None,
        only: Callable[[T], bool] | None = None,
        transform: Callable[[T], T] | None = None,
        indexes: Mapping[str, Index[T]] | None = None,
        optional: bool = False,
    ) -> Cache[T]:
        """The cache of these objects: shared by all callers with the same arguments, functions included.

        A problem with an `optional` cache is not a problem of the cluster: its reader handles it.
        """
        form = codec(kind)
        named = tuple(sorted((indexes or {}).items()))
        key = (form, namespace, selector(labels), selector(fields), only, transform, named)
        cache = self._caches.get(key)
        if cache is None:
            cache = Cache(
                self.client.as_flow(str(form.resource)),
                form,
                namespace,
                labels=labels,
                fields=fields,
                only=only,
                transform=transform,
                indexes=indexes,
                rng=branch(self._rng),
                logs_missing=False,  # `MissingKinds` does, for all of them
            )
            self._caches[key] = cache
            if optional:
                self._optional.add(cache)
            self._expectations.add_cache(cache, namespace)
            cache.on_problem(lambda _: self._reachability.check_now())
            cache.on_problem(lambda _: self._check_missing())
            if self._tasks is not None:
                self._follow(self._tasks, cache)
        return cache

    def drop(self, cache: Cache[T]) -> None:
        """Stop following this cache; a later call of `cache` creates a new one. For a cache that nobody else uses."""
        self._caches = {key: kept for key, kept in self._caches.items() if kept is not cache}
        self._optional.discard(cache)
        self._expectations.forget(cache)
        if task := self._following.pop(cache, None):
            task.cancel()

    def watch(self, cache: Cache[T], *, to: Mapper[T] = own_key, when: Predicate[T] | None = None) -> Watch[T]:
        """A source for a controller: `to` says whom an object wakes, `when` which changes count."""
        return Watch(self.name, cache, to=to, when=when, optional=cache in self._optional)

    def _on_reachable(self, state: State) -> None:
        if state.phase == "connected":
            for cache in self._caches.values():
                cache.retry_now()

    def _follow(self, tasks: asyncio.TaskGroup, cache: Cache[Any]) -> None:
        self._following[cache] = tasks.create_task(self._keep(cache), name=f"{self.name}: {cache.codec.resource}")

    async def _keep(self, cache: Cache[Any]) -> None:
        with only_about(cluster=self.name):
            await cache.run()


class MissingKinds:
    """The kinds that one cluster does not serve. Logged once for all of them, with what that means.

    A cluster that was never prepared lacks every kind a role needs. They are logged again only if more are missing, or
    none any more.
    """

    def __init__(
        self,
        cluster: str,
        find: Callable[[], Iterable[Resource]],
        sentence: Callable[[tuple[str, ...]], str],
        which: str,
        level: int,
    ) -> None:
        """`find` returns the kinds that are missing now; `which` says which kinds these are."""
        self._cluster = cluster
        self._find = find
        self._sentence = sentence
        self._which = which
        self._level = level
        self._logged: tuple[str, ...] = ()
        self._due: asyncio.TimerHandle | None = None

    def check_soon(self) -> None:
        """Something changed: check in a moment what is missing, and log it."""
        if self._due is None and (self._logged or any(True for _ in self._find())):
            self._due = asyncio.get_running_loop().call_later(COLLECT_FOR, self._log)

    def close(self) -> None:
        if self._due is not None:
            self._due.cancel()

    def _log(self) -> None:
        self._due = None
        before, self._logged = self._logged, tuple(sorted({str(resource) for resource in self._find()}))
        if set(self._logged) - set(before):
            log.log(self._level, "%s", self._sentence(self._logged))
        elif before and not self._logged:
            log.info("%s serves all %s now", self._cluster, self._which)


def missing_sentence(cluster: str, missing: tuple[str, ...], advice: str = "") -> str:
    """Which kinds are missing, and what to do about it."""
    kinds = "1 kind that is" if len(missing) == 1 else f"{len(missing)} kinds that are"
    what_to_do = f": {advice}" if advice else ""
    return f"{cluster} does not serve {kinds} needed ({_named(missing)}), and waits until it does{what_to_do}"


def missing_optional_sentence(cluster: str, missing: tuple[str, ...]) -> str:
    """Which kinds are missing that nobody has to have."""
    kinds = "1 kind that is" if len(missing) == 1 else f"{len(missing)} kinds that are"
    return f"{cluster} does not serve {kinds} optional ({_named(missing)}), and follows them as soon as it does"


def _named(missing: tuple[str, ...]) -> str:
    return ", ".join(missing[:MOST_NAMED]) + (", …" if len(missing) > MOST_NAMED else "")

"""Cluster: one API server, with everything a controller needs of it.

    maps = cluster.cache(ConfigMap, labels={"greet": "yes"})      # shared with whoever asks for the same
    await cluster.apply(ConfigMap, {"metadata": {...}, "data": {...}}, manager="greeter")

Write through it, not through its client: it tells the caches of that kind what to expect, so that nobody decides on
what they showed before (`writes`). It connects, fails and recovers by itself; `state` says how things stand.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from kedge.kube.cache import Cache
from kedge.kube.client import Client, Kind, Selector, selector
from kedge.kube.clock import Clock
from kedge.kube.codec import Body, Codec, Untyped, codec
from kedge.kube.errors import ServerError, Unreachable
from kedge.kube.events import Recorder
from kedge.kube.patches import Patch
from kedge.kube.reach import Probe, Reach, State
from kedge.kube.source import Mapper, Predicate, Watch, own_key
from kedge.kube.store import Index
from kedge.kube.writes import OwnWrites

T = TypeVar("T")


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
    ) -> None:
        """`component` signs its events; without an `essential` cluster the process is not ready."""
        self.name = name
        self.client = client
        self.essential = essential
        self.events = Recorder(client, component, clock=clock, rng=_branch(rng))
        self._rng = rng
        self._reach = Reach(name, client.transport, clock=clock, rng=_branch(rng), probe=probe)
        self._caches: dict[object, Cache[Any]] = {}
        self._owed: list[tuple[Cache[Any], str | None, OwnWrites[Any]]] = []
        self._tasks: asyncio.TaskGroup | None = None

    # How it is

    @property
    def state(self) -> State:
        return self._reach.state

    def on_state(self, handler: Callable[[State], None]) -> None:
        """Tell this handler of every state from now on."""
        self._reach.on_state(handler)

    def problems(self) -> list[str]:
        """What is wrong, a line each: with the connection, and with each cache that cannot follow."""
        found = [] if self.state.phase == "connected" else [str(self.state)]
        return found + [f"{cache.codec.resource}: {cache.problem}" for cache in self._caches.values() if cache.problem]

    async def run(self) -> None:
        """Connect, and keep every cache true, until cancelled."""
        async with asyncio.TaskGroup() as self._tasks:
            self._tasks.create_task(self._reach.run(), name=f"{self.name}: reach")
            self._tasks.create_task(self.events.run(), name=f"{self.name}: events")
            for cache in self._caches.values():
                self._follow(self._tasks, cache)

    async def close(self) -> None:
        await self.client.close()

    # Reading

    def cache(
        self,
        kind: Kind[T],
        namespace: str | None = None,
        *,
        labels: Selector = None,
        fields: Selector = None,
        transform: Callable[[T], T] | None = None,
        indexes: Mapping[str, Index[T]] | None = None,
    ) -> Cache[T]:
        """The cache of these objects: the same one for everyone who asks for the same, functions included."""
        form = codec(kind)
        named = tuple(sorted((indexes or {}).items()))
        key = (form, namespace, selector(labels), selector(fields), transform, named)
        cache = self._caches.get(key)
        if cache is None:
            cache = Cache(
                self.client.as_flow(str(form.resource)),
                form,
                namespace,
                labels=labels,
                fields=fields,
                transform=transform,
                indexes=indexes,
                rng=_branch(self._rng),
            )
            self._caches[key] = cache
            self._owed.append((cache, namespace, OwnWrites(cache)))
            cache.on_problem(lambda _: self._reach.doubt())
            if self._tasks is not None:
                self._follow(self._tasks, cache)
        return cache

    def watch(self, cache: Cache[T], *, to: Mapper[T] = own_key, when: Predicate[T] | None = None) -> Watch[T]:
        """A source for a controller: `to` says whom an object wakes, `when` which changes count."""
        return Watch(self.name, cache, to=to, when=when)

    def _follow(self, tasks: asyncio.TaskGroup, cache: Cache[Any]) -> None:
        tasks.create_task(cache.run(), name=f"{self.name}: {cache.codec.resource}")

    # Writing

    async def create(
        self,
        kind: Kind[T],
        body: Body,
        namespace: str | None = None,
        *,
        manager: str | None = None,
        dry_run: bool = False,
    ) -> T:
        """Make an object."""
        form = codec(kind)
        name, place = _identity(body)
        with self._maybe_written(form, name, namespace or place, dry_run):
            made = await self.client.create(form, body, namespace, manager=manager, dry_run=dry_run)
        return self._written(form, made, dry_run)

    async def apply(
        self,
        kind: Kind[T],
        body: Body,
        *,
        manager: str,
        force: bool = False,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> T:
        """Server-side apply: see `Client.apply`."""
        form = codec(kind)
        name, namespace = _identity(body)
        with self._maybe_written(form, name, namespace, dry_run):
            applied = await self.client.apply(
                form, body, manager=manager, force=force, subresource=subresource, dry_run=dry_run
            )
        return self._written(form, applied, dry_run)

    async def patch(
        self,
        kind: Kind[T],
        name: str,
        patch: Patch,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        manager: str | None = None,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> T:
        """Change part of an object, if it still is the one with this uid and resourceVersion."""
        form = codec(kind)
        with self._maybe_written(form, name, namespace, dry_run):
            patched = await self.client.patch(
                form,
                name,
                patch,
                namespace,
                uid=uid,
                resource_version=resource_version,
                manager=manager,
                subresource=subresource,
                dry_run=dry_run,
            )
        return self._written(form, patched, dry_run)

    async def replace(
        self,
        kind: Codec[Untyped],
        body: Untyped,
        *,
        manager: str | None = None,
        subresource: str | None = None,
        dry_run: bool = False,
    ) -> Untyped:
        """PUT a whole object, as read."""
        name, namespace = _identity(body)
        with self._maybe_written(kind, name, namespace, dry_run):
            put = await self.client.replace(kind, body, manager=manager, subresource=subresource, dry_run=dry_run)
        return self._written(kind, put, dry_run)

    async def delete(
        self,
        kind: Kind[T],
        name: str,
        namespace: str | None = None,
        *,
        uid: str,
        resource_version: str | None = None,
        propagation: str | None = None,
        grace_seconds: int | None = None,
    ) -> None:
        """Delete the object with this uid. There is no deleting whatever happens to have the name."""
        form = codec(kind)
        with self._maybe_written(form, name, namespace):
            await self.client.delete(
                form,
                name,
                namespace,
                uid=uid,
                resource_version=resource_version,
                propagation=propagation,
                grace_seconds=grace_seconds,
            )
        for owed in self._owed_for(form, namespace):
            owed.removed(name, namespace, uid)

    def _written(self, form: Codec[T], written: T, dry_run: bool) -> T:
        meta = form.meta(written)
        for owed in self._owed_for(form, meta.namespace) if not dry_run else ():
            owed.wrote(meta)
        return written

    @contextmanager
    def _maybe_written(
        self, form: Codec[Any], name: str, namespace: str | None, dry_run: bool = False
    ) -> Iterator[None]:
        """When no answer comes, or one that leaves it open, the write may have happened."""
        try:
            yield
        except (Unreachable, ServerError, asyncio.CancelledError) as error:
            sent = not isinstance(error, Unreachable) or error.maybe_done
            for owed in self._owed_for(form, namespace) if sent and name and not dry_run else ():
                owed.in_doubt(name, namespace)
            raise

    def _owed_for(self, form: Codec[Any], namespace: str | None) -> list[OwnWrites[Any]]:
        """What the caches that may show this object owe us; another version of a kind is the same objects."""
        wanted = (form.resource.group, form.resource.plural)
        return [
            owed
            for cache, place, owed in self._owed
            if (cache.codec.resource.group, cache.codec.resource.plural) == wanted and place in (None, namespace)
        ]


def _identity(body: Body) -> tuple[str, str | None]:
    """Name and namespace in a body; no name if the server is to find one."""
    if isinstance(body, Mapping):
        meta = body.get("metadata") or {}
        return meta.get("name") or "", meta.get("namespace")
    meta = getattr(body, "metadata", None)
    return getattr(meta, "name", ""), getattr(meta, "namespace", None)


def _branch(rng: random.Random) -> random.Random:
    """A source of chance of its own, so that what one part draws changes nothing for the others."""
    return random.Random(rng.getrandbits(64))

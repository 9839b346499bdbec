"""A server, a transport to it and a client on that, in virtual time."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, ParamSpec

from kedge.api.core import ConfigMap
from kedge.api.resource import Resource
from kedge.embedded.inprocess import InProcessTransport
from kedge.embedded.kind import Kind, Registry
from kedge.embedded.server import INITIAL_KINDS, Server
from kedge.kube.client import Client
from kedge.kube.codec import Bookmark, Untyped, untyped
from kedge.kube.limits import Limiter, Retry
from kedge.kube.transport import Request, Response
from support.virtual import run

P = ParamSpec("P")

CONFIG_MAPS = untyped(ConfigMap.resource)
DEPLOYMENTS = untyped(Resource("apps", "v1", "Deployment", "deployments"))
NAMESPACES = untyped(Resource("", "v1", "Namespace", "namespaces", namespaced=False))
PODS = untyped(Resource("", "v1", "Pod", "pods"))
THING = Resource("t.io", "v1", "Thing", "things")
THINGS = untyped(THING)
START = datetime(2030, 1, 1, tzinfo=UTC)


def virtually(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test in virtual time."""

    @functools.wraps(test)
    def in_virtual_time(*args: P.args, **kwargs: P.kwargs) -> None:
        run(test(*args, **kwargs))

    return in_virtual_time


class SetClock:
    """A clock that stands where it is set."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> datetime:
        return self.time

    def pass_by(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class World:
    """One server that knows `Thing`, a custom kind, beside the built-in ones."""

    def __init__(self, *, seed: int = 1, history: int = 1000, **transport: Any) -> None:
        registry = Registry(INITIAL_KINDS)
        registry.add(Kind(THING))
        self.clock = SetClock()
        self.server = Server(clock=self.clock, rng=Random(seed), registry=registry, history=history)
        self.ask("POST", "/api/v1/namespaces/default/serviceaccounts", b'{"metadata":{"name":"default"}}')
        self.transport = InProcessTransport(self.server, rng=Random(seed + 1), **transport)
        self.client = Client(self.transport, limiter=Limiter(rate=0), retry=Retry(attempts=1), rng=Random(seed + 2))

    def ask(self, method: str, path: str, body: bytes = b"", *, query: Mapping[str, str] | None = None) -> Response:
        """Straight to the server."""
        return self.server.handle(Request(method, path, tuple((query or {}).items()), body))

    async def config_map(self, name: str, **metadata: Any) -> Untyped:
        return await self.client.create(CONFIG_MAPS, {"metadata": {"name": name, **metadata}}, "default")

    @asynccontextmanager
    async def events(self, **options: Any) -> AsyncIterator[AsyncIterator[tuple[str, str]]]:
        """What a watch of ConfigMaps tells, in short: `ADDED web`, `BOOKMARK 12`."""
        async with self.client.watch(CONFIG_MAPS, "default", **options) as watch:
            yield _short(watch)


async def _short(watch: AsyncIterator[Any]) -> AsyncIterator[tuple[str, str]]:
    async for event in watch:
        if isinstance(event, Bookmark):
            yield "END" if event.initial_events_end else "BOOKMARK", event.resource_version
        else:
            yield event.type, event.object["metadata"]["name"]


async def take(events: AsyncIterator[Any], count: int) -> list[Any]:
    """The next so many."""
    return [await anext(events) for _ in range(count)]


def meta(obj: Untyped) -> Any:
    return obj["metadata"]


def config_map(name: str, **fields: Any) -> Untyped:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, **fields}


def deployment(name: str, **fields: Any) -> Untyped:
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a:1"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": template}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": spec, **fields}


def pod(name: str, spec: Untyped | None = None, **metadata: Any) -> Untyped:
    """A pod any server takes."""
    whole = {"containers": [{"name": "a", "image": "a:1"}], "automountServiceAccountToken": False, **(spec or {})}
    return {"metadata": {"name": name, "namespace": "default", **metadata}, "spec": whole}


def thing(name: str, **fields: Any) -> Untyped:
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"size": 1}, **fields}

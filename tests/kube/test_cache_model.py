"""The cache on a server whose watch lags as it likes: it never goes back behind what it has shown or been told."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from kedge.api.core import ConfigMap
from kedge.api.meta import ObjectMeta
from kedge.kube.cache import Cache
from kedge.kube.client import Client
from kedge.kube.store import Change
from kedge.kube.transport import Request, Response
from support.scripted import answer, bookmark, line, refused, status
from support.virtual import run

NAMES = ("a", "b")
GONE = line("ERROR", status(410, "Expired", "too old resource version"))
IN_DOUBT = str(2**63)


class Lagging:
    """A server. What its watch tells waits until it is let through; what it is asked directly it answers at once."""

    def __init__(self) -> None:
        self.version = 10
        self.objects: dict[str, dict[str, Any]] = {}
        self.versions: dict[str, int] = {}
        self.deleted: dict[str, int] = {}
        self.answers_late = False
        self._history: list[tuple[int, bytes]] = []
        self._let = 0
        self._is_cut = False
        self._news = asyncio.Event()

    # What users do

    def write(self, name: str) -> int:
        self.version += 1
        old = self.objects.get(name)
        uid = old["metadata"]["uid"] if old else f"{name}-{self.version}"
        meta = {"name": name, "namespace": "shop", "uid": uid, "resourceVersion": str(self.version)}
        self.objects[name] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        self.versions[name] = self.version
        self._tell(line("MODIFIED" if old else "ADDED", self.objects[name]))
        return self.version

    def delete(self, name: str) -> None:
        old = self.objects.pop(name, None)
        if old is not None:
            self.version += 1
            del self.versions[name]
            self.deleted[name] = self.version
            last = {**old, "metadata": {**old["metadata"], "resourceVersion": str(self.version)}}
            self._tell(line("DELETED", last))

    # What the network does

    def let_through(self, lines: int) -> None:
        self._let += lines
        self._news.set()

    def cut(self) -> None:
        self._is_cut = True
        self._news.set()

    def _tell(self, told: bytes) -> None:
        self._history.append((self.version, told))
        self._news.set()

    # A transport

    async def send(self, request: Request, *, timeout: float) -> Response:
        said = self._answer(request.path.rpartition("/")[2])
        if self.answers_late:
            self.let_through(3)
            await asyncio.sleep(0.01)
        return said

    def _answer(self, name: str) -> Response:
        if name == "configmaps":  # a streamed list took too long
            return answer(200, {"metadata": {"resourceVersion": str(self.version)}, "items": [*self.objects.values()]})
        found = self.objects.get(name)
        return answer(200, found) if found is not None else refused(404, "NotFound")

    @asynccontextmanager
    async def stream(self, request: Request, *, timeout: float, silence: float) -> AsyncIterator[_Stream]:
        asked = dict(request.query)
        if "sendInitialEvents" in asked:
            begun = [line("ADDED", found) for found in self.objects.values()]
            yield _Stream(self, [*begun, bookmark(self.version, end=True)], self.version)
        else:
            yield _Stream(self, [], int(asked["resourceVersion"]))

    async def close(self) -> None:
        pass

    async def lines(self, first: list[bytes], seen: int) -> AsyncIterator[bytes]:
        waiting = list(first)
        while True:
            if not waiting:
                later = next(((number, told) for number, told in self._history if number > seen), None)
                if later is not None:
                    seen, told = later
                    waiting.append(told)
            if self._is_cut:
                self._is_cut = False
                yield GONE
                return
            if waiting and self._let > 0:
                self._let -= 1
                yield waiting.pop(0)
            else:
                self._news.clear()
                await self._news.wait()


class _Stream:
    def __init__(self, server: Lagging, first: list[bytes], seen: int) -> None:
        self.status = 200
        self.headers: Mapping[str, str] = {}
        self._server = server
        self._first = first
        self._seen = seen

    async def read(self) -> bytes:
        return b""

    def lines(self) -> AsyncIterator[bytes]:
        return self._server.lines(self._first, self._seen)


class Watched:
    """A cache, and what it may not do."""

    def __init__(self, server: Lagging) -> None:
        self.server = server
        self.cache = Cache(Client(server, rng=random.Random(1)), ConfigMap, rng=random.Random(1), silence=1e9)
        self.told: dict[str, ConfigMap] = {}
        self.highest = dict.fromkeys(NAMES, 0)
        self.gone: set[str] = set()
        self.cache.on_change(self._note)

    def _note(self, change: Change[ConfigMap]) -> None:
        name = change.object.metadata.name
        assert (change.old is None) == (name not in self.told), "nothing is told twice, and nothing left out"
        if change.new is None:
            del self.told[name]
        else:
            self.told[name] = change.new

    async def ask(self, name: str, version: str) -> None:
        """Have it catch up with a write of ours, which its watch has not shown."""
        before = self.cache.get(name, "shop")
        self.cache.wrote(ObjectMeta(name=name, namespace="shop", resource_version=version))
        await self.cache.catch_up(name, "shop", within=0.0)
        if name in self.server.objects:
            self.highest[name] = max(self.highest[name], self.server.versions[name])
        elif before is not None:
            self.gone.add(before.metadata.uid)

    def check(self) -> None:
        for name in NAMES:
            found = self.cache.get(name, "shop")
            if found is None:
                assert self.server.deleted.get(name, 0) > self.highest[name] or not self.highest[name], name
            else:
                assert int(found.metadata.resource_version) >= self.highest[name]
                assert found.metadata.uid not in self.gone
                self.highest[name] = int(found.metadata.resource_version)
            assert (name in self.told) == (found is not None)


ACTS = st.one_of(
    st.tuples(
        st.sampled_from(("write", "delete", "own write", "own delete", "own write, late")), st.sampled_from(NAMES)
    ),
    st.tuples(st.sampled_from(("let through", "cut", "wait")), st.sampled_from(("1", "2", "5"))),
)


async def act(here: Watched, what: str, which: str) -> None:
    server = here.server
    server.answers_late = what.endswith("late")
    match what:
        case "write":
            server.write(which)
        case "delete":
            server.delete(which)
        case "own write" | "own write, late":
            await here.ask(which, str(server.write(which)))
        case "own delete":
            server.delete(which)
            await here.ask(which, IN_DOUBT)
        case "let through":
            server.let_through(int(which))
        case "cut":
            server.cut()
        case _:
            await asyncio.sleep(15)
    await asyncio.sleep(0.01)


@given(st.lists(ACTS, max_size=40))
@example([("own write", "b"), ("own delete", "b"), ("let through", "2")])  # a list from before it was made
@example([("let through", "1"), ("cut", "1"), ("wait", "1"), ("own write", "a"), ("let through", "1")])
def test_it_never_goes_back_and_ends_as_the_server_is(acts: list[tuple[str, str]]) -> None:
    async def story() -> None:
        here = Watched(Lagging())
        following = asyncio.create_task(here.cache.run())
        for what, which in acts:
            await act(here, what, which)
            here.check()
        here.server.let_through(1000)
        await asyncio.sleep(60)
        shown = {one.metadata.name: int(one.metadata.resource_version) for one in here.cache.all()}
        assert shown == here.server.versions
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    run(story())

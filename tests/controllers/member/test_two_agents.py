"""Two agents of one member at once, of which one has not heard of a change; and objects that somebody keeps deleting.

Whoever undoes what an agent does, it slows down: it neither wears out the member nor its own processor.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

from controllers.member.applying_bed import (
    MAPS,
    NAME,
    Bed,
    Counting,
    Unclosed,
    bed,
    config,
    deployment,
    make_available,
    namespace,
    play,
)
from kedge.controllers.member.applier import Applier
from kedge.embedded.request_info import Caller
from kedge.kube.limits import Limiter
from kedge.kube.manager import Manager
from kedge.kube.transport import Request, Stream
from support.stage import LoopClock
from support.virtual import run


class Silent(Counting):
    """Its watches tell nothing while it is silent."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.heard = asyncio.Event()
        self.heard.set()

    @asynccontextmanager
    async def stream(self, request: Request, *, timeout: float, silence: float) -> AsyncIterator[Stream]:
        async with super().stream(request, timeout=timeout, silence=silence) as found:
            yield _Held(found, self.heard)


class _Held:
    """A stream of which nothing is heard for a while."""

    def __init__(self, inner: Stream, heard: asyncio.Event) -> None:
        self._inner = inner
        self._heard = heard
        self.status: int = inner.status
        self.headers: Mapping[str, str] = inner.headers

    async def read(self) -> bytes:
        return await self._inner.read()

    async def lines(self) -> AsyncIterator[bytes]:
        async for line in self._inner.lines():
            await self._heard.wait()
            yield line


class Other:
    """The second agent of the bed's member."""

    def __init__(self, here: Bed) -> None:
        self.to_hub = Silent(here.hub_cluster.server, rng=Random(6), delay=(0.001, 0.01))
        self.to_member = Counting(here.member_cluster.server, rng=Random(7), delay=(0.001, 0.01), caller=Caller())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        clock = LoopClock()
        async with Manager(clock=clock, rng=Random(8)) as manager:
            hub = await manager.connect("hub", Unclosed(self.to_hub), limiter=Limiter(rate=0))
            member = await manager.connect(NAME, Unclosed(self.to_member), limiter=Limiter(rate=0))
            applier = Applier(hub, member, NAME, clock=clock)
            manager.add_controller(applier.controller)
            applier.join()
            ended = asyncio.create_task(manager.run(signals=False))
            try:
                yield
            finally:
                self.to_hub.heard.set()
                manager.stop()
                await ended
        await self.to_hub.close()
        await self.to_member.close()


def requests(*links: Counting) -> int:
    """How many there were, but for dry runs and questions whether the server is there."""
    return sum(len(one.writes) + sum(path != "/version" for path in one.reads) for one in links)


async def a_minute_passes(here: Bed, *links: Counting, at_most: int) -> None:
    """With so many requests. It ends at the first that is too many: two that fight do so thousands of times."""
    clear(*links)
    for _ in range(60):
        await here.rest(1.0)
        assert requests(*links) <= at_most, [(one.writes, one.reads) for one in links]


def clear(*links: Counting) -> None:
    for one in links:
        one.writes.clear()
        one.reads.clear()


def test_an_object_that_somebody_keeps_deleting_is_made_again_less_and_less_often() -> None:
    async def scene(here: Bed) -> None:
        await here.place(namespace(), config())
        await here.rest()
        clear(here.to_member, here.to_hub)
        for _ in range(1200):
            if await here.get(MAPS, "settings") is not None:
                await here.member.delete(MAPS, "settings", "shop")
            await here.rest(0.05)
            assert requests(here.to_member, here.to_hub) < 100
        assert 3 < here.to_member.writes.count("POST /api/v1/namespaces/shop/configmaps") < 12
        assert "keeps deleting it" in await here.message(1)
        await here.rest(200.0)
        assert await here.get(MAPS, "settings") is not None
        assert "keeps deleting it" not in await here.message(1)

    play(scene)


def test_an_agent_that_has_not_heard_of_an_object_and_one_that_has_do_not_wear_out_the_member() -> None:
    async def whole() -> None:
        async with bed() as here, here.agent():
            other = Other(here)
            links = (here.to_hub, here.to_member, other.to_hub, other.to_member)
            async with other.running():
                await here.place(namespace(), deployment())
                await here.rest()
                await make_available(here)
                await here.rest()
                other.to_hub.heard.clear()
                await here.place(namespace(), config("first"), config("second"), deployment(image="app:2"))
                await a_minute_passes(here, *links, at_most=400)
                other.to_hub.heard.set()
                await here.rest(300.0)
                await a_minute_passes(here, *links, at_most=10)
                assert await here.get(MAPS, "first") is not None
                applied = await here.applied()
                assert applied is not None
                assert [one.name for one in applied.status.applied_resources] == ["shop", "first", "second", "web"]

    run(whole())


def test_two_agents_that_disagree_only_on_the_order_of_objects_do_not_wear_out_the_member() -> None:
    async def whole() -> None:
        async with bed() as here, here.agent():
            other = Other(here)
            links = (here.to_hub, here.to_member, other.to_hub, other.to_member)
            async with other.running():
                await here.place(namespace(), config("first"), config("second"))
                await here.rest()
                other.to_hub.heard.clear()
                await here.place(namespace(), config("second"), config("first"))
                await a_minute_passes(here, *links, at_most=150)
                other.to_hub.heard.set()
                await here.rest(200.0)
                await a_minute_passes(here, *links, at_most=10)

    run(whole())

"""The in-process transport: bytes, delays, cuts and time-outs, as of a socket."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from random import Random
from typing import Any

import msgspec
import pytest

from embedded.world import CONFIG_MAPS, World, meta, take, virtually
from kedge.api.core import ConfigMap
from kedge.embedded.inprocess import InProcessTransport
from kedge.kube.client import Client
from kedge.kube.codec import Event
from kedge.kube.errors import NotFound, Unreachable
from kedge.kube.limits import Limiter
from kedge.kube.transport import ConnectionFailed, Request, Transport
from support.virtual import VirtualLoop
from support.waiting import until

CM = "/api/v1/namespaces/default/configmaps"
GET = Request("GET", "/version")


def post(name: str) -> Request:
    return Request("POST", CM, body=msgspec.json.encode({"metadata": {"name": name}}))


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Something that goes on meanwhile."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def test_it_is_a_transport() -> None:
    transport: Transport = World().transport
    assert transport is not None


# Delays


@virtually
async def test_an_event_never_comes_within_the_write_that_caused_it() -> None:
    world = World(delay=(0.0, 0.0))
    heard: list[Any] = []

    async def listen() -> None:
        async with world.events(resource_version=str(world.server.store.number)) as events:
            while True:
                heard.append(await anext(events))

    async with beside(listen()):
        await asyncio.sleep(1)
        world.server.handle(post("a"))
        world.server.handle(post("b"))
        assert heard == []
        await until(lambda: len(heard) == 2)


@virtually
async def test_an_event_takes_as_long_as_its_delay() -> None:
    world = World(delay=(2.0, 3.0))
    loop = asyncio.get_running_loop()
    async with world.events(resource_version=str(world.server.store.number)) as events:
        for name in ("a", "b", "c"):
            written = loop.time()
            await world.config_map(name)
            await anext(events)
            assert 2.0 <= loop.time() - written <= 3.0


async def heard_in_order(world: World) -> list[str]:
    """What a watch hears of fifty writes, some together and some apart."""
    rng = Random(3)
    async with world.events(resource_version=str(world.server.store.number)) as events:
        for number in range(50):
            world.server.handle(post(f"n{number}"))
            if rng.random() < 0.5:
                await asyncio.sleep(rng.uniform(0, 0.01))
        return [name for _, name in await take(events, 50)]


@pytest.mark.parametrize("loop", [VirtualLoop, partial(VirtualLoop, 7)], ids=["in order", "in any order"])
@pytest.mark.parametrize("delay", [(0.0, 0.0), (0.0, 1.0)])
def test_events_keep_their_order_whatever_their_delays(loop: Any, delay: tuple[float, float]) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        heard = runner.run(heard_in_order(World(delay=delay)))
    assert heard == [f"n{number}" for number in range(50)]


async def moments(seed: int) -> list[tuple[float, str, str]]:
    """When two watches hear what, on a server of this seed."""
    world = World(seed=seed, delay=(0.0, 1.0), latency=(0.0, 0.1))
    loop, start, heard = asyncio.get_running_loop(), str(world.server.store.number), list[tuple[float, str, str]]()

    async def listen() -> None:
        async with world.client.watch(CONFIG_MAPS, "default", resource_version=start) as events:
            for event in await take(events, 10):
                heard.append((loop.time(), meta(event.object)["name"], meta(event.object)["uid"]))

    listeners = [asyncio.create_task(listen()) for _ in range(2)]
    for number in range(10):
        await world.config_map(f"n{number}")
    await asyncio.gather(*listeners)
    return heard


def test_the_same_seed_gives_the_same_history() -> None:
    def history(seed: int) -> list[tuple[float, str, str]]:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(moments(seed))

    assert history(1) == history(1)
    assert history(1) != history(2)


# A reader that does not keep up


@virtually
async def test_a_watcher_that_does_not_keep_up_is_cut_off_after_what_was_under_way() -> None:
    world = World(room=5)
    async with world.events(resource_version=str(world.server.store.number)) as events:
        for number in range(8):
            await world.config_map(f"n{number}")
        told = [event async for event in events]
    assert told == [("ADDED", f"n{number}") for number in range(5)]


@virtually
async def test_a_slow_watcher_harms_no_other() -> None:
    world = World(room=3)
    here = str(world.server.store.number)
    async with world.events(resource_version=here) as slow, world.events(resource_version=here) as quick:
        for number in range(6):
            await world.config_map(f"n{number}")
            assert await anext(quick) == ("ADDED", f"n{number}")
        assert len([event async for event in slow]) == 3


@virtually
async def test_what_was_there_before_needs_no_room() -> None:
    world = World(room=3)
    for number in range(10):
        await world.config_map(f"n{number}")
    async with world.events() as events:
        assert len(await take(events, 10)) == 10


@virtually
async def test_a_long_list_lets_others_have_their_turn() -> None:
    world = World()
    for number in range(300):
        world.server.handle(post(f"n{number}"))
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with beside(count()), world.events() as events:
        before = turns
        await take(events, 300)
    assert turns - before >= 4


# Cuts


@virtually
async def test_a_disconnect_cuts_every_stream_and_refuses_requests_until_connected() -> None:
    world = World()
    async with world.events(resource_version=str(world.server.store.number)) as first:
        with pytest.raises(Unreachable, match="cable cut"):
            async with world.events(resource_version=str(world.server.store.number)) as second:
                await world.config_map("under-way")
                world.transport.disconnect("cable cut")
                await anext(second)
        with pytest.raises(ConnectionFailed, match="cable cut"):
            await anext(first)
        with pytest.raises(Unreachable, match="cable cut") as refused:
            await world.config_map("b")
        assert not refused.value.maybe_done
        world.transport.connect()
        await world.config_map("b")
        with pytest.raises(StopAsyncIteration):
            await anext(first)


@virtually
async def test_a_stopped_server_is_out_of_reach_and_keeps_what_it_has() -> None:
    world = World()
    made = await world.config_map("a")
    other = Client(InProcessTransport(world.server, rng=Random(9)), limiter=Limiter(rate=0))
    with pytest.raises(Unreachable, match="the server stopped"):
        async with other.watch(ConfigMap, "default", resource_version="0") as events:
            await anext(events)
            world.server.stop()
            await anext(events)
    with pytest.raises(Unreachable, match="the server is stopped"):
        await world.client.get(CONFIG_MAPS, "a", "default")
    with pytest.raises(Unreachable, match="the server is stopped"):
        async with world.events():
            pass
    world.server.start()
    assert await world.client.get(CONFIG_MAPS, "a", "default") == made
    async with world.events(resource_version=str(int(meta(made)["resourceVersion"]) - 1)) as again:
        assert await anext(again) == ("ADDED", "a")


def cut(world: World) -> None:
    world.transport.disconnect()
    world.transport.connect()


def restart(world: World) -> None:
    world.server.stop()
    world.server.start()


@pytest.mark.parametrize("fault", [cut, restart])
@pytest.mark.parametrize(("after", "done"), [(0.5, False), (1.5, True)])
@virtually
async def test_a_request_under_way_is_lost_and_may_have_been_done(fault: Any, after: float, done: bool) -> None:
    world = World(latency=(1.0, 1.0))
    asyncio.get_running_loop().call_later(after, fault, world)
    with pytest.raises(ConnectionFailed, match="connection lost") as lost:
        await world.transport.send(post("a"), timeout=30)
    assert lost.value.sent
    assert (world.ask("GET", f"{CM}/a").status == 200) is done


@virtually
async def test_a_closed_transport_stays_closed() -> None:
    world = World()
    with pytest.raises(Unreachable, match="the transport is closed"):
        async with world.events() as events:
            await world.client.close()
            await anext(events)
    world.transport.connect()
    with pytest.raises(Unreachable, match="the transport is closed"):
        await world.client.get(ConfigMap, "a", "default")


@virtually
async def test_a_stream_that_is_left_leaves_nothing_behind() -> None:
    world = World()
    collection = world.server.store.all(world.server.registry.kinds()[0])
    async with world.events(resource_version="0") as events:
        assert collection.watchers == 1
        await world.config_map("read")
        await anext(events)
        await world.config_map("unread")
        assert timers() > 0
    assert (collection.watchers, timers()) == (0, 0)


def timers() -> int:
    """How many are set."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop.timers


# Time-outs


@pytest.mark.parametrize(("latency", "timeout", "done"), [(3.0, 2.0, False), (1.5, 2.0, True)])
@virtually
async def test_an_answer_that_takes_too_long_is_no_answer(latency: float, timeout: float, done: bool) -> None:
    world = World(latency=(latency, latency))
    loop = asyncio.get_running_loop()
    with pytest.raises(ConnectionFailed, match="no answer in time") as late:
        await world.transport.send(post("a"), timeout=timeout)
    assert late.value.sent
    assert loop.time() == pytest.approx(timeout)
    assert (world.ask("GET", f"{CM}/a").status == 200) is done


@virtually
async def test_a_stream_that_does_not_open_in_time_fails() -> None:
    world = World(latency=(1.5, 1.5))
    with pytest.raises(ConnectionFailed, match="no answer in time"):
        async with world.transport.stream(Request("GET", CM, (("watch", "1"),)), timeout=2, silence=9):
            pass
    assert world.server.store.all(world.server.registry.kinds()[0]).watchers == 0


@virtually
async def test_silence_ends_a_stream() -> None:
    world = World()
    loop = asyncio.get_running_loop()
    with pytest.raises(Unreachable, match="nothing came for 20 s"):
        async with world.events(resource_version=str(world.server.store.number), silence=20) as events:
            await asyncio.sleep(15)
            await world.config_map("a")
            await anext(events)
            heard = loop.time()
            await anext(events)
    assert loop.time() - heard == pytest.approx(20)


@virtually
async def test_bookmarks_break_the_silence() -> None:
    world = World()
    async with world.events(seconds=200, silence=61) as events:
        assert len([event async for event in events]) == 4


# What passes


@virtually
async def test_bytes_pass_and_nothing_is_shared() -> None:
    world = World()
    made = await world.config_map("a", labels={"x": "y"})
    made["metadata"]["labels"]["x"] = "z"
    one, other = [await world.client.get(CONFIG_MAPS, "a", "default") for _ in range(2)]
    assert meta(one)["labels"] == {"x": "y"}
    assert one["metadata"] is not other["metadata"]


@virtually
async def test_a_stream_of_something_else_is_its_answer() -> None:
    world = World()
    async with world.transport.stream(GET, timeout=5, silence=5) as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "application/json")
        assert msgspec.json.decode(await stream.read())["minor"] == "36"
        assert len([line async for line in stream.lines()]) == 1
    with pytest.raises(NotFound):
        await world.client.get(ConfigMap, "nope", "default")


@virtually
async def test_a_stream_can_be_read_whole() -> None:
    world = World()
    await world.config_map("a")
    query = (("watch", "1"), ("timeoutSeconds", "1"))
    async with world.transport.stream(Request("GET", CM, query), timeout=5, silence=5) as stream:
        body = await stream.read()
    assert body.endswith(b"}\n")
    assert msgspec.json.decode(body)["type"] == "ADDED"


async def test_it_works_on_a_real_loop_too() -> None:
    world = World()
    async with world.client.watch(ConfigMap, "default", resource_version="0", seconds=1) as events:
        await world.config_map("a")
        event = await anext(events)
    assert isinstance(event, Event)
    assert event.object.metadata.name == "a"

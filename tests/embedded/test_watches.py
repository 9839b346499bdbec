"""Watches: every change, in order, as it concerns the one who watches."""

import asyncio
from typing import Any

import msgspec
import pytest

from embedded.world import CONFIG_MAPS, World, config_map, meta, take, virtually
from kedge.api.core import ConfigMap
from kedge.api.resource import Resource
from kedge.kube.codec import Bookmark, Event, metadata_of, untyped
from kedge.kube.errors import ApiError, BadRequest, Gone, Invalid, NotFound
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request
from support.virtual import VirtualLoop

CM = "/api/v1/namespaces/default/configmaps"


async def label(world: World, name: str, **labels: str | None) -> None:
    await world.client.patch(CONFIG_MAPS, name, MergePatch({"metadata": {"labels": labels}}), "default")


@virtually
async def test_a_watch_tells_what_happens_after_its_version() -> None:
    world = World()
    before = await world.config_map("a")
    async with world.events(resource_version=meta(before)["resourceVersion"]) as events:
        await world.config_map("b")
        await label(world, "a", x="y")
        await world.client.delete(ConfigMap, "b", "default")
        assert await take(events, 3) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]


@virtually
async def test_a_watch_without_a_version_begins_with_everything() -> None:
    world = World()
    for name in ("b", "a"):
        await world.config_map(name)
    for version in (None, "0"):
        async with world.events(resource_version=version) as events:
            assert await take(events, 2) == [("ADDED", "a"), ("ADDED", "b")]
            await label(world, "a", version=version or "none")
            assert await anext(events) == ("MODIFIED", "a")


@virtually
async def test_a_watch_resumes_where_another_ended() -> None:
    world = World()
    for name in ("a", "b", "c"):
        made = await world.config_map(name)
        await label(world, name, x="y")
    first = int(meta(made)["resourceVersion"]) - 4
    async with world.events(resource_version=str(first)) as events:
        told = await take(events, 5)
    assert told == [("MODIFIED", "a"), ("ADDED", "b"), ("MODIFIED", "b"), ("ADDED", "c"), ("MODIFIED", "c")]


@virtually
async def test_a_streamed_list_ends_with_a_bookmark() -> None:
    world = World()
    await world.config_map("a")
    async with world.events(initial_events=True) as events:
        number = str(world.server.store.number)
        await world.config_map("b")
        assert await take(events, 3) == [("ADDED", "a"), ("END", number), ("ADDED", "b")]


@virtually
async def test_a_streamed_list_of_nothing_is_a_bookmark() -> None:
    world = World()
    async with world.events(initial_events=True, labels="none") as events:
        assert await anext(events) == ("END", str(world.server.store.number))


@virtually
async def test_only_one_namespace_is_watched() -> None:
    world = World()
    async with world.events(resource_version=str(world.server.store.number)) as events:
        await world.client.create(ConfigMap, {"metadata": {"name": "elsewhere"}}, "kube-system")
        await world.config_map("here")
        assert await anext(events) == ("ADDED", "here")


@virtually
async def test_what_leaves_a_selector_looks_deleted_and_what_enters_looks_new() -> None:
    world = World()
    start = str(world.server.store.number)
    await world.config_map("a", labels={"s": "1"})
    patches: list[dict[str, Any]] = [
        {"metadata": {"labels": {"s": "2"}}, "data": {"k": "left"}},
        {"data": {"k": "outside"}},
        {"metadata": {"labels": {"s": "1"}}, "data": {"k": "back"}},
        {"data": {"k": "inside"}},
    ]
    for patch in patches:
        await world.client.patch(CONFIG_MAPS, "a", MergePatch(patch), "default")
    await world.client.delete(ConfigMap, "a", "default")
    async with world.client.watch(CONFIG_MAPS, "default", labels="s=1", resource_version=start) as events:
        told = [event async for event in _some(events, 5)]
    first = int(start) + 1
    assert [(e.type, int(meta(e.object)["resourceVersion"]) - first, e.object.get("data")) for e in told] == [
        ("ADDED", 0, None),
        ("DELETED", 1, None),
        ("ADDED", 3, {"k": "back"}),
        ("MODIFIED", 4, {"k": "inside"}),
        ("DELETED", 5, {"k": "inside"}),
    ]


async def _some(events: Any, count: int) -> Any:
    for _ in range(count):
        event = await anext(events)
        assert isinstance(event, Event)
        yield event


@virtually
async def test_live_watchers_of_different_selectors_each_see_their_own() -> None:
    world = World()
    here = str(world.server.store.number)
    async with (
        world.events(labels="s=1", resource_version=here) as ones,
        world.events(labels="s=2", resource_version=here) as twos,
        world.events(fields="metadata.name=b", resource_version=here) as bees,
        world.client.watch(metadata_of(ConfigMap.resource), "default", resource_version=here) as partials,
    ):
        await world.config_map("a", labels={"s": "1"})
        await label(world, "a", s="2")
        await world.config_map("b")
        assert await take(ones, 2) == [("ADDED", "a"), ("DELETED", "a")]
        assert await take(twos, 1) == [("ADDED", "a")]
        assert await take(bees, 1) == [("ADDED", "b")]
        seen = await take(partials, 3)
        assert [event.object.metadata.name for event in seen] == ["a", "a", "b"]


@virtually
async def test_an_object_that_is_gone_is_told_as_it_last_was() -> None:
    world = World()
    made = await world.client.create(CONFIG_MAPS, config_map("a", data={"k": "v"}))
    async with world.client.watch(CONFIG_MAPS, "default", resource_version=meta(made)["resourceVersion"]) as events:
        await world.client.delete(ConfigMap, "a", "default")
        event = await anext(events)
    assert isinstance(event, Event)
    version = str(int(meta(made)["resourceVersion"]) + 1)
    assert event.object == {**made, "metadata": {**meta(made), "resourceVersion": version}}


@virtually
async def test_taking_the_last_finalizer_away_is_a_deletion() -> None:
    world = World()
    made = await world.config_map("a", finalizers=["x.io/f"])
    async with world.events(resource_version=meta(made)["resourceVersion"]) as events:
        await world.client.delete(ConfigMap, "a", "default")
        await world.client.patch(CONFIG_MAPS, "a", MergePatch({"metadata": {"finalizers": None}}), "default")
        await world.config_map("a")
        assert await take(events, 3) == [("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "a")]


@virtually
async def test_what_is_forgotten_cannot_be_watched_from() -> None:
    world = World(history=3)
    for name in ("a", "b", "c", "d", "e"):
        await world.config_map(name)
    oldest = world.server.store.number - 3
    with pytest.raises(Gone, match=rf"too old resource version: {oldest - 1} \({oldest}\)"):
        async with world.events(resource_version=str(oldest - 1)) as events:
            await anext(events)
    async with world.events(resource_version=str(oldest)) as events:
        assert await take(events, 3) == [("ADDED", "c"), ("ADDED", "d"), ("ADDED", "e")]


@virtually
async def test_a_forgotten_version_is_an_event_of_its_own_and_then_the_end() -> None:
    world = World(history=1)
    for name in ("a", "b"):
        await world.config_map(name)
    request = Request("GET", CM, (("watch", "true"), ("resourceVersion", "1")))
    async with world.transport.stream(request, timeout=5, silence=5) as stream:
        lines = [msgspec.json.decode(line) async for line in stream.lines()]
    assert stream.status == 200
    assert [(line["type"], line["object"]["code"], line["object"]["reason"]) for line in lines] == [
        ("ERROR", 410, "Expired")
    ]


@virtually
async def test_a_busy_kind_does_not_make_a_quiet_one_forget() -> None:
    world = World(history=2)
    start = str(world.server.store.number)
    await world.config_map("a")
    for name in ("x", "y", "z"):
        body = {"metadata": {"name": name}}
        await world.client.create(metadata_of(ConfigMap.resource), body, "default", dry_run=True)
        assert world.ask("POST", "/api/v1/namespaces/default/secrets", msgspec.json.encode(body)).status == 201
    async with world.events(resource_version=start) as events:
        assert await anext(events) == ("ADDED", "a")


@virtually
async def test_a_version_from_the_future_is_waited_for() -> None:
    world = World()
    ahead = str(world.server.store.number + 2)
    async with world.events(resource_version=ahead) as events:
        assert await anext(events) == ("BOOKMARK", ahead)
        for name in ("a", "b", "c"):
            await world.config_map(name)
        assert await anext(events) == ("ADDED", "c")


@virtually
async def test_a_streamed_list_of_the_future_is_refused_in_the_stream() -> None:
    world = World()
    with pytest.raises(ApiError, match="Too large resource version") as refused:
        async with world.events(resource_version="999", initial_events=True) as events:
            await anext(events)
    assert refused.value.code == 504


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ({"labels": "a b"}, BadRequest, "unable to parse requirement"),
        ({"fields": "spec.x=y"}, BadRequest, "is not a known field selector"),
        ({"resource_version": "x"}, ApiError, "must be an unsigned integer"),
    ],
)
@virtually
async def test_a_watch_that_makes_no_sense_is_refused(query: Any, error: type[ApiError], message: str) -> None:
    with pytest.raises(error, match=message):
        async with World().events(**query):
            pass


@virtually
async def test_a_kind_that_is_not_served_cannot_be_watched() -> None:
    with pytest.raises(NotFound, match="the server could not find the requested resource"):
        async with World().client.watch(untyped(Resource("apps", "v1", "Nothing", "nothings"))):
            pass


@pytest.mark.parametrize(
    ("query", "causes"),
    [
        ({"resourceVersionMatch": "NotOlderThan"}, ["is forbidden for watch unless sendInitialEvents is provided"]),
        ({"sendInitialEvents": "true"}, ["sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"]),
        (
            {"sendInitialEvents": "true", "resourceVersionMatch": "Exact"},
            ["sendInitialEvents requires setting", 'Unsupported value: "Exact"'],
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(query: dict[str, str], causes: list[str]) -> None:
    answer = World().server.watch(Request("GET", CM, (("watch", "1"), *query.items())))
    status = msgspec.json.decode(answer.body)  # type: ignore[union-attr]  # a Watch would fail here, as it should
    assert status["code"] == 422
    assert all(cause in found["message"] for cause, found in zip(causes, status["details"]["causes"], strict=True))


@virtually
async def test_without_initial_events_a_watch_begins_now() -> None:
    world = World()
    await world.config_map("a")
    query = {"watch": "1", "sendInitialEvents": "false", "resourceVersionMatch": "NotOlderThan"}
    async with world.transport.stream(Request("GET", CM, tuple(query.items())), timeout=5, silence=5) as stream:
        await world.config_map("b")
        line = await anext(stream.lines())
    assert msgspec.json.decode(line)["object"]["metadata"]["name"] == "b"


# Time


@virtually
async def test_bookmarks_come_each_minute_and_shortly_before_the_end() -> None:
    world = World(delay=(0.0, 0.0))
    loop = asyncio.get_running_loop()
    start = loop.time()
    await world.config_map("a")
    marks = []
    async with world.client.watch(ConfigMap, "default", resource_version="0", seconds=150, silence=75) as events:
        async for event in events:
            if isinstance(event, Bookmark):
                marks.append((round(loop.time() - start), event.resource_version))
                await world.client.create(ConfigMap, {"metadata": {"name": "other"}}, "kube-public", dry_run=True)
    assert [at for at, _ in marks] == [60, 120, 148]
    assert loop.time() - start == pytest.approx(150, abs=0.1)


@virtually
async def test_the_watches_of_one_client_get_their_bookmarks_at_the_same_moments() -> None:
    world = World()
    loop = asyncio.get_running_loop()
    begin = {"resource_version": str(world.server.store.number)}
    async with world.events(**begin) as early:
        await asyncio.sleep(20)
        async with world.events(**begin) as late:
            marks = [(await anext(events), loop.time()) for events in (early, late)]
            assert [round(at) for _, at in marks] == [60, 60]
        assert (await anext(early), round(loop.time())) == (marks[0][0], 120)


@virtually
async def test_a_bookmark_waits_for_what_is_under_way_before_it() -> None:
    world = World(delay=(5.0, 5.0))
    async with world.events(resource_version=str(world.server.store.number)) as events:
        await asyncio.sleep(58)
        await world.config_map("a")
        assert await take(events, 2) == [("ADDED", "a"), ("BOOKMARK", str(world.server.store.number))]


@virtually
async def test_nothing_is_left_running_for_watches_that_were_left() -> None:
    world = World()
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    before = loop.timers
    async with world.events() as first, world.events() as second:
        await asyncio.sleep(130)
        assert len(await take(first, 2) + await take(second, 2)) == 4
    assert loop.timers == before


@virtually
async def test_a_bookmark_says_how_far_the_whole_server_has_got() -> None:
    world = World()
    async with world.events(resource_version=str(world.server.store.number)) as events:
        await world.client.create(ConfigMap, {"metadata": {"name": "elsewhere"}}, "kube-system")
        assert await anext(events) == ("BOOKMARK", str(world.server.store.number))


@virtually
async def test_who_did_not_ask_for_bookmarks_gets_none() -> None:
    world = World()
    query = (("watch", "true"), ("timeoutSeconds", "200"), ("resourceVersion", "1"))
    async with world.transport.stream(Request("GET", CM, query), timeout=5, silence=500) as stream:
        assert [line async for line in stream.lines()] == []


@virtually
async def test_a_watch_ends_in_good_order_when_its_time_is_up() -> None:
    world = World()
    loop = asyncio.get_running_loop()
    start = loop.time()
    async with world.events(seconds=30) as events:
        assert [event async for event in events] == [("BOOKMARK", str(world.server.store.number))]
    assert loop.time() - start == pytest.approx(30, abs=0.1)


@virtually
async def test_a_watch_that_does_not_say_ends_some_time() -> None:
    world = World()
    loop = asyncio.get_running_loop()
    start = loop.time()
    request = Request("GET", CM, (("watch", "true"),))
    async with world.transport.stream(request, timeout=5, silence=9999) as stream:
        assert [line async for line in stream.lines()] == []
    assert 1800 <= loop.time() - start <= 3601


@virtually
async def test_what_came_before_the_end_is_delivered_before_it() -> None:
    world = World(delay=(1.0, 1.0))
    async with world.events(resource_version=str(world.server.store.number), seconds=10) as events:
        await asyncio.sleep(9.9)
        await world.config_map("late")
        told = [event async for event in events]
    assert told[-1] == ("ADDED", "late")


@virtually
async def test_a_refused_apply_and_an_invalid_object_are_no_events() -> None:
    world = World()
    async with world.events(resource_version=str(world.server.store.number)) as events:
        with pytest.raises(Invalid):
            await world.config_map("A")
        await world.client.create(CONFIG_MAPS, config_map("dry"), dry_run=True)
        await world.config_map("a")
        await label(world, "a")
        await world.config_map("b")
        assert await take(events, 2) == [("ADDED", "a"), ("ADDED", "b")]

"""The cache equals the server, whatever happens on the way; in virtual time."""

import asyncio
import gc
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
import pytest

from kedge.api.core import ConfigMap
from kedge.api.meta import ObjectMeta
from kedge.kube.cache import Cache
from kedge.kube.client import Client
from kedge.kube.memory import bulk_load
from kedge.kube.store import Change
from kedge.kube.transport import ConnectionFailed
from support.scripted import (
    DOWN,
    RESET,
    Answer,
    Scripted,
    ScriptedStream,
    answer,
    bookmark,
    config_map,
    line,
    refused,
    status,
)
from support.virtual import run

Story = list[tuple[str, str]]
Lines = list[bytes | float | Exception | None]


def page(version: int, *items: dict[str, object], more: str = "") -> Answer:
    return answer(200, {"metadata": {"resourceVersion": str(version), "continue": more}, "items": items})


def stream(*lines: bytes | float | Exception | None) -> ScriptedStream:
    return ScriptedStream(200, lines)


def refusal(code: int, reason: str) -> ScriptedStream:
    return ScriptedStream(code, [], msgspec.json.encode(status(code, reason)))


FILLED = [line("ADDED", config_map("a", 5)), line("ADDED", config_map("b", 6)), bookmark(10, end=True)]
GONE = line("ERROR", status(410, "Expired", "too old resource version"))


def cache_on(transport: Scripted, **options: Any) -> Cache[ConfigMap]:
    return Cache(Client(transport, rng=random.Random(1)), ConfigMap, rng=random.Random(1), **options)


def told(cache: Cache[ConfigMap]) -> Story:
    """What the cache's handlers are told, as it happens."""
    story: Story = []

    def note(change: Change[ConfigMap]) -> None:
        word = "gone" if change.new is None else "new" if change.old is None else "changed"
        story.append((f"{word}{' at first' if change.initial else ''}", change.object.metadata.name))

    cache.on_change(note)
    return story


def names(cache: Cache[ConfigMap]) -> list[str]:
    return sorted(item.metadata.name for item in cache.all())


def follow(
    cache: Callable[[], Cache[ConfigMap]],
    check: Callable[[Cache[ConfigMap], Story], Awaitable[None]],
    seconds: float = 120.0,
) -> None:
    """Let a cache run for so many virtual seconds, then check it."""

    async def story() -> None:
        following = cache()
        heard = told(following)
        task = asyncio.create_task(following.run())
        await asyncio.sleep(seconds)
        await check(following, heard)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(story())


def test_it_fills_from_a_streamed_list_and_goes_on_with_the_same_watch() -> None:
    transport = Scripted(streams=[stream(*FILLED, line("MODIFIED", config_map("a", 11, x="1")), None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert heard == [("new at first", "a"), ("new at first", "b"), ("changed", "a")]
        assert cache.is_synced
        assert cache.problem is None
        assert len(transport.streamed) == 1
        assert ("sendInitialEvents", "true") in transport.streamed[0].query

    follow(lambda: cache_on(transport), check)


def test_nothing_shows_before_the_list_is_whole() -> None:
    transport = Scripted(streams=[stream(*FILLED[:2], None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert heard == []
        assert not cache.is_synced

    follow(lambda: cache_on(transport), check, seconds=30)


@pytest.mark.parametrize("code", [400, 422])
def test_it_fills_from_pages_where_lists_are_not_streamed(code: int) -> None:
    transport = Scripted(
        [page(9, config_map("a", 5), more="t"), page(9, config_map("b", 6))],
        [refusal(code, "Invalid" if code == 422 else "BadRequest"), stream(None)],
    )

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert heard == [("new at first", "a"), ("new at first", "b")]
        assert ("resourceVersion", "9") in transport.streamed[1].query

    follow(lambda: cache_on(transport), check)


@pytest.mark.parametrize("end", [(), (None,)], ids=["ends", "goes on for ever"])
def test_it_fills_from_pages_where_a_streamed_list_has_no_mark(end: tuple[None, ...]) -> None:
    transport = Scripted([page(9, config_map("a", 5))], [stream(FILLED[0], *end), stream(None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert heard == [("new at first", "a")]

    follow(lambda: cache_on(transport), check, seconds=200)


@pytest.mark.parametrize("broken", [RESET, DOWN], ids=["reset", "down"])
def test_a_streamed_list_that_breaks_off_is_streamed_again(broken: ConnectionFailed) -> None:
    transport = Scripted(streams=[stream(FILLED[0], broken), stream(*FILLED, None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert heard == [("new at first", "a"), ("new at first", "b")]
        assert transport.asked == []

    follow(lambda: cache_on(transport), check)


def test_it_resumes_after_the_last_change_it_saw() -> None:
    transport = Scripted(streams=[stream(*FILLED, line("DELETED", config_map("a", 12)), RESET), stream(None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert ("resourceVersion", "12") in transport.streamed[1].query
        assert cache.problem is None
        assert names(cache) == ["b"]

    follow(lambda: cache_on(transport), check)


def test_it_resumes_after_the_last_bookmark() -> None:
    transport = Scripted(streams=[stream(*FILLED, bookmark(40), RESET), stream(None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert ("resourceVersion", "40") in transport.streamed[1].query

    follow(lambda: cache_on(transport), check)


@pytest.mark.parametrize(
    "gone", [stream(GONE), refusal(410, "Expired"), refusal(410, "Gone")], ids=["in the watch", "Expired", "Gone"]
)
def test_after_410_it_tells_of_every_difference_and_deletion(gone: ScriptedStream) -> None:
    later = [line("ADDED", config_map("b", 21, x="1")), line("ADDED", config_map("c", 22)), bookmark(30, end=True)]
    transport = Scripted(streams=[stream(*FILLED, RESET), gone, stream(*later, None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert heard[2:] == [("gone", "a"), ("changed", "b"), ("new", "c")]
        assert names(cache) == ["b", "c"]

    follow(lambda: cache_on(transport), check)


def test_what_did_not_change_is_not_told_again_after_a_new_list() -> None:
    transport = Scripted(streams=[stream(*FILLED, GONE), stream(*FILLED, None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert heard == [("new at first", "a"), ("new at first", "b")]

    follow(lambda: cache_on(transport), check)


def test_the_same_trouble_is_logged_once_until_it_was_over(caplog: pytest.LogCaptureFixture) -> None:
    transport = Scripted(streams=[DOWN, DOWN, DOWN, stream(*FILLED, RESET), DOWN, DOWN, stream(None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        warnings = [record.getMessage().split(";")[0] for record in caplog.records if record.levelname == "WARNING"]
        down, reset = (f"watching configmaps: no answer: {failure}" for failure in (DOWN, RESET))
        assert warnings == [down, reset, down]

    follow(lambda: cache_on(transport), check, seconds=60)


FAILURES = [
    DOWN,
    RESET,
    ConnectionFailed("silent for 75 s", sent=True),
    refusal(401, "Unauthorized"),
    refusal(403, "Forbidden"),
    refusal(404, "NotFound"),
    refusal(429, "TooManyRequests"),
    refusal(500, "InternalError"),
    stream(b'{"type":"ADDED","object":{"metadata'),
    stream(b"<html>"),
]


@pytest.mark.parametrize("failure", FAILURES)
def test_no_failure_ends_it_and_it_says_what_is_wrong(failure: ScriptedStream | Exception) -> None:
    transport = Scripted(streams=[stream(*FILLED, RESET), failure, failure, failure, stream(bookmark(50), None)])
    problems: list[str | None] = []

    def watched() -> Cache[ConfigMap]:
        cache = cache_on(transport)
        cache.on_problem(problems.append)
        return cache

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert names(cache) == ["a", "b"]
        assert cache.problem is None
        assert problems[0] is None
        assert problems[-1] is None
        assert len([problem for problem in problems if problem]) >= 1

    follow(watched, check)


def test_an_outage_of_30_seconds_costs_at_most_10_attempts() -> None:
    for seed in range(30):
        transport = Scripted(streams=[stream(*FILLED, RESET), *[DOWN] * 100])
        cache = lambda: Cache(Client(transport), ConfigMap, rng=random.Random(seed))  # noqa: B023, E731

        async def check(cache: Cache[ConfigMap], heard: Story) -> None:
            assert len(transport.streamed) - 1 <= 10  # noqa: B023

        follow(cache, check, seconds=30)


def test_a_server_that_closes_every_watch_at_once_is_not_stormed() -> None:
    transport = Scripted(streams=[stream(*FILLED), *[stream(bookmark(11)) for _ in range(100)]])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert len(transport.streamed) <= 11

    follow(lambda: cache_on(transport), check, seconds=30)


def test_a_watch_that_lasted_and_ended_in_good_order_goes_on_without_a_gap() -> None:
    ends = [stream(*FILLED, 20.0), *[stream(bookmark(11), 20.0) for _ in range(4)]]
    transport = Scripted(streams=ends)

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert len(transport.streamed) == 6
        assert cache.problem is None

    follow(lambda: cache_on(transport), check, seconds=100.001)


def test_retry_after_is_a_minimum() -> None:
    busy = ScriptedStream(
        429, [], msgspec.json.encode(status(429, "TooManyRequests", details={"retryAfterSeconds": 20}))
    )
    transport = Scripted(streams=[stream(*FILLED, RESET), busy, stream(None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert len(transport.streamed) == 2

    follow(lambda: cache_on(transport), check, seconds=19)


def test_an_object_that_becomes_unreadable_is_no_longer_shown() -> None:
    bad = {"metadata": {"name": "a", "namespace": "shop", "resourceVersion": "11"}, "data": 7}
    transport = Scripted(streams=[stream(*FILLED, line("MODIFIED", bad), line("MODIFIED", config_map("b", 12)), None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert names(cache) == ["b"]
        assert heard[2:] == [("gone", "a"), ("changed", "b")]
        assert "data" in cache.unreadable["shop", "a"].problem

    follow(lambda: cache_on(transport), check)


def test_an_unreadable_object_that_is_mended_shows_again() -> None:
    bad = {"metadata": {"name": "a", "namespace": "shop", "resourceVersion": "5"}, "data": 7}
    lines = [line("ADDED", bad), FILLED[1], FILLED[2], line("MODIFIED", config_map("a", 11))]
    transport = Scripted(streams=[stream(*lines, None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert names(cache) == ["a", "b"]
        assert cache.unreadable == {}

    follow(lambda: cache_on(transport), check)


def test_a_failing_handler_does_not_keep_others_from_being_told(caplog: pytest.LogCaptureFixture) -> None:
    def failing() -> Cache[ConfigMap]:
        cache = cache_on(Scripted(streams=[stream(*FILLED, None)]))
        cache.on_change(lambda _: 1 / 0)  # type: ignore[arg-type]
        return cache

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert heard == [("new at first", "a"), ("new at first", "b")]
        assert "a handler failed" in caplog.text

    follow(failing, check)


def test_who_comes_late_is_told_of_what_is_there() -> None:
    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert told(cache) == [("new at first", "a"), ("new at first", "b")]

    follow(lambda: cache_on(Scripted(streams=[stream(*FILLED, None)])), check)


def test_a_transform_keeps_only_what_is_needed() -> None:
    def without_data(found: ConfigMap) -> ConfigMap:
        return msgspec.structs.replace(found, data={})

    lines = [
        line("ADDED", config_map("a", 5, x="1")),
        bookmark(6, end=True),
        line("MODIFIED", config_map("a", 7, y="2")),
    ]

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert [item.data for item in cache.all()] == [{}]

    follow(lambda: cache_on(Scripted(streams=[stream(*lines, None)]), transform=without_data), check)


def counts(found: ConfigMap) -> bool:
    return "x" in found.data


def test_objects_that_do_not_count_are_as_good_as_not_there() -> None:
    lines = [
        line("ADDED", config_map("a", 4)),
        line("ADDED", config_map("b", 5, x="1")),
        bookmark(6, end=True),
        line("MODIFIED", config_map("a", 7, x="1")),
        line("MODIFIED", config_map("b", 8)),
        line("DELETED", config_map("b", 9)),
        line("ADDED", config_map("c", 10)),
    ]

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert names(cache) == ["a"]
        assert heard == [("new at first", "b"), ("new", "a"), ("gone", "b")]

    follow(lambda: cache_on(Scripted(streams=[stream(*lines, None)]), only=counts), check)


def test_pages_too_show_only_what_counts() -> None:
    transport = Scripted(
        [page(9, config_map("a", 4), config_map("b", 5, x="1"))], [refusal(422, "Invalid"), stream(None)]
    )

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert names(cache) == ["b"]

    follow(lambda: cache_on(transport, only=counts), check)


def test_an_object_that_no_longer_counts_is_settled_by_asking_and_not_shown() -> None:
    transport = Scripted(
        [answer(200, config_map("b", 20))],
        [stream(line("ADDED", config_map("b", 5, x="1")), bookmark(6, end=True), None)],
    )

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        cache.wrote(written("b", 20))
        await cache.catch_up("b", "shop")
        assert cache.caught_up("b", "shop")
        assert names(cache) == []
        cache._take("MODIFIED", msgspec.convert(config_map("b", 15, x="older"), ConfigMap))
        assert names(cache) == []

    follow(lambda: cache_on(transport, only=counts), check)


def test_indexes_follow_the_objects() -> None:
    lines = [
        line("ADDED", config_map("a", 5, team="x")),
        line("ADDED", config_map("b", 6, team="x")),
        bookmark(10, end=True),
        line("MODIFIED", config_map("a", 11, team="y")),
        line("DELETED", config_map("b", 12, team="x")),
    ]

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        assert [item.metadata.name for item in cache.by("team", "y")] == ["a"]
        assert cache.by("team", "x") == ()

    indexes = {"team": lambda found: found.data.values()}
    follow(lambda: cache_on(Scripted(streams=[stream(*lines, None)]), indexes=indexes), check)


# Reading one's own writes


def written(name: str, version: int) -> ObjectMeta:
    return ObjectMeta(name=name, namespace="shop", resource_version=str(version))


def test_it_has_not_caught_up_before_it_shows_our_write_and_has_after() -> None:
    transport = Scripted(streams=[stream(*FILLED, None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        cache.wrote(written("a", 11))
        assert not cache.caught_up("a", "shop")
        assert cache.caught_up("b", "shop")
        cache._take("MODIFIED", msgspec.convert(config_map("b", 12), ConfigMap))
        assert cache.caught_up("a", "shop")

    follow(lambda: cache_on(transport), check)


def test_a_write_that_changed_nothing_needs_no_catching_up() -> None:
    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        cache.wrote(written("a", 5))
        assert cache.caught_up("a", "shop")

    follow(lambda: cache_on(Scripted(streams=[stream(*FILLED, None)])), check)


def test_when_the_watch_lags_the_server_is_asked() -> None:
    transport = Scripted([answer(200, config_map("a", 20, x="ours"))], [stream(*FILLED, None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        cache.wrote(written("a", 20))
        await cache.catch_up("a", "shop")
        found = cache.get("a", "shop")
        assert found is not None
        assert found.data == {"x": "ours"}
        assert cache.caught_up("a", "shop")
        assert heard[-1] == ("changed", "a")

    follow(lambda: cache_on(transport), check)


def test_what_the_watch_brings_late_does_not_undo_what_was_read_directly() -> None:
    transport = Scripted([answer(200, config_map("a", 20, x="ours"))], [stream(*FILLED, None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        cache.wrote(written("a", 20))
        await cache.catch_up("a", "shop")
        cache._take("MODIFIED", msgspec.convert(config_map("a", 15, x="older"), ConfigMap))
        cache._take("DELETED", msgspec.convert(config_map("a", 16), ConfigMap))
        assert [item.data for item in cache.all() if item.metadata.name == "a"] == [{"x": "ours"}]
        cache._take("MODIFIED", msgspec.convert(config_map("a", 25, x="newer"), ConfigMap))
        assert [item.data for item in cache.all() if item.metadata.name == "a"] == [{"x": "newer"}]

    follow(lambda: cache_on(transport), check)


def test_an_object_that_left_the_selector_is_settled_by_asking_and_not_shown() -> None:
    transport = Scripted([answer(200, config_map("z", 20))], [stream(*FILLED, None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        cache.wrote(written("z", 20))
        await cache.catch_up("z", "shop")
        assert cache.caught_up("z", "shop")
        assert cache.get("z", "shop") is None

    follow(lambda: cache_on(transport, labels="app=web"), check)


def test_an_object_that_is_gone_is_settled_by_asking() -> None:
    transport = Scripted([refused(404, "NotFound")], [stream(*FILLED, None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        cache.wrote(written("a", 20))
        await cache.catch_up("a", "shop")
        assert cache.caught_up("a", "shop")
        assert names(cache) == ["b"]

    follow(lambda: cache_on(transport), check)


def data_of(cache: Cache[ConfigMap], name: str) -> Mapping[str, str] | None:
    found = cache.get(name, "shop")
    return None if found is None else found.data


def test_a_list_begun_before_does_not_undo_what_was_read_directly() -> None:
    """Its lines may come late: what they tell is from when it was begun."""
    begun_before: Lines = [5.0, line("ADDED", config_map("b", 6)), bookmark(15, end=True)]
    transport = Scripted(
        [answer(200, config_map("new", 20, x="ours"))],
        [stream(*FILLED, 1.0, GONE), stream(*begun_before, 5.0, line("ADDED", config_map("new", 20, x="ours")), None)],
    )

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        cache.wrote(written("new", 20))
        await cache.catch_up("new", "shop")
        assert data_of(cache, "new") == {"x": "ours"}
        heard.clear()
        await asyncio.sleep(4)
        assert names(cache) == ["b", "new"]
        assert heard == [("gone", "a")]
        await asyncio.sleep(5)
        assert names(cache) == ["b", "new"]

    follow(lambda: cache_on(transport), check, seconds=3)


def test_a_list_begun_before_does_not_take_an_object_back_to_an_older_version() -> None:
    begun_before: Lines = [5.0, line("ADDED", config_map("a", 12, x="older")), bookmark(15, end=True), None]
    transport = Scripted(
        [answer(200, config_map("a", 20, x="ours"))], [stream(*FILLED, 1.0, GONE), stream(*begun_before)]
    )

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        cache.wrote(written("a", 20))
        await cache.catch_up("a", "shop")
        await asyncio.sleep(10)
        assert names(cache) == ["a"]
        assert data_of(cache, "a") == {"x": "ours"}

    follow(lambda: cache_on(transport), check, seconds=3)


def test_what_was_found_to_be_gone_does_not_come_back_with_late_lines() -> None:
    late: Lines = [line("MODIFIED", config_map("a", 11)), 5.0, line("DELETED", config_map("a", 16))]
    anew = line("ADDED", config_map("a", 21) | renewed("a", 21))
    transport = Scripted([refused(404, "NotFound")], [stream(*FILLED, 5.0, *late, anew, None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        cache.wrote(written("a", 20))
        await cache.catch_up("a", "shop")
        assert names(cache) == ["b"]
        await asyncio.sleep(5)
        assert heard == [("new at first", "a"), ("new at first", "b"), ("gone", "a")]
        await asyncio.sleep(10)
        assert names(cache) == ["a", "b"]
        assert heard[3:] == [("new", "a")]

    follow(lambda: cache_on(transport), check, seconds=1)


LISTED_WITH_A = [line("ADDED", config_map("a", 12)), line("ADDED", config_map("b", 6)), bookmark(15, end=True)]


def test_what_was_found_to_be_gone_does_not_come_back_with_a_list_begun_before() -> None:
    begun_before: Lines = [5.0, *LISTED_WITH_A, 5.0, line("DELETED", config_map("a", 16)), None]
    transport = Scripted([refused(404, "NotFound")], [stream(*FILLED, 1.0, GONE), stream(*begun_before)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        cache.wrote(written("a", 20))
        await cache.catch_up("a", "shop")
        await asyncio.sleep(15)
        assert names(cache) == ["b"]
        assert heard == [("new at first", "a"), ("new at first", "b"), ("gone", "a")]

    follow(lambda: cache_on(transport), check, seconds=3)


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "in pages"])
def test_what_was_found_to_be_gone_is_there_again_if_a_later_list_has_it(streamed: bool) -> None:
    """The server's etcd was restored to a time at which it was there: it has the uid it had."""
    listed = [stream(*LISTED_WITH_A, None)] if streamed else [refusal(400, "BadRequest"), stream(None)]
    pages = () if streamed else (page(15, config_map("a", 12), config_map("b", 6)),)
    transport = Scripted([refused(404, "NotFound"), *pages], [stream(*FILLED, 5.0, GONE), *listed])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        cache.wrote(written("a", 20))
        await cache.catch_up("a", "shop")
        assert names(cache) == ["b"]
        await asyncio.sleep(15)
        assert names(cache) == ["a", "b"]
        assert heard[2:] == [("gone", "a"), ("new", "a")]

    follow(lambda: cache_on(transport), check, seconds=1)


def renewed(name: str, version: int) -> dict[str, object]:
    """The metadata of an object of that name that was made anew."""
    meta = {"name": name, "namespace": "shop", "uid": f"uid-{name}-anew", "resourceVersion": str(version)}
    return {"metadata": meta}


def test_an_answer_that_comes_after_later_news_changes_nothing() -> None:
    transport = Scripted([answer(200, config_map("a", 20, x="ours"))], [stream(*FILLED, None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        def meanwhile(_: object) -> None:
            cache._take("MODIFIED", msgspec.convert(config_map("a", 25, x="newer"), ConfigMap))

        transport.on_send = meanwhile
        cache.wrote(written("a", 20))
        await cache.catch_up("a", "shop")
        assert data_of(cache, "a") == {"x": "newer"}
        assert heard[2:] == [("changed", "a")]

    follow(lambda: cache_on(transport), check)


def test_an_object_made_after_the_server_was_asked_stays() -> None:
    transport = Scripted([refused(404, "NotFound")], [stream(*FILLED, None)])

    async def check(cache: Cache[ConfigMap], heard: Story) -> None:
        def meanwhile(_: object) -> None:
            cache._take("DELETED", msgspec.convert(config_map("a", 25), ConfigMap))
            cache._take("ADDED", msgspec.convert(config_map("a", 26) | renewed("a", 26), ConfigMap))

        transport.on_send = meanwhile
        cache.wrote(written("a", 20))
        await cache.catch_up("a", "shop")
        assert names(cache) == ["a", "b"]

    follow(lambda: cache_on(transport), check)


def test_a_large_load_runs_without_the_collector_and_leaves_it_on() -> None:
    frozen = gc.get_freeze_count()
    with bulk_load() as outer:
        with bulk_load():
            assert not gc.isenabled()
        assert not gc.isenabled()
        outer.size = 5_000
    assert gc.isenabled()
    assert gc.get_freeze_count() > frozen
    gc.unfreeze()

"""Events are told without waiting, counted instead of repeated, and never too many."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from kedge.api.core import ConfigMap, ObjectReference
from kedge.api.meta import ObjectMeta
from kedge.kube import events
from kedge.kube.client import Client
from kedge.kube.events import Recorder, cut
from support.scripted import refused
from support.tiny import Tiny
from support.virtual import run


class VirtualClock:
    def now(self) -> datetime:
        return datetime.fromtimestamp(asyncio.get_running_loop().time(), UTC)


def config_map(name: str = "web") -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="shop", uid="uid-1", resource_version="7"))


@asynccontextmanager
async def recording(server: Tiny, seed: int = 1) -> AsyncIterator[Recorder]:
    recorder = Recorder(
        Client(server, rng=random.Random(1)), "kedge", clock=VirtualClock(), rng=random.Random(seed), instance="hub-0"
    )
    task = asyncio.create_task(recorder.run())
    try:
        yield recorder
    finally:
        task.cancel()
        await asyncio.wait([task])


def told(server: Tiny) -> list[dict[str, Any]]:
    return [found for path, found in server.objects.items() if "/events/" in path]


def test_an_event_says_what_happened_to_what_and_who_says_so() -> None:
    async def main() -> None:
        server = Tiny()
        async with recording(server) as recorder:
            await asyncio.sleep(1.5)
            recorder.normal(config_map(), "Moved", "moved to cluster-2")
            await recorder.written()
        (event,) = told(server)
        name = event["metadata"].pop("name")
        assert name.startswith("web.")
        assert len(name) == len("web.") + 16
        assert event["metadata"]["namespace"] == "shop"
        del event["metadata"]
        assert event == {
            "apiVersion": "v1",
            "kind": "Event",
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "namespace": "shop",
                "name": "web",
                "uid": "uid-1",
            },
            "type": "Normal",
            "reason": "Moved",
            "message": "moved to cluster-2",
            "count": 1,
            "firstTimestamp": "1970-01-01T00:00:01Z",
            "lastTimestamp": "1970-01-01T00:00:01Z",
            "source": {"component": "kedge", "host": "hub-0"},
            "reportingComponent": "kedge",
            "reportingInstance": "hub-0",
        }

    run(main())


def test_the_same_again_is_counted_not_repeated() -> None:
    async def main() -> None:
        server = Tiny()
        async with recording(server) as recorder:
            for _ in range(3):
                recorder.warning(config_map(), "Failed", "no room")
                await recorder.written()
                await asyncio.sleep(60)
        (event,) = told(server)
        assert (event["count"], event["type"]) == (3, "Warning")
        assert (event["firstTimestamp"], event["lastTimestamp"]) == ("1970-01-01T00:00:00Z", "1970-01-01T00:02:00Z")
        assert [request.split()[0] for request in server.writes()] == ["POST", "PATCH", "PATCH"]

    run(main())


def test_the_same_again_before_it_was_written_costs_no_request() -> None:
    async def main() -> None:
        server = Tiny()
        async with recording(server) as recorder:
            for _ in range(20):
                recorder.normal(config_map(), "Moved", "moved")
            await recorder.written()
        (event,) = told(server)
        assert event["count"] == 20
        assert len(server.writes()) == 1

    run(main())


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(("web", "Moved", "elsewhere"), id="another message"),
        pytest.param(("web", "Stayed", "moved"), id="another reason"),
        pytest.param(("api", "Moved", "moved"), id="another object"),
    ],
)
def test_what_is_not_the_same_is_another_event(other: tuple[str, str, str]) -> None:
    async def main() -> None:
        server = Tiny()
        async with recording(server) as recorder:
            for name, reason, message in (("web", "Moved", "moved"), other):
                recorder.normal(config_map(name), reason, message)
            await recorder.written()
        assert len(told(server)) == 2

    run(main())


def test_an_event_the_server_has_dropped_is_made_anew() -> None:
    async def main() -> None:
        server = Tiny()
        async with recording(server) as recorder:
            recorder.normal(config_map(), "Moved", "moved")
            await recorder.written()
            server.objects.clear()
            recorder.normal(config_map(), "Moved", "moved")
            await recorder.written()
        (event,) = told(server)
        assert event["count"] == 1

    run(main())


def test_an_object_that_tells_too_much_is_cut_off_and_others_are_not() -> None:
    async def main() -> None:
        server = Tiny()
        async with recording(server) as recorder:
            for n in range(100):
                recorder.normal(config_map(), "Moved", f"moved {n}")
            recorder.normal(config_map("api"), "Moved", "moved")
            await recorder.written()
            assert (len(told(server)), recorder.dropped) == (26, 75)
            await asyncio.sleep(301)
            recorder.normal(config_map(), "Moved", "moved again")
            recorder.normal(config_map(), "Moved", "and again")
            await recorder.written()
            assert (len(told(server)), recorder.dropped) == (27, 76)

    run(main())


def test_telling_does_not_wait_for_a_server_that_does_not_answer() -> None:
    async def main() -> None:
        server = Tiny()
        server.down = True
        async with recording(server) as recorder:
            recorder.normal(config_map(), "Moved", "moved")
            assert asyncio.get_running_loop().time() == 0
            await recorder.written()
            assert recorder.dropped == 1

    run(main())


def test_the_line_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_PENDING", 10)

    async def main() -> None:
        server = Tiny()
        async with recording(server) as recorder:
            for n in range(30):
                recorder.normal(config_map(f"{n}"), "Moved", "moved")
            await recorder.written()
            assert (len(told(server)), recorder.dropped) == (10, 20)

    run(main())


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_REMEMBERED", 10)

    async def main() -> None:
        async with recording(Tiny()) as recorder:
            for n in range(30):
                recorder.normal(config_map(f"{n}"), "Moved", "moved")
            await recorder.written()
            assert (len(recorder._written), len(recorder._buckets)) == (10, 10)

    run(main())


def test_what_was_told_last_is_remembered_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_REMEMBERED", 2)

    async def main() -> None:
        server = Tiny()
        async with recording(server) as recorder:
            for name in ("a", "b", "a", "c", "a"):
                recorder.normal(config_map(name), "Moved", "moved")
                await recorder.written()
        counts = {event["involvedObject"]["name"]: event["count"] for event in told(server)}
        assert counts == {"a": 3, "b": 1, "c": 1}

    run(main())


def test_a_refused_event_does_not_stop_the_next() -> None:
    async def main() -> None:
        server = Tiny()
        server.fault = lambda request: refused(403, "Forbidden") if b'"Bad"' in request.body else None
        async with recording(server) as recorder:
            recorder.normal(config_map(), "Bad", "refused")
            recorder.normal(config_map(), "Good", "taken")
            await recorder.written()
            assert ([event["reason"] for event in told(server)], recorder.dropped) == (["Good"], 1)

    run(main())


def test_events_that_may_not_be_written_are_a_warning_once_in_each_namespace(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> int:
        server = Tiny()
        server.fault = lambda _: refused(403, "Forbidden")
        async with recording(server) as recorder:
            for name, namespace in (("a", "shop"), ("b", "shop"), ("c", "web"), ("d", "shop")):
                recorder.normal(ObjectReference(kind="ConfigMap", name=name, namespace=namespace), "Moved", "moved")
            await recorder.written()
            return recorder.dropped

    caplog.set_level("WARNING", events.log.name)
    assert run(main()) == 4
    told = [record.message for record in caplog.records]
    assert told == ["events may not be written: grant the verbs create and patch on events (no)"] * 2


def test_events_of_cluster_scoped_objects_are_in_the_default_namespace() -> None:
    async def main() -> None:
        server = Tiny()
        async with recording(server) as recorder:
            recorder.normal(ObjectReference(kind="Node", name="n-1", resource_version="5"), "Moved", "moved")
            await recorder.written()
        (event,) = told(server)
        assert event["metadata"]["namespace"] == "default"
        assert event["involvedObject"] == {"kind": "Node", "name": "n-1"}

    run(main())


def test_names_come_from_the_seed() -> None:
    async def main() -> list[str]:
        server = Tiny()
        async with recording(server, seed=7) as recorder:
            recorder.normal(config_map("x" * 253), "Moved", "moved")
            await recorder.written()
        return [event["metadata"]["name"] for event in told(server)]

    first, second = run(main()), run(main())
    assert first == second
    assert len(first[0]) == 253


@pytest.mark.parametrize("message", ["x" * 5000, "é" * 1000, "🙂" * 500, "x" + "é" * 600])
def test_a_long_message_is_cut_between_characters(message: str) -> None:
    short = cut(message)
    assert 1018 <= len(short.encode()) <= 1024
    assert short.endswith("…")
    assert message.startswith(short[:-1])


def test_a_message_that_fits_is_left_alone() -> None:
    assert cut("x" * 1024) == "x" * 1024

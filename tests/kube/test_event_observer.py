"""An observer is told of each event once, whatever becomes of it on the server."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from kedge.api.core import ConfigMap, ObjectReference
from kedge.api.meta import ObjectMeta
from kedge.kube import events
from kedge.kube.client import Client
from kedge.kube.events import RecordedEvent, Recorder
from support.scripted import refused
from support.stage import LoopClock
from support.tiny import Tiny
from support.virtual import run

WEB = ConfigMap(metadata=ObjectMeta(name="web", namespace="shop", uid="uid-1", resource_version="7"))


class Observer:
    def __init__(self) -> None:
        self.events: list[RecordedEvent] = []

    def recorded(self, event: RecordedEvent) -> None:
        self.events.append(event)

    @property
    def messages(self) -> list[str]:
        return [event.message for event in self.events]


def observed(record: Callable[[Recorder], None], server: Tiny | None = None) -> Observer:
    """What an observer is told, before anything is written."""
    observer = Observer()

    async def main() -> None:
        record(recorder(observer, server))

    run(main())
    return observer


def recorder(observer: Observer, server: Tiny | None = None) -> Recorder:
    client = Client(server or Tiny(), rng=random.Random(1))
    return Recorder(client, "kedge", clock=LoopClock(), rng=random.Random(1), cluster="hub", observer=observer)


def test_an_observer_is_told_what_happened_where_and_when() -> None:
    async def main() -> None:
        observer = Observer()
        recorder(observer).signed("placement-controller").warning(WEB, "Stopped", "cluster-1 is not ready")
        (event,) = observer.events
        assert event == RecordedEvent(
            cluster="hub",
            component="placement-controller",
            about=ObjectReference(api_version="v1", kind="ConfigMap", namespace="shop", name="web", uid="uid-1"),
            type="Warning",
            reason="Stopped",
            message="cluster-1 is not ready",
            at=LoopClock().now(),
        )
        assert event.at.tzinfo is UTC
        assert isinstance(event.at, datetime)

    run(main())


def test_an_event_that_repeats_is_told_once() -> None:
    def record(to: Recorder) -> None:
        for _ in range(20):
            to.normal(WEB, "Moved", "moved")
            to.signed("kedge").normal(WEB, "Moved", "moved")

    assert observed(record).messages == ["moved"]


def test_an_event_is_told_again_after_ten_minutes_without_it() -> None:
    async def main() -> None:
        observer = Observer()
        to = recorder(observer)
        for wait in (0.0, 400.0, 400.0, 601.0):
            await asyncio.sleep(wait)
            to.normal(WEB, "Moved", "moved")
        assert len(observer.events) == 2

    run(main())


def test_an_object_that_has_too_many_events_is_not_told_of_without_end() -> None:
    def record(to: Recorder) -> None:
        for number in range(100):
            to.normal(WEB, "Moved", f"moved {number}")

    assert len(observed(record).events) == events.BURST


def test_combined_events_are_told_as_one() -> None:
    def record(to: Recorder) -> None:
        combining = to.signed("kedge", combine=True)
        for number in range(20):
            combining.normal(WEB, "Moved", f"moved {number}")

    told = observed(record).messages
    assert told == [*(f"moved {number}" for number in range(9)), "(combined from similar events): moved 9"]


def test_an_observer_is_told_where_events_may_not_be_written() -> None:
    async def main() -> None:
        server, observer = Tiny(), Observer()
        server.fault = lambda _: refused(403, "Forbidden")
        to = recorder(observer, server)
        task = asyncio.create_task(to.run())
        for _ in range(3):
            to.normal(WEB, "Moved", "moved")
            await to.written()
        task.cancel()
        await asyncio.wait([task])
        assert (observer.messages, to.dropped) == (["moved"], 3)

    run(main())


def test_an_observer_is_told_while_no_server_answers_and_the_queue_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_PENDING", 1)

    def record(to: Recorder) -> None:
        to.normal(WEB, "Moved", "first")
        to.normal(WEB, "Moved", "second")

    assert observed(record).messages == ["first", "second"]


def test_what_is_remembered_of_told_events_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "MOST_REMEMBERED", 2)

    def record(to: Recorder) -> None:
        for name in ("a", "b", "c", "c", "a"):
            to.normal(ObjectReference(kind="ConfigMap", name=name, namespace="shop"), "Moved", name)

    assert observed(record).messages == ["a", "b", "c", "a"]

"""Events on their way: in order, again until received, never in the way of anybody."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random

import pytest
from prometheus_client import CollectorRegistry

from kedge.api.core import ObjectReference
from kedge.kube.connect.outbound import Answer, Call, OutboundFailed
from kedge.kube.events import RecordedEvent
from kedge.notifications import dispatcher as dispatching
from kedge.notifications.config import EventFilter, NotificationsConfig, ReceiverConfig, WebhookTarget
from kedge.notifications.dispatcher import Dispatcher
from kedge.notifications.receivers import prepare
from support.stage import LoopClock
from support.virtual import run

SECRET = "hunter2-hunter2-hunter2"
HOST = "hooks.example.com"
FAST, SLOW = f"https://{HOST}/fast/{SECRET}", f"https://{HOST}/slow/{SECRET}"
ABOUT = ObjectReference(api_version="v1", kind="StagedUpdateRun", namespace="shop", name="web")


def event(message: str = "stuck", reason: str = "RunStuck") -> RecordedEvent:
    return RecordedEvent("hub", "kedge", ABOUT, "Warning", reason, message, datetime(2026, 3, 1, tzinfo=UTC))


class Hooks:
    """Webhooks that answer as told: a status, nothing at all (0), or not before a time."""

    def __init__(self, answers: Callable[[str, float], int] = lambda _url, _now: 204) -> None:
        self.calls: list[tuple[float, Call]] = []
        self._answers = answers

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        now = asyncio.get_running_loop().time()
        self.calls.append((now, call))
        status = self._answers(call.url, now)
        if status == HANGS:
            await asyncio.Event().wait()
        if status == 0:
            raise OutboundFailed(f"{call}: the name '{HOST}' cannot be resolved")
        return Answer(status)

    async def close(self) -> None:
        raise AssertionError("it belongs to others")

    def messages(self, url: str = FAST) -> list[str]:
        return [json.loads(call.body)["data"]["message"] for _, call in self.calls if call.url == url]


HANGS = -1


class Bed:
    def __init__(self, hooks: Hooks, receivers: Sequence[ReceiverConfig]) -> None:
        self.registry = CollectorRegistry()
        made = prepare(NotificationsConfig(tuple(receivers)))(hooks, LoopClock())
        self.dispatcher = Dispatcher(made, rng=Random(1), registry=self.registry)

    def count(self, what: str, receiver: str = "fast") -> float | None:
        return self.registry.get_sample_value(f"kedge_notifications_{what}_total", {"receiver": receiver})

    def counts(self, receiver: str = "fast") -> tuple[float | None, ...]:
        return tuple(self.count(what, receiver) for what in ("sent", "failed", "dropped"))


RECEIVERS = (
    ReceiverConfig("fast", webhook=WebhookTarget(FAST)),
    ReceiverConfig("slow", webhook=WebhookTarget(SLOW)),
)


@asynccontextmanager
async def bed(hooks: Hooks, receivers: Sequence[ReceiverConfig] = RECEIVERS[:1]) -> AsyncIterator[Bed]:
    made = Bed(hooks, receivers)
    async with made.dispatcher:
        yield made


def test_events_are_sent_in_order() -> None:
    async def main() -> None:
        hooks = Hooks()
        async with bed(hooks) as made:
            for message in "abc":
                made.dispatcher.recorded(event(message))
            assert not hooks.calls  # telling does not wait
            await asyncio.sleep(1)
            assert hooks.messages() == ["a", "b", "c"]
            assert made.counts() == (3, 0, 0)

    run(main())


def test_a_receiver_gets_only_what_it_wants() -> None:
    async def main() -> None:
        hooks = Hooks()
        wants = EventFilter(reasons=("RunFailed",))
        async with bed(hooks, [ReceiverConfig("fast", webhook=WebhookTarget(FAST), events=wants)]) as made:
            made.dispatcher.recorded(event("a"))
            made.dispatcher.recorded(event("b", "RunFailed"))
            await asyncio.sleep(1)
            assert hooks.messages() == ["b"]

    run(main())


def test_a_receiver_that_hangs_delays_only_itself() -> None:
    async def main() -> None:
        hooks = Hooks(lambda url, _: HANGS if url == SLOW else 200)
        async with bed(hooks, RECEIVERS) as made:
            for number in range(20):
                made.dispatcher.recorded(event(str(number)))
            await asyncio.sleep(0.1)
            assert made.counts() == (20, 0, 0)
            await asyncio.sleep(100)
            assert set(hooks.messages(SLOW)) == {"0"}
            assert len(hooks.messages(SLOW)) == 4  # each attempt is ended after 30 s

    run(main())


@pytest.mark.parametrize("status", [0, 500, 503, 429, 408, 425])
def test_an_event_is_tried_again_until_it_is_received_with_the_same_id(status: int) -> None:
    async def main() -> None:
        hooks = Hooks(lambda _, now: status if now < start + 300 else 200)
        start = asyncio.get_running_loop().time()
        async with bed(hooks) as made:
            made.dispatcher.recorded(event("a"))
            made.dispatcher.recorded(event("b"))
            await asyncio.sleep(400)
            assert made.counts() == (2, 0, 0)
            tried = hooks.messages()
            assert tried == [*["a"] * (len(tried) - 1), "b"]
            bodies = {call.body for _, call in hooks.calls[:-1]}
            assert len(bodies) == 1
            waits = [later - sooner for (sooner, _), (later, _) in zip(hooks.calls, hooks.calls[1:-1], strict=False)]
            assert all(0.8 * min(2**n, 60) <= wait <= 1.2 * min(2**n, 60) for n, wait in enumerate(waits))

    run(main())


def test_the_wait_is_short_again_after_a_success() -> None:
    async def main() -> None:
        down = [True]
        hooks = Hooks(lambda *_: 500 if down[0] else 200)
        async with bed(hooks) as made:
            made.dispatcher.recorded(event("a"))
            await asyncio.sleep(200)
            down[0] = False
            await asyncio.sleep(100)
            down[0] = True
            made.dispatcher.recorded(event("b"))
            await asyncio.sleep(2)
            assert hooks.messages()[-2:] == ["b", "b"]

    run(main())


def test_an_event_is_given_up_after_a_quarter_of_an_hour_and_then_the_next_is_tried() -> None:
    async def main() -> None:
        hooks = Hooks(lambda *_: 500)
        async with bed(hooks) as made:
            made.dispatcher.recorded(event("a"))
            await asyncio.sleep(890)
            assert made.counts() == (0, 0, 0)
            made.dispatcher.recorded(event("b"))
            await asyncio.sleep(110)
            assert made.counts() == (0, 1, 0)
            assert hooks.messages()[-1] == "b"

    run(main())


@pytest.mark.parametrize("status", [301, 400, 401, 404, 410])
def test_an_event_that_the_receiver_refuses_is_given_up_at_once(status: int) -> None:
    async def main() -> None:
        hooks = Hooks(lambda *_: status)
        async with bed(hooks) as made:
            made.dispatcher.recorded(event("a"))
            made.dispatcher.recorded(event("b"))
            await asyncio.sleep(0.1)
            assert hooks.messages() == ["a", "b"]
            assert made.counts() == (0, 2, 0)

    run(main())


def test_the_oldest_are_dropped_and_counted_when_too_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatching, "MOST_WAITING", 3)

    async def main() -> None:
        down = [True]
        hooks = Hooks(lambda *_: 500 if down[0] else 200)
        async with bed(hooks) as made:
            made.dispatcher.recorded(event("in flight"))
            await asyncio.sleep(0.1)
            for number in range(5):
                made.dispatcher.recorded(event(str(number)))
            assert made.counts() == (0, 0, 2)
            down[0] = False
            await asyncio.sleep(60)
            assert hooks.messages()[-4:] == ["in flight", "2", "3", "4"]
            assert made.counts() == (4, 0, 2)

    run(main())


def test_at_the_end_what_waits_is_sent() -> None:
    async def main() -> None:
        hooks = Hooks()
        async with bed(hooks) as made:
            for message in "abc":
                made.dispatcher.recorded(event(message))
        assert made.counts() == (3, 0, 0)
        made.dispatcher.recorded(event("late"))
        assert made.counts() == (3, 0, 1)

    run(main())


def test_at_the_end_a_receiver_that_was_down_is_tried_once_more_without_waiting() -> None:
    async def main() -> None:
        down = [True]
        hooks = Hooks(lambda *_: 500 if down[0] else 200)
        async with bed(hooks) as made:
            made.dispatcher.recorded(event("a"))
            await asyncio.sleep(300)
            down[0] = False
            before = asyncio.get_running_loop().time()
        assert made.counts() == (1, 0, 0)
        assert asyncio.get_running_loop().time() == before

    run(main())


@pytest.mark.parametrize(("status", "counts"), [(500, (0, 3, 0)), (HANGS, (0, 0, 3))])
def test_at_the_end_nobody_is_waited_for_longer_than_a_few_seconds(
    status: int, counts: tuple[float, ...], caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        hooks = Hooks(lambda *_: status)
        async with bed(hooks) as made:
            for message in "abc":
                made.dispatcher.recorded(event(message))
            await asyncio.sleep(0.5)
            before = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - before <= dispatching.FLUSH
        assert made.counts() == counts

    run(main())
    assert caplog.records


def test_failures_are_logged_once_for_a_while_and_without_the_URL(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def main() -> None:
        down = [True]
        hooks = Hooks(lambda *_: 0 if down[0] else 200)
        async with bed(hooks) as made:
            made.dispatcher.recorded(event("a"))
            await asyncio.sleep(50)
            down[0] = False
            await asyncio.sleep(100)
            down[0] = True
            for _ in range(100):
                made.dispatcher.recorded(event("b"))
            await asyncio.sleep(800)

    run(main())
    ours = [record for record in caplog.records if record.name.startswith("kedge.notifications")]
    again = "a notification was not received, and is tried again: the webhook: the name 'its host' cannot be resolved"
    recovered = "notifications are received again"
    assert [record.message for record in ours][:3] == [again, recovered, again]
    assert len(ours) <= 2 + 5 + 1  # after 60, 120, 240, … s
    assert {vars(record)["receiver"] for record in ours} == {"fast"}
    assert not any(text in record.getMessage() for record in caplog.records for text in (SECRET, HOST))


def test_a_channel_with_a_defect_harms_nobody() -> None:
    async def main() -> None:
        def broken(_url: str, _now: float) -> int:
            raise RuntimeError(SECRET)

        async with bed(Hooks(broken)) as made:
            made.dispatcher.recorded(event())
            await asyncio.sleep(1000)
            assert made.counts() == (0, 1, 0)

    run(main())


def test_deliveries_are_signed_with_the_time_of_the_attempt() -> None:
    async def main() -> None:
        hooks = Hooks(lambda *_: 500)
        target = WebhookTarget(FAST, SECRET)
        async with bed(hooks, [ReceiverConfig("fast", webhook=target)]) as made:
            made.dispatcher.recorded(event())
            await asyncio.sleep(10)
        stamps = [int(call.headers["Kedge-Timestamp"]) for _, call in hooks.calls]
        assert stamps == sorted(stamps)
        assert len(set(stamps)) > 2
        assert len({call.headers["Kedge-Signature"] for _, call in hooks.calls}) == len(set(stamps))

    run(main())

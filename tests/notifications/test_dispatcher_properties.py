"""Whatever receivers do: every event is received, given up or dropped, and counted as exactly one of these."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from kedge.api.core import ObjectReference
from kedge.kube.connect.outbound import Answer, Call, OutboundFailed
from kedge.kube.events import RecordedEvent
from kedge.notifications.config import NotificationsConfig, ReceiverConfig, WebhookTarget
from kedge.notifications.dispatcher import FLUSH, MOST_WAITING, Dispatcher
from kedge.notifications.receivers import prepare
from support.stage import LoopClock
from support.virtual import run

ABOUT = ObjectReference(api_version="v1", kind="Run", namespace="shop", name="web")
URL = "https://hooks.example.com/"
BEHAVIOURS = st.sampled_from(["accepts", "accepts", "fails", "refuses", "hangs", "is slow", "breaks"])


class Moody:
    """A webhook that does something else with each attempt."""

    def __init__(self, moods: list[str]) -> None:
        self.accepted: list[int] = []
        self._moods = moods
        self._calls = 0

    async def fetch(self, call: Call, *, timeout: float) -> Answer:
        mood = self._moods[self._calls % len(self._moods)]
        self._calls += 1
        if mood == "hangs":
            await asyncio.Event().wait()
        if mood == "breaks":
            raise OutboundFailed("nobody there")
        await asyncio.sleep(5.0 if mood == "is slow" else 0.0)
        if mood in ("accepts", "is slow"):
            self.accepted.append(int(json.loads(call.body)["data"]["message"]))
        return Answer({"fails": 503, "refuses": 400}.get(mood, 200))

    async def close(self) -> None: ...


@given(
    moods=st.lists(BEHAVIOURS, min_size=1, max_size=8),
    bursts=st.lists(st.tuples(st.integers(0, 60), st.sampled_from([0.0, 1.0, 40.0, 1000.0])), max_size=6),
    seed=st.integers(0, 9),
)
def test_no_event_is_lost_silently_or_overtakes_another(
    moods: list[str], bursts: list[tuple[int, float]], seed: int
) -> None:
    async def main() -> None:
        hook, registry, loop = Moody(moods), CollectorRegistry(), asyncio.get_running_loop()
        config = NotificationsConfig((ReceiverConfig("a", webhook=WebhookTarget(URL)),))
        told = 0
        async with Dispatcher(prepare(config)(hook, LoopClock()), rng=Random(seed), registry=registry) as dispatcher:
            for count, wait in bursts:
                before = loop.time()
                for _ in range(count):
                    at = datetime(2026, 3, 1, tzinfo=UTC)
                    dispatcher.recorded(RecordedEvent("hub", "kedge", ABOUT, "Normal", "Moved", str(told), at))
                    told += 1
                assert loop.time() == before
                await asyncio.sleep(wait)
            ending = loop.time()
        assert loop.time() - ending <= FLUSH
        sent, failed, dropped = (
            registry.get_sample_value(f"kedge_notifications_{what}_total", {"receiver": "a"}) or 0
            for what in ("sent", "failed", "dropped")
        )
        assert sent + failed + dropped == told
        assert len(hook.accepted) == sent
        assert hook.accepted == sorted(set(hook.accepted))
        assert told <= MOST_WAITING

    run(main())

"""Dispatcher: events on their way to receivers.

    async with Dispatcher([Receiver("on-call", channel, EventFilter())], rng=rng, registry=registry) as dispatcher:
        manager = Manager(event_observer=dispatcher, ...)

Promises:

* telling it of an event never waits and never fails: a rollout does not depend on a chat;
* receivers do not know each other: one that hangs delays only itself;
* an event is tried again until it is received, for a quarter of an hour, in order; a receiver may get one twice;
* what waits is bounded: the oldest are dropped, and counted;
* leaving the block tries what waits once more, for a few seconds;
* nothing is lost silently: it is counted, and logged, once for a while.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from msgspec import Struct
from prometheus_client import CollectorRegistry, Counter

from kedge.kube.events import RecordedEvent
from kedge.kube.random_sources import branch
from kedge.notifications.channel import Channel, SendFailed
from kedge.notifications.config import EventFilter

MOST_WAITING: Final = 1000  # events of one receiver
SEND_TIMEOUT: Final = 30.0  # seconds for one attempt, whatever the channel's own limit
TRY_FOR: Final = 900.0  # seconds from the event to the last attempt but one
FIRST_DELAY, LONGEST_DELAY = 1.0, 60.0  # seconds between attempts
FIRST_SILENCE, LONGEST_SILENCE = 60.0, 3600.0  # seconds between two warnings about one receiver
FLUSH: Final = 3.0  # seconds for what waits at the end
log = logging.getLogger(__name__)


class Receiver(Struct, frozen=True):
    """Somebody who is notified: by which name, how, and of what."""

    name: str
    channel: Channel
    wants: EventFilter = EventFilter()


class DispatchMetrics:
    """What became of notifications, by receiver."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str) -> Counter:
            return Counter(f"kedge_notifications_{name}", text, ("receiver",), registry=registry)

        self.sent = counter("sent", "Notifications that were received")
        self.failed = counter("failed", "Notifications that were given up after attempts to send them")
        self.dropped = counter("dropped", "Notifications that were dropped because too many waited, or at the end")


class Dispatcher:
    """Sends events to all receivers that want them. An `EventObserver`."""

    def __init__(self, receivers: Sequence[Receiver], *, rng: random.Random, registry: CollectorRegistry) -> None:
        metrics = DispatchMetrics(registry)
        self._deliveries = [Delivery(receiver, metrics, branch(rng)) for receiver in receivers]
        self._tasks: list[asyncio.Task[None]] = []

    def recorded(self, event: RecordedEvent) -> None:
        for delivery in self._deliveries:
            if delivery.receiver.wants.matches(event):
                delivery.add(event)

    async def __aenter__(self) -> Self:
        self._tasks = [
            asyncio.create_task(delivery.run(), name=f"notifications of {delivery.receiver.name}")
            for delivery in self._deliveries
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for delivery in self._deliveries:
            delivery.close()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=FLUSH)
            for task in late:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
        for delivery in self._deliveries:
            delivery.drop_rest()


class Waiting(Struct, frozen=True):
    """An event that waits, and until when it is tried again, in the loop's time."""

    event: RecordedEvent
    deadline: float


class Delivery:
    """The events on their way to one receiver."""

    def __init__(self, receiver: Receiver, metrics: DispatchMetrics, rng: random.Random) -> None:
        self.receiver = receiver
        self._rng = rng
        self._waiting: deque[Waiting] = deque()
        self._current: Waiting | None = None  # the one that is being sent
        self._has_ended = False
        self._arrived = asyncio.Event()
        self._closing = asyncio.Event()
        self._delay = FIRST_DELAY
        self._trouble = Trouble(receiver.name)
        self._sent = metrics.sent.labels(receiver.name)
        self._failed = metrics.failed.labels(receiver.name)
        self._dropped = metrics.dropped.labels(receiver.name)

    def add(self, event: RecordedEvent) -> None:
        """Send it when its turn comes. Never waits."""
        if self._has_ended:
            self._dropped.inc()
            return
        if len(self._waiting) >= MOST_WAITING:
            self._waiting.popleft()
            self._dropped.inc()
            self._trouble.log("too many notifications wait: the oldest are dropped", _now())
        self._waiting.append(Waiting(event, _now() + TRY_FOR))
        self._arrived.set()

    def close(self) -> None:
        """Try what waits once more, then end."""
        self._closing.set()
        self._arrived.set()

    def drop_rest(self) -> None:
        """Nothing is sent any more."""
        self._has_ended = True
        if count := len(self._waiting) + (self._current is not None):
            self._dropped.inc(count)
            log.warning(
                "not all notifications were sent in time", extra={"receiver": self.receiver.name, "lost": count}
            )
            self._waiting.clear()

    async def run(self) -> None:
        """Send what comes, until closed."""
        while True:
            while self._waiting:
                self._current = self._waiting.popleft()
                await self._deliver(self._current)
                self._current = None
            if self._closing.is_set():
                return
            self._arrived.clear()
            await self._arrived.wait()

    async def _deliver(self, current: Waiting) -> None:
        """Try until it is received, or given up."""
        while (failure := await self._attempt(current.event)) is not None:
            if failure.final or self._closing.is_set() or _now() >= current.deadline:
                self._failed.inc()
                self._trouble.log(f"a notification was given up: {failure}", _now())
                return
            self._trouble.log(f"a notification was not received, and is tried again: {failure}", _now())
            await self._back_off()
        self._sent.inc()
        self._delay = FIRST_DELAY
        self._trouble.over()

    async def _attempt(self, event: RecordedEvent) -> SendFailed | None:
        try:
            async with asyncio.timeout(SEND_TIMEOUT):
                await self.receiver.channel.send(event)
        except SendFailed as failure:
            return failure
        except TimeoutError:
            return SendFailed(f"it took more than {SEND_TIMEOUT:g} s")
        except Exception as error:  # noqa: BLE001  # a channel with a defect must not end the process, nor show a URL
            return SendFailed(f"sending failed with {type(error).__name__}")
        return None

    async def _back_off(self) -> None:
        """Wait before the next attempt: longer each time, and not in step with other processes."""
        delay = self._delay * self._rng.uniform(0.8, 1.2)
        self._delay = min(2 * self._delay, LONGEST_DELAY)
        try:
            async with asyncio.timeout(delay):
                await self._closing.wait()
        except TimeoutError:
            return


class Trouble:
    """Logs that a receiver does not receive: once, and while that lasts again ever more rarely."""

    def __init__(self, receiver: str) -> None:
        self._receiver = receiver
        self._silence = FIRST_SILENCE
        self._next: float | None = None  # when it may be logged again; None: there is no trouble

    def log(self, text: str, now: float) -> None:
        if self._next is not None and now < self._next:
            return
        log.warning("%s", text, extra={"receiver": self._receiver})
        self._next = now + self._silence
        self._silence = min(2 * self._silence, LONGEST_SILENCE)

    def over(self) -> None:
        if self._next is not None:
            log.info("notifications are received again", extra={"receiver": self._receiver})
        self._silence, self._next = FIRST_SILENCE, None


def _now() -> float:
    return asyncio.get_running_loop().time()

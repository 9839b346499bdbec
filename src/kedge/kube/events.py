"""Events: what happened to an object, where `kubectl describe` shows it.

    recorder.normal(deployment, "RolloutStarted", "moving 2 of 10 clusters")

Recording never waits and never fails: events go to a bounded queue, and `run` writes them. An event that repeats
another one raises its count. Events that come while the queue is full, or too often for one object, are dropped and
counted in `dropped`. Events are for people: losing one is better than delaying the work.

An `EventObserver` is told of each event too, also where events may not be written or no server answers. Of events that
say the same it is told once, and again after ten minutes without one.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import random
from collections import OrderedDict
from datetime import datetime
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.core import Event, EventSource, ObjectReference
from kedge.api.meta import Object, ObjectMeta
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.errors import Forbidden, NotFound
from kedge.kube.patches import MergePatch

NORMAL, WARNING = "Normal", "Warning"
LONGEST = 1024  # bytes of a message; the API refuses more
MOST_REMEMBERED = 4096  # events and objects that are remembered
MOST_PENDING = 1000  # events that wait to be written
BURST, REFILL = 25, 1 / 300  # of one object, at once, and per second over time: client-go's numbers
MOST_SIMILAR, SIMILAR_WITHIN = (
    10,
    600.0,
)  # messages for one reason, and seconds: client-go's numbers
COMBINED_PREFIX = "(combined from similar events): "
log = logging.getLogger(__name__)


class EventKey(Struct, frozen=True):
    """What an event says, and who says it. The same again raises the count of the first."""

    component: str
    about: ObjectReference
    type: str
    reason: str
    message: str


class RecordedEvent(Struct, frozen=True):
    """An event, for those who observe a recorder."""

    cluster: str
    """The name this process has for the cluster of the object."""
    component: str
    about: ObjectReference
    type: str
    reason: str
    message: str
    at: datetime


class EventObserver(Protocol):
    """Somebody who is told of events. Must neither wait nor raise: the work that recorded it would."""

    def recorded(self, event: RecordedEvent) -> None: ...


class PendingEvent(Struct, frozen=True):
    """An event that waits to be written: how often it happened, and from when to when."""

    message: str
    count: int
    first: datetime
    last: datetime


class WrittenEvent(Struct, frozen=True):
    """An event on the server."""

    name: str
    count: int


class Recorder:
    """Records the events of one component on one server."""

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        clock: Clock,
        rng: random.Random,
        instance: str = "",
        cluster: str = "",
        observer: EventObserver | None = None,
    ) -> None:
        """`component` is the name people see under "From"; `instance` the process, if there are several.

        `observer` is told of every event, and that it is of this `cluster`.
        """
        self.dropped = 0
        self._cluster = cluster
        self._observer = observer
        self._observed: OrderedDict[EventKey, float] = OrderedDict()  # when the observer's events last happened
        self._client = client.as_flow("events")
        self._component = component
        self._instance = instance
        self._clock = clock
        self._rng = rng
        self._pending: OrderedDict[EventKey, PendingEvent] = OrderedDict()
        self._written: OrderedDict[EventKey, WrittenEvent] = OrderedDict()
        self._buckets: OrderedDict[tuple[str, ObjectReference], TokenBucket] = OrderedDict()
        self._combines = False
        self._similar: OrderedDict[EventKey, SimilarMessages] = OrderedDict()
        self._forbidden: OrderedDict[str, None] = OrderedDict()  # namespaces where that was logged
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def signed(self, component: str, *, combine: bool = False) -> Recorder:
        """The same recorder for another component of this process: one queue, one `run`, another name under "From".

        With `combine`, the tenth and all further different messages of an object for the same reason share one event,
        which shows the last of them. Kubernetes' own controllers do the same.
        """
        other = copy.copy(self)
        other._component = component
        other._combines = combine
        return other

    def normal(self, about: Object | ObjectReference, reason: str, message: str) -> None:
        """Record that something went as it should."""
        self._add(EventKey(self._component, reference(about), NORMAL, reason, cut(message)))

    def warning(self, about: Object | ObjectReference, reason: str, message: str) -> None:
        """Record that something did not."""
        self._add(EventKey(self._component, reference(about), WARNING, reason, cut(message)))

    async def run(self) -> None:
        """Write what is recorded, until cancelled."""
        while True:
            while self._pending:
                key, pending = self._pending.popitem(last=False)
                await self._write(key, pending)
            self._idle.set()
            self._arrived.clear()
            await self._arrived.wait()

    async def written(self) -> None:
        """Wait until everything recorded so far is written or dropped."""
        await self._idle.wait()

    def _add(self, key: EventKey) -> None:
        if not self._within_limit((key.component, key.about)):
            self.dropped += 1
            return
        now = self._clock.now()
        key, message = self._combined(key)
        self._tell_observer(key, message, now)
        waiting = self._pending.get(key)
        if waiting is not None:
            self._pending[key] = replace(waiting, message=message, count=waiting.count + 1, last=now)
        elif len(self._pending) >= MOST_PENDING:
            self.dropped += 1
        else:
            self._pending[key] = PendingEvent(message, 1, now, now)
            self._idle.clear()
            self._arrived.set()

    def _tell_observer(self, key: EventKey, message: str, now: datetime) -> None:
        if self._observer is None:
            return
        at = asyncio.get_running_loop().time()
        last = self._observed.pop(key, None)
        self._observed[key] = at
        if len(self._observed) > MOST_REMEMBERED:
            self._observed.popitem(last=False)
        if last is None or at - last > SIMILAR_WITHIN:
            self._observer.recorded(
                RecordedEvent(self._cluster, key.component, key.about, key.type, key.reason, message, now)
            )

    def _within_limit(self, source: tuple[str, ObjectReference]) -> bool:
        bucket = self._buckets.pop(source, None) or TokenBucket()
        self._buckets[source] = bucket
        if len(self._buckets) > MOST_REMEMBERED:
            self._buckets.popitem(last=False)
        return bucket.try_take(asyncio.get_running_loop().time())

    def _combined(self, key: EventKey) -> tuple[EventKey, str]:
        """The key to count it under, and the message to show: the last one, where messages are combined."""
        if not self._combines:
            return key, key.message
        shared = replace(key, message=COMBINED_PREFIX)
        similar = self._similar.pop(shared, None) or SimilarMessages()
        self._similar[shared] = similar
        if len(self._similar) > MOST_REMEMBERED:
            self._similar.popitem(last=False)
        if similar.allows(key.message, asyncio.get_running_loop().time()):
            return key, key.message
        return shared, cut(COMBINED_PREFIX + key.message)

    async def _write(self, key: EventKey, pending: PendingEvent) -> None:
        try:
            written = await self._count_up(key, pending) or await self._create(key, pending)
        except Forbidden as error:
            self.dropped += 1
            self._log_forbidden(_namespace(key.about), error)
            return
        except Exception as error:  # noqa: BLE001  # whatever it is: no event is worth ending the process for
            self.dropped += 1
            log.warning("an event was not written: %s", error, extra={"reason": key.reason})
            return
        self._written[key] = written
        self._written.move_to_end(key)
        if len(self._written) > MOST_REMEMBERED:
            self._written.popitem(last=False)

    def _log_forbidden(self, namespace: str, error: Forbidden) -> None:
        """Once for each namespace: some operators are not meant to write events at all."""
        level = logging.DEBUG if namespace in self._forbidden else logging.WARNING
        log.log(level, "events may not be written: grant the verbs create and patch on events (%s)", error.message)
        self._forbidden[namespace] = None
        self._forbidden.move_to_end(namespace)
        if len(self._forbidden) > MOST_REMEMBERED:
            self._forbidden.popitem(last=False)

    async def _count_up(self, key: EventKey, pending: PendingEvent) -> WrittenEvent | None:
        """Raise the count of the event that says the same; None if there is none, or the server has dropped it."""
        before = self._written.get(key)
        if before is None:
            return None
        count = before.count + pending.count
        new = {"message": pending.message} if key.message == COMBINED_PREFIX else {}
        patch = MergePatch({"count": count, "lastTimestamp": _seconds(pending.last), **new})
        try:
            await self._client.patch(Event, before.name, patch, _namespace(key.about))
        except NotFound:
            return None
        return WrittenEvent(before.name, count)

    async def _create(self, key: EventKey, pending: PendingEvent) -> WrittenEvent:
        name = f"{key.about.name[:236]}.{self._rng.getrandbits(64):016x}"
        event = Event(
            metadata=ObjectMeta(name=name, namespace=_namespace(key.about)),
            involved_object=key.about,
            type=key.type,
            reason=key.reason,
            message=pending.message,
            count=pending.count,
            first_timestamp=_seconds(pending.first),
            last_timestamp=_seconds(pending.last),
            source=EventSource(component=key.component, host=self._instance),
            reporting_component=key.component,
            reporting_instance=self._instance,
        )
        await self._client.create(Event, event)
        return WrittenEvent(name, pending.count)


class SimilarMessages:
    """The messages with which one object has reported the same thing lately."""

    __slots__ = ("_at", "_messages")

    def __init__(self) -> None:
        self._messages: dict[str, None] = {}
        self._at = 0.0

    def allows(self, message: str, now: float) -> bool:
        if now - self._at > SIMILAR_WITHIN:
            self._messages.clear()
        self._at = now
        self._messages[message] = None
        if len(self._messages) < MOST_SIMILAR:
            return True
        del self._messages[message]
        return False


class TokenBucket:
    """How many events one object may still record."""

    __slots__ = ("_at", "_left")

    def __init__(self) -> None:
        self._left = float(BURST)
        self._at: float | None = None

    def try_take(self, now: float) -> bool:
        since = 0.0 if self._at is None else now - self._at
        self._left = min(float(BURST), self._left + since * REFILL)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def reference(about: Object | ObjectReference) -> ObjectReference:
    """A reference to an object, whatever its version."""
    if isinstance(about, ObjectReference):
        return replace(about, resource_version="")
    meta = about.metadata
    return ObjectReference(
        api_version=about.resource.api_version,
        kind=about.resource.kind,
        namespace=meta.namespace or "",
        name=meta.name,
        uid=meta.uid,
    )


def cut(message: str) -> str:
    """At most as many bytes as the API accepts, cut between characters; a cut message ends in an ellipsis."""
    data = message.encode()
    return message if len(data) <= LONGEST else data[: LONGEST - 3].decode(errors="ignore") + "…"


def _namespace(about: ObjectReference) -> str:
    return about.namespace or "default"


def _seconds(moment: datetime) -> datetime:
    """The API keeps whole seconds here."""
    return moment.replace(microsecond=0)

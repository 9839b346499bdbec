"""Events: what happened to an object, told where `kubectl describe` shows it.

    recorder.normal(deployment, "RolloutStarted", "moving 2 of 10 clusters")

Telling never waits and never fails: events go to a bounded line, and `run` writes them. What is told again of the same
object in the same words becomes a count of the first; what comes while the line is full, or from an object that tells
too much, is dropped and counted in `dropped`. Events are for people, so losing one is better than delaying the work.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import OrderedDict
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.core import Event, EventSource, ObjectReference
from kedge.api.meta import Object, ObjectMeta
from kedge.kube.client import Client
from kedge.kube.clock import Clock
from kedge.kube.errors import NotFound
from kedge.kube.patches import MergePatch

NORMAL, WARNING = "Normal", "Warning"
LONGEST = 1024  # bytes of a message; the API refuses more
REMEMBERED = 4096  # events and objects kept in mind
WAITING = 1000  # events in line
BURST, REFILL = 25, 1 / 300  # what one object may tell at once, and per second over time: client-go's numbers
log = logging.getLogger(__name__)


class Telling(Struct, frozen=True):
    """What is told: the same again is a count, not another event."""

    about: ObjectReference
    type: str
    reason: str
    message: str


class Pending(Struct, frozen=True):
    """A telling in line: how often, and from when to when."""

    count: int
    first: datetime
    last: datetime


class Written(Struct, frozen=True):
    """An event on the server."""

    name: str
    count: int


class Recorder:
    """Tells of what one component does on one server."""

    def __init__(self, client: Client, component: str, *, clock: Clock, rng: random.Random, instance: str = "") -> None:
        """`component` is the name people see under "From"; `instance` the process, if there are several."""
        self.dropped = 0
        self._client = client.as_flow("events")
        self._component = component
        self._instance = instance
        self._clock = clock
        self._rng = rng
        self._pending: OrderedDict[Telling, Pending] = OrderedDict()
        self._written: OrderedDict[Telling, Written] = OrderedDict()
        self._allowances: OrderedDict[ObjectReference, Allowance] = OrderedDict()
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def normal(self, about: Object | ObjectReference, reason: str, message: str) -> None:
        """Tell that something went as it should."""
        self._tell(Telling(reference(about), NORMAL, reason, cut(message)))

    def warning(self, about: Object | ObjectReference, reason: str, message: str) -> None:
        """Tell that something did not."""
        self._tell(Telling(reference(about), WARNING, reason, cut(message)))

    async def run(self) -> None:
        """Write what is told, until cancelled."""
        while True:
            while self._pending:
                telling, pending = self._pending.popitem(last=False)
                await self._write(telling, pending)
            self._idle.set()
            self._arrived.clear()
            await self._arrived.wait()

    async def written(self) -> None:
        """Wait until everything told so far is written or given up."""
        await self._idle.wait()

    def _tell(self, telling: Telling) -> None:
        if not self._allowed(telling.about):
            self.dropped += 1
            return
        now = self._clock.now()
        waiting = self._pending.get(telling)
        if waiting is not None:
            self._pending[telling] = replace(waiting, count=waiting.count + 1, last=now)
        elif len(self._pending) >= WAITING:
            self.dropped += 1
        else:
            self._pending[telling] = Pending(1, now, now)
            self._idle.clear()
            self._arrived.set()

    def _allowed(self, about: ObjectReference) -> bool:
        allowance = self._allowances.pop(about, None) or Allowance()
        self._allowances[about] = allowance
        if len(self._allowances) > REMEMBERED:
            self._allowances.popitem(last=False)
        return allowance.spend(asyncio.get_running_loop().time())

    async def _write(self, telling: Telling, pending: Pending) -> None:
        try:
            written = await self._count_up(telling, pending) or await self._create(telling, pending)
        except Exception as error:  # noqa: BLE001  # whatever it is: no event is worth ending the process for
            self.dropped += 1
            log.warning("an event was not written: %s", error, extra={"reason": telling.reason})
            return
        self._written[telling] = written
        self._written.move_to_end(telling)
        if len(self._written) > REMEMBERED:
            self._written.popitem(last=False)

    async def _count_up(self, telling: Telling, pending: Pending) -> Written | None:
        """Count it in the event that tells the same; None if there is none, or the server has dropped it."""
        before = self._written.get(telling)
        if before is None:
            return None
        count = before.count + pending.count
        patch = MergePatch({"count": count, "lastTimestamp": _seconds(pending.last)})
        try:
            await self._client.patch(Event, before.name, patch, _namespace(telling.about))
        except NotFound:
            return None
        return Written(before.name, count)

    async def _create(self, telling: Telling, pending: Pending) -> Written:
        name = f"{telling.about.name[:236]}.{self._rng.getrandbits(64):016x}"
        event = Event(
            metadata=ObjectMeta(name=name, namespace=_namespace(telling.about)),
            involved_object=telling.about,
            type=telling.type,
            reason=telling.reason,
            message=telling.message,
            count=pending.count,
            first_timestamp=_seconds(pending.first),
            last_timestamp=_seconds(pending.last),
            source=EventSource(component=self._component, host=self._instance),
            reporting_component=self._component,
            reporting_instance=self._instance,
        )
        await self._client.create(Event, event)
        return Written(name, pending.count)


class Allowance:
    """How much one object may still tell: a token bucket."""

    __slots__ = ("_at", "_left")

    def __init__(self) -> None:
        self._left = float(BURST)
        self._at: float | None = None

    def spend(self, now: float) -> bool:
        since = 0.0 if self._at is None else now - self._at
        self._left = min(float(BURST), self._left + since * REFILL)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def reference(about: Object | ObjectReference) -> ObjectReference:
    """Which object is meant, whatever its version."""
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
    """At most as many bytes as the API takes, cut between characters, with a sign that it was."""
    data = message.encode()
    return message if len(data) <= LONGEST else data[: LONGEST - 3].decode(errors="ignore") + "…"


def _namespace(about: ObjectReference) -> str:
    return about.namespace or "default"


def _seconds(moment: datetime) -> datetime:
    """The API keeps whole seconds here."""
    return moment.replace(microsecond=0)

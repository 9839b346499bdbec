"""Events: what happened to an object, told where `kubectl describe` shows it.

    recorder.normal(deployment, "RolloutStarted", "moving 2 of 10 clusters")

Telling never waits and never fails: events go to a bounded line, and `run` writes them. What is told again of the same
object in the same words becomes a count of the first; what comes while the line is full, or from an object that tells
too much, is dropped and counted in `dropped`. Events are for people, so losing one is better than delaying the work.
"""

from __future__ import annotations

import asyncio
import copy
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
VARIANTS, VARIED_WITHIN = 10, 600.0  # as many words for one thing within so many seconds are too many: client-go's
COMBINED = "(combined from similar events): "
log = logging.getLogger(__name__)


class Telling(Struct, frozen=True):
    """What is told, and by whom: the same again is a count, not another event."""

    component: str
    about: ObjectReference
    type: str
    reason: str
    message: str


class Pending(Struct, frozen=True):
    """A telling in line: how often, and from when to when."""

    message: str
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
        self._allowances: OrderedDict[tuple[str, ObjectReference], Allowance] = OrderedDict()
        self._combines = False
        self._variants: OrderedDict[Telling, Variants] = OrderedDict()
        self._arrived = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def signed(self, component: str, *, combine: bool = False) -> Recorder:
        """The same recorder for another component of this process: one line, one `run`, another name under "From".

        With `combine`, where an object has the same to tell in ever other words, the tenth and all after it share one
        event, which says the last of them: so do Kubernetes' own controllers.
        """
        other = copy.copy(self)
        other._component = component
        other._combines = combine
        return other

    def normal(self, about: Object | ObjectReference, reason: str, message: str) -> None:
        """Tell that something went as it should."""
        self._tell(Telling(self._component, reference(about), NORMAL, reason, cut(message)))

    def warning(self, about: Object | ObjectReference, reason: str, message: str) -> None:
        """Tell that something did not."""
        self._tell(Telling(self._component, reference(about), WARNING, reason, cut(message)))

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
        if not self._allowed((telling.component, telling.about)):
            self.dropped += 1
            return
        now = self._clock.now()
        telling, message = self._combined(telling)
        waiting = self._pending.get(telling)
        if waiting is not None:
            self._pending[telling] = replace(waiting, message=message, count=waiting.count + 1, last=now)
        elif len(self._pending) >= WAITING:
            self.dropped += 1
        else:
            self._pending[telling] = Pending(message, 1, now, now)
            self._idle.clear()
            self._arrived.set()

    def _allowed(self, teller: tuple[str, ObjectReference]) -> bool:
        allowance = self._allowances.pop(teller, None) or Allowance()
        self._allowances[teller] = allowance
        if len(self._allowances) > REMEMBERED:
            self._allowances.popitem(last=False)
        return allowance.spend(asyncio.get_running_loop().time())

    def _combined(self, telling: Telling) -> tuple[Telling, str]:
        """Under what it is counted, and what to say: of what comes in many variants the last, for all of them."""
        if not self._combines:
            return telling, telling.message
        shared = replace(telling, message=COMBINED)
        variants = self._variants.pop(shared, None) or Variants()
        self._variants[shared] = variants
        if len(self._variants) > REMEMBERED:
            self._variants.popitem(last=False)
        if variants.are_few(telling.message, asyncio.get_running_loop().time()):
            return telling, telling.message
        return shared, cut(COMBINED + telling.message)

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
        new = {"message": pending.message} if telling.message == COMBINED else {}
        patch = MergePatch({"count": count, "lastTimestamp": _seconds(pending.last), **new})
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
            message=pending.message,
            count=pending.count,
            first_timestamp=_seconds(pending.first),
            last_timestamp=_seconds(pending.last),
            source=EventSource(component=telling.component, host=self._instance),
            reporting_component=telling.component,
            reporting_instance=self._instance,
        )
        await self._client.create(Event, event)
        return Written(name, pending.count)


class Variants:
    """In how many words one object has told the same thing lately."""

    __slots__ = ("_at", "_messages")

    def __init__(self) -> None:
        self._messages: dict[str, None] = {}
        self._at = 0.0

    def are_few(self, message: str, now: float) -> bool:
        if now - self._at > VARIED_WITHIN:
            self._messages.clear()
        self._at = now
        self._messages[message] = None
        if len(self._messages) < VARIANTS:
            return True
        del self._messages[message]
        return False


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

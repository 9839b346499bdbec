"""Heard: what processes had been told of one kind of objects, moment by moment, and what it asked for itself.

Nobody can act on what has not reached them. So whether a decision was right is judged by what its maker had heard by
then: every line and answer that its link brought, and what its own requests had already done. That is exact: there is
no time to be excused for, and what was heard once is not forgotten in the same life.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Generic, TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from kedge.embedded.store import Change
from kedge.simulate.trace import Entry, Trace

T = TypeVar("T")
Life: TypeAlias = tuple[str, int]
"""One life of a process: its name, and which of its starts it began with."""


class Sent(Struct):
    """A request that left."""

    first: float  # when it did so the first time: it may have been sent again
    life: Life
    what: str
    lost_at: float = float("inf")  # when its sender gave up waiting for the answer


class Known(Struct, frozen=True):
    """What was known at a moment: every change up to `all`, and of single objects more."""

    at: float
    all: int  # the changes that surely were
    most: int  # the changes that may have been, where several follow the same objects
    single: dict[str, int] = {}


class Version(Struct, Generic[T], frozen=True):
    """One object as of one change; None if it is gone. `number` is that of the request that made it, if one did."""

    version: int
    object: T | None
    number: int


class _Meta(Struct, rename="camel", frozen=True):
    name: str = ""
    namespace: str = ""
    resource_version: str = "0"
    annotations: dict[str, str] = {}


class _Object(Struct, frozen=True):
    metadata: _Meta = _Meta()


class _Line(Struct, frozen=True):
    type: str
    object: _Object


class _Ears(Struct):
    """What one process listens to, in its present life."""

    process: str
    starts: int = 0
    streams: dict[int, int] = msgspec.field(default_factory=dict)  # the newest version each has brought
    beginning: set[int] = msgspec.field(default_factory=set)  # streams that have not told all there is yet
    asked: dict[int, str] = msgspec.field(default_factory=dict)

    @property
    def life(self) -> Life:
        return self.process, self.starts


class Heard(Generic[T]):
    """What a process, or each of several that do the same, knows of one kind on one server."""

    def __init__(
        self, trace: Trace, processes: Sequence[str], server: str, kind: type[T], *, followers: int = 1
    ) -> None:
        """`followers` is how many watches of these objects a process has; a decision may be made on any."""
        self._plural: str = kind.resource.plural  # type: ignore[attr-defined]  # every kind has one
        about = rf"[^?]*/{self._plural}(?:/([^/?]+))?(?:/status)?(?:\?|$)"
        self._of_kind = re.compile(rf"^(GET|POST|PATCH|PUT|DELETE) {about}")
        self._kind = kind
        self._followers = followers
        self.versions: dict[str, list[Version[T]]] = {}
        self.sent: dict[int, Sent] = {}
        self._first: dict[tuple[Life, str, bytes], float] = {}
        self._ears = {process: _Ears(process) for process in processes}
        self._by_link = {f"{process} → {server}": ears for process, ears in self._ears.items()}
        self._lives: dict[Life, list[Known]] = {ears.life: [] for ears in self._ears.values()}
        trace.follow(self._take, *self._ears, *self._by_link)

    # What there is

    def changed(self, change: Change, number: int) -> tuple[T | None, T | None]:
        """Note a change of an object; gives it as it was and as it is."""
        before = self.now(change.version.key)
        now = None if change.type == "DELETED" else msgspec.json.decode(change.version.body, type=self._kind)
        made = Version(change.version.number, now, number)
        self.versions.setdefault(change.version.key, []).append(made)
        return before, now

    def now(self, key: str) -> T | None:
        """The object as it is."""
        return self.versions[key][-1].object if key in self.versions else None

    def all(self) -> dict[str, T]:
        """Every object as it is."""
        return {key: found for key in self.versions if (found := self.now(key)) is not None}

    # What was known

    def known_at(self, moment: float, life: Life) -> Sequence[Known]:
        """What may have been known at a moment: at the same moment more may have come just before, or just after."""
        known = self._lives[life]
        first = bisect_left(known, moment, key=lambda one: one.at)
        return known[max(0, first - 1) : bisect_right(known, moment, key=lambda one: one.at)]

    def surely_known_at(self, moment: float) -> int:
        """The changes that every one of those who were started knew of at that moment, in its present life."""
        known = [self.known_at(moment, ears.life) for ears in self._ears.values() if ears.starts]
        return min((found[0].all if found else 0 for found in known), default=0)

    def number_of(self, carried: tuple[str, int] | None) -> int:
        """The number of the request that is being carried out, if one of them sent it; 0 if it is another's."""
        return carried[1] if carried is not None and carried[0] in self._by_link else 0

    def seen(self, key: str, known: Known) -> Version[T] | None:
        """An object as somebody who knows that much sees it."""
        most = max(known.all, known.single.get(key, 0))
        found = [version for version in self.versions.get(key, ()) if version.version <= most]
        return found[-1] if found else None

    def seen_all(self, known: Known) -> dict[str, Version[T]]:
        found = ((key, self.seen(key, known)) for key in self.versions)
        return {key: version for key, version in found if version is not None and version.object is not None}

    def may_be_seen(self, key: str, known: Known) -> list[T]:
        """Every form of an object that somebody who knows that much may see."""
        versions, most = self.versions.get(key, []), max(known.most, known.single.get(key, 0))
        low = max((at for at, one in enumerate(versions) if one.version <= known.all), default=0)
        return [one.object for one in versions[low:] if one.version <= most and one.object is not None]

    # What the links bring

    def _take(self, entry: Entry) -> None:
        if entry.who in self._ears and entry.what == "starts":
            self._ears[entry.who] = ears = _Ears(entry.who, self._ears[entry.who].starts + 1)
            self._by_link.update((link, ears) for link, old in self._by_link.items() if old.process == ears.process)
            self._lives[ears.life] = []
        elif entry.number and (found := self._by_link.get(entry.who)) is not None:
            self._take_of(found, entry)

    def _take_of(self, ears: _Ears, entry: Entry) -> None:
        if entry.number in ears.streams and entry.what == "· a line":
            self._hear(ears, entry)
        elif entry.number in ears.asked:
            self._answered(ears, entry)
        elif entry.number in self.sent and entry.what.startswith("→ no answer"):
            self.sent[entry.number].lost_at = entry.at
        elif (found := self._of_kind.match(entry.what)) is not None:
            self._leaves(ears, entry, found[1], found[2] or "")

    def _leaves(self, ears: _Ears, entry: Entry, method: str, name: str) -> None:
        if method != "GET":
            first = self._first.setdefault((ears.life, entry.what, entry.body), entry.at)
            self.sent[entry.number] = Sent(first, ears.life, entry.what)
        elif "watch=true" in entry.what:
            ears.streams[entry.number] = 0
            if "sendInitialEvents=true" in entry.what:
                ears.beginning.add(entry.number)
        else:
            ears.asked[entry.number] = name

    def _hear(self, ears: _Ears, entry: Entry) -> None:
        line = msgspec.json.decode(entry.body, type=_Line)
        if line.type == "ERROR":
            return
        if entry.number in ears.beginning:
            if line.type != "BOOKMARK" or "k8s.io/initial-events-end" not in line.object.metadata.annotations:
                return
            ears.beginning.discard(entry.number)
        ears.streams[entry.number] = int(line.object.metadata.resource_version)
        self._learn(ears, entry.at, {})

    def _answered(self, ears: _Ears, entry: Entry) -> None:
        name = ears.asked.pop(entry.number)
        if entry.what.startswith("→ 404") and name in self.versions:
            self._learn(ears, entry.at, {name: self.versions[name][-1].version})
        if not entry.what.startswith("→ 200"):
            return
        meta = msgspec.json.decode(entry.body, type=_Object).metadata
        if name:
            self._learn(ears, entry.at, {f"{meta.namespace}/{meta.name}".lstrip("/"): int(meta.resource_version)})
        else:
            ears.streams[entry.number] = int(meta.resource_version)
            self._learn(ears, entry.at, {})

    def _learn(self, ears: _Ears, at: float, single: dict[str, int]) -> None:
        brought = sorted(ears.streams.values(), reverse=True)
        learnt = self._lives[ears.life]
        before: dict[str, int] = learnt[-1].single if learnt else {}
        surely = brought[self._followers - 1] if len(brought) >= self._followers else 0
        learnt.append(Known(at, surely, max(brought, default=0), {**before, **single} if single else before))

"""Attempt: one pass over a Work, object by object, wave by wave, to what is to be said of each.

What is as it was left, as far as the member shows, costs nothing. What was changed is put back, what is gone is made
again; before an object is made, it is written down (`record`), so that it is never without somebody who knows of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence, Set
from datetime import datetime
from functools import partial
from typing import Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.resource import Resource
from kedge.api.rollout import ApplyStrategy, ReportBackType
from kedge.api.work import AppliedResource, AppliedWork, BackReportedStatus, Work, WorkSpec
from kedge.controllers.member.following import Followed, Following, content_of, status_of
from kedge.controllers.member.pods import PodTroubles
from kedge.controllers.member.repairs import Repairs
from kedge.controllers.member.together import together
from kedge.controllers.member.writing import Writer, Written
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import NotFound
from kedge.plan.applying.manifests import Identity, Misread, Placed
from kedge.plan.applying.owning import Owner, Refusal, unsupported
from kedge.plan.applying.reporting import Result
from kedge.plan.applying.waves import in_waves
from kedge.plan.availability import Verdict, judge
from kedge.plan.availability.pod_trouble import Workload

Record: TypeAlias = Callable[[Sequence[Placed]], Awaitable[None]]

UNWATCHED: Final = 10.0  # seconds between looks at kinds that the member does not let us watch
_APPLIED: Final = "it is as the hub wants it"
_DISPUTED: Final = "somebody on the member keeps changing it: it is put back, but less and less often"
_DELETED: Final = Refusal(reasons.MANIFEST_APPLY_FAILED, "somebody on the member keeps deleting it")


Content: TypeAlias = tuple[str, bytes]
"""An object (its uid), and what it looks like."""


class Settled(Struct, frozen=True):
    """An object that is as a manifest (its digest) wants it."""

    digest: str
    content: Content


class Memory(Struct):
    """What is remembered of a Work between attempts. All of it can be found out again."""

    work: tuple[str, int]
    """The uid and the generation of the Work."""
    owner: Owner
    strategy: ApplyStrategy
    begun: float
    spec: WorkSpec
    read: tuple[Placed | Misread, ...] = ()
    resources: frozenset[Resource] = frozenset()
    """The kinds of what the Work asks for."""
    awaited: frozenset[Resource] = frozenset()
    """The kinds of what it no longer asks for, and that may still come."""
    settled: dict[Identity, Settled] = field(default_factory=dict)
    """How objects were last found, or left, as they should be."""
    left: dict[Identity, Untyped] = field(default_factory=dict)
    """The same objects in full, but for what they say of themselves."""
    held: dict[Identity, Content] = field(default_factory=dict)
    """The same of an object that somebody keeps changing, and that is not to be put back yet."""
    mirrored: dict[Identity, tuple[bytes, BackReportedStatus | None]] = field(default_factory=dict)
    """What an object said of itself, by what tells whether it says something else."""
    listed: tuple[AppliedResource, ...] = ()
    """What the AppliedWork was last made to list."""

    @classmethod
    def of(cls, work: Work, owner: Owner, before: Memory | None) -> Memory:
        """A new one; it still knows what the one before knew of manifests that are the same."""
        meta, strategy = work.metadata, work.spec.apply_strategy or ApplyStrategy()
        memory = cls((meta.uid, meta.generation), owner, strategy, asyncio.get_running_loop().time(), work.spec)
        if before is not None and (before.owner, before.strategy) == (owner, strategy):
            memory.settled, memory.left = dict(before.settled), dict(before.left)
        return memory

    def is_of(self, work: Work, applied: AppliedWork) -> bool:
        """Whether it is of the Work as it is. A hub that was restored may give a generation to something else."""
        same = self.work == (work.metadata.uid, work.metadata.generation) and self.spec == work.spec
        return same and self.owner.uid == applied.metadata.uid

    def learn(self, read: tuple[Placed | Misread, ...]) -> None:
        """Take in what the Work asks for."""
        self.read = read
        wanted = {one.identity for one in read}
        self.left = {one: obj for one, obj in self.left.items() if one in wanted}
        self.resources = frozenset(one.resource for one in self.placed)

    def doubt(self, entry: AppliedResource, late: float) -> float:
        """For how many seconds longer an object may still come that was written, and never seen; 0 if it was."""
        return 0.0 if entry.uid else max(0.0, self.begun + late - asyncio.get_running_loop().time())

    @property
    def unknown(self) -> list[Misread]:
        """What the member does not serve, or not yet."""
        return [one for one in self.read if isinstance(one, Misread) and one.unknown]

    @property
    def placed(self) -> list[Placed]:
        return [one for one in self.read if isinstance(one, Placed)]


class Held(Struct, frozen=True):
    """An object that differs, and is left so for now."""

    obj: Untyped


class Attempt:
    """One pass over one Work."""

    def __init__(
        self,
        work: Work,
        memory: Memory,
        member: Client,
        *,
        following: Following,
        pods: PodTroubles,
        repairs: Repairs,
    ) -> None:
        mirror = work.spec.report_back_strategy
        self._memory = memory
        self._client = member
        self._following = following
        self._pods = pods
        self._repairs = repairs
        self._unsupported = unsupported(memory.strategy)
        self._mirrors = mirror is not None and mirror.type is ReportBackType.mirror
        self._writer = Writer(member, memory.owner, memory.strategy)
        self._rehearsal = Writer(member, memory.owner, memory.strategy, rehearses=True)

    async def results(
        self, record: Record, known: Set[Identity], refused: Set[Identity], now: datetime
    ) -> list[Result]:
        """What came of every manifest. `known` are recorded already; `refused` were not to be had the last time."""
        if self._unsupported:
            return [not_applied(one, self._unsupported, retry=False) for one in self._memory.read]
        self._following.follow(self._memory.resources)
        found = await self._deleted_again()
        placed, doubted, listed = self._memory.placed, refused - known, refused | known
        placed = [one for one in placed if one.identifier.ordinal not in found]
        await record([one for one in placed if one.identity not in listed])
        for wave in in_waves(placed):
            doubtful = [one for one in wave if one.identity in doubted]
            found |= await self._rehearse(doubtful, record)
            found |= self._unchanged(one for one in wave if one.identifier.ordinal not in found)
            rest = [one for one in wave if one.identifier.ordinal not in found]
            await record([one for one in rest if one.identity in known and await self._is_gone(one)])
            found |= _by_ordinal(await together(partial(self._one, one, now) for one in rest))
        return [found.get(one.identifier.ordinal) or _misread(one) for one in self._memory.read]

    async def _deleted_again(self) -> dict[int, Result]:
        """What somebody keeps deleting and is not to be made again yet. Nothing is written down for it until then:

        each such write would wake this agent, and any other of the same member, to look at it again.
        """
        repairs = ((one, self._repairs.wait(one.identity)) for one in self._memory.placed if self._repairs_it(one))
        waits = [(one, wait) for one, wait in repairs if wait > 0 and await self._is_gone(one)]
        return _by_ordinal(replace(not_applied(one, _DELETED, retry=False), later=wait) for one, wait in waits)

    def _repairs_it(self, placed: Placed) -> bool:
        """Whether to write it would be to put it back: it has been as it should be."""
        settled = self._memory.settled.get(placed.identity)
        return settled is not None and settled.digest == placed.digest

    async def _is_gone(self, placed: Placed) -> bool:
        """Whether somebody removed it. Then as little is known of what will be made as before it was there."""
        shows, find = self._following.shows, self._following.get
        return await shows(placed.resource) and find(placed.resource, placed.name, placed.namespace) is None

    async def _rehearse(self, doubtful: list[Placed], record: Record) -> dict[int, Result]:
        """What is still refused. It is not written down, or it would be written down and crossed out for ever."""
        said = await together(partial(self._rehearsal.write, one, expected=False) for one in doubtful)
        await record([one for one, end in zip(doubtful, said, strict=True) if isinstance(end, Written)])
        refusals = zip(doubtful, said, strict=True)
        return _by_ordinal([not_applied(one, end) for one, end in refusals if isinstance(end, Refusal)])

    def _unchanged(self, wave: Iterable[Placed]) -> dict[int, Result]:
        """What there is nothing to ask or to do about: mostly all of it."""
        if self._mirrors:
            return {}
        shown = ((one, self._following.get(one.resource, one.name, one.namespace)) for one in wave)
        return _by_ordinal(self._standing(one, seen) for one, seen in shown if seen and self._stands(one, seen))

    def _standing(self, placed: Placed, shown: Followed, mirrored: BackReportedStatus | None = None) -> Result:
        return self._applied(placed, shown.metadata.uid, shown.metadata.generation, shown.verdict, mirrored)

    async def _one(self, placed: Placed, now: datetime) -> Result:
        watched = await self._following.shows(placed.resource)
        shown = self._following.get(placed.resource, placed.name, placed.namespace) if watched else None
        if shown is not None and self._stands(placed, shown):
            mirrored = await self._mirror_of(placed, shown, now) if self._mirrors else None
            return self._standing(placed, shown, mirrored)
        end = await self._write(placed, shown, expected=shown is not None or not watched)
        if isinstance(end, Refusal):
            return not_applied(placed, end, shown)
        self._remember(placed, end)
        mirrored = self._mirror(placed, end.obj, now) if self._mirrors else None
        meta = end.obj["metadata"]
        result = self._applied(placed, meta["uid"], meta.get("generation", 0), judge(end.obj), mirrored)
        return result if watched else replace(result, later=UNWATCHED)

    def _stands(self, placed: Placed, shown: Followed) -> bool:
        """Whether there is nothing to do: it is as it should be, or is not to be put back yet."""
        meta, identity = shown.metadata, placed.identity
        if meta.deletion_timestamp is not None:
            return False
        seen = (meta.uid, shown.content)
        held = self._memory.held.get(identity) == seen and self._repairs.wait(identity) > 0
        return held or self._memory.settled.get(identity) == Settled(placed.digest, seen)

    def _remember(self, placed: Placed, end: Written | Held) -> None:
        seen = (end.obj["metadata"]["uid"], content_of(end.obj))
        if isinstance(end, Held):
            self._memory.held[placed.identity] = seen
        else:
            self._memory.settled[placed.identity] = Settled(placed.digest, seen)
            self._memory.left[placed.identity] = _without_words(end.obj)

    def _known(self, placed: Placed, shown: Followed | None) -> Untyped | None:
        """The object, if the member shows it as it was left."""
        settled, left = self._memory.settled.get(placed.identity), self._memory.left.get(placed.identity)
        if shown is None or settled is None or left is None:
            return None
        meta = shown.metadata
        if settled.content != (meta.uid, shown.content) or meta.deletion_timestamp is not None:
            return None
        return {**left, "metadata": {**left["metadata"], "resourceVersion": meta.resource_version}}

    async def _write(self, placed: Placed, shown: Followed | None, *, expected: bool) -> Written | Held | Refusal:
        """Write, or put back: that not too often."""
        repairs = self._repairs_it(placed)
        if repairs and self._repairs.wait(placed.identity) > 0:
            would = await self._rehearsal.write(placed, expected=True)
            return await self._hold(placed) if isinstance(would, Written) and would.changed else would
        end = await self._writer.write(placed, expected=expected, known=self._known(placed, shown))
        if repairs and isinstance(end, Written) and end.changed:
            self._repairs.note(placed.identity)
        return end

    async def _hold(self, placed: Placed) -> Held | Refusal:
        """What there is while it is not to be put back yet."""
        try:
            return Held(await self._client.get(untyped(placed.resource), placed.name, placed.namespace))
        except NotFound:
            return _DELETED

    def _applied(
        self, placed: Placed, uid: str, generation: int, verdict: Verdict, mirrored: BackReportedStatus | None
    ) -> Result:
        disputed = self._repairs.are_disputed(placed.identity)
        return Result(
            identifier=placed.identifier,
            applied=True,
            reason=reasons.MANIFEST_APPLIED,
            message=_DISPUTED if disputed else _APPLIED,
            uid=uid,
            generation=generation,
            verdict=self._pods.explain(verdict, workload_of(placed)),
            back_reported=mirrored,
            later=self._repairs.next_look(placed.identity) if disputed else None,
        )

    async def _mirror_of(self, placed: Placed, shown: Followed, now: datetime) -> BackReportedStatus | None:
        known = self._memory.mirrored.get(placed.identity)
        if known is not None and known[0] == shown.status:
            return known[1]
        try:
            live = await self._client.get(untyped(placed.resource), placed.name, placed.namespace)
        except NotFound:
            return None
        return self._mirror(placed, live, now)

    def _mirror(self, placed: Placed, obj: Untyped, now: datetime) -> BackReportedStatus | None:
        """What the object says of itself; nothing if it does not."""
        found = _said(obj, now) if obj.get("status") else None
        self._memory.mirrored[placed.identity] = (status_of(obj), found)
        return found


def workload_of(placed: Placed) -> Workload:
    """It, as pods and events speak of it."""
    return Workload(placed.resource.group, placed.resource.kind, placed.namespace or "", placed.name)


def _without_words(obj: Untyped) -> Untyped:
    meta = {name: value for name, value in obj["metadata"].items() if name != "managedFields"}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": meta}


def _said(obj: Untyped, now: datetime) -> BackReportedStatus:
    metadata = {name: obj["metadata"][name] for name in ("name", "namespace", "generation") if name in obj["metadata"]}
    said = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata, "status": obj["status"]}
    return BackReportedStatus(observation_time=now.replace(microsecond=0), observed_status=said)


def not_applied(one: Placed | Misread, why: Refusal, shown: Followed | None = None, *, retry: bool = True) -> Result:
    return Result(
        identifier=one.identifier,
        applied=False,
        reason=why.reason,
        message=why.message,
        uid=shown.metadata.uid if shown else "",
        generation=shown.metadata.generation if shown else None,
        retry=retry,
        unsure=why.unsure,
    )


def _misread(one: Placed | Misread) -> Result:
    assert isinstance(one, Misread)
    return not_applied(one, Refusal(one.reason, one.message), retry=one.unknown)


def _by_ordinal(results: Iterable[Result]) -> dict[int, Result]:
    return {result.identifier.ordinal: result for result in results}

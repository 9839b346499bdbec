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
from kedge.controllers.gather import gather
from kedge.controllers.member.object_caches import ObjectCaches
from kedge.controllers.member.pods import PodTroubles
from kedge.controllers.member.writing import AT_MOST, Writer, Written
from kedge.controllers.repairs import Repairs
from kedge.kube.client import Client
from kedge.kube.codec import Untyped, untyped
from kedge.kube.errors import NotFound
from kedge.plan.applying.manifests import DesiredObject, InvalidManifest, ObjectKey, apply_batches
from kedge.plan.applying.observed import ObservedObject, status_of
from kedge.plan.applying.outcomes import DELETED_AGAIN, applied, back_reported, misread, not_applied
from kedge.plan.applying.ownership import Refusal, WorkOwner, unsupported
from kedge.plan.applying.records import ObjectRecord
from kedge.plan.applying.work_status import ApplyResult
from kedge.plan.availability import Verdict, judge
from kedge.plan.workloads.pods import PodWorkload

Record: TypeAlias = Callable[[Sequence[DesiredObject]], Awaitable[None]]

UNWATCHED: Final = 10.0  # seconds between looks at kinds that the member does not let us watch
_NOTHING: Final = ObjectRecord()
_DELETED: Final = Refusal(reasons.MANIFEST_APPLY_FAILED, DELETED_AGAIN)


class Memory(Struct):
    """What is remembered of a Work between attempts. All of it can be found out again."""

    work: tuple[str, int]
    """The uid and the generation of the Work."""
    owner: WorkOwner
    strategy: ApplyStrategy
    begun: float
    spec: WorkSpec
    read: tuple[DesiredObject | InvalidManifest, ...] = ()
    resources: frozenset[Resource] = frozenset()
    """The kinds of what the Work asks for."""
    awaited: frozenset[Resource] = frozenset()
    """The kinds of what it no longer asks for, and that may still come."""
    records: dict[ObjectKey, ObjectRecord] = field(default_factory=dict)
    """How objects were last left."""
    mirrored: dict[ObjectKey, tuple[bytes, BackReportedStatus | None]] = field(default_factory=dict)
    """The status of an object that was last read, with its digest."""
    listed: tuple[AppliedResource, ...] = ()
    """What the AppliedWork was last made to list."""

    @classmethod
    def of(cls, work: Work, owner: WorkOwner, before: Memory | None) -> Memory:
        """A new one; it still knows what the one before knew of manifests that are the same."""
        meta, strategy = work.metadata, work.spec.apply_strategy or ApplyStrategy()
        memory = cls((meta.uid, meta.generation), owner, strategy, asyncio.get_running_loop().time(), work.spec)
        if before is not None and (before.owner, before.strategy) == (owner, strategy):
            memory.records = {one: replace(record, held=None) for one, record in before.records.items()}
        return memory

    def is_of(self, work: Work, applied: AppliedWork) -> bool:
        """Whether it is of the Work as it is. A hub that was restored may give a generation to something else."""
        same = self.work == (work.metadata.uid, work.metadata.generation) and self.spec == work.spec
        return same and self.owner.uid == applied.metadata.uid

    def learn(self, read: tuple[DesiredObject | InvalidManifest, ...]) -> None:
        """Take in what the Work asks for."""
        self.read = read
        wanted = {one.identity for one in read}
        self.records = {
            one: record if one in wanted else replace(record, left=None) for one, record in self.records.items()
        }
        self.resources = frozenset(one.resource for one in self.placed)

    def doubt(self, entry: AppliedResource, late: float) -> float:
        """For how many seconds longer an object may still come that was written, and never seen; 0 if it was."""
        return 0.0 if entry.uid else max(0.0, self.begun + late - asyncio.get_running_loop().time())

    @property
    def unknown(self) -> list[InvalidManifest]:
        """What the member does not serve, or not yet."""
        return [one for one in self.read if isinstance(one, InvalidManifest) and one.kind_not_served]

    @property
    def placed(self) -> list[DesiredObject]:
        return [one for one in self.read if isinstance(one, DesiredObject)]


class HeldObject(Struct, frozen=True):
    """An object that differs, and is left so for now."""

    obj: Untyped


class WorkAttempt:
    """One pass over one Work."""

    def __init__(
        self,
        work: Work,
        memory: Memory,
        member: Client,
        *,
        objects: ObjectCaches,
        pods: PodTroubles,
        repairs: Repairs,
    ) -> None:
        mirror = work.spec.report_back_strategy
        self._memory = memory
        self._client = member
        self._objects = objects
        self._pods = pods
        self._repairs = repairs
        self._unsupported = unsupported(memory.strategy)
        self._mirrors = mirror is not None and mirror.type is ReportBackType.mirror
        self._writer = Writer(member, memory.owner, memory.strategy)
        self._dry_run_writer = Writer(member, memory.owner, memory.strategy, dry_run=True)

    async def results(
        self, record: Record, known: Set[ObjectKey], refused: Set[ObjectKey], now: datetime
    ) -> list[ApplyResult]:
        """What came of every manifest. `known` are recorded already; `refused` were not to be had the last time."""
        if self._unsupported:
            return [not_applied(one, self._unsupported, retry=False) for one in self._memory.read]
        self._objects.follow(self._memory.resources)
        found = await self._deleted_again()
        placed, doubted, listed = self._memory.placed, refused - known, refused | known
        placed = [one for one in placed if one.identifier.ordinal not in found]
        await record([one for one in placed if one.identity not in listed])
        for wave in apply_batches(placed):
            doubtful = [one for one in wave if one.identity in doubted]
            found |= await self._try_dry_run(doubtful, record)
            found |= self._unchanged(one for one in wave if one.identifier.ordinal not in found)
            rest = [one for one in wave if one.identifier.ordinal not in found]
            await record([one for one in rest if one.identity in known and await self._is_gone(one)])
            found |= _by_ordinal(await gather((partial(self._one, one, now) for one in rest), at_most=AT_MOST))
        return [
            found[one.identifier.ordinal] if isinstance(one, DesiredObject) else misread(one)
            for one in self._memory.read
        ]

    async def _deleted_again(self) -> dict[int, ApplyResult]:
        """What somebody keeps deleting, and is not to be created again yet. Nothing is written for it until then:

        each such write would wake this agent, and any other of the same member, to look at it again.
        """
        repairs = ((one, self._repairs.wait(one.identity)) for one in self._memory.placed if self._is_repair(one))
        waits = [(one, wait) for one, wait in repairs if wait > 0 and await self._is_gone(one)]
        return _by_ordinal(replace(not_applied(one, _DELETED, retry=False), retry_after=wait) for one, wait in waits)

    def _is_repair(self, placed: DesiredObject) -> bool:
        """Whether writing it would put it back: it has been as it should be."""
        return self._record(placed).is_repair(placed.digest)

    async def _is_gone(self, placed: DesiredObject) -> bool:
        """Whether somebody removed it. Then as little is known of what will be made as before it was there."""
        shows, find = self._objects.shows, self._objects.get
        return await shows(placed.resource) and find(placed.resource, placed.name, placed.namespace) is None

    async def _try_dry_run(self, doubtful: list[DesiredObject], record: Record) -> dict[int, ApplyResult]:
        """What is still refused. It is not written down, or it would be written down and crossed out for ever."""
        said = await gather(
            (partial(self._dry_run_writer.write, one, expected=False) for one in doubtful), at_most=AT_MOST
        )
        await record([one for one, end in zip(doubtful, said, strict=True) if isinstance(end, Written)])
        refusals = zip(doubtful, said, strict=True)
        return _by_ordinal([not_applied(one, end) for one, end in refusals if isinstance(end, Refusal)])

    def _unchanged(self, wave: Iterable[DesiredObject]) -> dict[int, ApplyResult]:
        """What there is nothing to ask or to do about: mostly all of it."""
        if self._mirrors:
            return {}
        shown = ((one, self._objects.get(one.resource, one.name, one.namespace)) for one in wave)
        return _by_ordinal(
            self._unchanged_result(one, seen) for one, seen in shown if seen and self._needs_nothing(one, seen)
        )

    def _unchanged_result(
        self, placed: DesiredObject, shown: ObservedObject, mirrored: BackReportedStatus | None = None
    ) -> ApplyResult:
        return self._applied(placed, shown.metadata.uid, shown.metadata.generation, shown.verdict, mirrored)

    async def _one(self, placed: DesiredObject, now: datetime) -> ApplyResult:
        watched = await self._objects.shows(placed.resource)
        shown = self._objects.get(placed.resource, placed.name, placed.namespace) if watched else None
        if shown is not None and self._needs_nothing(placed, shown):
            mirrored = await self._mirror_of(placed, shown, now) if self._mirrors else None
            return self._unchanged_result(placed, shown, mirrored)
        end = await self._write(placed, shown, expected=shown is not None or not watched)
        if isinstance(end, Refusal):
            return not_applied(placed, end, shown)
        self._remember(placed, end)
        mirrored = self._mirror(placed, end.obj, now) if self._mirrors else None
        meta = end.obj["metadata"]
        result = self._applied(placed, meta["uid"], meta.get("generation", 0), judge(end.obj), mirrored)
        return result if watched else replace(result, retry_after=UNWATCHED)

    def _record(self, placed: DesiredObject) -> ObjectRecord:
        return self._memory.records.get(placed.identity, _NOTHING)

    def _needs_nothing(self, placed: DesiredObject, shown: ObservedObject) -> bool:
        return self._record(placed).needs_nothing(placed.digest, shown, self._repairs.wait(placed.identity))

    def _remember(self, placed: DesiredObject, end: Written | HeldObject) -> None:
        before = self._record(placed)
        after = before.holding(end.obj) if isinstance(end, HeldObject) else before.written(placed.digest, end.obj)
        self._memory.records[placed.identity] = after

    async def _write(
        self, placed: DesiredObject, shown: ObservedObject | None, *, expected: bool
    ) -> Written | HeldObject | Refusal:
        """Write, or put back: that not too often."""
        repairs = self._is_repair(placed)
        if repairs and self._repairs.wait(placed.identity) > 0:
            would = await self._dry_run_writer.write(placed, expected=True)
            return await self._hold(placed) if isinstance(would, Written) and would.changed else would
        end = await self._writer.write(placed, expected=expected, known=self._record(placed).known(shown))
        if repairs and isinstance(end, Written) and end.changed:
            self._repairs.note(placed.identity)
        return end

    async def _hold(self, placed: DesiredObject) -> HeldObject | Refusal:
        """What there is while it is not to be put back yet."""
        try:
            return HeldObject(await self._client.get(untyped(placed.resource), placed.name, placed.namespace))
        except NotFound:
            return _DELETED

    def _applied(
        self, placed: DesiredObject, uid: str, generation: int, verdict: Verdict, mirrored: BackReportedStatus | None
    ) -> ApplyResult:
        disputed = self._repairs.are_disputed(placed.identity)
        return applied(
            placed,
            uid,
            generation,
            self._pods.explain(verdict, workload_of(placed)),
            back_reported=mirrored,
            disputed_until=self._repairs.next_look(placed.identity) if disputed else None,
        )

    async def _mirror_of(
        self, placed: DesiredObject, shown: ObservedObject, now: datetime
    ) -> BackReportedStatus | None:
        known = self._memory.mirrored.get(placed.identity)
        if known is not None and known[0] == shown.status:
            return known[1]
        try:
            live = await self._client.get(untyped(placed.resource), placed.name, placed.namespace)
        except NotFound:
            return None
        return self._mirror(placed, live, now)

    def _mirror(self, placed: DesiredObject, obj: Untyped, now: datetime) -> BackReportedStatus | None:
        """The status of the object, as it goes back to the hub."""
        found = back_reported(obj, now)
        self._memory.mirrored[placed.identity] = (status_of(obj), found)
        return found


def workload_of(placed: DesiredObject) -> PodWorkload:
    """It, as pods and events refer to it."""
    return PodWorkload(placed.resource.group, placed.resource.kind, placed.namespace or "", placed.name)


def _by_ordinal(results: Iterable[ApplyResult]) -> dict[int, ApplyResult]:
    return {result.identifier.ordinal: result for result in results}

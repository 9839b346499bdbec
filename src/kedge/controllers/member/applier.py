"""Applier: brings the Works of one member to its cluster, keeps them there, and says what came of them.

    applier = Applier(hub, member, "cluster-1", clock=clock)
    manager.add_controller(applier.controller)
    applier.join()

Wakes at a change of a Work, and of anything it placed: what others change is put back, what they delete is made again,
and what becomes available is reported then; of what does not, the cause that its pods show. On the hub it touches
nothing but the Works of the member's own namespace.

Everything that is placed belongs to an AppliedWork of the Work's name on the member, which also lists it. An object is
written down there before it is made, and crossed out after it is gone, so that a crash in between leaves
nothing that nobody knows of. When the Work is deleted, so is the AppliedWork, and with it all it owns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from msgspec import to_builtins

from kedge.api.fleet import ON_DELETE, WORK_CLEANUP, member_namespace
from kedge.api.meta import ObjectMeta
from kedge.api.rollout import PropagationPolicy
from kedge.api.work import AppliedResource, AppliedWork, Work, WorkStatus
from kedge.controllers.gather import gather
from kedge.controllers.kinds import Kinds
from kedge.controllers.member.applied_works import AppliedList, AppliedWorks, owner_of
from kedge.controllers.member.apply_metrics import ApplyMetrics
from kedge.controllers.member.attempt import Memory, WorkAttempt, workload_of
from kedge.controllers.member.object_caches import ObjectCaches
from kedge.controllers.member.pods import PodTroubles
from kedge.controllers.member.removal import Remover, resource_of
from kedge.controllers.member.report_delays import ReportDelays
from kedge.controllers.member.writing import AT_MOST, MANAGER
from kedge.controllers.repairs import Repairs
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import metadata_of
from kedge.kube.controller import Controller
from kedge.kube.errors import NotFound
from kedge.kube.expectations import record_writes
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Signal, Source, Watch, WatchedObject
from kedge.plan.applying.manifests import InvalidManifest, object_key, read_manifests
from kedge.plan.applying.outcomes import not_applied
from kedge.plan.applying.ownership import cannot_own, unsupported
from kedge.plan.applying.work_status import (
    ApplyResult,
    not_applied_in,
    wait_before_retry,
    wait_for_definitions,
    work_status,
)

UNBLOCK_AFTER: Final = 300.0
"""Seconds an AppliedWork may take to go before its objects no longer hold it."""
LATE: Final = 900.0
"""Seconds in which a write that was never answered may still arrive."""
_SHOWN_WITHIN: Final = 2.0
_REMOVE_AGAIN: Final = 5.0


class Applier:
    """The Works of one member."""

    def __init__(
        self,
        hub: Cluster,
        member: Cluster,
        name: str,
        *,
        clock: Clock,
        metrics: ApplyMetrics | None = None,
        workers: int = 5,
    ) -> None:
        """Does nothing before `join`."""
        self.active = False
        self._hub = hub.client
        self._member = member.client
        self._name = name
        self._namespace = member_namespace(name)
        self._clock = clock
        self._metrics = metrics or ApplyMetrics()
        self._works = hub.cache(Work, self._namespace)
        self._applied = AppliedWorks(member)
        self._signal = Signal(name)
        self._objects = ObjectCaches(member, self._wake)
        self._pods = PodTroubles(member, clock, self._objects.wake_unavailable)
        self._kinds = Kinds(member.client)
        self._repairs = Repairs()
        self._delays = ReportDelays()
        self._memories: dict[str, Memory] = {}
        self._in_work = 0
        self._idle = asyncio.Event()
        self._idle.set()
        sources: list[Source] = [
            Watch(name, self._works),
            Watch(name, self._applied.cache, to=self._work_of),
            self._signal,
        ]
        self.controller = Controller(
            f"applier of {name}", self.reconcile, sources, workers=workers, per_cluster=workers, timeout=300.0
        )

    # Joining and leaving

    def join(self) -> None:
        """Apply from now on."""
        if not self.active:
            self.active = True
            for work in self._works.all():
                self._wake(work.metadata.name)

    async def leave(self) -> None:
        """Apply nothing more, and let go of all that was applied without removing it."""
        self.active = False
        await self._idle.wait()
        works = await self._hub.list(metadata_of(Work.resource), self._namespace)
        with record_writes() as footprint:
            await gather((partial(self._release, work.metadata) for work in works.items), at_most=AT_MOST)
        await footprint.settle(_SHOWN_WITHIN)  # who joins again must not take what is gone for an owner
        self._memories.clear()
        self._pods.close()
        self._delays.clear()
        self._objects.keep_only(set())

    async def _release(self, work: ObjectMeta) -> None:
        if WORK_CLEANUP not in work.finalizers:
            return
        try:
            applied = await self._member.get(AppliedWork, work.name)
        except NotFound:
            pass
        else:
            if applied.spec.work_namespace == self._namespace:
                await self._abandon(applied)
        await self._remove_finalizer(work)

    # Reconciling

    async def reconcile(self, key: Key) -> Outcome:
        if not self.active:
            return Outcome.done
        work = self._works.get(key.name, key.namespace)
        if work is None:
            self._forget(key.name)
            return Outcome.done
        with self._working():
            return await (self._apply(work) if work.metadata.deletion_timestamp is None else self._delete(work))

    async def _apply(self, work: Work) -> Outcome:
        work = await self._with_finalizer(work)
        applied = await self._applied.of(work)
        memory = await self._memory_of(work, applied)
        if why := cannot_own(applied, work.metadata.namespace):
            return await self._report(work, [not_applied(one, why, retry=False) for one in memory.read])
        listed, began = AppliedList(self._applied, applied), asyncio.get_running_loop().time()
        left_over = await self._remove_left_over(memory, listed)
        doubts = {one: rest for one, problem in left_over.items() if not problem and (rest := memory.doubt(one, LATE))}
        self._watch_late_objects(memory, doubts)
        attempt = WorkAttempt(work, memory, self._member, objects=self._objects, pods=self._pods, repairs=self._repairs)
        results = await attempt.results(
            listed.add, listed.entries.keys(), not_applied_in(work.status), self._clock.now()
        )
        listed_later = await self._close(memory, listed, listed.listing(results, left_over))
        self._metrics.passed(results, asyncio.get_running_loop().time() - began)
        age = asyncio.get_running_loop().time() - memory.begun
        if wait := wait_for_definitions(memory.read, results, age):
            return Outcome.again(after=wait)
        return await self._report(work, results, left_over.values(), (*doubts.values(), listed_later))

    async def _close(self, memory: Memory, listed: AppliedList, listing: tuple[AppliedResource, ...]) -> float:
        """List what is there; or give in how many seconds, if somebody keeps listing the same objects otherwise.

        That is another agent of this member, which has heard of another generation of the Work.
        """
        known = set(map(object_key, listed.opened))
        undone = memory.listed == listing != listed.opened and known.issuperset(map(object_key, listing))
        if undone and (wait := self._repairs.wait(listed.identity)) > 0:
            return wait
        await listed.close(listing)
        memory.listed = listing
        if undone:
            self._repairs.note(listed.identity)
        return 0.0

    async def _memory_of(self, work: Work, applied: AppliedWork) -> Memory:
        memory = self._memories.get(work.metadata.name)
        if memory is None or not memory.is_of(work, applied):
            memory = self._memories[work.metadata.name] = Memory.of(work, owner_of(applied), memory)
            self._learn(work, memory)
        memory.spec = work.spec  # the same, but not kept twice: the cache has this one
        if memory.unknown:
            await self._kinds.ask()
            self._learn(work, memory)
        return memory

    def _learn(self, work: Work, memory: Memory) -> None:
        memory.learn(read_manifests(work.spec.workload.manifests, self._kinds.lookup))
        self._watch_needed_kinds()

    async def _remove_left_over(self, memory: Memory, listed: AppliedList) -> dict[AppliedResource, str]:
        """Remove what the Work no longer asks for; gives what is still there or may yet come, and who refused why."""
        wanted = {one.identity for one in memory.read}
        left_over = [entry for identity, entry in listed.entries.items() if identity not in wanted]
        if unsupported(memory.strategy) or any(
            isinstance(one, InvalidManifest) and one.is_unidentified for one in memory.read
        ):
            return dict.fromkeys(left_over, "")
        remover = Remover(self._member, memory.owner)
        problems = await gather((partial(remover.remove, one) for one in left_over), at_most=AT_MOST)
        ends = zip(left_over, problems, strict=True)
        return {one: problem or "" for one, problem in ends if problem or memory.doubt(one, LATE)}

    async def _report(
        self, work: Work, results: Sequence[ApplyResult], left_over: Iterable[str] = (), doubts: Iterable[float] = ()
    ) -> Outcome:
        now, meta = self._clock.now(), work.metadata
        behind = "; ".join(filter(None, left_over))
        before = self._delays.last(meta.name, work.status)
        status = work_status(results, before, meta.generation, now, left_behind=behind)
        later = 0.0
        if status != work.status:  # perhaps since somebody else wrote it: then its times are not to be trusted either
            before = self._delays.last_true(meta.name, work.status)
            status = work_status(results, before, meta.generation, now, left_behind=behind)
            later = await self._write_status(work, status)
        if not later:
            self._delays.is_true(meta.name, status)
        known = (wait_before_retry(results, status, now), behind and _REMOVE_AGAIN, later, *doubts)
        waits = [wait for wait in known if wait]
        return Outcome.again(after=min(waits)) if waits else Outcome.done

    async def _write_status(self, work: Work, status: WorkStatus) -> float:
        """Make this the Work's status; or give in how many seconds that will be worth it."""
        meta = work.metadata
        if wait := self._delays.before_write(meta.name, meta.generation, work.status, status):
            self._delays.delay(meta.name, status)
            return wait
        await self._hub.amend(Work, meta, {"status": _written(status)}, subresource="status", manager=MANAGER)
        self._delays.wrote(meta.name)
        return 0.0

    # Deleting

    async def _delete(self, work: Work) -> Outcome:
        """The Work is deleted: its finalizer goes when the AppliedWork, and with it all it owned, is gone."""
        self._forget(work.metadata.name)
        if WORK_CLEANUP not in work.metadata.finalizers:
            return Outcome.done
        applied = self._applied.cache.get(work.metadata.name)
        if applied is None or applied.spec.work_namespace != self._namespace:
            await self._remove_finalizer(work.metadata)
        elif applied.metadata.deletion_timestamp is not None:
            return await self._wait_for_deletion(applied)
        elif work.metadata.annotations.get(ON_DELETE) == PropagationPolicy.abandon:
            await self._abandon(applied)
        else:
            await self._applied.delete(applied, "Foreground")
        return Outcome.done  # the AppliedWork wakes us when it goes

    async def _wait_for_deletion(self, applied: AppliedWork) -> Outcome:
        """Wait until an AppliedWork is gone; if something holds it for too long, let it go before its objects."""
        since = applied.metadata.deletion_timestamp
        assert since is not None
        left = UNBLOCK_AFTER - (self._clock.now() - since).total_seconds()
        if left > 0:
            return Outcome.again(after=left)
        await Remover(self._member, owner_of(applied)).unblock_all(applied.status.applied_resources)
        return Outcome.again(after=UNBLOCK_AFTER)

    async def _abandon(self, applied: AppliedWork) -> None:
        """Remove the AppliedWork, and leave what it owned, also what a late request creates meanwhile."""
        await Remover(self._member, owner_of(applied)).disown_all(applied.status.applied_resources)
        await self._applied.delete(applied, "Orphan")

    # Finalizers

    async def _with_finalizer(self, work: Work) -> Work:
        if WORK_CLEANUP in work.metadata.finalizers:
            return work
        return await self._set_finalizers(work.metadata, [*work.metadata.finalizers, WORK_CLEANUP])

    async def _remove_finalizer(self, work: ObjectMeta) -> None:
        try:
            await self._set_finalizers(work, [one for one in work.finalizers if one != WORK_CLEANUP])
        except NotFound:
            return

    async def _set_finalizers(self, work: ObjectMeta, finalizers: list[str]) -> Work:
        return await self._hub.amend(Work, work, {"metadata": {"finalizers": finalizers or None}}, manager=MANAGER)

    # Waking

    def _wake(self, name: str) -> None:
        self._signal.wake(Key(self._name, self._namespace, name))

    def _work_of(self, seen: WatchedObject[AppliedWork]) -> Iterable[Key]:
        return (Key(self._name, self._namespace, seen.meta.name),)

    def _forget(self, name: str) -> None:
        self._delays.forget(name)
        if self._memories.pop(name, None) is not None:
            self._watch_needed_kinds()

    def _watch_late_objects(self, memory: Memory, doubts: Iterable[AppliedResource]) -> None:
        """Follow the kinds of what may yet come, for as long as it may: nobody else would say that it did."""
        awaited = frozenset(map(resource_of, doubts))
        if awaited != memory.awaited:
            memory.awaited = awaited
            self._objects.follow(awaited)
            self._watch_needed_kinds()

    def _watch_needed_kinds(self) -> None:
        memories = self._memories.values()
        self._objects.keep_only({one for memory in memories for one in memory.resources | memory.awaited})
        self._pods.keep_only(workload_of(one) for memory in memories for one in memory.placed)

    @contextmanager
    def _working(self) -> Iterator[None]:
        self._in_work += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._in_work -= 1
            if not self._in_work:
                self._idle.set()


def _written(status: WorkStatus) -> dict[str, Any]:
    """As it is patched: a list that is empty has to be said to be."""
    return {"manifestConditions": None, **to_builtins(status)}

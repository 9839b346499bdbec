"""Snapshots: keeps what each placement selects, and its policy, written down under running numbers.

    resources = Resources(hub)
    Snapshots(hub, kinds, resources, clock=clock, collect=0.1).controller

Changes of resources are collected for a moment, so that one `kubectl apply` of many files is one revision: a single one
for `collect` seconds, several as `plan.selecting.snapshots` has it, and at least until `interval` seconds after the
revision before. What is back as it was by then is no revision. Nobody waits for the first revision, nor after the
selectors themselves changed.

What cannot be seen in full is not written down: the revision before stays the newest, and `Resources` says why.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from kedge.api.binding import ClusterResourceBinding
from kedge.api.dialect import Dialect
from kedge.api.fleet import PLACEMENT_CLEANUP
from kedge.api.meta import ObjectMeta
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.placement_kinds import PlacementKinds
from kedge.api.staged import ClusterStagedUpdateRun
from kedge.controllers.hub import wakes
from kedge.controllers.hub.caches import (
    BINDINGS,
    PLACEMENT,
    RUNS,
    SNAPSHOTS,
    named,
    placements_without_status,
    spec_changed,
    trusted_cache,
)
from kedge.controllers.hub.resources import Resources
from kedge.controllers.hub.selected_objects import manifests
from kedge.controllers.hub.snapshot_writes import MANAGER, PolicySnapshots, ResourceSnapshots, masters
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import metadata_of
from kedge.kube.controller import Controller
from kedge.kube.errors import ApiError, BadRequest, Invalid, NotFound, RequestTooLarge
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source, WatchedObject
from kedge.plan.placements import is_external
from kedge.plan.revision_history import LatestRevision, Uses, all_of_index, exceeds_limit, expired, numbers_in_use
from kedge.plan.revision_timing import PendingChanges, RevisionSettings, wait_before_revision
from kedge.plan.selecting.selection import Selection
from kedge.plan.selecting.selectors import name_problem, status_namespace, status_namespace_problem
from kedge.plan.selecting.snapshots import NumberedSnapshot, newest_snapshot, snapshot_change
from kedge.plan.staging.initializing import Newest

COLLECT: Final = 0.1
_REFUSED: Final = 60.0  # seconds until what admission refused is tried again


class _Memory:
    """What is remembered of one placement between looks."""

    def __init__(self) -> None:
        self.pending = PendingChanges()
        self.latest = LatestRevision()
        self.home = ""  # the namespace in which it shows its status
        self.retry_at: float | None = None  # when what admission refused is tried again
        self.unsure: dict[int, str] = {}  # numbers that were asked for without an answer, and what for
        self.turn = asyncio.Lock()  # there are two who may need a revision: a change, and a run that begins


class Snapshots:
    """The snapshots of one kind of placement."""

    def __init__(
        self,
        hub: Cluster,
        kinds: PlacementKinds,
        resources: Resources,
        *,
        clock: Clock,
        dialect: Dialect = Dialect.seed,
        collect: float = COLLECT,
        interval: float = 0.0,
    ) -> None:
        self._hub = hub
        self._kinds = kinds
        self._resources = resources
        self._clock = clock
        self._dialect = dialect
        self._settings = RevisionSettings(collect, interval, dialect)
        self._placements = placements_without_status(hub, kinds)
        self._bindings = trusted_cache(hub, kinds.binding, indexes=BINDINGS)
        self._policies = trusted_cache(hub, kinds.policy_snapshot, indexes=SNAPSHOTS)
        self._snapshots = trusted_cache(hub, metadata_of(kinds.resource_snapshot.resource), indexes=SNAPSHOTS)
        self._runs = trusted_cache(hub, kinds.run, indexes=RUNS)
        self._policy_snapshots = PolicySnapshots(hub.client, kinds)
        self._resource_snapshots = ResourceSnapshots(hub.client, kinds)
        self._memories: dict[Key, _Memory] = {}
        sources: list[Source] = [
            hub.watch(self._placements, when=spec_changed),
            hub.watch(self._policies, to=wakes.by_owner, when=wakes.labels_changed),
            hub.watch(self._snapshots, to=wakes.by_owner, when=wakes.labels_changed),
            hub.watch(self._bindings, to=self._by_binding, when=wakes.revision_released),
            hub.watch(self._runs, to=self._by_run, when=wakes.run_ended),
            resources.source(kinds),
        ]
        self.controller = Controller(f"snapshots of {kinds.name}", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        placement = self._placements.get(key.name, key.namespace)
        if placement is None or placement.metadata.deletion_timestamp is not None:
            self._memories.pop(key, None)
            return Outcome.done if placement is None else await self._clean_up(placement)
        if name_problem(placement) or await self._changed_status_namespace(key, placement):
            return Outcome.done
        placement = await self._with_finalizer(placement)
        known = self._policies.by(PLACEMENT, _named(placement))
        if not known and not self._is_known(placement):
            return Outcome.done  # no cluster is picked before it is known what for (kubefleet.md §16)
        policies = await self._policy_snapshots.keep(placement, known)
        outcome = await self._keep_resources(key, placement)
        await self._remove_expired(placement, self._parts(placement), policies)
        return outcome

    async def _changed_status_namespace(self, key: Key, placement: ClusterResourcePlacement) -> bool:
        """Whether it names another namespace than the one in which it shows its status: it is ignored there."""
        memory = self._memories.setdefault(key, _Memory())
        home = status_namespace(placement)
        if home in ("", memory.home):
            return False
        told = await self._hub.client.get(self._kinds.placement, key.name, key.namespace)
        if status_namespace_problem(told):
            return True
        memory.home = status_namespace(told)
        return False

    # The resources of a placement

    def _is_known(self, placement: ClusterResourcePlacement) -> bool:
        """Whether it is known what is selected, whether or not the server has taken a snapshot of it."""
        selection = self._resources.selected(placement)
        return selection.is_known or self._resources.is_refused(placement, selection)

    async def _keep_resources(self, key: Key, placement: ClusterResourcePlacement) -> Outcome:
        if self._dialect == Dialect.kubefleet and is_external(placement):
            return Outcome.done  # a staged run takes them when it needs them (kubefleet.md §4.3)
        selection = self._resources.selected(placement)
        memory = self._memories.setdefault(key, _Memory())
        if self._resources.is_refused(placement, selection) and memory.retry_at is not None:
            wait = memory.retry_at - asyncio.get_running_loop().time()
            if wait > 0:
                return Outcome.again(after=wait)
            selection = replace(selection, problem="")
        if not selection.is_known:
            return Outcome.done
        async with memory.turn:
            return await self._keep_selected(placement, selection, memory)

    async def _keep_selected(
        self, placement: ClusterResourcePlacement, selection: Selection, memory: _Memory
    ) -> Outcome:
        if not self._is_shown(placement, memory):
            return Outcome.not_yet
        known = self._parts(placement)
        current = newest_snapshot(masters(known))
        if current is not None and await self._digest_of(memory, current) == selection.digest:
            return await self._confirm(placement, memory, known)
        wait = self._wait(placement, memory, current, selection.digest)
        return (
            Outcome.again(after=wait) if wait > 0 else await self._write_revision(placement, selection, memory, known)
        )

    async def _confirm(
        self, placement: ClusterResourcePlacement, memory: _Memory, known: tuple[ObjectMeta, ...]
    ) -> Outcome:
        """The newest revision is what is wanted."""
        memory.pending = memory.pending.settled(placement.spec.resource_selectors)
        revisions = masters(known)
        current = newest_snapshot(revisions)
        await self._resource_snapshots.confirm(snapshot_change(revisions, current.hash if current else ""))
        return Outcome.done

    async def _digest_of(self, memory: _Memory, current: NumberedSnapshot) -> str:
        """The digest of what the newest revision holds. It never changes, so that it is read once."""
        if not current.hash:
            return ""
        if memory.latest.uid != current.meta.uid:
            digest = await self._resource_snapshots.held(current.meta)
            memory.latest = memory.latest.read(current.meta.uid, digest)
        return memory.latest.digest

    def _wait(
        self, placement: ClusterResourcePlacement, memory: _Memory, current: NumberedSnapshot | None, digest: str
    ) -> float:
        """How many seconds to collect changes before the next revision; 0 if there is nothing to wait for."""
        now = asyncio.get_running_loop().time()
        memory.pending = memory.pending.seen(digest, now)
        made = current.meta.creation_timestamp if current is not None else None
        age = max(0.0, (self._clock.now() - made).total_seconds()) if made else self._settings.interval
        selectors = placement.spec.resource_selectors
        return wait_before_revision(memory.pending, selectors, current, self._settings, age=age, now=now)

    async def _write_revision(
        self,
        placement: ClusterResourcePlacement,
        selection: Selection,
        memory: _Memory,
        known: tuple[ObjectMeta, ...],
    ) -> Outcome:
        found = await manifests(self._hub.client, selection)
        if found is None:
            return Outcome.not_yet
        try:
            used = numbers_in_use(placement, self._uses(placement)) | {memory.latest.highest}
            made = await self._resource_snapshots.take(placement, found, known, used, memory.unsure)
        except ApiError as error:
            if not isinstance(error, BadRequest | Invalid | RequestTooLarge):
                raise
            self._resources.refuse(placement, selection, f"the hub does not keep what is selected: {error.answer}")
            # A policy of admission may be changed; what is malformed or too large stays so.
            is_final = not isinstance(error, Invalid)
            memory.retry_at = None if is_final else asyncio.get_running_loop().time() + _REFUSED
            return Outcome.done if is_final else Outcome.again(after=_REFUSED)
        self._resources.accept(placement)
        if made is not None:
            memory.latest = memory.latest.after(made, selection.digest)
            await self._remove_expired(placement, (*known, made))
        elif (current := newest_snapshot(masters(known))) is not None:
            memory.latest = memory.latest.read(current.meta.uid, selection.digest)
        memory.pending = memory.pending.settled(placement.spec.resource_selectors)
        return Outcome.done

    def _uses(self, placement: ClusterResourcePlacement) -> Uses:
        whose = _named(placement)
        return Uses(self._bindings.by(PLACEMENT, whose), self._runs.by(PLACEMENT, whose))

    # For a run that moves whatever is the newest

    async def fresh(self, placement: ClusterResourcePlacement) -> Newest:
        """The newest revision, which holds what the placement selects now; made at once if there is none that does."""
        selection = self._resources.selected(placement)
        if not selection.is_known:
            return Newest(pending=f"it is not known yet what is selected: {selection.problem or selection.pending}")
        key = Key(self._hub.name, placement.metadata.namespace, placement.metadata.name)
        if await self._changed_status_namespace(key, placement):
            return Newest(pending="the placement names another namespace than the one in which it shows its status")
        memory = self._memories.setdefault(key, _Memory())
        async with memory.turn:
            return await self._fresh(placement, selection, memory)

    @property
    def changes(self) -> Source:
        """Wakes a placement whenever what it selects may be something else."""
        return self._resources.source(self._kinds)

    async def _fresh(self, placement: ClusterResourcePlacement, selection: Selection, memory: _Memory) -> Newest:
        if not self._is_shown(placement, memory) or await manifests(self._hub.client, selection) is None:
            return Newest(pending="what is selected is changing")
        known = self._parts(placement)
        current = newest_snapshot(masters(known))
        if current is None or await self._digest_of(memory, current) != selection.digest:
            await self._write_revision(placement, selection, memory, known)
            return Newest(pending="the selected resources are being written down")
        return Newest(current.index)

    def _is_shown(self, placement: ClusterResourcePlacement, memory: _Memory) -> bool:
        """Whether the cache knows of the revision that was made last, whoever it was made for."""
        made = memory.latest.made
        return not made or self._snapshots.caught_up(made, placement.metadata.namespace)

    # What is no longer needed

    def _by_binding(self, seen: WatchedObject[ClusterResourceBinding]) -> Iterable[Key]:
        return self._if_beyond_limit(wakes.placement_key(seen.cluster, seen.meta))

    def _by_run(self, seen: WatchedObject[ClusterStagedUpdateRun]) -> Iterable[Key]:
        return self._if_beyond_limit(Key(seen.cluster, seen.meta.namespace, seen.object.spec.placement_name))

    def _if_beyond_limit(self, key: Key) -> Iterable[Key]:
        """A placement that one revision less is needed for, if it has more than it is to keep."""
        placement = self._placements.get(key.name, key.namespace)
        if placement is None:
            return ()
        policies = self._policies.by(PLACEMENT, _named(placement))
        return (key,) if exceeds_limit(placement, masters(self._parts(placement)), policies) else ()

    async def _remove_expired(
        self,
        placement: ClusterResourcePlacement,
        known: tuple[ObjectMeta, ...],
        policies: tuple[NumberedSnapshot, ...] = (),
    ) -> None:
        """Delete the revisions that are kept no longer."""
        old = expired(placement, masters(known), policies, self._uses(placement), self._dialect)
        await self._resource_snapshots.remove(all_of_index(known, old.resources))
        for policy in old.policies:
            await self._policy_snapshots.remove(policy)

    async def _clean_up(self, placement: ClusterResourcePlacement) -> Outcome:
        """The placement goes: so do its snapshots, and then our hold on it. Its bindings are the scheduler's."""
        meta = placement.metadata
        if PLACEMENT_CLEANUP not in meta.finalizers:
            return Outcome.done
        await self._resource_snapshots.remove(self._parts(placement))
        for found in self._policies.by(PLACEMENT, _named(placement)):
            await self._policy_snapshots.remove(NumberedSnapshot(found.metadata, 0, ""))
        try:
            await self._write_finalizers(meta, [each for each in meta.finalizers if each != PLACEMENT_CLEANUP])
        except NotFound:
            return Outcome.done
        self._hub.events.normal(placement, "PlacementCleanupFinalizerRemoved", "its snapshots are deleted")
        return Outcome.done

    # Observing

    def _parts(self, placement: ClusterResourcePlacement) -> tuple[ObjectMeta, ...]:
        """All parts of all revisions that are not on their way out."""
        found = self._snapshots.by(PLACEMENT, _named(placement))
        return tuple(each.metadata for each in found if each.metadata.deletion_timestamp is None)

    # Acting

    async def _with_finalizer(self, placement: ClusterResourcePlacement) -> ClusterResourcePlacement:
        """The placement with our finalizer: there is something to clean up from here on."""
        meta = placement.metadata
        if PLACEMENT_CLEANUP in meta.finalizers:
            return placement
        return await self._write_finalizers(meta, [*meta.finalizers, PLACEMENT_CLEANUP])

    async def _write_finalizers(self, meta: ObjectMeta, finalizers: list[str]) -> ClusterResourcePlacement:
        return await self._hub.client.amend(
            self._kinds.placement, meta, {"metadata": {"finalizers": finalizers}}, manager=MANAGER
        )


def _named(placement: ClusterResourcePlacement) -> str:
    return named(placement.metadata.namespace, placement.metadata.name)

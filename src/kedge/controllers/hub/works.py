"""Works: gives each member the objects that bindings say it should have, and reports on the bindings what came of it.

A binding's Works live in the member's own namespace on the hub. They are made of a generation of a binding that a
rollout or a run has decided on: its RolloutStarted says so, or `PointedBindings`. What came of it is written after
RolloutStarted, so that neither write is refused for the other. Works of an unscheduled binding are left as they are.
When a binding is deleted its Works go first, and the binding stays until they are gone (kubefleet.md §14 #5).

Crash-safe at every write: the finalizer comes before the first Work. Where a wait counts from the moment a cluster
became available, that condition is removed before its Works change, not after.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from kedge.api.binding import BindingState, BindingStatus
from kedge.api.cluster import MemberCluster
from kedge.api.condition import FALSE, TRUE, find_condition
from kedge.api.core import Namespace
from kedge.api.fleet import (
    IS_FLEET_RESOURCE,
    ON_DELETE,
    PARENT_SNAPSHOT_NAME,
    WORK_CLEANUP,
    member_namespace,
)
from kedge.api.meta import ObjectMeta
from kedge.api.placement_kinds import Binding, Placement, PlacementKinds
from kedge.api.reasons import ROLLOUT_STARTED
from kedge.api.work import Work
from kedge.controllers.hub import wakes
from kedge.controllers.hub.binding_writes import BindingWrites
from kedge.controllers.hub.caches import (
    BINDING,
    BINDINGS,
    CLUSTER,
    SNAPSHOTS,
    WORKS,
    named,
    placements_without_status,
    trusted_cache,
)
from kedge.controllers.hub.pointed_bindings import PointedBindings
from kedge.controllers.hub.snapshot_contents import Contents, Missing
from kedge.controllers.hub.work_writes import WorksRefused, WorkWrites
from kedge.controllers.throttle import Throttle
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import metadata_of
from kedge.kube.controller import Controller
from kedge.kube.errors import NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source
from kedge.plan.placements import abandons, report_back
from kedge.plan.revisions import parent
from kedge.plan.working.binding_status import (
    WorkReport,
    binding_status,
    is_in_progress,
    is_unobservable,
    not_overridden,
    not_synchronized,
    report_from_works,
    works_change,
)
from kedge.plan.working.desired_works import WorkChanges, compare_works, desired_works, is_being_deleted
from kedge.plan.working.work_contents import RevisionContents, compacted

MANAGER: Final = "kedge-works"
_NO_OVERRIDES: Final = "The binding names overrides, which cannot be applied yet: remove them from its spec"
UNDERWAY_AFTER: Final = 1.7  # seconds until it is told how far a cluster has come: by then it has mostly arrived
TRY_AGAIN: Final = 30.0  # seconds until what a server refused is tried again: what it takes to be let in is not seen


class Works:
    """The Works of one kind of placement."""

    def __init__(
        self,
        hub: Cluster,
        kinds: PlacementKinds,
        *,
        clock: Clock,
        pointed: PointedBindings | None = None,
        workers: int = 16,
    ) -> None:
        """`pointed` is shared with those who point bindings, if they run in this process."""
        self._pointed = pointed or PointedBindings(hub.name)
        self._client = hub.client
        self._kinds = kinds
        self._clock = clock
        self._bindings = trusted_cache(hub, kinds.binding, indexes=BINDINGS)
        self._works = hub.cache(Work, transform=compacted, indexes=WORKS)
        self._placements = placements_without_status(hub, kinds)
        self._snapshots = trusted_cache(hub, metadata_of(kinds.resource_snapshot.resource), indexes=SNAPSHOTS)
        self._member_namespaces = hub.cache(Namespace, labels={IS_FLEET_RESOURCE: "true"})
        self._contents = Contents(hub.client, kinds, self._snapshot)
        self._writes = WorkWrites(hub.client)
        self._binding_writes = BindingWrites(hub.client, kinds, manager=MANAGER)
        self._progress_reports = Throttle(UNDERWAY_AFTER)
        self._unwritten: dict[tuple[str | None, str], BindingStatus] = {}
        work_wakes = wakes.WorkWakes(hub, kinds)
        sources: list[Source] = [
            hub.watch(self._bindings),
            self._pointed.changes,
            hub.watch(self._works, to=work_wakes.by_work),
            hub.watch(self._placements, to=work_wakes.by_placement, when=wakes.work_settings_changed),
            hub.watch(self._snapshots, to=work_wakes.by_snapshot, when=wakes.was_created),
            hub.watch(
                self._member_namespaces, to=work_wakes.by_member_namespace, when=wakes.namespace_lifecycle_changed
            ),
        ]
        self.controller = Controller(f"works of {kinds.name}", self.reconcile, sources, workers=workers)

    async def reconcile(self, key: Key) -> Outcome:
        binding = self._bindings.get(key.name, key.namespace)
        if binding is None:
            self._forget_report((key.namespace, key.name))
            return await self._remove_orphaned_works(key)
        if binding.metadata.deletion_timestamp is not None:
            return await self._delete_works(binding)
        if binding.spec.state == BindingState.unscheduled:
            return await self._report_unscheduled(binding)
        if binding.spec.state == BindingState.bound and self._may_update_works(binding):
            return await self._update_works(binding)
        return Outcome.done

    def _may_update_works(self, binding: Binding) -> bool:
        """Whether a rollout wants the binding as it is."""
        if _has_rollout_condition(binding):
            self._pointed.forget(binding)
            return True
        return self._pointed.may_create_works(binding)

    # A binding that has resources

    async def _update_works(self, binding: Binding) -> Outcome:
        placement = self._placement(binding)
        if placement is None:
            return Outcome.done  # the binding will go, or the placement come
        if _names_overrides(binding):
            return await self._report(binding, not_overridden(_NO_OVERRIDES))
        resources = await self._contents.read(binding.spec.resource_snapshot_name, binding.metadata.namespace)
        if isinstance(resources, Missing):
            return await self._without_snapshot(binding, resources)
        binding = await self._with_finalizer(binding)
        changes = self._changes(binding, placement, resources)
        if changes.blocked:
            return await self._report(binding, not_synchronized(changes.blocked))
        if changes.changes_manifests and is_unobservable(binding):
            if not _has_rollout_condition(binding):
                return Outcome.done
            binding = await self._binding_writes.set_work_status(
                binding, binding_status(binding, works_change(), self._clock.now())
            )
        done = await self._write_works(binding, changes)
        if isinstance(done, WorksRefused):
            await self._report(binding, not_synchronized(done.problem))
            return Outcome.again(after=TRY_AGAIN)
        return await self._report(binding, report_from_works(done, _up_to_date(done, resources.name)))

    async def _without_snapshot(self, binding: Binding, missing: Missing) -> Outcome:
        """Without its snapshot a binding goes on if its Works are made of it already (kubefleet.md §16)."""
        works, name = self._works_of(binding), binding.spec.resource_snapshot_name
        if works and all(_is_made_of(name, work) for work in works):
            return await self._report(binding, report_from_works(works, _up_to_date(works, name)))
        return await self._report(binding, not_overridden(missing.problem))

    def _changes(self, binding: Binding, placement: Placement, resources: RevisionContents) -> WorkChanges:
        wanted = desired_works(binding, resources, abandons=abandons(placement), report_back=report_back(placement))
        there = {one.name: self._works.get(one.name, one.namespace) for one in wanted}
        by_name = {name: work for name, work in there.items() if work is not None}
        return compare_works(binding, wanted, self._works_of(binding), by_name, self._other_bindings(binding))

    async def _write_works(self, binding: Binding, changes: WorkChanges) -> list[Work] | WorksRefused:
        namespace = self._member_namespaces.get(member_namespace(binding.spec.target_cluster))
        if changes.create and namespace is not None and namespace.metadata.deletion_timestamp is not None:
            cluster = binding.spec.target_cluster
            return WorksRefused(
                f"{cluster} is leaving the fleet: its namespace {namespace.metadata.name} is being deleted"
            )
        return await self._writes.make(changes)

    # A binding that is to go

    async def _report_unscheduled(self, binding: Binding) -> Outcome:
        works = self._works_of(binding)
        if not works:
            return await self._report(binding, not_synchronized("There is no Work for this cluster any more"))
        return await self._report(
            binding, report_from_works(works, "The Works stay as they are until they are removed")
        )

    # A binding that goes

    async def _delete_works(self, binding: Binding) -> Outcome:
        self._pointed.forget(binding)
        if not _has_finalizer(binding):
            return Outcome.done
        works = self._works_of(binding)
        if works:
            if await self._member_leaves(binding):
                return Outcome.done  # they go with its namespace, once its agent has let go of what they placed
            objects_stay = await self._objects_stay(binding, works)
            for work in works:
                if not is_being_deleted(work):
                    await self._writes.remove(work, objects_stay)
            return Outcome.done  # their going wakes us
        rest = [name for name in binding.metadata.finalizers if name != WORK_CLEANUP]
        with suppress(NotFound):
            await self._binding_writes.set_finalizers(binding, rest)
        return Outcome.done

    async def _member_leaves(self, binding: Binding) -> bool:
        """Whether the cluster itself is leaving the fleet, with what was placed on it.

        Its agent may not know yet, and would remove what a Work placed that is deleted. So the server is asked.
        """
        try:
            member = await self._client.get(metadata_of(MemberCluster.resource), binding.spec.target_cluster)
        except NotFound:
            return False
        return member.metadata.deletion_timestamp is not None

    async def _objects_stay(self, binding: Binding, works: Iterable[Work]) -> bool | None:
        """Whether what was placed stays; None if the Works themselves have to say.

        It does only when the placement itself is deleted. The cache may not show that yet, and what is taken from a
        member does not come back: so if it matters, the server is asked.
        """
        placement = self._placement(binding)
        if placement is None or not any(ON_DELETE in work.metadata.annotations for work in works):
            return None if placement is None or not _is_deleted(placement) else abandons(placement)
        try:
            meta = binding.metadata
            placement = await self._client.get(self._kinds.placement, parent(meta), meta.namespace)
        except NotFound:
            return None
        return _is_deleted(placement) and abandons(placement)

    async def _remove_orphaned_works(self, key: Key) -> Outcome:
        """Works of a binding that went without us: it may only seem so, so the server is asked."""
        works = self._works.by(BINDING, named(key.namespace, key.name))
        if not works:
            return Outcome.done
        try:
            await self._client.get(self._kinds.binding, key.name, key.namespace)
        except NotFound:
            for work in works:
                if not is_being_deleted(work):
                    await self._writes.remove(work, None)
            return Outcome.done
        return Outcome.not_yet

    # Reading

    def _works_of(self, binding: Binding) -> tuple[Work, ...]:
        """The Works of a binding: those in its member's namespace, whatever others say of theirs."""
        meta, home = binding.metadata, member_namespace(binding.spec.target_cluster)
        found = self._works.by(BINDING, named(meta.namespace, meta.name))
        return tuple(work for work in found if work.metadata.namespace == home)

    def _other_bindings(self, binding: Binding) -> frozenset[str]:
        meta = binding.metadata
        others = self._bindings.by(CLUSTER, binding.spec.target_cluster)
        return frozenset(
            other.metadata.name
            for other in others
            if parent(other.metadata) == parent(meta)
            and other.metadata.namespace == meta.namespace
            and other.metadata.name != meta.name
        )

    def _placement(self, binding: Binding) -> Placement | None:
        return self._placements.get(parent(binding.metadata), binding.metadata.namespace)

    def _snapshot(self, name: str, namespace: str | None) -> ObjectMeta | None:
        found = self._snapshots.get(name, namespace)
        return found.metadata if found is not None else None

    # Writing

    async def _with_finalizer(self, binding: Binding) -> Binding:
        """The binding, which cannot go without us from now on."""
        if _has_finalizer(binding):
            return binding
        return await self._binding_writes.set_finalizers(binding, [*binding.metadata.finalizers, WORK_CLEANUP])

    async def _report(self, binding: Binding, told: WorkReport) -> Outcome:
        """Say this of a binding, now or later; what is said later has the times of what there was to say before it."""
        which = (binding.metadata.namespace, binding.metadata.name)
        status = binding_status(binding, told, self._clock.now(), self._unwritten.get(which))
        self._unwritten[which] = status
        if binding.spec.state == BindingState.bound and not _has_rollout_condition(binding):
            return Outcome.done  # RolloutStarted wakes us
        if is_in_progress(binding, told) and (left := self._progress_reports.wait(which)):
            return Outcome.again(after=left)
        await self._binding_writes.set_work_status(binding, status)
        self._forget_report(which)
        return Outcome.done

    def _forget_report(self, which: tuple[str | None, str]) -> None:
        self._progress_reports.reset(which)
        self._unwritten.pop(which, None)


def _names_overrides(binding: Binding) -> bool:
    return bool(binding.spec.resource_override_snapshots or binding.spec.cluster_resource_override_snapshots)


def _has_finalizer(binding: Binding) -> bool:
    return WORK_CLEANUP in binding.metadata.finalizers


def _has_rollout_condition(binding: Binding) -> bool:
    """Whether a rollout has said that the binding as it is now is on its way, or stays where it was."""
    found = find_condition(binding.status.conditions, ROLLOUT_STARTED)
    return (
        found is not None and found.observed_generation == binding.metadata.generation and found.status in (TRUE, FALSE)
    )


def _is_made_of(snapshot: str, work: Work) -> bool:
    return work.metadata.annotations.get(PARENT_SNAPSHOT_NAME) == snapshot and not is_being_deleted(work)


def _is_deleted(placement: Placement) -> bool:
    return placement.metadata.deletion_timestamp is not None


def _up_to_date(works: Iterable[Work], snapshot: str) -> str:
    names = ", ".join(sorted(work.metadata.name for work in works))
    return f"Work {names} is made of {snapshot}"

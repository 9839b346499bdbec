"""Wakes: which changes wake which placement, run, binding or member.

Functions from an object to keys are named after the object (`by_owner`, `by_run`); those that say whether a change
matters are named after what changed (`binding_changed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kedge.api.binding import ClusterResourceBinding
from kedge.api.cluster import MemberCluster
from kedge.api.condition import find_condition
from kedge.api.core import Namespace
from kedge.api.fleet import PARENT_NAMESPACE, is_of_the_system, member_of, resource_snapshot_name
from kedge.api.meta import ObjectMeta
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.placement_kinds import Binding, PlacementKinds, Run
from kedge.api.reasons import ROLLOUT_STARTED
from kedge.api.staged import ClusterApprovalRequest, ClusterStagedUpdateRun, ClusterStagedUpdateStrategy
from kedge.api.work import Work
from kedge.controllers.hub.caches import BINDINGS, CLUSTER, PLACEMENT, STRATEGY, by_binding, named, trusted_cache
from kedge.kube.cache import Cache
from kedge.kube.cluster import Cluster
from kedge.kube.codec import PartialObject
from kedge.kube.queue import Key
from kedge.kube.source import WatchedObject
from kedge.kube.store import Change
from kedge.plan.membership import unreachable_message
from kedge.plan.placements import abandons, report_back
from kedge.plan.revisions import parent, resource_index
from kedge.plan.staging.conditions import has_ended, is_initialized
from kedge.plan.staging.step import holds, torn


def key_of(cluster: str, meta: ObjectMeta) -> Key:
    """The object itself."""
    return Key(cluster, meta.namespace, meta.name)


def placement_key(cluster: str, meta: ObjectMeta) -> Key:
    """The placement that a binding, a snapshot or a Work's owner belongs to."""
    return Key(cluster, meta.namespace, parent(meta))


def by_owner(seen: WatchedObject[Any]) -> Iterable[Key]:
    """The placement of a binding or a snapshot; none if it names none."""
    return (placement_key(seen.cluster, seen.meta),) if parent(seen.meta) else ()


def by_run(seen: WatchedObject[ClusterStagedUpdateRun]) -> Iterable[Key]:
    """The placement that a run moves."""
    return (Key(seen.cluster, seen.meta.namespace, seen.object.spec.placement_name),)


def by_member(bindings: Cache[Any]) -> Callable[[WatchedObject[MemberCluster]], Iterable[Key]]:
    """The placements that have a binding on a member."""

    def placed_on(seen: WatchedObject[MemberCluster]) -> Iterable[Key]:
        return [placement_key(seen.cluster, one.metadata) for one in bindings.by(CLUSTER, seen.meta.name)]

    return placed_on


def by_namespace(seen: WatchedObject[Any]) -> Iterable[Key]:
    """The member in whose namespace an object is."""
    member = member_of(seen.meta.namespace or "")
    return (Key(seen.cluster, None, member),) if member else ()


def binding_changed(change: Change[Any]) -> bool:
    """Whether a plan may be another one: not if only what we said ourselves changed."""
    return change.old is None or change.new is None or _binding_version(change.old) != _binding_version(change.new)


def _binding_version(binding: Binding) -> tuple[object, ...]:
    meta, status = binding.metadata, binding.status
    ours = find_condition(status.conditions, ROLLOUT_STARTED)
    is_ours_true = ours is not None and ours.observed_generation == meta.generation
    others = tuple(one for one in status.conditions if one.type != ROLLOUT_STARTED)
    return (meta.generation, meta.deletion_timestamp, is_ours_true, others, status.failed_placements[:1])


class RunWakes:
    """By what belongs to runs of one kind."""

    def __init__(self, runs: Cache[ClusterStagedUpdateRun]) -> None:
        self._runs = runs

    def by_strategy(self, seen: WatchedObject[ClusterStagedUpdateStrategy]) -> Iterable[Key]:
        found = self._runs.by(STRATEGY, named(seen.meta.namespace, seen.meta.name))
        return [_run_key(seen.cluster, run) for run in found if not has_ended(run.status)]

    def by_approval(self, seen: WatchedObject[ClusterApprovalRequest]) -> Iterable[Key]:
        """Every run that may go by this request: one of its name may be about another run."""
        meta = seen.meta
        for run in self._runs.all():
            if run.metadata.namespace == meta.namespace and meta.name.startswith(f"{run.metadata.name}-"):
                yield _run_key(seen.cluster, run)


def _run_key(cluster: str, run: Run) -> Key:
    return Key(cluster, run.metadata.namespace, run.spec.placement_name)


def run_changed(change: Change[ClusterStagedUpdateRun]) -> bool:
    """Whether a run came, went, has another spec, or lets another run move. Its status alone does not count, unless
    somebody else changed it.
    """
    return _run_version(change.old) != _run_version(change.new)


def _run_version(run: Run | None) -> object:
    if run is None:
        return None
    meta = run.metadata
    asked = (meta.uid, meta.generation, meta.deletion_timestamp, meta.finalizers, meta.annotations)
    return (*asked, has_ended(run.status), holds(run.status), is_initialized(run.status) and bool(torn(run.status)))


def member_changed(change: Change[MemberCluster]) -> bool:
    """Whether a member was met or lost, began to leave, or has other labels."""
    return _member_version(change.old) != _member_version(change.new)


def _member_version(member: MemberCluster | None) -> tuple[object, ...]:
    if member is None:
        return ()
    return (member.metadata.deletion_timestamp, unreachable_message(member), member.metadata.labels)


def labels_changed(change: Change[Any]) -> bool:
    """Whether a snapshot came, went, or carries other labels or annotations: not what became of it."""
    old, new = (each and (each.metadata.labels, each.metadata.annotations) for each in (change.old, change.new))
    return old != new


def revision_released(change: Change[ClusterResourceBinding]) -> bool:
    """Whether a cluster goes by other revisions than before, or by none."""
    if change.old is None or change.new is None:
        return change.old is not None
    old, new = change.old.spec, change.new.spec
    return (old.resource_snapshot_name, old.scheduling_policy_snapshot_name) != (
        new.resource_snapshot_name,
        new.scheduling_policy_snapshot_name,
    )


def run_ended(change: Change[ClusterStagedUpdateRun]) -> bool:
    """Whether a run needs its revision no longer."""
    ended = change.new is None or has_ended(change.new.status)
    return change.old is not None and ended and not has_ended(change.old.status)


class WorkWakes:
    """Knows the bindings of one kind of placement."""

    def __init__(self, hub: Cluster, kinds: PlacementKinds) -> None:
        self._hub = hub.name
        self._kinds = kinds
        self._bindings = trusted_cache(hub, kinds.binding, indexes=BINDINGS)

    def by_work(self, seen: WatchedObject[Work]) -> Iterable[Key]:
        """The binding a Work says it is of, and those that may wait for it to go."""
        namespace = seen.meta.labels.get(PARENT_NAMESPACE)
        if (namespace is not None) != self._kinds.binding.resource.namespaced or is_of_the_system(namespace):
            return
        for owner in by_binding(seen.object):
            yield Key(self._hub, namespace, owner.rpartition("/")[2])
        for binding in self._bindings.by(CLUSTER, member_of(seen.meta.namespace or "") or ""):
            meta = binding.metadata
            if parent(meta) == parent(seen.meta) and meta.namespace == namespace:
                yield key_of(self._hub, meta)

    def by_placement(self, seen: WatchedObject[ClusterResourcePlacement]) -> Iterable[Key]:
        """All its bindings."""
        found = self._bindings.by(PLACEMENT, named(seen.meta.namespace, seen.meta.name))
        return [key_of(self._hub, one.metadata) for one in found]

    def by_snapshot(self, seen: WatchedObject[PartialObject]) -> Iterable[Key]:
        """The bindings that point at the revision it is part of: they may have missed it."""
        index, owner = resource_index(seen.meta), parent(seen.meta)
        if index is None:
            return []
        master = resource_snapshot_name(owner, index)
        found = self._bindings.by(PLACEMENT, named(seen.meta.namespace, owner))
        return [key_of(self._hub, one.metadata) for one in found if one.spec.resource_snapshot_name == master]

    def by_member_namespace(self, seen: WatchedObject[Namespace]) -> Iterable[Key]:
        """The bindings to the member whose namespace it is."""
        found = self._bindings.by(CLUSTER, member_of(seen.meta.name) or "")
        return [key_of(self._hub, one.metadata) for one in found]


def work_settings_changed(change: Change[ClusterResourcePlacement]) -> bool:
    """Whether a placement is new, or what it says in its Works beside the objects is another."""
    old, new = change.old, change.new
    if old is None or new is None:
        return old is None
    return (abandons(old), report_back(old)) != (abandons(new), report_back(new))


def was_created(change: Change[PartialObject]) -> bool:
    return change.old is None


def namespace_lifecycle_changed(change: Change[Namespace]) -> bool:
    """Whether a namespace came, went, or begins to go."""
    if change.old is None or change.new is None:
        return True
    return change.old.metadata.deletion_timestamp != change.new.metadata.deletion_timestamp

"""Scheduler wakes: which changes are worth a look at which placements.

A fleet talks all the time: a thousand members send heartbeats, and say what they have left. Only placements that may
pick another cluster are looked at when a member changes, and only those that ask for properties when only those do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from kedge.api.binding import BindingState
from kedge.api.cluster import MemberCluster
from kedge.api.condition import find_condition, is_true
from kedge.api.fleet import BINDING_CLEANUP, IS_LATEST, SCHEDULER_CLEANUP
from kedge.api.placement_kinds import Binding, Placement, PolicySnapshot
from kedge.api.reasons import SCHEDULED
from kedge.api.scheduling import PlacementType
from kedge.controllers.hub.caches import CLUSTER, PLACEMENT, named
from kedge.controllers.hub.wakes import placement_key
from kedge.kube.cache import Cache
from kedge.kube.clock import Clock
from kedge.kube.queue import Key
from kedge.kube.source import WatchedObject
from kedge.kube.store import Change
from kedge.plan.membership import NAMESPACES_COLLECTED
from kedge.plan.placing.affinity import reads_properties
from kedge.plan.placing.filters import why_ineligible
from kedge.plan.revisions import parent

Members: TypeAlias = Change[MemberCluster]


class Affected:
    """The placements that a member may matter to."""

    def __init__(self, hub: str, snapshots: Cache[Any], bindings: Cache[Any]) -> None:
        self._hub = hub
        self._snapshots: Cache[PolicySnapshot] = snapshots
        self._bindings: Cache[Binding] = bindings

    def by_change(self, _: WatchedObject[MemberCluster]) -> Iterable[Key]:
        """Those that may pick another cluster."""
        return [self._key(snapshot) for snapshot in self._snapshots.all() if self._may_pick(snapshot)]

    def by_properties(self, _: WatchedObject[MemberCluster]) -> Iterable[Key]:
        """Those of them that ask for properties."""
        return [
            self._key(snapshot)
            for snapshot in self._snapshots.all()
            if reads_properties(snapshot.spec.policy) and self._may_pick(snapshot)
        ]

    def by_leaving(self, seen: WatchedObject[MemberCluster]) -> Iterable[Key]:
        """Those that may pick another cluster, and those that are on this one."""
        there = self._bindings.by(CLUSTER, seen.meta.name)
        return [*self.by_change(seen), *(self._key(binding) for binding in there)]

    def _key(self, found: PolicySnapshot | Binding) -> Key:
        return placement_key(self._hub, found.metadata)

    def _may_pick(self, snapshot: PolicySnapshot) -> bool:
        """Whether this is the newest policy of a placement that takes all it can, or has not got what it wants."""
        if snapshot.metadata.labels.get(IS_LATEST) != "true":
            return False
        policy = snapshot.spec.policy
        if policy is None or policy.placement_type is PlacementType.pick_all:
            return True
        if snapshot.status is None or not is_true(snapshot.status.conditions, SCHEDULED):
            return True
        return policy.placement_type is PlacementType.pick_n and self._waits(snapshot)

    def _waits(self, snapshot: PolicySnapshot) -> bool:
        """Whether a cluster was picked that has nothing yet: if it has fallen silent, another may take its place."""
        meta = snapshot.metadata
        mine = self._bindings.by(PLACEMENT, named(meta.namespace, parent(meta)))
        return any(binding.spec.state == BindingState.scheduled for binding in mine)


def placement_matters(change: Change[Placement]) -> bool:
    """New, gone, on its way out, or with or without the scheduler's finalizer now."""
    return _placement_version(change.old) != _placement_version(change.new)


def _placement_version(placement: Placement | None) -> object:
    meta = placement.metadata if placement is not None else None
    return meta and (meta.deletion_timestamp, SCHEDULER_CLEANUP in meta.finalizers)


def policy_matters(change: Change[PolicySnapshot]) -> bool:
    """Anything. Its status too: if it is not what the scheduler wrote, it is written again."""
    return _policy_version(change.old) != _policy_version(change.new)


def _policy_version(snapshot: PolicySnapshot | None) -> object:
    meta = snapshot.metadata if snapshot is not None else None
    return snapshot and meta and (meta.generation, meta.labels, meta.annotations, snapshot.status)


def binding_matters(change: Change[Binding]) -> bool:
    """New, on its way out, gone without a word, or not what the scheduler made of it."""
    if change.old is None:
        return True
    if change.new is None:
        return change.old.metadata.deletion_timestamp is None
    return _standing(change.old) != _standing(change.new)


def _standing(binding: Binding) -> tuple[object, ...]:
    spec = binding.spec
    given_up = spec.state == BindingState.unscheduled
    return (
        binding.metadata.deletion_timestamp,
        given_up,
        spec.target_cluster,
        spec.scheduling_policy_snapshot_name,
        spec.cluster_decision,
        binding.metadata.labels,
        BINDING_CLEANUP in binding.metadata.finalizers,
    )


def leaves(change: Members) -> bool:
    """A member is going, or gone."""
    if change.old is None:
        return False
    return change.new is None or (_going(change.new) and not _going(change.old))


def changes(clock: Clock) -> Callable[[Members], bool]:
    """A member is new, or something other than its properties changed that decides whether it fits."""

    def matters(change: Members) -> bool:
        if change.initial or change.new is None:
            return False  # of what was there already every placement has yet to look at all
        if change.old is None:
            return True
        return _traits(change.old, clock) != _traits(change.new, clock)

    return matters


def changes_properties(change: Members) -> bool:
    """What a member has, or has left, changed; when it was counted does not matter."""
    if change.old is None or change.new is None:
        return False
    return _amounts(change.old) != _amounts(change.new)


def _going(member: MemberCluster) -> bool:
    return member.metadata.deletion_timestamp is not None


def _traits(member: MemberCluster, clock: Clock) -> tuple[object, ...]:
    """Heartbeats only count where they end or begin a silence."""
    return (
        member.metadata.labels,
        member.spec.taints,
        member.status.namespaces.keys(),
        find_condition(member.status.conditions, NAMESPACES_COLLECTED) is None,
        why_ineligible(member, clock.now()),
    )


def _amounts(member: MemberCluster) -> tuple[object, ...]:
    usage = member.status.resource_usage
    return (
        {name: found.value for name, found in member.status.properties.items()},
        (usage.capacity, usage.allocatable, usage.available) if usage else None,
    )

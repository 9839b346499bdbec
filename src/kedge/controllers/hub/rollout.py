"""Rollout: moves the bindings of a placement to its resources, as many at once as its strategy allows.

A binding that moves is written twice: where it points, then, for the generation that made, that its rollout has
started. Works may be made after the first write if they run in this process (`PointedBindings`); then the second waits
until they are made. If a crash loses it, the next look finds it missing. Nothing is written that does not change, so a
look at a thousand clusters that wait costs no writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from kedge.api.cluster import MemberCluster
from kedge.api.dialect import Dialect
from kedge.api.meta import ObjectMeta
from kedge.api.placement_kinds import Binding, Placement, PlacementKinds
from kedge.controllers.gather import gather
from kedge.controllers.hub import wakes
from kedge.controllers.hub.binding_writes import BindingWrites
from kedge.controllers.hub.caches import (
    BINDINGS,
    PLACEMENT,
    SNAPSHOTS,
    named,
    placements_without_status,
    spec_changed,
    trusted_cache,
)
from kedge.controllers.hub.pod_counting import PodCounting
from kedge.controllers.hub.pointed_bindings import PointedBindings
from kedge.controllers.hub.rollout_delays import MESSAGES_AFTER, RolloutDelays
from kedge.controllers.hub.snapshot_contents import Contents
from kedge.controllers.throttle import Throttle
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import metadata_of
from kedge.kube.controller import Controller
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source
from kedge.kube.store import Change
from kedge.plan.membership import unreachable_message
from kedge.plan.placements import is_paused
from kedge.plan.rolling.plan import RolloutPlan, plan
from kedge.plan.rolling.rollout_condition import Conditions, lacks_rollout_condition, rollout_started_condition
from kedge.plan.rolling.rollout_input import RolloutInput, is_rolling, observe

MANAGER: Final = "kedge-rollout"
STARTED_AFTER: Final = 0.1  # seconds until RolloutStarted is written, where Works do not wait for it


class Rollout:
    """The rolling placements of one hub, of one of the kinds."""

    def __init__(
        self,
        hub: Cluster,
        kinds: PlacementKinds,
        *,
        clock: Clock,
        dialect: Dialect = Dialect.seed,
        messages_after: float = MESSAGES_AFTER,
        started_after: float = STARTED_AFTER,
        pointed: PointedBindings | None = None,
    ) -> None:
        """`pointed` is shared with the Works of this process."""
        self._pointed = pointed or PointedBindings(hub.name)
        self._writes = BindingWrites(hub.client, kinds, manager=MANAGER, pointed=self._pointed)
        self._clock = clock
        self._dialect = dialect
        self._delays = RolloutDelays(messages_after)
        self._started_conditions = Throttle(started_after)
        self._placements = placements_without_status(hub, kinds)
        self._bindings = trusted_cache(hub, kinds.binding, indexes=BINDINGS)
        self._snapshots = trusted_cache(hub, metadata_of(kinds.resource_snapshot.resource), indexes=SNAPSHOTS)
        self._members = hub.cache(MemberCluster)
        contents = Contents(hub.client, kinds, self._snapshot)
        self._counting = PodCounting(hub.client, kinds, contents, manager=MANAGER)
        sources: list[Source] = [
            hub.watch(self._placements, when=spec_changed),
            hub.watch(self._bindings, to=wakes.by_owner, when=wakes.binding_changed),
            hub.watch(self._snapshots, to=wakes.by_owner),
            hub.watch(self._members, to=wakes.by_member(self._bindings), when=_member_came_or_went),
        ]
        self.controller = Controller(f"rollout of {kinds.name}", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        placement = self._placements.get(key.name, key.namespace)
        if placement is None or not is_rolling(placement):
            self._delays.forget(key)
            self._started_conditions.reset(key)
            return Outcome.done
        bindings = self._bindings.by(PLACEMENT, named(key.namespace, key.name))
        if rest := self._delays.before_look(key, len(bindings)):
            return Outcome.again(after=rest)
        observed = self._observe(placement, bindings)
        if self._dialect is Dialect.kubefleet and (outdated := _with_other_apply_strategy(observed)):
            await gather(partial(self._writes.apply_with, binding, observed.apply_strategy) for binding in outdated)
            return Outcome.done  # their new generations wake us again
        if await self._count_pods(observed):
            return Outcome.not_yet
        planned = plan(observed, self._clock.now())
        if planned.bind or planned.repoint or planned.remove:
            self._delays.moved(key)
            await self._move(observed, planned)
        if planned.credit:
            await gather(partial(self._writes.credit, binding) for binding in planned.credit)
            return Outcome.not_yet
        return await self._write_conditions(key, observed, planned)

    # Observing

    def _observe(self, placement: Placement, bindings: tuple[Binding, ...]) -> RolloutInput:
        meta = placement.metadata
        revisions = self._snapshots.by(PLACEMENT, named(meta.namespace, meta.name))
        members = {one.metadata.name: one for one in map(self._member_of, bindings) if one is not None}
        return observe(placement, bindings, [found.metadata for found in revisions], members, self._dialect)

    async def _count_pods(self, observed: RolloutInput) -> bool:
        """Count the pods of revisions that are held or wanted, if there is a budget of pods; gives whether any were."""
        namespace = observed.placement.metadata.namespace
        found = [self._snapshot(name, namespace) for name in observed.uncounted]
        return await self._counting.count(one for one in found if one is not None)

    def _snapshot(self, name: str, namespace: str | None) -> ObjectMeta | None:
        found = self._snapshots.get(name, namespace)
        return found.metadata if found is not None else None

    def _member_of(self, binding: Binding) -> MemberCluster | None:
        return self._members.get(binding.spec.target_cluster)

    # Acting

    async def _move(self, observed: RolloutInput, planned: RolloutPlan) -> None:
        moved = (*planned.bind, *planned.repoint)
        pointed = (partial(self._point, one, observed, planned.charges.get(one.metadata.name)) for one in moved)
        await gather([*pointed, *(partial(self._writes.remove, binding) for binding in planned.remove)])

    async def _point(self, binding: Binding, observed: RolloutInput, charge: int | None) -> None:
        strategy = None if observed.is_applied_so(binding) else observed.apply_strategy
        pointed = await self._writes.point(binding, observed.wanted.name, strategy, charge=charge)
        if not (self._started_conditions.seconds and self._pointed.may_create_works(pointed)):
            await self._writes.set_rollout_started(pointed, rollout_started_condition(pointed, None, self._clock.now()))

    # Conditions

    async def _write_conditions(self, key: Key, observed: RolloutInput, planned: RolloutPlan) -> Outcome:
        """Write RolloutStarted on every binding that does not move.

        At once where Works wait for it. Otherwise once nothing moves and it has been the same for a while, since
        people read it and nobody acts on it.
        """
        staying = self._bindings_that_stay(observed, planned)
        later = await self._write_started(key, [one for one in staying if lacks_rollout_condition(one)], planned)
        wait = self._delays.after_move(key)
        if not wait:
            changed = self._changed_conditions([one for one in staying if not lacks_rollout_condition(one)], planned)
            wait = self._delays.before_messages(
                key, tuple(planned.why.get(one.metadata.name, "") for one, _ in changed)
            )
            if not wait:
                await self._write_all(changed)
                self._delays.wrote_messages(key)
        waits = [after for after in (planned.look_again, later, wait) if after]
        return Outcome.again(after=min(waits)) if waits else Outcome.done

    async def _write_started(self, key: Key, unwritten: Sequence[Binding], planned: RolloutPlan) -> float:
        """Write that rollouts have started; gives in how many seconds to write it where nobody waits for it."""
        left = self._started_conditions.wait(key) if any(map(self._pointed.may_create_works, unwritten)) else 0.0
        if not left:
            self._started_conditions.reset(key)
        due = [one for one in unwritten if not (left and self._pointed.may_create_works(one))]
        await self._write_all(self._changed_conditions(due, planned))
        return left

    def _bindings_that_stay(self, observed: RolloutInput, planned: RolloutPlan) -> list[Binding]:
        """The bindings that do not move."""
        if not observed.wanted.name and not observed.wanted.problem:
            return []
        moved = {one.metadata.name for one in (*planned.bind, *planned.repoint, *planned.remove)}
        return [one for one in observed.bindings if one.metadata.name not in moved]

    def _changed_conditions(
        self, bindings: Iterable[Binding], planned: RolloutPlan
    ) -> list[tuple[Binding, Conditions]]:
        """Those whose conditions change, and to what."""
        now = self._clock.now()
        found = ((one, rollout_started_condition(one, planned.why.get(one.metadata.name), now)) for one in bindings)
        return [(one, conditions) for one, conditions in found if conditions != one.status.conditions]

    async def _write_all(self, changed: Iterable[tuple[Binding, Conditions]]) -> None:
        await gather(partial(self._writes.set_rollout_started, binding, conditions) for binding, conditions in changed)


# How objects are applied. KubeFleet gives all clusters a new strategy at once (kubefleet.md §3.1).


def _with_other_apply_strategy(observed: RolloutInput) -> list[Binding]:
    live = (one for one in observed.bindings if one.metadata.deletion_timestamp is None)
    return [] if is_paused(observed.placement) else [one for one in live if not observed.is_applied_so(one)]


def _member_came_or_went(change: Change[MemberCluster]) -> bool:
    """Whether a member was met or lost, or began to leave."""
    return _presence(change.old) != _presence(change.new)


def _presence(member: MemberCluster | None) -> tuple[object, ...]:
    return () if member is None else (member.metadata.deletion_timestamp, unreachable_message(member))

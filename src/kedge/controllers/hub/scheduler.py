"""Scheduler: gives every placement a binding for each cluster that its policy picks, and takes them back.

What is picked is decided in `plan.placing`; here it is carried out, in an order that may end at any point: first what
is new, then what is given up (so that a rollout never sees something go before it sees what comes instead), then what
is said of it, and last the bindings that are on their way out, of which the scheduler lets go.

A placement on its way out takes its bindings with it, and so does one that is gone already.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from random import Random
from typing import Any, Final, TypeVar

from msgspec import Struct, to_builtins
from prometheus_client import CollectorRegistry

from kedge.api.binding import BindingSpec, BindingState
from kedge.api.cluster import MemberCluster
from kedge.api.dialect import Dialect
from kedge.api.fleet import (
    BINDING_CLEANUP,
    NUMBER_OF_CLUSTERS,
    PARENT_PLACEMENT,
    PREVIOUS_STATE,
    SCHEDULER_CLEANUP,
    binding_name,
)
from kedge.api.placement_kinds import Binding, Placement, PlacementKinds, PolicySnapshot
from kedge.api.rollout import ApplyStrategy
from kedge.api.snapshot import ClusterDecision
from kedge.controllers.gather import gather
from kedge.controllers.hub import scheduler_wakes, wakes
from kedge.controllers.hub.caches import BINDINGS, PLACEMENT, SNAPSHOTS, named, trusted_cache
from kedge.controllers.hub.metrics import SchedulingMetrics
from kedge.kube.cache import Cache
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.controller import Controller
from kedge.kube.errors import NotFound
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.plan.placements import is_external
from kedge.plan.placing.filters import SILENT_AFTER, is_overdue
from kedge.plan.placing.policies import is_ignored
from kedge.plan.placing.policy_status import observes_current_generation, policy_snapshot_status
from kedge.plan.placing.schedule import ReusedBinding, Schedule, schedule
from kedge.plan.revisions import newest_policy

MANAGER: Final = "kedge-scheduler"
_A_MOMENT: Final = 1.0

T = TypeVar("T")
P = TypeVar("P", bound=Placement | PolicySnapshot | Binding)


class Seen(Struct, frozen=True):
    """A placement that wants clusters, and the policy by which to pick them."""

    placement: Placement
    snapshot: PolicySnapshot
    bindings: tuple[Binding, ...]


class Scheduler:
    """Schedules the placements of one kind."""

    def __init__(
        self,
        hub: Cluster,
        kinds: PlacementKinds,
        *,
        clock: Clock,
        rng: Random,
        metrics: SchedulingMetrics | None = None,
        dialect: Dialect = Dialect.seed,
    ) -> None:
        """`rng` gives the ends of bindings' names; `metrics` are shared by the schedulers of both kinds."""
        self._client = hub.client
        self._kinds = kinds
        self._clock = clock
        self._rng = rng
        self._metrics = metrics or SchedulingMetrics(CollectorRegistry())
        self._dialect = dialect
        # Each is of one of the two PlacementKinds; a cache of either is no type that Python knows.
        self._placements: Cache[Any] = trusted_cache(hub, kinds.placement)
        self._snapshots: Cache[Any] = trusted_cache(hub, kinds.policy_snapshot, indexes=SNAPSHOTS)
        self._bindings: Cache[Any] = trusted_cache(hub, kinds.binding, indexes=BINDINGS)
        self._members = hub.cache(MemberCluster)
        affected = scheduler_wakes.Affected(hub.name, self._snapshots, self._bindings)
        self.controller = Controller(
            f"scheduler of {kinds.name}",
            self.reconcile,
            [
                hub.watch(self._placements, when=scheduler_wakes.placement_matters),
                hub.watch(self._snapshots, to=wakes.by_owner, when=scheduler_wakes.policy_matters),
                hub.watch(self._bindings, to=wakes.by_owner, when=scheduler_wakes.binding_matters),
                hub.watch(self._members, to=affected.by_leaving, when=scheduler_wakes.leaves),
                hub.watch(self._members, to=affected.by_change, when=scheduler_wakes.changes(clock)),
                hub.watch(self._members, to=affected.by_properties, when=scheduler_wakes.changes_properties),
            ],
        )

    async def reconcile(self, key: Key) -> Outcome:
        placement: Placement | None = self._placements.get(key.name, key.namespace)
        bindings: tuple[Binding, ...] = self._bindings.by(PLACEMENT, named(key.namespace, key.name))
        if placement is None:
            await self._clear_after(key, bindings)
            return Outcome.done
        if placement.metadata.deletion_timestamp is not None:
            await self._clean_up(placement, bindings)
            return Outcome.done
        snapshot = self._newest_policy(key)
        if snapshot is None:
            return Outcome.done  # the snapshot will come, and wake this
        with self._metrics.cycle():
            return await self._schedule(Seen(placement, snapshot, bindings))

    # Observing

    def _newest_policy(self, key: Key) -> PolicySnapshot | None:
        found: tuple[PolicySnapshot, ...] = self._snapshots.by(PLACEMENT, named(key.namespace, key.name))
        newest = newest_policy(snapshot.metadata for snapshot in found)
        return next((snapshot for snapshot in found if snapshot.metadata is newest), None)

    def _unread(self, seen: Seen) -> str | None:
        """What is wrong with a binding of this placement that cannot be read. It may hold any cluster."""
        meta = seen.placement.metadata
        for (namespace, name), found in self._bindings.unreadable.items():
            mine = found.metadata.labels.get(PARENT_PLACEMENT) == meta.name and namespace == (meta.namespace or "")
            if mine:
                return f"binding {name} cannot be read, so that nobody knows which cluster it holds: {found.problem}"
        return None

    # Scheduling

    async def _schedule(self, seen: Seen) -> Outcome:
        await self._hold(seen.placement)
        made = self._made(seen)
        if is_ignored(seen.snapshot.spec.policy, self._dialect):
            await self._each(self._release, made.release)
            return Outcome.done
        await self._each(lambda decision: self._create(seen, decision), made.create)
        await self._each(lambda repick: self._repick(seen, repick), made.reuse)
        await self._each(self._unschedule, made.unschedule)
        await self._say(seen.snapshot, made)
        await self._each(self._release, made.release)
        if made.requeue_at is None:
            return Outcome.again(after=SILENT_AFTER.total_seconds()) if self._passed_over_late(made) else Outcome.done
        wait = (made.requeue_at - self._clock.now()).total_seconds()
        return Outcome.again(after=max(0.0, wait) + _A_MOMENT)

    def _passed_over_late(self, made: Schedule) -> bool:
        """Whether a cluster was passed over as overdue: if a clock was wrong, no event will say otherwise."""
        found = (self._members.get(decision.cluster_name) for decision in made.unselected or ())
        return any(is_overdue(member, self._clock.now()) for member in found if member is not None)

    def _made(self, seen: Seen) -> Schedule:
        return schedule(
            seen.snapshot.spec.policy,
            _number(seen.snapshot),
            seen.snapshot.metadata.name,
            self._members.all(),
            seen.bindings,
            namespace=seen.placement.metadata.namespace,
            now=self._clock.now(),
            unreadable=frozenset(name for _, name in self._members.unreadable),
            replace_silent=not is_external(seen.placement),  # runs count on the clusters they began with
            problem=self._unread(seen),
            already_reported=observes_current_generation(seen.snapshot.metadata, seen.snapshot.status),
            dialect=self._dialect,
        )

    async def _hold(self, placement: Placement) -> None:
        """Not before the placement's bindings are cleaned up may it go."""
        if SCHEDULER_CLEANUP not in placement.metadata.finalizers:
            await self._finalize(placement, (*placement.metadata.finalizers, SCHEDULER_CLEANUP))

    async def _create(self, seen: Seen, decision: ClusterDecision) -> None:
        meta = seen.placement.metadata
        suffix = f"{self._rng.getrandbits(32):08x}"
        spec = BindingSpec(
            state=BindingState.scheduled,
            resource_snapshot_name="",
            scheduling_policy_snapshot_name=seen.snapshot.metadata.name,
            target_cluster=decision.cluster_name,
            cluster_decision=decision,
        )
        metadata: dict[str, Any] = {
            "name": binding_name(meta.name, decision.cluster_name, suffix),
            "labels": {PARENT_PLACEMENT: meta.name},
            "finalizers": [BINDING_CLEANUP],
        }
        body = to_builtins(spec)
        if not is_external(seen.placement):  # a run brings the one of its beginning
            body |= {"applyStrategy": _apply_strategy(seen.placement)}
        await self._client.create(
            self._kinds.binding, {"metadata": metadata, "spec": body}, meta.namespace, manager=MANAGER
        )

    async def _repick(self, seen: Seen, repick: ReusedBinding) -> None:
        spec = {
            "state": repick.state,
            "schedulingPolicySnapshotName": seen.snapshot.metadata.name,
            "clusterDecision": {"clusterScore": None} | to_builtins(repick.decision),
        }
        body: dict[str, Any] = {"spec": spec}
        if PREVIOUS_STATE in repick.binding.metadata.annotations:
            body["metadata"] = {"annotations": {PREVIOUS_STATE: None}}
        await self._change(repick.binding, body)

    async def _unschedule(self, binding: Binding) -> None:
        annotations = {PREVIOUS_STATE: binding.spec.state}
        await self._change(binding, {"spec": {"state": "Unscheduled"}, "metadata": {"annotations": annotations}})

    async def _say(self, snapshot: PolicySnapshot, made: Schedule) -> None:
        """Write what came of it, if that is news."""
        said = policy_snapshot_status(snapshot.metadata, snapshot.status, made, self._clock.now())
        if said != snapshot.status:
            body = {"targetClusters": None} | to_builtins(said)
            await self._change(snapshot, {"status": body}, subresource="status")

    # Letting go

    async def _clean_up(self, placement: Placement, bindings: Sequence[Binding]) -> None:
        """Take every binding away, and only then let go of the placement."""
        await self._each(self._remove, bindings)
        if SCHEDULER_CLEANUP in placement.metadata.finalizers:
            with suppress(NotFound):  # let go of before, and the cache does not know yet that it is gone
                await self._finalize(placement, _without(placement, SCHEDULER_CLEANUP))

    async def _clear_after(self, key: Key, bindings: Sequence[Binding]) -> None:
        """Take away what a placement that is gone left behind: a write may arrive after the process that made it died.

        Asks first: a placement that cannot be read is not in the cache either.
        """
        if not bindings:
            return
        try:
            await self._client.get(self._kinds.placement, key.name, key.namespace)
        except NotFound:
            await self._each(self._remove, bindings)

    async def _remove(self, binding: Binding) -> None:
        """Let go of a binding, and delete it."""
        with suppress(NotFound):
            meta = (await self._let_go(binding)).metadata
            if meta.deletion_timestamp is None:
                await self._client.remove(self._kinds.binding, meta)

    async def _release(self, binding: Binding) -> None:
        """Let go of a binding that is on its way out."""
        with suppress(NotFound):
            await self._let_go(binding)

    async def _let_go(self, binding: Binding) -> Binding:
        if BINDING_CLEANUP not in binding.metadata.finalizers:
            return binding
        return await self._finalize(binding, _without(binding, BINDING_CLEANUP))

    # Writing

    async def _finalize(self, found: P, finalizers: Sequence[str]) -> P:
        return await self._change(found, {"metadata": {"finalizers": list(finalizers)}})

    async def _change(self, found: P, body: Mapping[str, Any], subresource: str | None = None) -> P:
        """Change this very object, if it is still as it was seen."""
        meta = found.metadata
        return await self._client.amend(type(found), meta, body, manager=MANAGER, subresource=subresource)

    async def _each(self, write: Callable[[T], Awaitable[None]], things: Iterable[T]) -> None:
        await gather(partial(write, thing) for thing in things)


def _without(found: Placement | Binding, finalizer: str) -> tuple[str, ...]:
    return tuple(each for each in found.metadata.finalizers if each != finalizer)


def _number(snapshot: PolicySnapshot) -> int | None:
    """How many clusters are wanted: as the annotation says, which alone changes when only the number does."""
    text = snapshot.metadata.annotations.get(NUMBER_OF_CLUSTERS, "")
    if text.isascii() and text.isdecimal():
        return int(text)
    return snapshot.spec.policy.number_of_clusters if snapshot.spec.policy else None


def _apply_strategy(placement: Placement) -> dict[str, Any]:
    """How objects are to be written, every default spelled out."""
    strategy = (placement.spec.strategy and placement.spec.strategy.apply_strategy) or ApplyStrategy()
    spelled_out: dict[str, Any] = {
        "type": strategy.type,
        "comparisonOption": strategy.comparison_option,
        "whenToApply": strategy.when_to_apply,
        "whenToTakeOver": strategy.when_to_take_over,
    }
    spelled_out.update(to_builtins(strategy))
    return spelled_out

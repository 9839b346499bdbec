"""Placement statuses: tells on each placement what became of it, cluster by cluster and as a whole.

    PlacementStatuses(hub, kinds, clock=clock, selections=resources).controller

Everything is said anew from what is seen at each look; nothing is written that does not change, and of many changes in
a row only some moments, but always the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from msgspec.structs import replace

from kedge.api.cluster import MemberCluster
from kedge.api.condition import FALSE, UNKNOWN, find_condition, is_true
from kedge.api.dialect import Dialect
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.placement_kinds import Binding, Placement, PlacementKinds
from kedge.api.placement_status import PlacementStatus
from kedge.api.reasons import SCHEDULED
from kedge.controllers.hub import wakes
from kedge.controllers.hub.caches import BINDINGS, PLACEMENT, RUNS, SNAPSHOTS, named, trusted_cache
from kedge.controllers.hub.metrics import PlacementMetrics
from kedge.controllers.hub.snapshot_contents import Selected
from kedge.controllers.hub.status_copies import NamespaceStatuses, status_patch
from kedge.controllers.hub.status_delays import REST, StatusDelays
from kedge.kube.clock import Clock
from kedge.kube.cluster import Cluster
from kedge.kube.codec import metadata_of
from kedge.kube.controller import Controller
from kedge.kube.outcome import Outcome
from kedge.kube.queue import Key
from kedge.kube.source import Source
from kedge.kube.store import Change
from kedge.plan.membership import unhealthy_message, unreachable_message
from kedge.plan.reporting.condition_order import CONDITION_STEPS
from kedge.plan.reporting.placement_status import (
    PlacementFacts,
    is_complete,
    not_followed_status,
    only_clusters_or_messages_differ,
    parts_of_revision,
    placement_status,
    shortened_to_fit,
)
from kedge.plan.rolling.plan import removal_waits
from kedge.plan.rolling.rollout_input import observe
from kedge.plan.selecting.selectors import status_namespace_problem

MANAGER: Final = "kedge-status"
TRY_AGAIN: Final = 30.0  # seconds until a copy that was refused is tried again


class SelectedNow(Protocol):
    """What a placement selects."""

    @property
    def problem(self) -> str: ...

    @property
    def pending(self) -> str: ...

    @property
    def warning(self) -> str: ...


class Selections(Protocol):
    """Knows what placements select."""

    def selected(self, placement: ClusterResourcePlacement) -> SelectedNow: ...

    def source(self, kinds: PlacementKinds) -> Source: ...


class PlacementStatuses:
    """The statuses of one kind of placement."""

    def __init__(
        self,
        hub: Cluster,
        kinds: PlacementKinds,
        *,
        clock: Clock,
        selections: Selections,
        dialect: Dialect = Dialect.seed,
        metrics: PlacementMetrics | None = None,
        rest: float = REST,
    ) -> None:
        """`metrics` are shared between the kinds: a process shows each name once."""
        self._client = hub.client
        self._events = hub.events.signed("placement-controller")
        self._kinds = kinds
        self._clock = clock
        self._selections = selections
        self._dialect = dialect
        self._metrics = metrics
        self._delays = StatusDelays(rest)
        self._selected = Selected(hub.client, kinds)
        self._placements = trusted_cache(hub, kinds.placement)
        self._policies = trusted_cache(hub, kinds.policy_snapshot, indexes=SNAPSHOTS)
        self._snapshots = trusted_cache(hub, metadata_of(kinds.resource_snapshot.resource), indexes=SNAPSHOTS)
        self._bindings = trusted_cache(hub, kinds.binding, indexes=BINDINGS)
        self._runs = trusted_cache(hub, kinds.run, indexes=RUNS)
        self._members = hub.cache(MemberCluster)
        self._copies = None if kinds.placement.resource.namespaced else NamespaceStatuses(hub, clock=clock)
        sources: list[Source] = [
            hub.watch(self._placements),
            hub.watch(self._policies, to=wakes.by_owner),
            hub.watch(self._snapshots, to=wakes.by_owner),
            hub.watch(self._bindings, to=wakes.by_owner),
            hub.watch(self._runs, to=wakes.by_run),
            hub.watch(self._members, to=wakes.by_member(self._bindings), when=_member_changed),
            selections.source(kinds),
        ]
        if self._copies is not None:
            sources.append(self._copies.source)
        self.controller = Controller(f"statuses of {kinds.name}", self.reconcile, sources)

    async def reconcile(self, key: Key) -> Outcome:
        placement = self._placements.get(key.name, key.namespace)
        if placement is None or placement.metadata.deletion_timestamp is not None:
            self._forget(key)
            return Outcome.done
        if rest := self._delays.before_look(key):
            return Outcome.again(after=rest)
        self._delays.looked(key)
        status = await self._status(placement)
        rest = self._wait_for_scheduling(key, placement, status)
        if not rest and only_clusters_or_messages_differ(placement.status, status):
            rest = self._delays.before_counts(key)
        if rest > 0:
            return Outcome.again(after=rest)
        status, outcome = await self._with_copy(placement, status)
        if status != placement.status:
            await self._write(placement, status)
            self._delays.wrote(key, len(status.placement_statuses))
            self._record_events(placement, status)
        if self._metrics is not None:
            self._metrics.stands(key, placement.metadata.generation, status, self._clock.now().timestamp())
        return outcome

    def _forget(self, key: Key) -> None:
        self._delays.forget(key)
        if self._metrics is not None:
            self._metrics.forget(key)

    # Observing

    async def _status(self, placement: ClusterResourcePlacement) -> PlacementStatus:
        if problem := status_namespace_problem(placement):
            return not_followed_status(placement, problem, self._clock.now())
        observed = self._observe(placement)
        status = placement_status(observed, self._clock.now())
        parts = parts_of_revision(observed.snapshots, status.observed_resource_index)
        return shortened_to_fit(replace(status, selected_resources=await self._selected.of(parts)))

    def _observe(self, placement: ClusterResourcePlacement) -> PlacementFacts:
        whose = named(placement.metadata.namespace, placement.metadata.name)
        bindings = self._bindings.by(PLACEMENT, whose)
        snapshots = [one.metadata for one in self._snapshots.by(PLACEMENT, whose)]
        members = self._members_of(bindings)
        rollout = observe(placement, bindings, snapshots, members, self._dialect)
        selection = self._selections.selected(placement)
        return PlacementFacts(
            placement=placement,
            prefix=self._kinds.prefix,
            policies=self._policies.by(PLACEMENT, whose),
            snapshots=snapshots,
            bindings=bindings,
            runs=self._runs.by(PLACEMENT, whose),
            unreachable=_messages(members, unreachable_message),
            unhealthy=_messages(members, unhealthy_message),
            removal_waits=removal_waits(rollout, self._clock.now()),
            problem=selection.problem,
            pending=selection.pending,
            warning=selection.warning,
            dialect=self._dialect,
        )

    def _members_of(self, bindings: Iterable[Binding]) -> dict[str, MemberCluster]:
        found = (self._members.get(one.spec.target_cluster) for one in bindings)
        return {one.metadata.name: one for one in found if one is not None}

    def _wait_for_scheduling(self, key: Key, placement: Placement, status: PlacementStatus) -> float:
        """How long to go on showing what was said of the generation before, while clusters are being picked."""
        found = find_condition(status.conditions, f"{self._kinds.prefix}{SCHEDULED}")
        if not placement.status.placement_statuses or found is None or found.status != UNKNOWN:
            self._delays.scheduled(key)
            return 0.0
        return self._delays.before_unscheduled(key, placement.metadata.generation)

    # Acting

    async def _with_copy(
        self, placement: ClusterResourcePlacement, status: PlacementStatus
    ) -> tuple[PlacementStatus, Outcome]:
        """The status with what is to be said of its copy, if it has one."""
        said = (
            None
            if self._copies is None or status_namespace_problem(placement)
            else await self._copies.keep(placement, status)
        )
        if said is None:
            return status, Outcome.done
        said = replace(said, type=f"{self._kinds.prefix}{said.type}")
        old = find_condition(placement.status.conditions, said.type)
        condition = said.condition(old, placement.metadata.generation, self._clock.now())
        outcome = Outcome.again(after=TRY_AGAIN) if said.status == FALSE else Outcome.done
        return replace(status, conditions=(*status.conditions, condition)), outcome

    async def _write(self, placement: ClusterResourcePlacement, status: PlacementStatus) -> None:
        meta = placement.metadata
        await self._client.amend(
            self._kinds.placement,
            meta,
            {"status": status_patch(placement.status, status)},
            manager=MANAGER,
            subresource="status",
        )

    def _record_events(self, placement: ClusterResourcePlacement, status: PlacementStatus) -> None:
        """Events of the steps that are taken now, and were not before."""
        generation, before = placement.metadata.generation, placement.status
        for step in CONDITION_STEPS:
            kind = f"{self._kinds.prefix}{step.type}"
            if is_true(status.conditions, kind) and not is_true(before.conditions, kind, generation=generation):
                found = find_condition(status.conditions, kind)
                self._events.normal(placement, step.event, found.message if found is not None else "")
        if is_complete(status) and not (is_complete(before) and _is_about(before, generation)):
            resources = status.observed_resource_index
            self._events.normal(placement, "PlacementRolloutCompleted", f"Every cluster has resources {resources}")


def _is_about(status: PlacementStatus, generation: int) -> bool:
    return all(one.observed_generation == generation for one in status.conditions)


def _messages(members: Mapping[str, MemberCluster], told: Callable[[MemberCluster | None], str]) -> Mapping[str, str]:
    return {name: said for name, member in members.items() if (said := told(member))}


def _member_changed(change: Change[MemberCluster]) -> bool:
    """Whether a member came, began to leave or is gone, or something else is known of its health."""
    return _health(change.old) != _health(change.new)


def _health(member: MemberCluster | None) -> object:
    return member and (member.metadata.deletion_timestamp, unreachable_message(member), unhealthy_message(member))

"""Cluster places: where a placement stands on each of its clusters, from one observation of the hub's objects.

    for place in picked_places(observed) + leaving_places(observed): ...

Every part is found by what the hub itself decides with: a binding is judged by what its Works say, and what a cluster
waits for is what the rollout's plan says, of the very bindings that are shown. What the hub wrote down earlier, in
conditions, is not repeated where it can be found anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.cluster import MemberCluster
from kedge.api.condition import TRUE, UNKNOWN, Condition, find_condition
from kedge.api.dialect import Dialect
from kedge.api.meta import ObjectMeta
from kedge.api.numbers import resolve
from kedge.api.placement_kinds import Binding, Placement, PolicySnapshot, Run
from kedge.api.placement_status import ClusterPlacementStatus
from kedge.api.reasons import APPLIED, AVAILABLE, OVERRIDDEN, ROLLOUT_STARTED, SCHEDULED, WORK_SYNCHRONIZED
from kedge.api.snapshot import ClusterDecision
from kedge.api.work import Work
from kedge.plan.explaining.placed_objects import PlacedObject, held_now, works_by_binding
from kedge.plan.moving.unit import Proof
from kedge.plan.moving.wait import Wait
from kedge.plan.placements import is_external
from kedge.plan.placing.bindings import is_being_removed, remaining_bindings
from kedge.plan.placing.policies import wanted_number
from kedge.plan.reporting.cluster_status import why_not_picked
from kedge.plan.revisions import newest_policy, resource_index_in
from kedge.plan.rolling.plan import RolloutPlan, plan
from kedge.plan.rolling.readiness import BindingFacts, FleetFacts, current, judge
from kedge.plan.rolling.rollout_input import RolloutInput, observe, period_of
from kedge.plan.rolling.wait_text import failure_of
from kedge.plan.staging.progress import turn_texts
from kedge.plan.state import State, state_of
from kedge.plan.text import moment

STEPS = (ROLLOUT_STARTED, OVERRIDDEN, WORK_SYNCHRONIZED, APPLIED, AVAILABLE)
_PICKED = "it was picked, and nothing more yet"
_OUTSIDE = "a staged update run has to bring it its resources"
_WORDS = {
    Proof.gone: (State.unknown, "it is no member of the fleet any more"),
    Proof.leaving: (State.unknown, "it is leaving the fleet, and what was placed there is to stay"),
    Proof.nothing: (State.moving, "it has not been given its resources yet"),
}


class ClusterPlace(Struct, frozen=True):
    """A placement on one cluster."""

    cluster: str
    state: State
    index: str = ""
    """The revision it has, or is getting; empty if that is none, or not known."""
    is_up: bool = False
    """Whether what it has is available, whichever revision that is."""
    is_down: bool = False
    """Whether its own status says that it is not; neither, if that is not known."""
    why: str = ""
    wait: Wait | None = None
    """The same as data, if it waits for the rollout."""
    things: tuple[PlacedObject, ...] = ()


class Observed(Struct, frozen=True, dict=True):
    """All that was read of a placement; from it alone everything is told."""

    placement: Placement
    bindings: tuple[Binding, ...]
    works: tuple[Work, ...]
    snapshots: tuple[ObjectMeta, ...]
    """Of its resources."""
    policies: tuple[PolicySnapshot, ...]
    members: Mapping[str, MemberCluster] | None
    """By name; None if they may not be read."""
    runs: tuple[Run, ...]
    """Staged update runs that move it, or have."""
    now: datetime
    dialect: Dialect = Dialect.seed

    @cached_property
    def held(self) -> Mapping[str, tuple[Binding, tuple[PlacedObject, ...]]]:
        """Every binding as its Works have it, and the objects placed for it, by the binding's name."""
        works = works_by_binding(self.works)
        found = (held_now(one, works.get(one.metadata.name, ()), self.now) for one in self.bindings)
        return {one.binding.metadata.name: (one.binding, one.things) for one in found}

    @cached_property
    def rollout(self) -> RolloutInput:
        """What the rollout's plan depends on."""
        bindings = [binding for binding, _ in self.held.values()]
        seen = observe(self.placement, bindings, self.snapshots, self.members or {}, self.dialect)
        if self.members is not None:
            return seen
        unreachable = _said_to_be_unreachable(self.placement.status.placement_statuses)
        return replace(seen, unreachable=unreachable, gone=frozenset())

    @cached_property
    def plan(self) -> RolloutPlan:
        """Who moves now, and what the others wait for."""
        return plan(self.rollout, self.now)

    @cached_property
    def moving(self) -> frozenset[str]:
        """The bindings that move now, by name."""
        return frozenset(one.metadata.name for one in (*self.plan.bind, *self.plan.repoint))

    @cached_property
    def _fleet(self) -> FleetFacts:
        seen, period = self.rollout, period_of(self.placement, self.dialect)
        return FleetFacts(self.now, period, seen.unreachable, seen.gone, seen.parting)

    def unit(self, binding: Binding) -> BindingFacts:
        """What is known of one of the bindings."""
        return judge(binding, self._fleet)

    def index(self, binding: Binding) -> str:
        """The revision that a binding points at, by the snapshot's name: it may have been deleted."""
        index = resource_index_in(binding.spec.resource_snapshot_name, self.placement.metadata.name)
        return "" if index is None else str(index)


def _said_to_be_unreachable(clusters: Iterable[ClusterPlacementStatus]) -> dict[str, str]:
    """Of whom the placement's status says that it is not known whether they are available."""
    said = ((one.cluster_name, find_condition(one.conditions, AVAILABLE)) for one in clusters)
    return {name: found.message for name, found in said if found is not None and found.status == UNKNOWN}


# The clusters that are to have it


def picked_places(observed: Observed) -> list[ClusterPlace]:
    """Where it stands on the clusters that are to have it."""
    bindings = [binding for binding, _ in observed.held.values()]
    bound = {one.spec.target_cluster: one for one in remaining_bindings(bindings)}
    known = {one.spec.target_cluster for one in bindings}
    said = (one.cluster_name for one in observed.placement.status.placement_statuses)
    missing = [ClusterPlace(name, State.moving, why=_PICKED) for name in said if name and name not in known]
    return [*(_place(observed, binding) for binding in bound.values()), *missing]


def _place(observed: Observed, binding: Binding) -> ClusterPlace:
    unit = observed.unit(binding)
    state, why = _moves(observed, binding) or _waits_for_run(observed, binding) or _stands(unit, observed)
    is_proven = unit.is_available or (unit.proof is Proof.untracked and state is not State.unknown)
    return ClusterPlace(
        cluster=unit.cluster,
        state=state,
        index=observed.index(binding),
        is_up=is_proven,
        is_down=unit.proof is Proof.failed,
        why=why,
        wait=observed.plan.detailed(unit.name),
        things=observed.held[unit.name][1],
    )


def _moves(observed: Observed, binding: Binding) -> tuple[State, str] | None:
    """That it moves now, or what it waits for; None if it stays where it is."""
    name, planned = binding.metadata.name, observed.plan
    if name in planned.waits:
        return State.waiting, planned.reason(name)
    return (State.next, _remark(observed.placement)) if name in observed.moving else None


def _remark(placement: Placement) -> str:
    """What another hub would make of the strategy."""
    strategy = placement.spec.strategy
    rolling = strategy.rolling_update if strategy is not None else None
    if rolling is None or resolve(rolling.max_unavailable, 100, round_up=True):
        return ""
    return "maxUnavailable is 0, which counts as 1, unless the hub runs with --dialect kubefleet"


def _waits_for_run(observed: Observed, binding: Binding) -> tuple[State, str] | None:
    """That nothing was brought to it, and which run will; None if something was, or no run has to."""
    if binding.spec.resource_snapshot_name or not is_external(observed.placement):
        return None
    said = {name: words for run in observed.runs for name, words in turn_texts(run).items()}
    return State.waiting, said.get(binding.spec.target_cluster, _OUTSIDE)


def _stands(unit: BindingFacts, observed: Observed) -> tuple[State, str]:
    """How it stands with what it has."""
    match unit.proof:
        case Proof.proven:
            return State.available, ""
        case Proof.untracked if unit.proven_at is not None:
            until = f"it cannot be seen whether its resources work, so it is given until {moment(unit.proven_at)}"
            return (State.unknown, until) if observed.plan.waits else (State.available, "")
        case Proof.unknown:
            return State.unknown, observed.rollout.unreachable[unit.cluster]
        case Proof.failed | Proof.pending:
            return _stopped(unit)
        case other:
            return _WORDS[other]


def _stopped(unit: BindingFacts) -> tuple[State, str]:
    """At which step it has stopped, and why."""
    stopped = next((one for one in _steps(unit.binding) if one.status != TRUE), None)
    if stopped is None:
        return State.moving, "nothing has been reported yet"
    why = failure_of(unit.binding) if unit.proof is Proof.failed else stopped.message
    return state_of(stopped), why


def _steps(binding: Binding) -> list[Condition]:
    """What is said of the binding as it is now, in the order of the steps."""
    return sorted(current(binding), key=lambda one: STEPS.index(one.type) if one.type in STEPS else len(STEPS))


# The others


def leaving_places(observed: Observed) -> list[ClusterPlace]:
    """The clusters that are no longer to have it, and still do."""
    return [_leaving(observed, binding) for binding, _ in observed.held.values() if is_being_removed(binding)]


def _leaving(observed: Observed, binding: Binding) -> ClusterPlace:
    unit, why = observed.unit(binding), "it is no longer picked"
    if unit.is_deleting:
        why = "what was placed is being removed"
    elif unit.name in observed.plan.waits:
        why = observed.plan.reason(unit.name)
    index, wait = observed.index(binding), observed.plan.detailed(unit.name)
    return ClusterPlace(unit.cluster, State.leaving, index, is_up=unit.is_available, why=why, wait=wait)


def not_picked(observed: Observed) -> list[str]:
    """Why there are not as many clusters as are wanted: as many reasons as clusters."""
    policy, statuses = observed.placement.spec.policy, observed.placement.status.placement_statuses
    bound = {one.spec.target_cluster for one in observed.bindings if not is_being_removed(one)}
    missing = max(0, wanted_number(policy) - len(bound))
    if not observed.policies:
        said = (find_condition(one.conditions, SCHEDULED) for one in statuses if not one.cluster_name)
        return [found.message for found in said if found is not None][:missing]
    return [why_not_picked(one) for one in _decisions(observed) if one.cluster_name not in bound][:missing]


def passed_over(observed: Observed) -> list[str]:
    """Why there is no cluster at all, where all that fit are wanted: a reason for each that was looked at."""
    if observed.bindings or wanted_number(observed.placement.spec.policy):
        return []
    return [why_not_picked(one) for one in _decisions(observed)]


def _decisions(observed: Observed) -> list[ClusterDecision]:
    """The clusters that were looked at, and are not picked."""
    newest = newest_policy([one.metadata for one in observed.policies])
    status = next((one.status for one in observed.policies if one.metadata is newest), None)
    return [one for one in status.target_clusters if not one.selected] if status is not None else []

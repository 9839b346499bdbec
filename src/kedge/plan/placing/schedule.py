"""Schedule: which clusters a placement is to be on, given its policy, the members and its bindings.

Promises what KubeFleet promises (kubefleet.md §2). What is placed stays as long as its policy, even if the cluster's
labels, taints, properties or health change. Only another policy, a smaller number, or the cluster's leaving removes it.
Never picks more clusters than wanted. The same input in any order gives the same schedule.

A policy that cannot be followed picks nothing and removes nothing: `problem` says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from kedge.api.binding import BindingState
from kedge.api.cluster import MemberCluster
from kedge.api.dialect import Dialect
from kedge.api.fleet import BINDING_CLEANUP
from kedge.api.placement_kinds import Binding
from kedge.api.scheduling import PlacementPolicy, PlacementType
from kedge.api.snapshot import ClusterDecision
from kedge.plan.placing.affinity import Affinity, InvalidPolicy, read_affinity
from kedge.plan.placing.bindings import ClassifiedBindings, by_cluster, classify_bindings, state_before_unscheduling
from kedge.plan.placing.decisions import (
    MAX_UNSELECTED,
    Score,
    limited_decisions,
    not_eligible,
    not_found,
    picked,
    picked_by_name,
    score_of,
    unschedulable,
)
from kedge.plan.placing.filters import ClusterFilter, eligible_until, why_ineligible
from kedge.plan.placing.topology_spread import ScoredCluster, TopologySpread, pick_best


class ReusedBinding(Struct, frozen=True):
    """An existing binding whose cluster was picked again."""

    binding: Binding
    decision: ClusterDecision
    state: BindingState


class Schedule(Struct, frozen=True):
    """The changes of bindings, and the decisions to report."""

    create: tuple[ClusterDecision, ...] = ()
    """Clusters that get a binding."""
    reuse: tuple[ReusedBinding, ...] = ()
    """Bindings that stay, under this policy."""
    unschedule: tuple[Binding, ...] = ()
    """Bindings to unschedule; a rollout removes them within its budget."""
    release: tuple[Binding, ...] = ()
    """Bindings that are being deleted, whose finalizer of the scheduler can go."""
    selected: tuple[ClusterDecision, ...] = ()
    """Every picked cluster: sorted by name, in the order of clusterNames, or the best first."""
    unselected: tuple[ClusterDecision, ...] | None = None
    """Why others are not picked; None if no cluster was looked for, so that nothing new is known of them."""
    fulfilled: bool = True
    problem: str | None = None
    requeue_at: datetime | None = None
    """When a cluster on which nothing is placed yet becomes ineligible, if it sends no heartbeat."""

    @property
    def decisions(self) -> tuple[ClusterDecision, ...]:
        """As many decisions as are kept."""
        return limited_decisions(self.selected, self.unselected or ())


class ClusterPool(Struct, frozen=True):
    """The members to pick from, and the bindings there are."""

    members: tuple[MemberCluster, ...]
    bindings: ClassifiedBindings
    filter: ClusterFilter

    def partition(self, taken: Collection[str]) -> tuple[list[MemberCluster], tuple[ClusterDecision, ...]]:
        """Of the members that are not taken: those that match, and why others do not, up to the limit."""
        fit: list[MemberCluster] = []
        rest: list[ClusterDecision] = []
        for member in self.members:
            if member.metadata.name in taken:
                continue
            why = self.filter.why_not(member)
            if why is None:
                fit.append(member)
            elif len(rest) < MAX_UNSELECTED:
                rest.append(unschedulable(member.metadata.name, why))
        return fit, tuple(rest)


def schedule(
    policy: PlacementPolicy | None,
    number: int | None,
    snapshot_name: str,
    members: Iterable[MemberCluster],
    bindings: Iterable[Binding],
    *,
    namespace: str | None,
    now: datetime,
    unreadable: Collection[str] = (),
    replace_silent: bool = True,
    problem: str | None = None,
    already_reported: bool = False,
    dialect: Dialect = Dialect.seed,
) -> Schedule:
    """Which bindings to create, reuse and unschedule, and the decisions.

    `number` is how many clusters PickN takes. Members that exist but cannot be read (`unreadable`) are not picked, and
    keep what they have. `replace_silent`: whether PickN may replace a cluster that became silent before anything was
    placed on it. With a `problem` nothing is picked. If the decisions of this policy are `already_reported` and no
    cluster is to be picked, other clusters are not looked at. A cluster that is leaving is unscheduled at once; in the
    kubefleet dialect when it has left.
    """
    ordered = tuple(sorted(members, key=lambda member: member.metadata.name))
    stays = dialect is Dialect.kubefleet
    there = {member.metadata.name for member in ordered if stays or member.metadata.deletion_timestamp is None}
    found = classify_bindings(bindings, snapshot_name, there.union(unreadable))
    if problem is not None:
        return _without_picks(found, problem)
    try:
        affinity = read_affinity(policy)
    except InvalidPolicy as error:
        return _without_picks(found, str(error))
    tolerations = policy.tolerations if policy else ()
    pool = ClusterPool(ordered, found, ClusterFilter(affinity, tolerations, namespace, now))
    if policy is None or policy.placement_type is PlacementType.pick_all:
        return _pick_all(pool)
    if policy.placement_type is PlacementType.pick_fixed:
        return _pick_fixed(pool, policy.cluster_names)
    if number is None:
        return _without_picks(found, "spec.policy.numberOfClusters is missing: say how many clusters PickN is to take")
    return _pick_n(pool, policy, number, affinity, replace_silent=replace_silent, already_reported=already_reported)


def _without_picks(found: ClassifiedBindings, problem: str) -> Schedule:
    """Remove nothing but bindings without a member."""
    return Schedule(
        unschedule=(*found.dangling, *found.surplus),
        release=_to_release(found),
        selected=_decisions_of(found.present),
        fulfilled=False,
        problem=problem,
    )


def _pick_all(pool: ClusterPool) -> Schedule:
    fit, rest = pool.partition(by_cluster(pool.bindings.present))
    picks = [picked(Score(0, 0, 0, member.metadata.name)) for member in fit]
    made = _schedule_of(pool.bindings, picks, pool.bindings.present)
    return replace(made, selected=tuple(sorted(made.selected, key=_name)), unselected=rest)


def _pick_fixed(pool: ClusterPool, names: Sequence[str]) -> Schedule:
    """The named clusters. One that has resources keeps them under a new policy, even while it is not eligible."""
    members = {member.metadata.name: member for member in pool.members}
    taken, obsolete = by_cluster(pool.bindings.present), by_cluster(pool.bindings.obsolete)
    picks, silent, unknown = [], [], []
    for name in dict.fromkeys(names):
        if name in taken:
            continue
        why = why_ineligible(members[name], pool.filter.now) if name in members else None
        if name not in members and name not in obsolete:
            unknown.append(not_found(name))
        elif why is None or name in obsolete:
            picks.append(picked_by_name(name))
        else:
            silent.append(not_eligible(name, why))
    missing = (*silent, *unknown)
    made = _schedule_of(pool.bindings, picks, pool.bindings.present)
    place = {name: n for n, name in enumerate(names)}
    selected = sorted(made.selected, key=lambda each: place.get(each.cluster_name, len(place)))
    return replace(made, selected=tuple(selected), unselected=missing, fulfilled=not missing)


def _pick_n(
    pool: ClusterPool,
    policy: PlacementPolicy,
    number: int,
    affinity: Affinity,
    *,
    replace_silent: bool,
    already_reported: bool,
) -> Schedule:
    waiting = pool.bindings.scheduled if replace_silent else ()
    silent = _ineligible(pool, waiting)
    stay = _scaled_down(pool.bindings.present, number, silent)
    steady = tuple(each for each in stay if each.metadata.name not in silent)
    wanted, requeue_at = number - len(steady), _requeue_at(pool, waiting)
    if not wanted and (already_reported or _is_scaling_down(pool, number)):
        return replace(_schedule_of(pool.bindings, (), steady), requeue_at=requeue_at)
    taken = by_cluster(steady)
    fit, rest = pool.partition(taken)
    picks = pick_best(
        _candidates(pool, fit, affinity),
        wanted,
        TopologySpread(policy.topology_spread_constraints, pool.members, taken),
    )
    waits = [each for each in stay if each.metadata.name in silent][: wanted - len(picks.selected)]
    made = _schedule_of(pool.bindings, picks.selected, (*steady, *waits))
    selected = tuple(sorted(made.selected, key=score_of, reverse=True))
    named = {each.cluster_name for each in selected}
    others = (each for each in (*picks.outscored, *picks.violating, *rest) if each.cluster_name not in named)
    return replace(
        made,
        selected=selected,
        unselected=tuple(others),
        fulfilled=len(selected) >= number,
        requeue_at=requeue_at,
    )


def _is_scaling_down(pool: ClusterPool, number: int) -> bool:
    """Whether the policy has more clusters than wanted, or just gave some up: then only the rest is reported."""
    found = pool.bindings
    if not number or len(found.present) > number:
        return True
    policies = {each.spec.scheduling_policy_snapshot_name for each in found.present}
    members = {member.metadata.name for member in pool.members}
    going = (each for each in (*found.unscheduled, *found.deleting) if each.spec.state == BindingState.unscheduled)
    return any(
        each.spec.scheduling_policy_snapshot_name in policies and each.spec.target_cluster in members for each in going
    )


def _candidates(
    pool: ClusterPool, fit: Iterable[MemberCluster], affinity: Affinity
) -> Iterable[tuple[ScoredCluster, MemberCluster]]:
    """The members that match, with their scores. Those an earlier policy picked rank a little higher."""
    ranges, sticky = affinity.ranges(pool.members), by_cluster(pool.bindings.obsolete)
    for member in fit:
        name = member.metadata.name
        yield ScoredCluster(affinity.score(member, ranges), int(name in sticky), name), member


def _schedule_of(found: ClassifiedBindings, picks: Sequence[ClusterDecision], stay: Sequence[Binding]) -> Schedule:
    """The schedule for these picks, and the bindings that stay: a picked cluster that has a binding keeps it."""
    reusable = {**by_cluster(found.unscheduled), **by_cluster(found.obsolete)}
    again = [(reusable[each.cluster_name], each) for each in picks if each.cluster_name in reusable]
    reuse = tuple(ReusedBinding(binding, decision, _state_now(binding)) for binding, decision in again)
    create = tuple(each for each in picks if each.cluster_name not in reusable)
    staying = {each.metadata.name for each in (*stay, *(each.binding for each in reuse))}
    given_up = (*found.dangling, *found.surplus, *found.obsolete, *found.present)
    return Schedule(
        create=create,
        reuse=reuse,
        unschedule=tuple(each for each in given_up if each.metadata.name not in staying),
        release=_to_release(found),
        selected=(*create, *(each.decision for each in reuse), *_decisions_of(stay)),
    )


def _state_now(binding: Binding) -> BindingState:
    """The state a binding has. One that was unscheduled, or has no valid state, gets back its earlier one."""
    if binding.spec.state in (BindingState.scheduled, BindingState.bound):
        return BindingState(binding.spec.state)
    return state_before_unscheduling(binding)


def _to_release(found: ClassifiedBindings) -> tuple[Binding, ...]:
    return tuple(each for each in found.deleting if BINDING_CLEANUP in each.metadata.finalizers)


def _name(decision: ClusterDecision) -> str:
    return decision.cluster_name


def _decisions_of(bindings: Iterable[Binding]) -> tuple[ClusterDecision, ...]:
    return tuple(each.spec.cluster_decision for each in bindings)


def _scaled_down(present: Sequence[Binding], number: int, silent: Collection[str]) -> tuple[Binding, ...]:
    """As many as wanted. Those with nothing placed go first, then the lowest scores, then the smaller names."""

    def weight(each: Binding) -> tuple[bool, bool, bool, Score]:
        decision = each.spec.cluster_decision
        bound = each.spec.state == BindingState.bound
        return each.metadata.name not in silent, bound, decision.cluster_score is not None, score_of(decision)

    best = {each.metadata.name for each in sorted(present, key=weight, reverse=True)[:number]}
    return tuple(each for each in present if each.metadata.name in best)


def _ineligible(pool: ClusterPool, waiting: Iterable[Binding]) -> Collection[str]:
    """Bindings with nothing placed yet whose cluster is not eligible now (kubefleet.md §14, #15)."""
    members = {member.metadata.name: member for member in pool.members}
    return {
        each.metadata.name
        for each in waiting
        if (member := members.get(each.spec.target_cluster)) and why_ineligible(member, pool.filter.now)
    }


def _requeue_at(pool: ClusterPool, waiting: Iterable[Binding]) -> datetime | None:
    """When the next cluster on which nothing is placed yet stops being eligible."""
    clusters = by_cluster(waiting)
    ends = (eligible_until(member) for member in pool.members if member.metadata.name in clusters)
    return min((end for end in ends if end is not None and end >= pool.filter.now), default=None)

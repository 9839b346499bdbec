"""Schedule: which clusters a placement is to be on, given its policy, the members and its bindings.

Promises what the peer promises (kubefleet.md §2): what is placed stays while its policy does, whatever becomes of the
cluster's labels, taints, properties or health; only another policy, a smaller number, or the cluster's leaving takes it
away. Never more than the number wanted. The same input gives the same schedule, in whatever order it comes.

A policy that means nothing picks nothing and takes nothing away: `problem` says what is wrong with it.
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
from kedge.api.scheduling import PlacementPolicy, PlacementType
from kedge.api.snapshot import ClusterDecision
from kedge.api.twins import Binding
from kedge.plan.placing.affinity import Affinity, BadPolicy, read
from kedge.plan.placing.decisions import (
    MOST_UNSELECTED,
    Score,
    kept,
    not_eligible,
    not_found,
    picked,
    picked_by_name,
    score_of,
    unfit,
)
from kedge.plan.placing.eligibility import eligible_until, why_ineligible
from kedge.plan.placing.filtering import Filter
from kedge.plan.placing.picking import Candidate, pick
from kedge.plan.placing.spread import Spread
from kedge.plan.placing.standing import Standing, by_cluster, standing, state_before


class Repick(Struct, frozen=True):
    """A binding there is already, whose cluster was picked again."""

    binding: Binding
    decision: ClusterDecision
    state: BindingState


class Schedule(Struct, frozen=True):
    """What is to be done to bindings, and what is to be said of it."""

    create: tuple[ClusterDecision, ...] = ()
    """Clusters that get a binding."""
    repick: tuple[Repick, ...] = ()
    """Bindings that stay, under this policy."""
    unschedule: tuple[Binding, ...] = ()
    """Bindings to give up; a rollout removes them within its budget."""
    release: tuple[Binding, ...] = ()
    """Bindings on their way out, which the scheduler need not hold any longer."""
    selected: tuple[ClusterDecision, ...] = ()
    """Every cluster that is picked: by name, as they were named, or the best first."""
    unselected: tuple[ClusterDecision, ...] | None = None
    """Why others are not; None if nothing was looked for, so that nothing new is known of them."""
    fulfilled: bool = True
    problem: str | None = None
    look_again: datetime | None = None
    """When a cluster that nothing was placed on yet may have been silent for too long."""

    @property
    def decisions(self) -> tuple[ClusterDecision, ...]:
        """As many decisions as are kept."""
        return kept(self.selected, self.unselected or ())


class Fleet(Struct, frozen=True):
    """What is to be chosen from, and what has been chosen."""

    members: tuple[MemberCluster, ...]
    bindings: Standing
    fits: Filter

    def sorted_out(self, taken: Collection[str]) -> tuple[list[MemberCluster], tuple[ClusterDecision, ...]]:
        """Of the members not taken: those that fit, and why the others do not, as far as that is told."""
        fit: list[MemberCluster] = []
        rest: list[ClusterDecision] = []
        for member in self.members:
            if member.metadata.name in taken:
                continue
            why = self.fits.why_not(member)
            if why is None:
                fit.append(member)
            elif len(rest) < MOST_UNSELECTED:
                rest.append(unfit(member.metadata.name, why))
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
    told: bool = False,
    dialect: Dialect = Dialect.seed,
) -> Schedule:
    """What is to be done, and why.

    `number` is how many clusters PickN takes. Members that are there but cannot be read (`unreadable`) are not picked,
    and keep what they have. `replace_silent`: whether PickN may exchange a cluster that has fallen silent before
    anything was placed on it. With a `problem` nothing is picked at all. If all has been `told` of this
    policy already, and nothing is to be picked, then nothing new is found out about other clusters. A cluster that is
    leaving is given up at once; in the kubefleet dialect when it has left.
    """
    ordered = tuple(sorted(members, key=lambda member: member.metadata.name))
    stays = dialect is Dialect.kubefleet
    there = {member.metadata.name for member in ordered if stays or member.metadata.deletion_timestamp is None}
    found = standing(bindings, snapshot_name, there.union(unreadable))
    if problem is not None:
        return _nothing_moves(found, problem)
    try:
        affinity = read(policy)
    except BadPolicy as error:
        return _nothing_moves(found, str(error))
    tolerations = policy.tolerations if policy else ()
    fleet = Fleet(ordered, found, Filter(affinity, tolerations, namespace, now))
    if policy is None or policy.placement_type is PlacementType.pick_all:
        return _pick_all(fleet)
    if policy.placement_type is PlacementType.pick_fixed:
        return _pick_fixed(fleet, policy.cluster_names)
    if number is None:
        return _nothing_moves(found, "spec.policy.numberOfClusters is missing: say how many clusters PickN is to take")
    return _pick_n(fleet, policy, number, affinity, replace_silent=replace_silent, told=told)


def is_left_alone(policy: PlacementPolicy | None, dialect: Dialect) -> bool:
    """Whether nothing is decided by this policy: KubeFleet does nothing about a PickFixed that names no cluster."""
    return dialect is Dialect.kubefleet and names_no_cluster(policy)


def names_no_cluster(policy: PlacementPolicy | None) -> bool:
    """Whether clusters are to be named, and none is."""
    return policy is not None and policy.placement_type is PlacementType.pick_fixed and not policy.cluster_names


def _nothing_moves(found: Standing, problem: str) -> Schedule:
    """Take nothing away but what has no cluster any more."""
    return Schedule(
        unschedule=(*found.dangling, *found.surplus),
        release=_to_release(found),
        selected=_told(found.present),
        fulfilled=False,
        problem=problem,
    )


def _pick_all(fleet: Fleet) -> Schedule:
    fit, rest = fleet.sorted_out(by_cluster(fleet.bindings.present))
    picks = [picked(Score(0, 0, 0, member.metadata.name)) for member in fit]
    made = _settled(fleet.bindings, picks, fleet.bindings.present)
    return replace(made, selected=tuple(sorted(made.selected, key=_name)), unselected=rest)


def _pick_fixed(fleet: Fleet, names: Sequence[str]) -> Schedule:
    """The clusters named. One that has the resources keeps them under another policy too, also while it is silent."""
    members = {member.metadata.name: member for member in fleet.members}
    taken, obsolete = by_cluster(fleet.bindings.present), by_cluster(fleet.bindings.obsolete)
    picks, silent, unknown = [], [], []
    for name in dict.fromkeys(names):
        if name in taken:
            continue
        why = why_ineligible(members[name], fleet.fits.now) if name in members else None
        if name not in members and name not in obsolete:
            unknown.append(not_found(name))
        elif why is None or name in obsolete:
            picks.append(picked_by_name(name))
        else:
            silent.append(not_eligible(name, why))
    missing = (*silent, *unknown)
    made = _settled(fleet.bindings, picks, fleet.bindings.present)
    place = {name: n for n, name in enumerate(names)}
    selected = sorted(made.selected, key=lambda each: place.get(each.cluster_name, len(place)))
    return replace(made, selected=tuple(selected), unselected=missing, fulfilled=not missing)


def _pick_n(
    fleet: Fleet, policy: PlacementPolicy, number: int, affinity: Affinity, *, replace_silent: bool, told: bool
) -> Schedule:
    waiting = fleet.bindings.scheduled if replace_silent else ()
    silent = _silent(fleet, waiting)
    stay = _downscaled(fleet.bindings.present, number, silent)
    steady = tuple(each for each in stay if each.metadata.name not in silent)
    wanted, look_again = number - len(steady), _look_again(fleet, waiting)
    if not wanted and (told or _shrinks(fleet, number)):
        return replace(_settled(fleet.bindings, (), steady), look_again=look_again)
    taken = by_cluster(steady)
    fit, rest = fleet.sorted_out(taken)
    picks = pick(
        _candidates(fleet, fit, affinity), wanted, Spread(policy.topology_spread_constraints, fleet.members, taken)
    )
    waits = [each for each in stay if each.metadata.name in silent][: wanted - len(picks.selected)]
    made = _settled(fleet.bindings, picks.selected, (*steady, *waits))
    selected = tuple(sorted(made.selected, key=score_of, reverse=True))
    named = {each.cluster_name for each in selected}
    others = (each for each in (*picks.outscored, *picks.uneven, *rest) if each.cluster_name not in named)
    return replace(
        made,
        selected=selected,
        unselected=tuple(others),
        fulfilled=len(selected) >= number,
        look_again=look_again,
    )


def _shrinks(fleet: Fleet, number: int) -> bool:
    """Whether this policy has more clusters than are wanted, or has just given some up: then only the rest is told."""
    found = fleet.bindings
    if not number or len(found.present) > number:
        return True
    policies = {each.spec.scheduling_policy_snapshot_name for each in found.present}
    members = {member.metadata.name for member in fleet.members}
    going = (each for each in (*found.unscheduled, *found.deleting) if each.spec.state == BindingState.unscheduled)
    return any(
        each.spec.scheduling_policy_snapshot_name in policies and each.spec.target_cluster in members for each in going
    )


def _candidates(
    fleet: Fleet, fit: Iterable[MemberCluster], affinity: Affinity
) -> Iterable[tuple[Candidate, MemberCluster]]:
    """The members that fit, by how much the policy likes them; with what an earlier policy placed, a little more."""
    ranges, sticky = affinity.ranges(fleet.members), by_cluster(fleet.bindings.obsolete)
    for member in fit:
        name = member.metadata.name
        yield Candidate(affinity.score(member, ranges), int(name in sticky), name), member


def _settled(found: Standing, picks: Sequence[ClusterDecision], stay: Sequence[Binding]) -> Schedule:
    """Hold the picks against the bindings there are: a cluster that has one keeps it."""
    reusable = {**by_cluster(found.unscheduled), **by_cluster(found.obsolete)}
    again = [(reusable[each.cluster_name], each) for each in picks if each.cluster_name in reusable]
    repick = tuple(Repick(binding, decision, _state_now(binding)) for binding, decision in again)
    create = tuple(each for each in picks if each.cluster_name not in reusable)
    staying = {each.metadata.name for each in (*stay, *(each.binding for each in repick))}
    given_up = (*found.dangling, *found.surplus, *found.obsolete, *found.present)
    return Schedule(
        create=create,
        repick=repick,
        unschedule=tuple(each for each in given_up if each.metadata.name not in staying),
        release=_to_release(found),
        selected=(*create, *(each.decision for each in repick), *_told(stay)),
    )


def _state_now(binding: Binding) -> BindingState:
    """The state a binding has, or goes back to if it had been given up or says nothing that is one."""
    if binding.spec.state in (BindingState.scheduled, BindingState.bound):
        return BindingState(binding.spec.state)
    return state_before(binding)


def _to_release(found: Standing) -> tuple[Binding, ...]:
    return tuple(each for each in found.deleting if BINDING_CLEANUP in each.metadata.finalizers)


def _name(decision: ClusterDecision) -> str:
    return decision.cluster_name


def _told(bindings: Iterable[Binding]) -> tuple[ClusterDecision, ...]:
    return tuple(each.spec.cluster_decision for each in bindings)


def _downscaled(present: Sequence[Binding], number: int, silent: Collection[str]) -> tuple[Binding, ...]:
    """As many as wanted: those with nothing placed yet go first, then the lowest scores, then the smaller names."""

    def weight(each: Binding) -> tuple[bool, bool, bool, Score]:
        decision = each.spec.cluster_decision
        bound = each.spec.state == BindingState.bound
        return each.metadata.name not in silent, bound, decision.cluster_score is not None, score_of(decision)

    best = {each.metadata.name for each in sorted(present, key=weight, reverse=True)[:number]}
    return tuple(each for each in present if each.metadata.name in best)


def _silent(fleet: Fleet, waiting: Iterable[Binding]) -> Collection[str]:
    """Those that wait, with nothing placed yet, for a cluster that can take nothing now (kubefleet.md §14, #15)."""
    members = {member.metadata.name: member for member in fleet.members}
    return {
        each.metadata.name
        for each in waiting
        if (member := members.get(each.spec.target_cluster)) and why_ineligible(member, fleet.fits.now)
    }


def _look_again(fleet: Fleet, waiting: Iterable[Binding]) -> datetime | None:
    """When the next of the clusters that nothing is placed on yet may have been silent for too long."""
    clusters = by_cluster(waiting)
    ends = (eligible_until(member) for member in fleet.members if member.metadata.name in clusters)
    return min((end for end in ends if end is not None and end >= fleet.fits.now), default=None)

"""What holds of every plan, for any clusters in any state; and that a rollout comes to its end."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from kedge.api.binding import BindingState, ClusterResourceBinding
from kedge.api.dialect import Dialect
from kedge.api.numbers import resolve
from kedge.api.placement import ClusterResourcePlacement
from kedge.plan.rolling.plan import RolloutPlan, plan
from kedge.plan.rolling.rollout_input import RolloutInput, Wanted
from plan.rolling.making import (
    AVAILABLE,
    IN_PROGRESS,
    NEW,
    NOT_AVAILABLE,
    NOTHING,
    NOW,
    OLD,
    SAID,
    SENT,
    UNTRACKABLE,
    Said,
    binding,
    pick_fixed,
    pick_n,
    placement,
    seen,
)

CLUSTERS = [f"c{number}" for number in range(8)]
NUMBERS = st.one_of(st.integers(0, 4), st.sampled_from(["0%", "25%", "50%", "100%"]))


class Cluster(Struct, frozen=True):
    """A cluster and what is true of it."""

    name: str
    said: Said
    state: BindingState
    has: str
    deleting: bool
    current: bool
    since: float

    @property
    def binding(self) -> ClusterResourceBinding:
        return binding(
            self.name,
            self.said,
            state=self.state,
            has=self.has,
            deleting=self.deleting,
            spoken_at=3 if self.current else 2,
            since=self.since,
        )

    @property
    def may_be_available(self) -> bool:
        """Whether somebody may lose something: not if it has nothing, or says itself that it does not work."""
        gives = (AVAILABLE, UNTRACKABLE, IN_PROGRESS, NOTHING, SENT)
        return self.state is not BindingState.scheduled and (not self.current or self.said in gives)

    @property
    def is_available(self) -> bool:
        proven = self.said is AVAILABLE or (self.said is UNTRACKABLE and self.since >= 60)
        return proven and self.current and not self.deleting and self.state is not BindingState.scheduled


def cluster(name: str) -> st.SearchStrategy[Cluster]:
    return st.builds(
        Cluster,
        name=st.just(name),
        said=st.sampled_from((*SAID, AVAILABLE, AVAILABLE, AVAILABLE)),
        state=st.sampled_from(BindingState),
        has=st.sampled_from((OLD, NEW)),
        deleting=st.sampled_from((False, False, False, True)),
        current=st.sampled_from((True, True, True, False)),
        since=st.sampled_from((0.0, 59.0, 60.0, 3600.0)),
    )


FLEETS = st.tuples(*(st.one_of(st.none(), cluster(name)) for name in CLUSTERS)).map(
    lambda found: [one for one in found if one is not None]
)
POLICIES = st.one_of(
    st.none(), st.integers(0, 8).map(pick_n), st.integers(0, 8).map(lambda count: pick_fixed(*CLUSTERS[:count]))
)


class Case(Struct, frozen=True):
    """A placement and its clusters."""

    placed: ClusterResourcePlacement
    fleet: list[Cluster]
    unavailable: int | str
    surge: int | str
    dialect: Dialect
    silent: frozenset[str]

    @property
    def seen(self) -> RolloutInput:
        bindings = [one.binding for one in self.fleet]
        return seen(self.placed, bindings, dialect=self.dialect, unreachable=dict.fromkeys(self.silent, "silent"))

    @property
    def target(self) -> int:
        policy = self.placed.spec.policy
        if policy is None:
            return sum(one.state is not BindingState.unscheduled for one in self.fleet)
        return len(policy.cluster_names) if policy.number_of_clusters is None else policy.number_of_clusters

    @property
    def counted(self) -> int:
        """Of how many clusters those that are unavailable are counted."""
        return min(self.target, len(self.fleet)) if self.dialect is Dialect.seed else self.target

    def number(self, value: int | str, of: int) -> int:
        return max(resolve(value, of, round_up=True), 1 if self.dialect is Dialect.seed else 0)

    def is_available(self, one: Cluster) -> bool:
        return one.is_available and one.name not in self.silent


@st.composite
def cases(draw: st.DrawFn) -> Case:
    unavailable, surge = draw(NUMBERS), draw(NUMBERS)
    fleet = draw(FLEETS)
    policy = draw(POLICIES)
    return Case(
        placement(policy, max_unavailable=unavailable, max_surge=surge),
        fleet,
        unavailable,
        surge,
        draw(st.sampled_from(Dialect)),
        draw(st.frozensets(st.sampled_from(CLUSTERS), max_size=3)),
    )


def names(bindings: Any) -> set[str]:
    return {one.spec.target_cluster for one in bindings}


@given(cases())
def test_a_cluster_is_added_only_while_fewer_than_target_and_surge_hold_resources(case: Case) -> None:
    found = plan(case.seen, NOW)
    holding = sum(one.deleting or one.state is not BindingState.scheduled for one in case.fleet)
    most = case.target + case.number(case.surge, case.target)
    assert not found.bind or holding + len(found.bind) <= most


@given(cases())
def test_an_available_cluster_is_disturbed_only_if_enough_others_stay_available(case: Case) -> None:
    found = plan(case.seen, NOW)
    disturbed = names(found.repoint) | names(found.remove)
    stay = {one.name for one in case.fleet if case.is_available(one)} - disturbed
    charged = {one.name for one in case.fleet if one.name in disturbed and one.may_be_available}
    if charged or any(one.name in disturbed and one.name in case.silent for one in case.fleet):
        assert len(stay) >= case.counted - case.number(case.unavailable, case.counted)


@given(cases())
def test_a_broken_cluster_is_held_back_only_while_the_resources_work_nowhere(case: Case) -> None:
    found = plan(case.seen, NOW)
    broken = {
        one.name
        for one in case.fleet
        if not one.may_be_available and one.state is not BindingState.scheduled and not one.deleting
    } - case.silent
    held = {name for why in found.why.values() for name in broken if why.startswith(f"{name} waits")}
    assert not held or case.dialect is Dialect.seed
    assert not held or not any(case.is_available(one) and one.has == NEW for one in case.fleet)
    assert all(f"{NEW} works nowhere yet" in found.why[f"crp-{name}-1"] for name in held)


@given(cases())
def test_what_works_nowhere_yet_reaches_no_more_clusters_than_may_be_unavailable(case: Case) -> None:
    found = plan(case.seen, NOW)
    holders = {one.name for one in case.fleet if one.has == NEW and one.state is not BindingState.scheduled}
    proven = any(case.is_available(one) for one in case.fleet if one.name in holders)
    changed = names(found.repoint)
    if changed and not proven and case.dialect is Dialect.seed:
        leaving = {one.name for one in case.fleet if one.deleting}
        assert len((holders - leaving) | changed) <= case.number(case.unavailable, case.counted)


@given(cases())
def test_everyone_who_is_not_where_he_should_be_moves_or_says_why_not(case: Case) -> None:
    found = plan(case.seen, NOW)
    moved = [one.metadata.name for one in (*found.bind, *found.repoint, *found.remove)]
    waiting = [
        one.binding.metadata.name
        for one in case.fleet
        if not one.deleting and (one.state is not BindingState.bound or one.has != NEW)
    ]
    assert sorted([*moved, *found.why]) == sorted(waiting)
    assert all(len(why) > len("c0 waits: ") for why in found.why.values())
    assert not any("it works" in why for why in found.why.values())


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_in_which_bindings_are_seen_does_not_matter(case: Case, random: Any) -> None:
    shuffled = list(case.fleet)
    random.shuffle(shuffled)
    other = Case(case.placed, shuffled, case.unavailable, case.surge, case.dialect, case.silent)
    assert plan(case.seen, NOW) == plan(other.seen, NOW)


# Histories


def after(fleet: list[Cluster], found: RolloutPlan, working: dict[str, Said]) -> list[Cluster]:
    """The fleet once what was planned was done, and every member has answered as it does."""
    added, changed, removed = names(found.bind), names(found.repoint), names(found.remove)
    left = []
    for one in fleet:
        if one.name in removed or one.deleting:
            continue
        if one.name in added | changed:
            left.append(Cluster(one.name, working[one.name], BindingState.bound, NEW, False, True, 3600.0))
        elif one.state is BindingState.scheduled:
            left.append(one)
        else:
            left.append(Cluster(one.name, working[one.name], one.state, one.has, False, True, 3600.0))
    return left


@given(cases())
def test_once_all_members_answer_and_work_everything_gets_where_it_should_be(case: Case) -> None:
    picked = [one for one in case.fleet if one.state is not BindingState.unscheduled and not one.deleting]
    placed = placement(pick_n(len(picked)), max_unavailable=case.unavailable, max_surge=case.surge)
    fleet, working = case.fleet, dict.fromkeys(CLUSTERS, AVAILABLE)
    for _ in range(40):
        found = plan(seen(placed, [one.binding for one in fleet]), NOW)
        fleet = after(fleet, found, working)
    assert all(one.has == NEW and one.state is BindingState.bound for one in fleet)
    assert {one.name for one in fleet} == {one.name for one in picked}


@given(cases(), st.frozensets(st.sampled_from(CLUSTERS)))
def test_a_rollout_that_stands_still_names_a_cluster_that_does_not_work(case: Case, broken: frozenset[str]) -> None:
    picked = [one for one in case.fleet if one.state is not BindingState.unscheduled and not one.deleting]
    placed = placement(pick_n(len(picked)), max_unavailable=case.unavailable, max_surge=case.surge)
    fleet = case.fleet
    working = {name: NOT_AVAILABLE if name in broken else AVAILABLE for name in CLUSTERS}
    for _ in range(40):
        found = plan(seen(placed, [one.binding for one in fleet]), NOW)
        fleet = after(fleet, found, working)
    for why in found.why.values():
        assert any(f"{name} is not available" in why for name in broken) or "to be removed first" in why, why


@given(cases())
def test_nothing_happens_where_nothing_is_wanted(case: Case) -> None:
    found = plan(seen(case.placed, [one.binding for one in case.fleet], wanted=Wanted()), NOW)
    assert found == RolloutPlan()

"""What holds of every schedule, whatever the fleet, the policy and the past."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.binding import ClusterResourceBinding
from kedge.api.scheduling import PlacementPolicy, PlacementType
from kedge.plan.placing.schedule import Schedule
from plan.placing.members_and_bindings import (
    POLICY,
    agent,
    binding,
    having,
    labelled,
    member,
    place,
    policy,
    preferring,
    requiring,
)

NAMES = [f"c{n}" for n in range(8)]
ENVS = ["prod", "test"]


@st.composite
def members(draw: Any) -> Any:
    def one(name: str) -> Any:
        zone = draw(st.sampled_from(["a", "b", "c", None]))
        labels = {"env": draw(st.sampled_from(ENVS))} | ({"zone": zone} if zone else {})
        heard = draw(st.sampled_from([0, 0, 0, 4, 6]))
        return member(
            name,
            labels,
            taints=draw(st.sampled_from([(), (), ("no",)])),
            properties=draw(st.sampled_from([{}, {"p": "1"}, {"p": "2"}, {"p": "3500m"}, {"p": "nonsense"}])),
            agents=(agent(heard=heard),),
            leaving=draw(st.integers(0, 9)) == 0,
        )

    return [one(name) for name in draw(st.lists(st.sampled_from(NAMES), unique=True))]


@st.composite
def bindings(draw: Any) -> Any:
    def one(n: int) -> Any:
        return binding(
            draw(st.sampled_from(NAMES)),
            draw(st.sampled_from(["Bound", "Bound", "Scheduled", "Unscheduled"])),
            policy=draw(st.sampled_from([POLICY, POLICY, "crp-old"])),
            score=draw(st.sampled_from([None, (0, 0), (1, 0), (0, 9)])),
            suffix=str(n),
            leaving=draw(st.integers(0, 4)) == 0,
            before=draw(st.sampled_from([None, "Bound", "Scheduled"])),
        )

    return [one(n) for n in range(draw(st.integers(0, 8)))]


AFFINITIES: list[Any] = [
    None,
    requiring(labelled(env="prod")),
    requiring(having("p", "Ge", "2")),
    preferring((10, labelled(env="prod")), (5, {"propertySorter": {"name": "p", "sortOrder": "Descending"}})),
    requiring(having("p", "Is", "2")),
]
SPREADS: list[Any] = [
    [],
    [{"topologyKey": "zone"}],
    [{"topologyKey": "zone", "maxSkew": 2}, {"topologyKey": "env", "whenUnsatisfiable": "ScheduleAnyway"}],
]


@st.composite
def policies(draw: Any) -> Any:
    kind = draw(st.sampled_from(list(PlacementType)))
    if kind is PlacementType.pick_fixed:
        return policy(kind, clusterNames=draw(st.lists(st.sampled_from([*NAMES, "nowhere"]), max_size=5)))
    more = {"topologySpreadConstraints": draw(st.sampled_from(SPREADS))} if kind is PlacementType.pick_n else {}
    return policy(kind, affinity=draw(st.sampled_from(AFFINITIES)), **more)


@st.composite
def situations(draw: Any) -> Any:
    return draw(policies()), draw(members()), draw(bindings()), draw(st.integers(0, 6))


def alive(found: ClusterResourceBinding) -> bool:
    return found.metadata.deletion_timestamp is None and found.spec.state != "Unscheduled"


def after(made: Schedule, before: list[ClusterResourceBinding]) -> list[ClusterResourceBinding]:
    """The bindings once the schedule is carried out."""
    again = {each.binding.metadata.name: each for each in made.reuse}
    gone = {each.metadata.name for each in made.unschedule}

    def changed(found: ClusterResourceBinding) -> ClusterResourceBinding:
        name = found.metadata.name
        if name in gone:
            return replace(found, spec=replace(found.spec, state="Unscheduled"))
        if name in again:
            decision, state = again[name].decision, str(again[name].state)
            spec = replace(found.spec, state=state, scheduling_policy_snapshot_name=POLICY, cluster_decision=decision)
            return replace(found, spec=spec)
        return found

    made_now = [binding(each.cluster_name, "Scheduled", suffix="new") for each in made.create]
    fresh = [
        replace(each, spec=replace(each.spec, cluster_decision=decision))
        for each, decision in zip(made_now, made.create, strict=True)
    ]
    return [*map(changed, before), *fresh]


@given(situations(), st.integers())
def test_the_order_of_the_input_does_not_matter(situation: Any, seed: int) -> None:
    wanted, there, held, number = situation
    rng = Random(seed)
    shuffled = place(wanted, rng.sample(there, len(there)), rng.sample(held, len(held)), number)
    assert shuffled == place(wanted, there, held, number)


@given(situations())
def test_every_cluster_has_one_binding_at_most(situation: Any) -> None:
    wanted, there, held, number = situation
    clusters = [each.spec.target_cluster for each in after(place(wanted, there, held, number), held) if alive(each)]
    assert len(clusters) == len(set(clusters))


@given(situations())
def test_there_are_never_more_clusters_than_wanted(situation: Any) -> None:
    wanted, there, held, number = situation
    made = place(wanted, there, held, number)
    if made.problem is None and wanted.placement_type is PlacementType.pick_n:
        assert sum(map(alive, after(made, held))) <= number
        assert made.fulfilled == (sum(map(alive, after(made, held))) == number)


@given(situations())
def test_only_matching_clusters_are_newly_picked(situation: Any) -> None:
    wanted, there, held, number = situation
    for decision in place(wanted, there, held, number).create:
        [found] = [each for each in there if each.metadata.name == decision.cluster_name]
        alone = policy(affinity=_affinity(wanted))
        if wanted.placement_type is not PlacementType.pick_fixed:
            assert place(alone, [found]).create
        assert found.metadata.deletion_timestamp is None


def _affinity(wanted: PlacementPolicy) -> Any:
    return next((each for each in AFFINITIES if policy(affinity=each).affinity == wanted.affinity), None)


@given(situations())
def test_a_binding_of_this_policy_is_only_removed_with_its_cluster_or_a_smaller_number(situation: Any) -> None:
    wanted, there, held, number = situation
    members_there = {each.metadata.name for each in there if each.metadata.deletion_timestamp is None}
    made = place(wanted, there, held, number)
    placed = {
        each.spec.target_cluster
        for each in held
        if alive(each) and each.spec.state == "Bound" and each.spec.scheduling_policy_snapshot_name == POLICY
    }
    kept = {each.spec.target_cluster for each in after(made, held) if alive(each)}
    lost = placed & members_there - kept
    if wanted.placement_type is PlacementType.pick_n and made.problem is None:
        assert not lost or len(kept) == number
    else:
        assert not lost


@given(situations())
def test_a_schedule_that_was_carried_out_leaves_nothing_to_do(situation: Any) -> None:
    wanted, there, held, number = situation
    made = place(wanted, there, held, number)
    again = place(wanted, there, after(made, held), number)
    assert (again.create, again.reuse, again.unschedule) == ((), (), ())
    assert {each.cluster_name for each in again.selected} == {each.cluster_name for each in made.selected}
    assert again.fulfilled == made.fulfilled

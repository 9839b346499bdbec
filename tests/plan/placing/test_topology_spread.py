"""How evenly picked clusters lie over the values of labels."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.api.scheduling import TopologySpreadConstraint, UnsatisfiableAction
from kedge.plan.placing.topology_spread import SpreadImpact, TopologySpread
from plan.placing.members_and_bindings import binding, created, labelled, member, place, policy, preferring, reasons


def zoned(**zones: str) -> list[Any]:
    """Members by name, each in the zone given, or in none."""
    return [member(name, {"zone": zone} if zone else {}) for name, zone in zones.items()]


def spread(maximum: int = 1, key: str = "zone", *, anyway: bool = False) -> dict[str, Any]:
    return {
        "topologyKey": key,
        "maxSkew": maximum,
        "whenUnsatisfiable": "ScheduleAnyway" if anyway else "DoNotSchedule",
    }


SIX = zoned(a1="a", a2="a", a3="a", b1="b", b2="b", c1="c")


@pytest.mark.parametrize(
    ("constraint", "number", "picked"),
    [
        (spread(), 3, ["c1", "b2", "a3"]),
        (spread(), 5, ["c1", "b2", "a3", "b1", "a2"]),  # c has no other, so a third in a would be two ahead
        (spread(), 6, ["c1", "b2", "a3", "b1", "a2"]),
        (spread(2), 6, ["c1", "b2", "a3", "b1", "a2", "a1"]),
        (spread(anyway=True), 6, ["c1", "b2", "a3", "b1", "a2", "a1"]),
    ],
)
def test_each_pick_goes_where_it_reduces_the_skew_most(constraint: Any, number: int, picked: list[str]) -> None:
    made = place(policy("PickN", topologySpreadConstraints=[constraint]), SIX, number=number)
    assert created(made) == picked
    assert made.fulfilled == (len(picked) == number)


def test_a_cluster_that_is_too_uneven_says_which_constraint_it_violates() -> None:
    made = place(policy("PickN", topologySpreadConstraints=[spread()]), SIX, number=6)
    assert reasons(made)["a1"] == 'ClusterUnschedulable, violated topology spread constraint "zone" (max skew 1)'


def test_the_spread_score_counts_more_than_affinity() -> None:
    likes = preferring((100, labelled(zone="a")))
    made = place(policy("PickN", topologySpreadConstraints=[spread()], affinity=likes), SIX, number=3)
    assert created(made) == ["a3", "c1", "b2"]


def test_picked_clusters_count_for_the_spread() -> None:
    made = place(policy("PickN", topologySpreadConstraints=[spread()]), SIX, [binding("c1")], number=3)
    assert created(made) == ["b2", "a3"]


def test_clusters_without_the_label_violate_nothing() -> None:
    members = zoned(a1="a", b1="b", x="", y="")
    made = place(policy("PickN", topologySpreadConstraints=[spread()]), members, number=4)
    assert sorted(created(made)) == ["a1", "b1", "x", "y"]


def test_scores_are_taken_when_a_cluster_is_picked() -> None:
    made = place(policy("PickN", topologySpreadConstraints=[spread()]), zoned(a1="a", b1="b"), number=2)
    scores = [(each.cluster_name, each.cluster_score.priority_score) for each in made.create if each.cluster_score]
    assert scores == [("b1", -1), ("a1", 1)]


def test_the_others_are_scored_as_of_the_last_pick() -> None:
    made = place(policy("PickN", topologySpreadConstraints=[spread()]), zoned(a1="a", a2="a", b1="b", b2="b"), number=2)
    told = {each.cluster_name: each.cluster_score for each in made.unselected or ()}
    scores = {name: score and score.priority_score for name, score in told.items()}
    assert (created(made), scores) == (["b2", "a2"], {"a1": 1, "b1": None})


def test_violating_a_soft_constraint_costs_a_thousand() -> None:
    members = [*zoned(a1="a", a2="a"), member("b", {"zone": "b"}, taints=("no",))]
    made = place(policy("PickN", topologySpreadConstraints=[spread(anyway=True)]), members, number=2)
    scores = [each.cluster_score.priority_score for each in made.create if each.cluster_score]
    assert scores == [-1, -1000]


def test_every_hard_constraint_must_hold() -> None:
    members = [member(n, {"zone": n[0], "rack": n[1]}) for n in ("a1", "a2", "b1", "b2")]
    wanted = policy("PickN", topologySpreadConstraints=[spread(), spread(key="rack")])
    made = place(wanted, members, number=2)
    assert created(made) == ["b2", "a1"]


def hard(maximum: int = 1, key: str = "zone") -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        topology_key=key, max_skew=maximum, when_unsatisfiable=UnsatisfiableAction.do_not_schedule
    )


@pytest.mark.parametrize(
    ("counts", "into", "score"),
    [
        ("a", "a", -1),  # the only zone: one more there is always one ahead
        ("", "a", -1),
        ("a", "b", 1),  # it catches up
        ("ab", "b", -1),
        ("ac", "b", 1),
        ("a", None, 0),
        ("", None, 0),
        ("aab", "b", 0),  # neither the most nor the least
        ("a", "c", 0),  # of two that have the least, one stays behind
    ],
)
def test_the_spread_score_is_the_reduction_of_the_skew(counts: str, into: str | None, score: int) -> None:
    zones = "a" if (counts, into) == ("a", "a") else "ab" if (counts, into) in (("a", "b"), ("ab", "b")) else "abc"
    members = [member(f"{zone}{n}", {"zone": zone}) for zone in zones for n in range(3)]
    present = [f"{zone}{counts[:n].count(zone)}" for n, zone in enumerate(counts)]
    assert TopologySpread([hard(3)], members, present).impact_of((into,)) == SpreadImpact(score)


def test_of_two_violated_constraints_the_first_is_reported() -> None:
    members = [member(n, {"zone": n[0], "rack": n[1]}) for n in ("a1", "b2")]
    for first, second in (("zone", "rack"), ("rack", "zone")):
        constraints = [hard(key=first), hard(key=second)]
        found = TopologySpread(constraints, members, ["a1"])
        assert found.impact_of(found.domain(members[0])) == SpreadImpact(0, constraints[0])


def test_clusters_that_are_too_uneven_are_listed_by_name() -> None:
    members = [*zoned(a1="a", a2="a", a3="a"), member("b", {"zone": "b"}, taints=("no",))]
    made = place(policy("PickN", topologySpreadConstraints=[spread()]), members, number=3)
    violating = [each.cluster_name for each in made.unselected or () if "violated" in each.reason]
    assert violating == ["a1", "a2"]

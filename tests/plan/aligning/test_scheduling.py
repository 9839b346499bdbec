"""Which clusters a policy means, and how replicas are divided among them."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from kedge.api.karmada.policies import ClusterAffinity, Placement
from kedge.plan.aligning.scheduling import CandidateCluster, NotScheduled, apportioned, is_meant, schedule

EUROPE = CandidateCluster("europe", {"tier": "prod"})
ASIA = CandidateCluster("asia", {"tier": "test"})
CLUSTERS = [EUROPE, ASIA, CandidateCluster("africa")]


def placement(text: str) -> Placement:
    return msgspec.json.decode(text, type=Placement)


DIVIDED = '"replicaScheduling": {"replicaSchedulingType": "Divided"'


@pytest.mark.parametrize(
    ("affinity", "meant"),
    [
        ("{}", {"europe", "asia", "africa"}),
        ('{"clusterNames": ["asia", "nowhere"]}', {"asia"}),
        ('{"exclude": ["asia"]}', {"europe", "africa"}),
        ('{"clusterNames": ["asia", "europe"], "exclude": ["asia"]}', {"europe"}),
        ('{"labelSelector": {"matchLabels": {"tier": "prod"}}}', {"europe"}),
    ],
)
def test_an_affinity_means_clusters_by_name_and_label(affinity: str, meant: set[str]) -> None:
    found = msgspec.json.decode(affinity, type=ClusterAffinity)
    assert {one.name for one in CLUSTERS if is_meant(found, one)} == meant
    assert is_meant(None, EUROPE)


def test_replicas_are_duplicated_unless_they_are_divided() -> None:
    found = schedule(Placement(), 4, CLUSTERS)
    assert [(one.name, one.replicas) for one in found] == [("africa", 4), ("asia", 4), ("europe", 4)]


@pytest.mark.parametrize(
    ("weights", "replicas", "parts"),
    [
        ({"asia": 1, "europe": 2}, 9, {"africa": 0, "asia": 3, "europe": 6}),
        ({"asia": 1, "europe": 3}, 9, {"africa": 0, "asia": 2, "europe": 7}),
        ({}, 5, {"africa": 2, "asia": 2, "europe": 1}),
        ({"asia": 4, "europe": 6}, 10, {"africa": 0, "asia": 4, "europe": 6}),
    ],
)
def test_replicas_are_divided_by_weight(weights: dict[str, int], replicas: int, parts: dict[str, int]) -> None:
    rules = ", ".join(
        f'{{"targetCluster": {{"clusterNames": ["{name}"]}}, "weight": {weight}}}' for name, weight in weights.items()
    )
    given = placement(f'{{{DIVIDED}, "weightPreference": {{"staticWeightList": [{rules}]}}}}}}')
    assert {one.name: one.replicas for one in schedule(given, replicas, CLUSTERS)} == parts


def test_of_several_weights_of_a_cluster_the_largest_counts() -> None:
    rules = '{"targetCluster": {}, "weight": 1}, {"targetCluster": {"clusterNames": ["asia"]}, "weight": 2}'
    given = placement(f'{{{DIVIDED}, "weightPreference": {{"staticWeightList": [{rules}]}}}}}}')
    assert {one.name: one.replicas for one in schedule(given, 4, CLUSTERS)} == {"africa": 1, "asia": 2, "europe": 1}


def test_what_runs_stays_where_it_is_when_there_are_more() -> None:
    given = placement(f"{{{DIVIDED}}}}}")
    found = schedule(given, 6, CLUSTERS, {"asia": 4, "gone": 3})
    assert [(one.name, one.replicas) for one in found] == [("africa", 1), ("asia", 4), ("europe", 1)]


def test_fewer_are_divided_anew() -> None:
    given = placement(f"{{{DIVIDED}}}}}")
    found = schedule(given, 3, CLUSTERS, {"asia": 4})
    assert {one.name: one.replicas for one in found} == {"africa": 1, "asia": 1, "europe": 1}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'{{{DIVIDED}, "replicaDivisionPreference": "Aggregated"}}}}', "Aggregated needs an estimate"),
        (f'{{{DIVIDED}, "weightPreference": {{"dynamicWeight": "AvailableReplicas"}}}}}}', "AvailableReplicas needs"),
    ],
)
def test_what_needs_an_estimate_is_refused_in_words(text: str, message: str) -> None:
    with pytest.raises(NotScheduled, match=message):
        schedule(placement(text), 3, CLUSTERS)


@pytest.mark.parametrize(
    ("uid", "parts"),
    [
        ("", {"africa": 2, "asia": 2, "europe": 1}),
        ("a", {"africa": 2, "asia": 2, "europe": 1}),  # FNV-1a: 0xe40c292c
        ("foobar", {"africa": 2, "asia": 2, "europe": 1}),  # 0xbf9cf968
        ("b", {"africa": 1, "asia": 2, "europe": 2}),  # 0xe70c2de5
    ],
)
def test_a_tie_goes_by_name_from_the_end_that_the_uid_says(uid: str, parts: dict[str, int]) -> None:
    found = schedule(placement(f"{{{DIVIDED}}}}}"), 5, CLUSTERS, uid=uid)
    assert {one.name: one.replicas for one in found} == parts


def test_seats_by_weight() -> None:
    assert apportioned(4, {"alpha": 1200, "beta": 900, "gamma": 400}, {}) == {"alpha": 2, "beta": 1, "gamma": 1}
    assert apportioned(2, {"alpha": 7, "beta": 2}, {}) == {"alpha": 2, "beta": 0}


def test_of_those_that_are_owed_the_same_who_has_fewer_seats_gets_it_and_then_the_first_by_name() -> None:
    assert apportioned(2, {"alpha": 3, "beta": 1}, {}) == {"alpha": 1, "beta": 1}
    assert apportioned(1, {"alpha": 1, "beta": 1}, {}) == {"alpha": 1, "beta": 0}


def test_a_seat_more_takes_none_from_anybody() -> None:
    random = Random(1)
    for _ in range(3_000):
        weights = {f"c{number}": random.randint(1, 30) for number in range(random.randint(1, 6))}
        total = sum(weights.values())
        before = apportioned(0, weights, {})
        for seats in range(1, min(total, 12) + 1):
            found = apportioned(seats, weights, {})
            assert sum(found.values()) == seats
            assert all(found[name] >= before[name] for name in weights)
            before = found
        assert apportioned(total, weights, {}) == weights


def test_what_runs_where_nothing_is_meant_to_run_stays_nowhere() -> None:
    rules = '{"targetCluster": {"clusterNames": ["asia"]}, "weight": 2}'
    given = placement(f'{{{DIVIDED}, "weightPreference": {{"staticWeightList": [{rules}]}}}}}}')
    found = schedule(given, 4, CLUSTERS, {"africa": 3, "asia": 1})
    assert {one.name: one.replicas for one in found} == {"africa": 0, "asia": 4, "europe": 0}


def test_where_no_cluster_is_nothing_is_scheduled() -> None:
    assert schedule(placement(f"{{{DIVIDED}}}}}"), 4, []) == ()

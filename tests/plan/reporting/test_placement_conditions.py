"""What a placement says of all its clusters, step by step."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, UNKNOWN
from kedge.api.placement_status import ClusterPlacementStatus
from kedge.api.reasons import CONTROLLED_OUTSIDE, NO_OVERRIDE, OVERRIDDEN_SUCCEEDED, SCHEDULE_PENDING, SCHEDULED
from kedge.api.scheduling import PlacementPolicy, PlacementType
from kedge.plan.reporting.condition_order import CONDITION_STEPS
from kedge.plan.reporting.placement_conditions import external_finding, rollout_findings, scheduled_finding
from plan.reporting.test_placement_status import policy
from plan.working.objects import said

WORDS = {
    (0, TRUE): ("1 of 1 cluster has started", "2 of 2 clusters have started"),
    (0, FALSE): ("1 of 1 cluster waits", "2 of 2 clusters wait"),
    (0, UNKNOWN): ("1 of 1 cluster has not been looked at yet", "2 of 2 clusters have not been looked at yet"),
    (1, TRUE): ("1 of 1 cluster needs no override", "2 of 2 clusters need no override"),
    (1, FALSE): ("1 of 1 cluster cannot get its objects", "2 of 2 clusters cannot get their objects"),
    (1, UNKNOWN): ("1 of 1 cluster has not got its objects yet", "2 of 2 clusters have not got their objects yet"),
    (2, TRUE): ("1 of 1 cluster has its Works", "2 of 2 clusters have their Works"),
    (2, FALSE): ("1 of 1 cluster does not have its Works", "2 of 2 clusters do not have their Works"),
    (2, UNKNOWN): ("1 of 1 cluster does not have its Works yet", "2 of 2 clusters do not have their Works yet"),
    (3, TRUE): ("1 of 1 cluster has applied every object", "2 of 2 clusters have applied every object"),
    (3, FALSE): ("1 of 1 cluster has not applied every object", "2 of 2 clusters have not applied every object"),
    (3, UNKNOWN): (
        "1 of 1 cluster has not reported yet whether it applied every object",
        "2 of 2 clusters have not reported yet whether they applied every object",
    ),
    (4, TRUE): ("1 of 1 cluster has every object available", "2 of 2 clusters have every object available"),
    (4, FALSE): (
        "1 of 1 cluster has objects that are not available",
        "2 of 2 clusters have objects that are not available",
    ),
    (4, UNKNOWN): (
        "1 of 1 cluster does not say whether every object is available",
        "2 of 2 clusters do not say whether every object is available",
    ),
}


def cluster(name: str, *statuses: str, words: str = "") -> ClusterPlacementStatus:
    """A cluster that says this of its steps, in order; `words` of the last."""
    told = [said(step.type, status) for step, status in zip(CONDITION_STEPS, statuses, strict=False)]
    told[-1] = replace(told[-1], message=words)
    return ClusterPlacementStatus(cluster_name=name, conditions=(said(SCHEDULED), *told))


@pytest.mark.parametrize(("place", "words"), WORDS.items(), ids=[f"{step}-{status}" for step, status in WORDS])
def test_each_condition_has_texts_for_one_cluster_and_for_several(
    place: tuple[int, str], words: tuple[str, str]
) -> None:
    step, status = place
    for names, told in zip(("a", "ab"), words, strict=True):
        then = [UNKNOWN] if status == TRUE else []  # who has taken one step says something of the next
        found = rollout_findings([cluster(name, *[TRUE] * step, status, *then, words="why") for name in names])[step]
        assert (found.type, found.status) == (CONDITION_STEPS[step].type, status)
        listed = {"a": "a: why", "ab": "a and b: why"}[names]
        assert found.message == (told if status == TRUE else f"{told}: {listed}")


def test_a_condition_is_unknown_while_a_cluster_has_not_reported() -> None:
    found = rollout_findings([cluster("a", FALSE, words="no"), cluster("b", UNKNOWN, words="?")])[-1]
    assert (found.status, found.message) == (UNKNOWN, "1 of 2 clusters has not been looked at yet: b: ?")


@pytest.mark.parametrize(
    ("overridden", "reason"),
    [((), NO_OVERRIDE), ("a", OVERRIDDEN_SUCCEEDED), ("ab", OVERRIDDEN_SUCCEEDED)],
)
def test_one_cluster_with_an_override_sets_the_reason(overridden: Any, reason: str) -> None:
    clusters = [
        replace(cluster(name, TRUE, TRUE, TRUE, TRUE, TRUE), applicable_cluster_resource_overrides=("o",))
        if name in overridden
        else cluster(name, TRUE, TRUE, TRUE, TRUE, TRUE)
        for name in "ab"
    ]
    found = rollout_findings(clusters)
    assert [one.reason for one in found][1] == reason
    assert [one.reason for one in found][2:] == [step.reasons[TRUE] for step in CONDITION_STEPS[2:]]


@pytest.mark.parametrize(
    ("leaving", "words"),
    [
        ((), ""),
        (("x goes",), ". Still to be removed: x goes"),
        (("x", "y", "z"), ". Still to be removed: x; y; z"),
        (("x", "y", "z", "u"), ". Still to be removed: x; y; z; and 1 more"),
    ],
)
def test_clusters_to_be_removed_are_named(leaving: tuple[str, ...], words: str) -> None:
    found = rollout_findings([cluster("a", TRUE, TRUE, TRUE, TRUE, TRUE)], leaving)
    assert found[0].message == f"1 of 1 cluster has started{words}"
    assert found[1].message == "1 of 1 cluster needs no override"


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("a", "a"),
        ("ab", "a and b"),
        ("abc", "a, b and c"),
        ("abcd", "a, b, c and 1 more"),
        ("abcde", "a, b, c and 2 more"),
    ],
)
def test_clusters_with_the_same_reason_are_listed_together(names: str, told: str) -> None:
    found = rollout_findings([cluster(name, FALSE, words="why") for name in reversed(names)])[0]
    assert found.message.endswith(f": {told}: why")


@pytest.mark.parametrize(("number", "end"), [(3, "c: 2"), (4, "c: 2; and 1 more"), (6, "c: 2; and 3 more")])
def test_the_first_few_reasons_are_given(number: int, end: str) -> None:
    clusters = [cluster(name, FALSE, words=str(n)) for n, name in enumerate("abcdef"[:number])]
    assert rollout_findings(clusters)[0].message.endswith(f"a: 0; b: 1; {end}")


def test_a_reason_does_not_name_its_cluster_again() -> None:
    for words, told in (
        ("a waits: for b", "a: for b"),
        ("a is late", "a: is late"),
        ("b is late", "a: b is late"),
        ("", "a"),
    ):
        assert rollout_findings([cluster("a", FALSE, words=words)])[0].message == f"1 of 1 cluster waits: {told}"


@pytest.mark.parametrize(
    ("indexes", "run", "words"),
    [
        ((), "", "no cluster has resources yet"),
        (("2", "1", "2", None), "", "clusters have resources 1, 2"),
        (("1",), "run r waits", "clusters have resources 1: run r waits"),
    ],
)
def test_under_staged_runs_the_revisions_of_clusters_are_listed(indexes: Any, run: str, words: str) -> None:
    clusters = [ClusterPlacementStatus(cluster_name="a", observed_resource_index=index) for index in indexes]
    found = external_finding(clusters, run)
    assert (found.status, found.reason) == (UNKNOWN, CONTROLLED_OUTSIDE)
    assert found.message == f"Staged update runs move this placement from cluster to cluster, and {words}"


def test_a_PickFixed_policy_without_names_is_pending_and_asks_for_them() -> None:
    asked = PlacementPolicy(placement_type=PlacementType.pick_fixed)
    decided = policy()
    undecided = replace(decided, spec=replace(decided.spec, policy=asked), status=None)
    found = scheduled_finding(undecided, 1, "")
    assert (found.type, found.status, found.reason) == (SCHEDULED, UNKNOWN, SCHEDULE_PENDING)
    assert found.message == "spec.policy.clusterNames is empty: name the clusters that PickFixed is to take"
    named = replace(asked, cluster_names=("cluster-1",))
    other = replace(undecided, spec=replace(decided.spec, policy=named))
    assert scheduled_finding(other, 1, "").message == "Clusters are being picked"
    assert scheduled_finding(replace(undecided, status=decided.status), 1, "").status == TRUE

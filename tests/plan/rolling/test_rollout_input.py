"""Wanted: the newest resources, or those a placement is pinned to."""

from __future__ import annotations

import pytest

from kedge.api.fleet import IS_LATEST, PINNED, POD_COUNTS, RESOURCE_HASH, RESOURCE_INDEX, SUBINDEX
from kedge.api.meta import ObjectMeta
from kedge.plan.rolling.pod_counts import count_pods, counts_text
from kedge.plan.rolling.rollout_input import Wanted, observe, wanted
from plan.rolling.making import NEW, OLD, binding, placement, scheduled, seen
from plan.rolling.test_pod_counts import workload


def snapshot(index: int, *, latest: bool = False) -> ObjectMeta:
    return ObjectMeta(
        name=f"crp-{index}-snapshot",
        labels={RESOURCE_INDEX: str(index), IS_LATEST: str(latest).lower()},
        annotations={RESOURCE_HASH: "abc"},
    )


PART = ObjectMeta(name="crp-2-0", labels={RESOURCE_INDEX: "2"}, annotations={SUBINDEX: "0"})
ALL = [snapshot(0), snapshot(2, latest=True), snapshot(1), PART]


def pinned(index: str) -> ObjectMeta:
    return ObjectMeta(name="crp", annotations={PINNED: index})


def test_the_newest_resources_are_wanted() -> None:
    assert wanted(ObjectMeta(name="crp"), ALL) == Wanted("crp-2-snapshot")


def test_without_a_snapshot_nothing_is_wanted_and_nothing_is_wrong() -> None:
    assert wanted(ObjectMeta(name="crp"), []) == Wanted()


@pytest.mark.parametrize("index", ["0", " 0 "])
def test_a_pinned_placement_wants_older_resources(index: str) -> None:
    assert wanted(pinned(index), ALL) == Wanted("crp-0-snapshot")


@pytest.mark.parametrize("index", ["7", "", "last", "-1", "00"])
def test_what_does_not_exist_is_refused_with_what_does(index: str) -> None:
    found = wanted(pinned(index), ALL)
    assert not found.name
    assert f"asks for resources {index!r}, and there are 0, 1, 2" in found.problem


def test_pinned_to_something_where_there_is_nothing_says_so() -> None:
    assert "there are none at all" in wanted(pinned("0"), [PART]).problem


def test_the_counts_of_revisions_are_seen_in_the_metadata_of_their_snapshots() -> None:
    counts = count_pods([workload(replicas=3)])
    master = ObjectMeta(name=NEW, annotations={POD_COUNTS: counts_text(counts)})
    found = observe(placement(pod_budget=1), [binding("a")], [master, ObjectMeta(name=OLD)], {})
    assert found.pods == {NEW: counts}


def test_revisions_are_to_be_counted_only_if_there_is_a_budget_of_pods() -> None:
    bindings = [binding("a"), scheduled("b")]
    assert seen(placement(), bindings).uncounted == ()
    assert seen(placement(pod_budget=1), bindings).uncounted == (OLD, NEW)
    assert seen(placement(pod_budget=1), bindings, pods={NEW: count_pods([])}).uncounted == (OLD,)
    assert seen(placement(pod_budget=1), bindings, wanted=Wanted()).uncounted == ()

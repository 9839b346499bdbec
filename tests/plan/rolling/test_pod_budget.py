"""With a podBudget: which clusters move within it, what the others wait for, and what holds at every step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, field
from msgspec.structs import replace

from kedge.api.binding import ClusterResourceBinding
from kedge.api.fleet import PODS_CHARGED
from kedge.api.rollout import RolloutStrategy
from kedge.plan.rolling.plan import RolloutPlan
from kedge.plan.rolling.pod_budget import given_budget
from kedge.plan.rolling.pod_counts import PodCounts, count_pods
from kedge.plan.rolling.rollout_input import Wanted
from plan.rolling.making import (
    AVAILABLE,
    BAD,
    IN_PROGRESS,
    NEW,
    NOT_AVAILABLE,
    NOTHING,
    OLD,
    Said,
    binding,
    moves,
    pick_n,
    placement,
    planned,
    scheduled,
    unscheduled,
    up_to_date,
)
from plan.rolling.test_pod_counts import rolling, workload

FIVE = count_pods([workload(replicas=5, **rolling(2))])
FIVE_NEW = count_pods([workload(replicas=5, image="v2", **rolling(2))])
RECREATED = count_pods([workload(replicas=5, image="v2", strategy={"type": "Recreate"})])
PODS = {OLD: FIVE, NEW: FIVE_NEW}


def charged(found: ClusterResourceBinding, pods: int) -> ClusterResourceBinding:
    return replace(found, metadata=replace(found.metadata, annotations={PODS_CHARGED: str(pods)}))


def plan_of(
    budget: int | str, *bindings: ClusterResourceBinding, pods: Mapping[str, PodCounts] = PODS, **around: Any
) -> RolloutPlan:
    placed = placement(max_unavailable="100%", pod_budget=budget)
    return planned(placed, *bindings, pods=pods, **around)


OTHERS = [up_to_date("d"), up_to_date("e")]  # of 5 clusters with 5 pods each


@pytest.mark.parametrize(
    ("budget", "moved"),
    [
        *((1, []), (2, ["a"]), (3, ["a"]), (4, ["a", "b"]), (6, ["a", "b", "c"]), ("100%", ["a", "b", "c"])),
        *(("8%", ["a"]), ("15%", ["a"]), ("16%", ["a", "b"])),
    ],
)
def test_clusters_move_while_the_pods_they_may_lack_are_within_the_budget(budget: int | str, moved: list[str]) -> None:
    found = plan_of(budget, *map(binding, "abc"), *OTHERS)
    assert moves(found) == ([], moved, [])
    assert found.charges == {f"crp-{name}-1": 2 for name in moved}


def test_without_a_budget_of_pods_nothing_is_charged() -> None:
    found = planned(placement(max_unavailable="100%"), *map(binding, "abc"), *OTHERS, pods=PODS)
    assert moves(found) == ([], ["a", "b", "c"], [])
    assert (found.charges, found.credit) == ({}, ())


def test_a_percentage_is_of_the_pods_of_clusters_that_stay() -> None:
    bindings = [*map(binding, "abc"), *OTHERS, unscheduled("z")]
    assert moves(plan_of("20%", *bindings))[1] == ["a", "b"]  # 5 of 25 pods


def test_a_budget_that_comes_to_nothing_is_one_pod() -> None:
    one, other = (count_pods([workload(replicas=5, image=image, **rolling(1))]) for image in ("v1", "v2"))
    assert moves(plan_of("1%", *map(binding, "abc"), *OTHERS, pods={OLD: one, NEW: other}))[1] == ["a"]


@pytest.mark.parametrize("strategy", [None, RolloutStrategy(rolling_update=None)])
def test_without_a_strategy_there_is_no_budget_of_pods(strategy: RolloutStrategy | None) -> None:
    assert given_budget(placement(strategy=strategy).spec) is None


@pytest.mark.parametrize("said", [IN_PROGRESS, NOT_AVAILABLE, NOTHING])
def test_a_cluster_holds_its_charge_until_it_has_proven_itself(said: Said) -> None:
    moving = charged(up_to_date("a", said), 2)
    assert moves(plan_of(3, moving, binding("b"), *OTHERS)) == ([], [], [])
    assert moves(plan_of(4, moving, binding("b"), *OTHERS)) == ([], ["b"], [])
    proven = charged(up_to_date("a"), 2)
    found = plan_of(3, proven, binding("b"), *OTHERS)
    assert moves(found) == ([], ["b"], [])
    assert found.credit == (proven,)


def test_all_pods_of_a_cluster_that_broke_by_itself_may_be_lacking() -> None:
    broken = up_to_date("a", NOT_AVAILABLE)
    assert moves(plan_of(6, broken, binding("b"), *OTHERS)) == ([], [], [])
    assert moves(plan_of(7, broken, binding("b"), *OTHERS)) == ([], ["b"], [])


@pytest.mark.parametrize(("before", "counted"), [({OLD: count_pods([workload(replicas=8)])}, 8), ({}, 5)])
def test_a_broken_cluster_counts_with_what_it_runs_or_with_what_it_is_to_run(
    before: Mapping[str, PodCounts], counted: int
) -> None:
    broken, pods = binding("a", NOT_AVAILABLE), {**before, NEW: FIVE_NEW}
    others = [up_to_date("b", IN_PROGRESS), *OTHERS]
    assert plan_of(1, broken, *others, pods=pods).charges == {"crp-a-1": counted}


def test_a_broken_cluster_without_pods_before_and_after_lacks_none() -> None:
    found = plan_of(1, binding("a", NOT_AVAILABLE), *OTHERS, pods={NEW: PodCounts()})
    assert found.charges == {"crp-a-1": 0}


def test_a_fix_reaches_a_broken_cluster_whatever_others_hold() -> None:
    found = plan_of(2, binding("a", NOT_AVAILABLE), charged(up_to_date("b", IN_PROGRESS), 2), *OTHERS)
    assert moves(found) == ([], ["a"], [])
    assert found.charges == {"crp-a-1": 5}


def test_a_cluster_that_is_moved_again_midway_keeps_the_larger_charge() -> None:
    midway = charged(binding("a", IN_PROGRESS), 5)
    found = plan_of(5, midway, binding("b"), *OTHERS)
    assert moves(found) == ([], ["a"], [])
    assert found.charges == {"crp-a-1": 5}


def test_new_clusters_lose_nobodys_pods() -> None:
    found = plan_of(2, scheduled("a"), scheduled("b"), binding("c"), *OTHERS)
    assert moves(found) == (["a", "b"], ["c"], [])
    assert found.charges == {"crp-a-1": 0, "crp-b-1": 0, "crp-c-1": 2}


def test_a_change_that_replaces_no_pods_costs_nothing() -> None:
    found = plan_of(1, *map(binding, "abc"), *OTHERS, pods={OLD: FIVE, NEW: FIVE})
    assert moves(found) == ([], ["a", "b", "c"], [])


def test_from_what_is_not_known_everything_may_change() -> None:
    assert moves(plan_of(1, *map(binding, "abc"), *OTHERS, pods={NEW: FIVE})) == ([], [], [])


def test_a_budget_that_no_cluster_fits_into_is_reported() -> None:
    found = plan_of(4, *map(binding, "abc"), *OTHERS, pods={OLD: FIVE, NEW: RECREATED})
    assert moves(found) == ([], [], [])
    assert found.why["crp-a-1"] == (
        "a waits: podBudget comes to 4 of 25 pods, and a change here may take away 5 at once: raise it to at least 5, "
        "or lower maxUnavailable of the workloads"
    )
    assert found.waits["crp-a-1"].code == "PodBudgetTooSmall"


def daemons(number: int | str, image: str = "v1") -> PodCounts:
    """A Deployment of 5 pods, and a DaemonSet that may take away so many."""
    agent = workload("DaemonSet", "agent", image, **rolling(number, "updateStrategy"))
    return count_pods([workload(replicas=5, **rolling(2)), agent])


def test_a_daemon_set_is_charged_with_what_it_may_take_away() -> None:
    found = plan_of(3, *map(binding, "abc"), *OTHERS, pods={OLD: daemons(2), NEW: daemons(2, "v2")})
    assert moves(found) == ([], ["a"], [])
    assert found.charges == {"crp-a-1": 2}


def test_a_daemon_set_that_takes_a_share_of_pods_nobody_counts_waits_and_says_so() -> None:
    found = plan_of("100%", *map(binding, "abc"), *OTHERS, pods={OLD: daemons("10%"), NEW: daemons("10%", "v2")})
    assert moves(found) == ([], [], [])
    assert found.why["crp-a-1"] == (
        "a waits: podBudget cannot bound DaemonSet shop/agent: maxUnavailable is a share of pods that only the cluster "
        "counts; make it a number, or remove podBudget"
    )
    assert found.waits["crp-a-1"].code == "PodsNotBounded"


def test_a_daemon_set_that_does_not_change_takes_nothing_away() -> None:
    found = plan_of(1, *map(binding, "abc"), *OTHERS, pods={OLD: daemons("10%"), NEW: daemons("10%")})
    assert moves(found) == ([], ["a", "b", "c"], [])


def test_a_daemon_set_reaches_clusters_that_are_new() -> None:
    found = plan_of(1, scheduled("a"), *OTHERS, pods={NEW: daemons("10%")})
    assert moves(found) == (["a"], [], [])


def test_a_broken_cluster_whose_pods_nobody_counts_holds_the_whole_budget() -> None:
    pods = {OLD: daemons(2), NEW: daemons(2, "v2")}
    broken = up_to_date("a", NOT_AVAILABLE)
    found = plan_of(20, broken, binding("b"), *OTHERS, pods=pods)
    assert moves(found) == ([], [], [])
    assert found.waits["crp-b-1"].code == "AllowanceSpent"
    plain = plan_of(20, broken, binding("b"), *OTHERS)
    assert moves(plain) == ([], ["b"], [])
    only_before = plan_of(20, binding("a", NOT_AVAILABLE), binding("b"), *OTHERS, pods={OLD: FIVE, NEW: daemons(2)})
    assert only_before.charges == {"crp-a-1": 5, "crp-b-1": 2}


def test_a_fix_of_daemon_sets_reaches_a_cluster_all_of_whose_pods_count_already() -> None:
    pods = {OLD: daemons("10%"), NEW: daemons("10%", "v2")}
    found = plan_of(2, binding("a", NOT_AVAILABLE), *OTHERS, pods=pods)
    assert moves(found) == ([], ["a"], [])
    assert found.charges == {"crp-a-1": 5}
    midway = plan_of(2, charged(binding("a", NOT_AVAILABLE), 2), *OTHERS, pods=pods)
    assert moves(midway) == ([], [], [])


def test_who_waits_for_pods_says_who_holds_them() -> None:
    found = plan_of(3, charged(up_to_date("a", NOT_AVAILABLE), 2), binding("b"), *OTHERS)
    assert found.why["crp-b-1"] == (
        "b waits: at most 3 of 20 pods of all clusters may be unavailable (podBudget), a change here may take away 2, "
        f"and a is not available: {BAD} (2 pods)"
    )
    moving = plan_of(2, binding("a"), binding("b"), *OTHERS)
    assert moving.reason("crp-b-1").endswith("and a is being given its resources (2 pods)")


def test_nothing_moves_before_its_pods_are_counted() -> None:
    found = plan_of(5, *map(binding, "abc"), *OTHERS, pods={OLD: FIVE})
    assert moves(found) == ([], [], [])
    assert found.reason("crp-a-1") == f"the pods of {NEW} have to be counted first"


@pytest.mark.parametrize("budget", ["many", -1, "5%%"])
def test_a_budget_that_is_no_number_stops_the_rollout_in_words(budget: int | str) -> None:
    found = plan_of(budget, binding("a"), *OTHERS)
    assert moves(found) == ([], [], [])
    assert found.reason("crp-a-1").startswith(f"spec.strategy.rollingUpdate.podBudget: {budget!r} is neither")


def test_a_cluster_that_works_is_removed_only_once_those_that_stay_have_proven_themselves() -> None:
    placed = placement(pick_n(2), max_unavailable="100%", pod_budget=1)
    coming = charged(up_to_date("b", IN_PROGRESS), 0)
    waiting = planned(placed, up_to_date("a"), coming, unscheduled("c"), pods=PODS)
    assert moves(waiting) == ([], [], [])
    assert waiting.reason("crp-c-1") == (
        "its pods are needed until others have proven themselves: b is being given its resources"
    )
    assert moves(planned(placed, up_to_date("a"), up_to_date("b"), unscheduled("c"), pods=PODS))[2] == ["c"]
    assert moves(planned(placed, up_to_date("a"), coming, unscheduled("c", NOT_AVAILABLE), pods=PODS))[2] == ["c"]


# What holds at every step


class Site(Struct):
    """A cluster with one Deployment, as it is in truth: what it may lack is all that it ever was allowed to."""

    has: str
    lacks: int = 0
    """How many pods it may have taken away and not proven since."""
    is_charged: int | None = None
    said: Said = field(default_factory=lambda: AVAILABLE)

    def binding(self, name: str) -> ClusterResourceBinding:
        found = binding(name, self.said, has=self.has)
        return found if self.is_charged is None else charged(found, self.is_charged)


REVISIONS = {
    f"crp-{number}-snapshot": count_pods([workload(replicas=pods, image=f"v{number}", **how)])
    for number, (pods, how) in enumerate(
        [(4, rolling(1)), (4, rolling(2)), (6, rolling(3)), (3, {"strategy": {"type": "Recreate"}}), (4, rolling(0))]
    )
}
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("want"), st.sampled_from(sorted(REVISIONS))),
        st.tuples(st.sampled_from(["prove", "fail", "plan"]), st.sampled_from("abcde")),
        st.just(("plan", "")),
    ),
    max_size=40,
)


@given(st.one_of(st.integers(1, 12), st.sampled_from(["10%", "30%", "60%"])), STEPS)
def test_over_any_history_the_pods_that_may_be_lacking_are_within_the_budget(budget: Any, steps: Any) -> None:
    sites = {name: Site("crp-0-snapshot") for name in "abcde"}
    wanted = "crp-0-snapshot"
    for what, which in (*steps, *[("plan", ""), ("prove", "abcde")] * 6):
        if what == "want":
            wanted = which
        elif what == "prove":
            for name in which:
                sites[name].said, sites[name].lacks = AVAILABLE, 0
        elif what == "fail":
            sites[which].said = NOT_AVAILABLE if sites[which].is_charged is not None else sites[which].said
        else:
            _roll(sites, wanted, budget)
    if all(one.has == wanted for one in sites.values()):
        return
    found = _planned(sites, wanted, budget)
    assert {wait.code for wait in found.waits.values()} == {"PodBudgetTooSmall"}


def _planned(sites: Mapping[str, Site], wanted: str, budget: Any) -> RolloutPlan:
    placed = placement(max_unavailable="100%", pod_budget=budget)
    return planned(placed, *(one.binding(name) for name, one in sites.items()), pods=REVISIONS, wanted=Wanted(wanted))


def _roll(sites: Mapping[str, Site], wanted: str, budget: Any) -> None:
    found = _planned(sites, wanted, budget)
    pods = REVISIONS[wanted].pods * len(sites)
    limit = budget if isinstance(budget, int) else max(1, int(budget[:-1]) * pods // 100)
    before = sum(one.lacks for one in sites.values())
    for one in found.credit:
        sites[one.spec.target_cluster].is_charged = None
    for one in found.repoint:
        site = sites[one.spec.target_cluster]
        takes = REVISIONS[wanted].takes_after(REVISIONS[site.has])
        site.lacks = max(site.lacks, takes)
        site.has, site.said, site.is_charged = wanted, IN_PROGRESS, found.charges[one.metadata.name]
    assert sum(one.lacks for one in sites.values()) <= max(limit, before)

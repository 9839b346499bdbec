"""Plans: who moves and who waits, by the table of kubefleet.md §15, the seeds' examples, and the peer's defects."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.dialect import Dialect
from kedge.api.fleet import PAUSED, THROTTLE_FIRST
from kedge.api.rollout import ApplyStrategy, ApplyType, RollingUpdate, RolloutStrategy, RolloutStrategyType
from kedge.plan.rolling.plan import removal_waits
from kedge.plan.rolling.rollout_input import Wanted
from kedge.plan.rolling.wait_text import HoldCode
from plan.rolling.making import (
    AVAILABLE,
    BAD,
    IN_PROGRESS,
    NEW,
    NOT_APPLIED,
    NOT_AVAILABLE,
    NOT_SENT,
    NOTHING,
    NOW,
    SENT,
    UNTRACKABLE,
    Said,
    binding,
    clusters,
    moves,
    pick_fixed,
    pick_n,
    placement,
    planned,
    scheduled,
    seen,
    unscheduled,
    up_to_date,
)

TEN = [f"c{number:02}" for number in range(10)]


# The worked examples (kubefleet.md §15), by their numbers


def test_01_of_ten_clusters_three_are_updated_at_once() -> None:
    found = planned(placement(), *map(binding, TEN))
    assert moves(found) == ([], TEN[:3], [])
    assert sorted(found.why) == [f"crp-{name}-1" for name in TEN[3:]]


def test_02_one_that_is_available_again_lets_one_more_start() -> None:
    moving = [up_to_date(name, IN_PROGRESS) for name in TEN[1:3]]
    found = planned(placement(), up_to_date(TEN[0]), *moving, *map(binding, TEN[3:]))
    assert moves(found) == ([], TEN[3:4], [])


def test_03_one_that_never_works_narrows_the_window_but_does_not_stop_it() -> None:
    found = planned(placement(), up_to_date(TEN[0], NOT_AVAILABLE), *map(binding, TEN[1:]))
    assert moves(found) == ([], TEN[1:3], [])
    stuck = [up_to_date(name, NOT_AVAILABLE) for name in TEN[:3]]
    assert moves(planned(placement(), *stuck, *map(binding, TEN[3:]))) == ([], [], [])


def test_04_three_clusters_go_one_at_a_time() -> None:
    assert moves(planned(placement(), *map(binding, "abc"))) == ([], ["a"], [])


def test_05_a_budget_of_nothing_never_starts_in_kubefleet_and_counts_as_one_here() -> None:
    placed = placement(max_unavailable=0)
    stuck = planned(placed, *map(binding, "abc"), dialect=Dialect.kubefleet)
    assert moves(stuck) == ([], [], [])
    assert stuck.why["crp-a-1"].startswith("a waits: maxUnavailable is 0, so no cluster that is available may be")
    found = planned(placed, *map(binding, "abc"))
    assert moves(found) == ([], ["a"], [])
    assert found.why["crp-b-1"].endswith("(maxUnavailable is 0, which counts as 1)")


def test_06_two_clusters_are_exchanged_one_by_one() -> None:
    placed = placement(pick_n(4))
    kept, old = [up_to_date("a"), up_to_date("b")], [unscheduled("c"), unscheduled("d")]
    first = planned(placed, *kept, *old, scheduled("e"), scheduled("f"))
    assert moves(first) == (["e"], [], [])  # and no removal before it has its Works
    assert first.why["crp-c-1"] == "c waits to be removed: e has to be sent the resources first"
    second = planned(placed, *kept, *old, up_to_date("e", IN_PROGRESS), scheduled("f"))
    assert moves(second) == ([], [], ["c"])
    assert "at most 5 clusters (4 wanted, 1 more) may hold resources, and 5 do" in second.why["crp-f-1"]
    assert "c and d have to be removed first" in second.why["crp-f-1"]


def test_what_removals_wait_for_is_the_plan_s_own_word() -> None:
    placed = placement(pick_n(4))
    kept, old = [up_to_date("a"), up_to_date("b")], [unscheduled("c"), unscheduled("d")]
    told = removal_waits(seen(placed, [*kept, *old, scheduled("e"), scheduled("f")]), NOW)
    told_of = {name: f"{name} waits to be removed: e has to be sent the resources first" for name in "cd"}
    assert told == {f"crp-{name}-1": text for name, text in told_of.items()}
    assert removal_waits(seen(placed, [*kept, unscheduled("c")]), NOW) == {}  # nothing is in its way
    assert removal_waits(seen(placed, [*map(binding, "abcd")]), NOW) == {}  # these wait, and are to stay


def test_07_too_many_clusters_are_removed_at_once() -> None:
    placed = placement(pick_n(2))
    found = planned(placed, up_to_date("a"), up_to_date("b"), unscheduled("c"), unscheduled("d"))
    assert moves(found) == ([], [], ["c", "d"])


@pytest.mark.parametrize("said", [AVAILABLE, NOT_AVAILABLE, NOT_APPLIED, NOT_SENT, IN_PROGRESS, NOTHING])
def test_08_a_placement_shrinks_to_nothing_whatever_state_its_clusters_are_in(said: Said) -> None:
    found = planned(placement(pick_fixed()), unscheduled("a", said), unscheduled("b", said))
    assert moves(found) == ([], [], ["a", "b"])


def test_09_a_first_placement_is_not_throttled() -> None:
    names = [f"c{number:02}" for number in range(50)]
    found = planned(placement(), *map(scheduled, names))
    assert moves(found) == (names, [], [])
    assert not found.why


@pytest.mark.parametrize("said", [NOT_APPLIED, NOT_AVAILABLE, NOT_SENT])
def test_10_a_cluster_that_does_not_work_gets_the_fix_at_once(said: Said) -> None:
    moving = [up_to_date(name, IN_PROGRESS) for name in TEN[:3]]
    rest = [*map(binding, TEN[3:9]), binding(TEN[9], said)]
    assert moves(planned(placement(), *moving, *rest, dialect=Dialect.kubefleet)) == ([], [TEN[9]], [])
    proven = [up_to_date(TEN[0]), *moving[1:]]
    assert TEN[9] in moves(planned(placement(), *proven, *rest))[1]  # here only if it works somewhere
    assert moves(planned(placement(), *moving, *rest)) == ([], [], [])


def test_11_where_nothing_can_be_seen_a_cluster_counts_after_the_wait() -> None:
    placed = placement(unavailable_period_seconds=60)
    waiting = [up_to_date(TEN[0], UNTRACKABLE, since=40), *(up_to_date(name, IN_PROGRESS) for name in TEN[1:3])]
    rest = [binding(name, UNTRACKABLE) for name in TEN[3:]]
    found = planned(placed, *waiting, *rest)
    assert moves(found) == ([], [], [])
    assert found.look_again == 20.0
    assert "it cannot be seen whether the resources of c00 work" in found.why["crp-c09-1"]
    assert "given until 2030-01-01T12:00:20Z" in found.why["crp-c09-1"]
    done = [up_to_date(TEN[0], UNTRACKABLE, since=60), *waiting[1:]]
    assert moves(planned(placed, *done, *rest)) == ([], TEN[3:4], [])


@pytest.mark.parametrize("seconds", [10**12, 2**63 - 1])
def test_a_wait_beyond_the_end_of_dates_is_a_wait(seconds: int) -> None:
    placed = placement(unavailable_period_seconds=seconds, max_unavailable=1)
    found = planned(placed, up_to_date("a", UNTRACKABLE, since=40), binding("b"))
    assert moves(found) == ([], [], [])
    assert "given until 2129-" in found.why["crp-b-1"]


def test_in_kubefleet_a_cluster_that_is_still_to_prove_itself_is_not_changed_again_before() -> None:
    placed = placement(pick_fixed("a"), max_unavailable=1, unavailable_period_seconds=60)
    young = binding("a", UNTRACKABLE, since=40)
    assert moves(planned(placed, young)) == ([], ["a"], [])
    stuck = planned(placed, young, dialect=Dialect.kubefleet)
    assert (moves(stuck), stuck.look_again) == (([], [], []), 20.0)
    assert "given until 2030-01-01T12:00:20Z" in stuck.why["crp-a-1"]
    assert moves(planned(placed, binding("a", UNTRACKABLE, since=60), dialect=Dialect.kubefleet)) == ([], ["a"], [])


def test_12_all_at_once_where_all_may_be_unavailable() -> None:
    assert moves(planned(placement(max_unavailable="100%"), *map(binding, TEN))) == ([], TEN, [])


# The seeds' examples


def test_example_1_a_bad_image_stops_after_one_cluster_and_says_why() -> None:
    placed = placement(pick_n(3), max_unavailable=1, max_surge=1)
    found = planned(placed, up_to_date("cluster-1", NOT_AVAILABLE), binding("cluster-2"), binding("cluster-3"))
    assert moves(found) == ([], [], [])
    assert found.why["crp-cluster-3-1"] == (
        "cluster-3 waits: at most 1 of 3 clusters may be unavailable, and cluster-1 is not available: " + BAD
    )
    assert found.look_again is None


EAST = ["cluster-3", "cluster-4"]


def test_example_2_the_new_clusters_come_first_and_the_old_ones_go_one_by_one() -> None:
    placed = placement(pick_n(2), max_surge=2)
    west = [unscheduled("cluster-1", has=NEW), unscheduled("cluster-2", has=NEW)]
    assert moves(planned(placed, *west, *map(scheduled, EAST))) == (EAST, [], [])
    half = [up_to_date("cluster-3", SENT), up_to_date("cluster-4", NOTHING)]
    waiting = planned(placed, *west, *half)
    assert moves(waiting) == ([], [], [])
    assert waiting.why["crp-cluster-1-1"].endswith("cluster-4 has to be sent the resources first")
    sent = [up_to_date(name, IN_PROGRESS) for name in EAST]
    assert moves(planned(placed, *west, *sent)) == ([], [], ["cluster-1"])
    going = [unscheduled("cluster-1", deleting=True), west[1]]
    assert moves(planned(placed, *going, *sent)) == ([], [], [])
    proven = [up_to_date("cluster-3", IN_PROGRESS), up_to_date("cluster-4")]
    assert moves(planned(placed, *going, *proven)) == ([], [], ["cluster-2"])


# Resources that work nowhere yet

WEB = "crp-1-snapshot works nowhere yet, at most 1 cluster may have it until then, and cluster-1 is not available: "


def test_a_bad_release_does_not_reach_a_cluster_that_breaks_for_a_reason_of_its_own() -> None:
    placed = placement(max_unavailable=1)
    hurt = [binding("cluster-2", NOT_AVAILABLE), binding("cluster-3")]
    found = planned(placed, up_to_date("cluster-1", NOT_AVAILABLE), *hurt)
    assert moves(found) == ([], [], [])
    assert found.why["crp-cluster-2-1"] == f"cluster-2 waits: {WEB}{BAD}"
    proven = planned(placed, up_to_date("cluster-1"), *hurt)
    assert moves(proven) == ([], ["cluster-2"], [])


def test_a_fix_reaches_one_of_many_broken_clusters_first_and_all_others_once_it_works() -> None:
    placed = placement(max_unavailable=1)
    broken = [binding(name, NOT_AVAILABLE) for name in "abc"]
    found = planned(placed, *broken)
    assert moves(found) == ([], ["a"], [])
    assert found.why["crp-b-1"].endswith("and a is being given its resources")
    assert moves(planned(placed, up_to_date("a", IN_PROGRESS), *broken[1:])) == ([], [], [])
    assert moves(planned(placed, up_to_date("a"), *broken[1:])) == ([], ["b", "c"], [])


def test_a_fix_goes_first_where_the_bad_release_is() -> None:
    bad = binding("c", NOT_AVAILABLE, has="crp-7-snapshot")
    found = planned(placement(max_unavailable=1), binding("a", NOT_AVAILABLE), binding("b"), bad)
    assert moves(found) == ([], ["c"], [])


@pytest.mark.parametrize("around", [{"gone": {"a"}}, {"parting": {"a"}}])
def test_a_cluster_that_is_gone_or_leaves_holds_up_no_fix(around: dict[str, Any]) -> None:
    fleet = [up_to_date("a", NOT_AVAILABLE), binding("b", NOT_AVAILABLE), binding("c")]
    assert moves(planned(placement(max_unavailable=1), *fleet, **around)) == ([], ["b"], [])


def test_a_cluster_that_cannot_be_reached_since_it_has_them_proves_nothing() -> None:
    fleet = [up_to_date("a"), binding("b", NOT_AVAILABLE), binding("c")]
    found = planned(placement(max_unavailable=1), *fleet, unreachable={"a": "a was last heard of at noon"})
    assert moves(found) == ([], [], [])
    assert found.why["crp-b-1"].endswith("it is not known whether a is available: a was last heard of at noon")


def test_new_clusters_are_placed_without_regard_to_it_but_count() -> None:
    placed = placement(max_unavailable=1)
    found = planned(placed, binding("a", NOT_AVAILABLE), *map(scheduled, "bcd"))
    assert moves(found) == (["b", "c", "d"], ["a"], [])
    later = planned(placed, binding("a", NOT_AVAILABLE), *(up_to_date(name, IN_PROGRESS) for name in "bcd"))
    assert moves(later) == ([], [], [])


def test_another_way_to_apply_keeps_to_the_budget_as_well() -> None:
    strategy = RolloutStrategy(
        rolling_update=RollingUpdate(max_unavailable=1),
        apply_strategy=ApplyStrategy(type=ApplyType.server_side_apply),
    )
    placed = placement(strategy=strategy)
    fleet = [up_to_date(name) for name in "abc"]
    assert moves(planned(placed, *fleet)) == ([], ["a"], [])
    done = replace(fleet[0], spec=replace(fleet[0].spec, apply_strategy=strategy.apply_strategy))
    assert moves(planned(placed, done, *fleet[1:])) == ([], ["b"], [])


# What is not known


def test_a_cluster_being_applied_is_not_failed_and_counts_as_held() -> None:
    """Defect #1: the peer let go of the surge while clusters were in progress."""
    placed = placement(pick_n(2), max_surge=1, max_unavailable=1)
    moving = [up_to_date("a", IN_PROGRESS), up_to_date("b", IN_PROGRESS), unscheduled("c", IN_PROGRESS)]
    assert moves(planned(placed, *moving, scheduled("d"))) == ([], [], [])


def test_clusters_in_progress_are_not_updated_again_beyond_the_budget() -> None:
    """Defect #1: all at once in progress, as after a change of how objects are applied, all would have been updated."""
    found = planned(placement(max_unavailable=1), *(binding(name, IN_PROGRESS) for name in "abc"))
    assert moves(found) == ([], [], [])
    assert "a is being given its resources" in found.why["crp-b-1"]


@pytest.mark.parametrize("how", [{"said": IN_PROGRESS}, {"said": AVAILABLE, "spoken_at": 2}, {"said": NOTHING}])
def test_a_cluster_that_moves_within_the_budget_may_go_on_to_the_next_revision(how: dict[str, Any]) -> None:
    found = planned(placement(max_unavailable=1), binding("a", **how), binding("b"), binding("c"))
    assert moves(found) == ([], ["a"], [])


def test_an_unreachable_cluster_is_charged_and_named_with_its_last_heartbeat() -> None:
    said = "a cannot be reached: its last heartbeat was at 11:58"
    found = planned(placement(max_unavailable=1), up_to_date("a"), binding("b"), binding("c"), unreachable={"a": said})
    assert moves(found) == ([], [], [])
    assert found.why["crp-b-1"].endswith(f"it is not known whether a is available: {said}")


def test_two_unreachable_clusters_of_three_are_not_both_sent_something_new() -> None:
    found = planned(
        placement(max_unavailable=1), binding("a"), binding("b"), binding("c"), unreachable={"a": "", "b": ""}
    )
    assert moves(found) == ([], [], [])


def test_a_cluster_that_left_is_no_loss() -> None:
    placed = placement(pick_n(3), max_unavailable=1)
    others = [up_to_date("a"), up_to_date("b", NOT_AVAILABLE)]
    assert moves(planned(placed, *others, unscheduled("c"), gone={"c"})) == ([], [], ["c"])
    assert moves(planned(placed, *others, unscheduled("c"))) == ([], [], [])


def test_nothing_is_touched_on_a_member_that_is_leaving() -> None:
    bindings = [unscheduled("a", NOT_AVAILABLE), scheduled("b"), binding("c"), up_to_date("d")]
    found = planned(placement(max_unavailable="100%"), *bindings, parting={"a", "b", "c"})
    assert moves(found) == ([], [], [])
    assert found.why["crp-a-1"].startswith("a waits to be removed: it is leaving the fleet")


def test_clusters_being_removed_do_not_count_as_available() -> None:
    """Defect #9 (issue 602)."""
    placed = placement(pick_n(3), max_unavailable=1)
    bindings = [unscheduled("a", NOT_AVAILABLE, deleting=True), up_to_date("b"), up_to_date("c"), unscheduled("d")]
    assert moves(planned(placed, *bindings)) == ([], [], ["d"])
    bindings = [unscheduled("a", AVAILABLE, deleting=True), up_to_date("b"), unscheduled("d"), scheduled("e")]
    assert moves(planned(placed, *bindings)) == (["e"], [], [])


def test_a_new_cluster_that_cannot_be_sent_anything_does_not_keep_the_old_ones_for_ever() -> None:
    placed = placement(pick_n(2), max_surge=2)
    bindings = [unscheduled("a"), unscheduled("b"), up_to_date("c", NOT_SENT), up_to_date("d", NOT_SENT)]
    assert moves(planned(placed, *bindings)) == ([], [], ["a"])


def test_clusters_that_could_not_be_picked_hold_up_nothing_and_it_is_said() -> None:
    placed = placement(pick_n(5), max_unavailable=1)
    found = planned(placed, *map(binding, "abc"))
    assert moves(found) == ([], ["a"], [])
    most = "at most 1 of 3 clusters may be unavailable (2 of the 5 wanted could not be picked, and count neither way)"
    assert found.why["crp-b-1"].startswith(f"b waits: {most}, and a is being given ")
    stuck = planned(placed, *map(binding, "abc"), dialect=Dialect.kubefleet)
    assert moves(stuck) == ([], [], [])
    assert stuck.why["crp-a-1"].endswith("2 of those wanted could not be picked")


def test_many_that_are_not_available_are_counted_not_listed() -> None:
    stuck = [up_to_date(name, NOT_AVAILABLE) for name in TEN[:5]]
    found = planned(placement(max_unavailable=5), *stuck, *map(binding, TEN[5:]))
    assert found.why["crp-c09-1"].count(BAD) == 3
    assert found.why["crp-c09-1"].endswith("; and 2 more")


def test_one_that_moves_now_is_what_the_others_wait_for() -> None:
    found = planned(placement(), *map(binding, "abc"))
    assert found.why["crp-c-1"].endswith("and a is being given its resources")


# Several bindings of one cluster


@pytest.mark.parametrize("old", [binding("a", deleting=True), unscheduled("a")])
def test_a_cluster_picked_again_waits_until_its_old_binding_is_gone(old: Any) -> None:
    found = planned(placement(pick_n(1)), old, scheduled("a", suffix="2", age=1))
    assert not found.bind
    assert found.why["crp-a-2"] == "a waits: its earlier binding crp-a-1 has to be gone first"


def test_of_two_live_bindings_of_a_cluster_only_the_older_moves() -> None:
    twice = [binding("a", NOT_AVAILABLE), binding("a", NOT_AVAILABLE, suffix="2", age=1)]
    found = planned(placement(max_unavailable="100%"), *twice)
    assert [one.metadata.name for one in found.repoint] == ["crp-a-1"]
    assert "there is another binding of this cluster, crp-a-1" in found.why["crp-a-2"]


def test_two_bindings_of_a_cluster_count_once() -> None:
    twice = [up_to_date("a"), up_to_date("a", suffix="2", age=1)]
    found = planned(placement(pick_n(2), max_unavailable=1), *twice, binding("b"))
    assert moves(found) == ([], ["b"], [])
    found = planned(placement(pick_n(3), max_unavailable=1), *twice, binding("b"), dialect=Dialect.kubefleet)
    assert moves(found) == ([], [], [])


# What users say


def test_a_paused_placement_stands_still_and_says_so() -> None:
    placed = placement(pick_n(4), annotations={PAUSED: "true"}, max_unavailable="100%")
    bindings = [binding("a", NOT_AVAILABLE), scheduled("b"), unscheduled("c", NOT_AVAILABLE), up_to_date("d")]
    found = planned(placed, *bindings)
    assert moves(found) == ([], [], [])
    assert sorted(found.why) == ["crp-a-1", "crp-b-1", "crp-c-1"]
    assert all("waits: the placement is paused" in why or "removed: the placement" in why for why in found.why.values())


@pytest.mark.parametrize("value", ["false", "", "True "])
def test_only_true_pauses(value: str) -> None:
    assert moves(planned(placement(annotations={PAUSED: value}), binding("a"))) == ([], ["a"], [])


def test_resources_that_do_not_exist_stop_everything_and_it_is_said() -> None:
    found = planned(placement(), binding("a"), scheduled("b"), wanted=Wanted(problem="there is no 7"))
    assert moves(found) == ([], [], [])
    assert found.why == {"crp-a-1": "a waits: there is no 7", "crp-b-1": "b waits: there is no 7"}


def test_going_back_reaches_the_broken_cluster_at_once_and_the_others_not_at_all() -> None:
    found = planned(
        placement(max_unavailable=1),
        up_to_date("a", NOT_AVAILABLE),
        binding("b"),
        binding("c"),
        wanted=Wanted("crp-0-snapshot"),
    )
    assert moves(found) == ([], ["a"], [])
    assert not found.why


def test_before_anything_is_selected_nothing_moves_and_nothing_is_said() -> None:
    found = planned(placement(), scheduled("a"), wanted=Wanted())
    assert (moves(found), found.why) == (([], [], []), {})


def test_a_strategy_that_makes_no_sense_stops_the_placement_and_names_the_field() -> None:
    found = planned(placement(max_unavailable="some"), binding("a"), up_to_date("b"))
    assert moves(found) == ([], [], [])
    assert found.why["crp-a-1"].startswith("a waits: spec.strategy.rollingUpdate.maxUnavailable: 'some' is neither")
    assert "crp-b-1" not in found.why


def test_an_external_strategy_is_left_to_staged_runs() -> None:
    placed = placement(strategy=RolloutStrategy(type=RolloutStrategyType.external))
    found = planned(placed, binding("a"), scheduled("b"), unscheduled("c"))
    assert (moves(found), found.why) == (([], [], []), {})


def test_a_first_placement_is_throttled_where_a_user_asks_for_it() -> None:
    """Defect #19."""
    placed = placement(annotations={THROTTLE_FIRST: "true"}, max_unavailable=2)
    found = planned(placed, *map(scheduled, "abcde"))
    assert moves(found) == (["a", "b"], [], [])
    later = planned(placed, up_to_date("a"), up_to_date("b", NOT_AVAILABLE), *map(scheduled, "cde"))
    assert moves(later) == (["c"], [], [])
    assert "clusters are added 2 at a time, and b is not available: " + BAD in later.why["crp-d-1"]


# What the kernel is given


def test_nobody_looks_again_where_nobody_waits() -> None:
    proving = up_to_date("a", UNTRACKABLE, since=10)
    assert planned(placement(pick_n(1)), proving).look_again is None


def test_the_first_that_time_alone_proves_is_looked_at() -> None:
    bindings = [
        up_to_date("a", UNTRACKABLE, since=10),
        up_to_date("b", UNTRACKABLE, since=30),
        binding("c"),
        binding("d"),
    ]
    found = planned(placement(pick_n(4), max_unavailable=1, unavailable_period_seconds=60), *bindings)
    assert (clusters(found.repoint), found.look_again) == ([], 30)


def test_in_the_kubefleet_dialect_one_is_added_at_a_time_where_none_may_be_unavailable() -> None:
    placed = placement(pick_n(2), {THROTTLE_FIRST: "true"}, max_unavailable=0, max_surge=0)
    found = planned(placed, scheduled("a"), scheduled("b"), dialect=Dialect.kubefleet)
    assert moves(found) == (["a"], [], [])


def test_in_the_kubefleet_dialect_only_what_cannot_be_tracked_costs_as_if_it_were_available() -> None:
    placed = placement(pick_n(3), max_unavailable=1)
    others = [binding("b"), binding("c")]
    for said, moved in ((IN_PROGRESS, ["a"]), (UNTRACKABLE, [])):
        found = planned(placed, binding("a", said, since=0), *others, dialect=Dialect.kubefleet)
        assert clusters(found.repoint) == moved


def test_a_cluster_that_leaves_the_fleet_and_has_what_is_wanted_waits_for_nothing() -> None:
    assert planned(placement(pick_n(1)), up_to_date("a"), parting={"a"}).waits == {}


def test_a_cluster_that_leaves_the_fleet_waits_for_that_and_not_for_those_that_are_added() -> None:
    found = planned(placement(pick_n(1), max_surge=1), scheduled("a"), unscheduled("z"), parting={"z"})
    assert {name: wait.code for name, wait in found.waits.items()} == {"crp-z-1": HoldCode.leaving_fleet}


def test_clusters_that_do_not_work_are_changed_first() -> None:
    bindings = [binding("a"), binding("b"), binding("c"), binding("d", NOT_AVAILABLE)]
    found = planned(placement(pick_n(4), max_unavailable=2), *bindings)
    assert clusters(found.repoint) == ["d", "a"]

"""Broken pods: clusters that are to have fewer pods, or others, and some of theirs do not work."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kedge.plan.aligning.aim import Aim, AlignCode
from kedge.plan.aligning.alignment import align
from kedge.plan.aligning.ledger import Member, Report, Spec

ONE_OF_THREE = Aim(3, 1, is_partitioned=True)


def given(aim: Aim, *members: Member) -> dict[str, tuple[str, int, int]]:
    """By cluster: the template, how many replicas, and how many of those are kept back."""
    found = align(aim, members)
    return {name: (spec.template, spec.replicas, spec.partition) for name, spec in found.specs.items()}


def test_a_cloneset_that_is_to_leave_gives_up_the_pod_that_does_not_work_and_keeps_the_old_one() -> None:
    growing = Member("a", 3, "v2", (Spec(2, "v1", 1, 1),), Report(2, 1, 1, 1, 1, is_back=True))
    specs = Spec(1, "v1", 2, 1), Spec(3, "bad", 2, 1, 0, 1)
    leaving = Member("b", 0, "v2", specs, Report(3, 2, 1, 1, 0))
    assert given(ONE_OF_THREE, growing, leaving) == {"b": ("bad", 1, 1)}
    whole = Member("b", 0, "v2", specs, Report(3, 2, 1, 2, 1))
    assert given(Aim(3, 0, 1, is_partitioned=True), growing, whole) == {"a": ("v2", 2, 1)}


def test_a_statefulset_that_is_to_leave_gives_up_the_last_pod_if_that_is_the_one_that_does_not_work() -> None:
    """It was replaced, and not proven: it holds the budget, for which all others wait."""
    growing = Member("a", 4, "v2", (Spec(2, "v1", 2, 1),), Report(2, 2, 2, 2), is_ordered=True)
    specs = Spec(1, "v1", 2, 1), Spec(3, "v2", 2, 1, 0, 1)

    def leaving(report: Report) -> Member:
        return Member("b", 0, "v2", specs, report, is_ordered=True)

    aim = Aim(4, 1, is_partitioned=True)
    assert given(aim, growing, leaving(Report(3, 2, 1, 1))) == {"b": ("v2", 1, 1)}
    assert given(aim, growing, leaving(Report(3, 2, 1, 2))) == {"a": ("v2", 2, 1)}


def test_a_cluster_in_which_nothing_was_ever_created_gets_all_its_pods() -> None:
    """What it was granted first can never be written any more; what it gets now takes the place of nothing."""
    empty = Member("a", 4, "v2", (Spec(1, "v1", 4, 1),), superseded=1)
    done = Member("b", 3, "v2", (Spec(2, "v2", 3, 0, 1),), Report(2, 3, 3, 3, 3, is_back=True))
    found = align(Aim(7, 2, 1, is_partitioned=True), [empty, done])
    assert {name: (spec.template, spec.replicas) for name, spec in found.specs.items()} == {"a": ("v2", 4)}


@pytest.mark.parametrize(("wanted", "replicas"), [(7, 5), (4, 4)])
def test_a_deployment_that_was_never_created_gets_the_pods_that_there_is_room_for(wanted: int, replicas: int) -> None:
    """Also if that is more than it was granted first."""
    empty = Member("a", wanted, "v2", (Spec(1, "v1", 4, 0, 1),), superseded=1)
    leaving = Member("b", 7 - wanted, "v2", (Spec(2, "v1", 3, 0, 1),), Report(2, 3, 3, 3))
    assert given(Aim(7, 0, 2), empty, leaving)["a"] == ("v2", replicas, 0)


@pytest.mark.parametrize("is_ordered", [False, True])
def test_a_cloneset_that_went_back_gives_up_the_pod_more_than_it_is_asked_for(*, is_ordered: bool) -> None:
    """It counts the pods it kept back as well, and waits for one of another template that never works."""
    specs = Spec(5, "bad", 2, 0, 1, 1), Spec(6, "v1", 2, 0, 1, 1)
    surplus = Member("a", 0, "v2", specs, Report(6, 3, 2, 2, 2, is_back=True), is_ordered=is_ordered)
    growing = Member("b", 6, "v2", (Spec(2, "v1", 4, 1),), Report(2, 4, 4, 4, 4, is_back=True), is_ordered=is_ordered)
    expected = {} if is_ordered else {"a": ("v1", 2, 0)}
    assert given(Aim(6, 0, 1, is_partitioned=True), surplus, growing) == expected
    settled = Member("a", 0, "v2", specs, Report(6, 2, 1, 2, 1), is_ordered=is_ordered)
    assert "a" not in given(Aim(6, 0, 1, is_partitioned=True), settled, growing)


def test_the_last_pod_that_is_reported_as_broken_is_kept_until_others_are_there() -> None:
    """It is on its way out, and comes back; in the other cluster none is known of."""
    aim = Aim(2, 1, is_partitioned=True)
    specs = Spec(1, "v1", 2, 1), Spec(3, "v1", 1, 1)
    last = Member("a", 0, "v2", specs, Report(3, 1, 0, 0, is_back=True), is_ordered=True)
    unheard = Member("b", 2, "v2", (Spec(2, "v1", 2, 1),), is_reachable=False, is_ordered=True)
    assert given(aim, last, unheard) == {}
    others = Member("b", 2, "v2", (Spec(2, "v1", 2, 1),), Report(2, 2, 2, 2), is_reachable=False, is_ordered=True)
    assert "a" in given(aim, last, others)


def test_a_fix_reaches_a_bad_release_while_unknown_pods_may_still_be_on_their_way_out() -> None:
    """Those are no pods that do not work, for which the fix would take more away at once than may be."""
    aim, report = Aim(3, 2), Report(2, 4, 2, 2)
    specs = Spec(1, "?", 3, 3, 3), Spec(2, "bad", 3, 1)
    found = align(aim, [Member("a", 3, "v2", specs, report)])
    assert {name: (spec.template, spec.unavailable) for name, spec in found.specs.items()} == {"a": ("v2", 1)}
    assert found.waiting.get("a") is None
    held_back = align(Aim(3, 2, is_paused=True), [Member("a", 3, "v2", specs, report)])
    assert held_back.waiting["a"].code == AlignCode.paused


def test_a_cluster_is_scaled_with_what_it_has_if_a_later_grant_can_never_be_written() -> None:
    specs = Spec(1, "v1", 3, 1), Spec(3, "lost", 3, 0, 2, 1)
    paused = Aim(3, 0, is_partitioned=True, is_paused=True)
    there = Member("a", 1, "v3", specs, Report(1, 3, 3, 3, 3, is_back=True), superseded=1)
    other = Member("b", 2, "v3", (Spec(2, "v1", 2, 1),), Report(2, 2, 2, 2, 2, is_back=True))
    assert given(paused, there, other) == {"a": ("v1", 1, 0)}


NO_ROOM = Member("b", 0, "v2", (Spec(1, "v1", 3, 1),), Report(1, 3, 3, 3, 3, is_back=True))


def test_a_pod_that_is_added_has_the_wanted_template_if_nothing_may_be_replaced() -> None:
    """Those that are kept back are of a release that does not work: one more of them helps nobody."""
    specs = Spec(6, "bad", 3, 0, 2), Spec(7, "v2", 2, 0, 1, 1)
    begun = Member("a", 4, "v2", specs, Report(7, 2, 1, 1, 1))
    assert given(Aim(4, 0, 2, is_partitioned=True), begun, NO_ROOM) == {"a": ("v2", 3, 1)}


@pytest.mark.parametrize(("surge", "expected"), [(2, {"a": ("v2", 2, 0)}), (1, {})])
def test_a_pod_that_does_not_work_makes_room_for_one_more_of_the_wanted_template(
    surge: int, expected: dict[str, tuple[str, int, int]]
) -> None:
    """But for no more of them, not proven, than may be extra."""
    specs = Spec(7, "v2", 2, 0, 1, 1), Spec(8, "v2", 3, 0, 1, 2)
    begun = Member("a", 4, "v2", specs, Report(8, 3, 1, 0, 0))
    assert given(Aim(4, 0, surge, is_partitioned=True), begun, NO_ROOM) == expected


def test_what_is_replaced_by_more_pods_alone_takes_nothing_back() -> None:
    """One pod of the other cluster broke meanwhile, and so none more may be taken away here."""
    specs = Spec(6, "v1", 4, 1), Spec(7, "v2", 4, 2, 1, 1)
    begun = Member("a", 4, "v2", specs, Report(7, 4, 3, 2, 1))
    broken = Member("b", 1, "v2", (Spec(3, "v1", 1, 1),), Report(3, 1, 1, 0, 0, is_back=True))
    found = given(Aim(5, 2, 1, is_partitioned=True), begun, broken)
    assert "a" not in found or found["a"][2] <= 1


@pytest.mark.parametrize(("available", "expected"), [(0, {}), (1, {"a": ("v2", 4, 2)})])
def test_a_statefulset_takes_the_next_pod_only_if_enough_are_left_when_the_one_before_works(
    available: int, expected: dict[str, tuple[str, int, int]]
) -> None:
    specs = Spec(27, "bad", 4, 1, 0, 3), Spec(28, "v2", 4, 1, 0, 3)
    begun = Member("a", 4, "v2", specs, Report(28, 4, 1, 3), is_ordered=True)
    other = Member("b", 1, "v2", (Spec(26, "v1", 1, 1),), Report(26, 1, 1, available), is_ordered=True)
    assert given(Aim(5, 1, is_partitioned=True), begun, other) == expected


def test_a_pod_that_worked_and_is_reported_as_broken_is_not_given_up_while_another_is_replaced() -> None:
    """It may work again by the time that one is taken away."""
    moving = Spec(3, "v1", 1, 1), Spec(6, "v2", 1, 1)
    replaced = Member("a", 2, "v2", moving, Report(3, 1, 1, 1, is_back=True), is_ordered=True)
    specs = Spec(4, "v0", 1, 1), Spec(5, "v1", 1, 1)
    broken = Member("b", 0, "v2", specs, Report(5, 1, 1, 0, is_back=True), is_ordered=True)
    others = Member("c", 3, "v2", (Spec(1, "v1", 3, 1),), Report(1, 3, 3, 2, is_back=True), is_ordered=True)
    aim = Aim(5, 1, is_partitioned=True)
    assert given(aim, replaced, broken, others) == {}
    bad = Member("b", 0, "v2", specs, Report(5, 1, 1, 0), is_ordered=True)
    assert given(aim, replaced, bad, others) == {"b": ("v1", 0, 0)}


def test_if_nobody_gives_anything_back_pods_go_first_where_none_works() -> None:
    """Where others work, those that do not are likelier to be only starting."""
    starting = Member("a", 4, "v2", (Spec(1, "v1", 4, 0, 1),), Report(1, 4, 4, 3))
    bad = Member("b", 2, "v2", (Spec(2, "bad", 2, 1),), Report(2, 2, 2, 0))
    found = align(Aim(6, 1), [starting, bad])
    assert {name: spec.template for name, spec in found.specs.items()} == {"b": "v2"}


def test_a_cluster_alone_gives_up_what_does_not_work_if_it_is_to_have_fewer_pods() -> None:
    specs = Spec(10, "bad", 8, 2, 2, 4), Spec(11, "bad", 3, 2, 2)
    alone = Member("a", 1, "v2", specs, Report(11, 3, 3, 0, is_back=True))
    assert given(Aim(1, 0, 1, is_partitioned=True), alone)["a"][1] == 1


def test_nothing_is_given_up_while_pods_may_only_be_starting() -> None:
    """Replicas are to move, and two pods that replaced broken ones are new: the old ones, which work, would go."""
    specs = Spec(5, "v1", 4, 0, 1), Spec(6, "v2", 4, 0, 2, 2)
    leaving = Member("a", 0, "v2", specs, Report(6, 4, 2, 2))
    growing = Member("b", 7, "v2", (Spec(7, "v1", 5, 1),), Report(7, 5, 5, 3, 3, is_back=True))
    aim = Aim(7, 0, 2, is_partitioned=True)
    assert given(aim, leaving, growing) == {"a": ("v2", 2, 0)}
    for members in ([replace(leaving, is_starting=True), growing], [leaving, replace(growing, is_starting=True)]):
        assert given(aim, *members) == {}
    whole = replace(growing, report=Report(7, 5, 5, 5, 5, is_back=True), is_starting=True)
    assert given(aim, leaving, whole) == {"a": ("v2", 2, 0)}  # it has all its pods


def test_a_cloneset_that_is_scaled_down_keeps_all_pods_of_its_template_that_work() -> None:
    specs = Spec(10, "bad", 5, 2, 0, 2), Spec(12, "v1", 5, 2, 0, 3)
    surplus = Member("a", 1, "v1", specs, Report(12, 6, 3, 3, 3, is_back=True))
    growing = Member("b", 7, "v1", (Spec(11, "v1", 4, 1),), Report(11, 4, 4, 4, 4, is_back=True))
    assert given(Aim(8, 1, 2, is_partitioned=True), surplus, growing)["a"] == ("v1", 3, 0)


def test_a_statefulset_goes_on_while_pods_do_not_work_elsewhere_and_none_that_does_is_taken() -> None:
    """One of three works. If it is the one that was replaced, the next one that goes does not work either."""
    specs = Spec(17, "bad", 3, 1, 0, 2), Spec(18, "v2", 3, 1, 0, 2)
    begun = Member("a", 5, "v2", specs, Report(18, 3, 1, 1), is_ordered=True)
    bad = Member("b", 4, "v2", (Spec(16, "bad", 4, 1),), Report(16, 4, 4, 0, is_back=True), is_ordered=True)
    assert given(Aim(7, 1, is_partitioned=True), begun, bad) == {"a": ("v2", 3, 1)}


def test_a_statefulset_goes_on_if_there_are_too_few_pods_also_when_the_one_before_works() -> None:
    """One of two works: if it is the new one, the other never will. In the other cluster none does."""
    specs = Spec(8, "bad", 2, 1), Spec(11, "v2", 2, 1, 0, 1)
    begun = Member("a", 2, "v2", specs, Report(11, 2, 1, 1), is_ordered=True)
    bad = Member("b", 2, "v2", (Spec(10, "bad", 2, 1),), Report(10, 2, 2, 0, is_back=True), is_ordered=True)
    assert given(Aim(4, 1, is_partitioned=True), begun, bad) == {"a": ("v2", 2, 0)}


def test_a_fix_goes_on_with_what_a_bad_release_holds_if_it_cannot_have_more() -> None:
    """No pod works anywhere; with one more that may be taken away none would be left if all of them did."""
    bad = Member("a", 1, "v2", (Spec(5, "bad", 1, 1),), Report(5, 1, 1, 0))
    begun = Member("b", 2, "v2", (Spec(7, "v1", 2, 1), Spec(8, "bad", 2, 1)), Report(8, 2, 1, 0))
    found = align(Aim(3, 2), [bad, begun]).specs
    assert {name: (spec.template, spec.unavailable) for name, spec in found.items()} == {"b": ("v2", 1)}


@pytest.mark.parametrize(("is_paused", "expected"), [(False, {"a": (0, 1)}), (True, {})])
def test_nothing_extra_is_granted_while_the_workload_is_paused(
    *, is_paused: bool, expected: dict[str, tuple[int, int]]
) -> None:
    specs = Spec(1, "v1", 2, 1), Spec(4, "bad", 3, 1, 0, 2)
    smaller = Member("a", 2, "v2", specs, Report(4, 3, 1, 2))
    other = Member("b", 2, "v2", (Spec(2, "v1", 2, 1),), Report(2, 2, 2, 2, 2, is_back=True))
    found = align(Aim(4, 0, is_partitioned=True, is_paused=is_paused), [smaller, other]).specs
    assert {name: (spec.unavailable, spec.surge) for name, spec in found.items()} == expected


@pytest.mark.parametrize(("available", "unavailable"), [(0, 0), (1, 0), (2, 1)])
def test_a_fix_takes_no_pod_that_works_while_others_do_not_if_it_can_be_extra(available: int, unavailable: int) -> None:
    """The cluster holds one of each since before. Its broken pods are replaced by others that work, and then its old
    ones would go, though those elsewhere are needed as well."""
    specs = Spec(5, "bad", 4, 1, 1), Spec(6, "bad", 4, 1, 1)
    fixed = Member("a", 4, "v2", specs, Report(6, 5, 2, 3), has_sets=True)
    other = Member("b", 2, "v2", (Spec(4, "bad", 2, 0, 1),), Report(4, 2, 2, available), has_sets=True)
    found = align(Aim(6, 1, 2), [fixed, other]).specs["a"]
    assert (found.template, found.replicas, found.unavailable, found.surge) == ("v2", 4, unavailable, 2)


@pytest.mark.parametrize(("available", "template"), [(0, "v1"), (2, "v2")])
def test_a_cluster_that_grows_while_others_do_not_work_begins_with_what_works_there(
    available: int, template: str
) -> None:
    """With nothing extra, the next release would take one of its pods away as soon as the new one works."""
    growing = Member("a", 3, "v2", (Spec(6, "v1", 2, 0, 1),), Report(6, 2, 2, 2), has_sets=True)
    broken = Member("b", 2, "v2", (Spec(5, "bad", 2, 1),), Report(5, 2, 2, available), has_sets=True)
    others = Member("c", 2, "v2", (Spec(4, "v2", 2, 0, 1),), Report(4, 2, 2, 2), has_sets=True)
    assert given(Aim(7, 1), growing, broken, others)["a"][:2] == (template, 3)

"""Bounds: how few and how many pods one cluster may come to, kind by kind."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace

from kedge.plan.aligning.aim import Aim
from kedge.plan.aligning.bounds import Bounds, bounds, bounds_with
from kedge.plan.aligning.headroom import Headroom
from kedge.plan.aligning.ledger import UNKNOWN, Member, Report, Spec


def ordered(report: Report, *specs: Spec, wanted: int = 3) -> Member:
    """A cluster whose pods have an order, as those of a StatefulSet."""
    return Member("a", wanted, "v2", specs, report, is_ordered=True)


@pytest.mark.parametrize(
    ("report", "fewest"),
    [
        (Report(1, pods=3, updated=3, available=3), 2),  # all are available: it takes one
        (Report(1, pods=3, updated=3, available=2), 1),  # the last may be one that works: it is taken all the same
        (Report(1, pods=3, updated=1, available=2), 1),  # which one is not available may have changed since
    ],
)
def test_a_kind_with_an_order_takes_the_next_pod_whether_or_not_others_are_available(
    report: Report, fewest: int
) -> None:
    member = ordered(report, Spec(1, "v1", 3, 1))
    assert bounds(member, (Spec(2, "v2", 3, 1),)).fewest == fewest


def test_a_kind_with_an_order_waits_for_the_pods_of_its_own_template() -> None:
    member = ordered(Report(2, pods=3, updated=1, available=2), Spec(2, "v2", 3, 1))
    assert bounds(member).fewest == 2


def test_broken_pods_of_a_release_that_was_stopped_are_the_last_ones() -> None:
    stopped = ordered(Report(2, pods=3, updated=1, available=2), Spec(2, "bad", 3, 1, partition=2))
    assert bounds(stopped, (Spec(3, "v2", 3, 1),)).fewest == 2
    assert bounds(stopped, (Spec(3, "bad", 2, 1, partition=2),)).fewest == 2  # to remove it costs nothing
    going_on = ordered(Report(2, pods=3, updated=1, available=2), Spec(2, "bad", 3, 1))
    assert bounds(going_on, (Spec(3, "v2", 3, 1),)).fewest == 1


@pytest.mark.parametrize(
    ("available", "fewest"),
    [
        (3, 2),  # one of the last works for sure: it may be the one that goes next
        (2, 2),  # both that were replaced have broken, as far as anybody can tell: a fix costs nothing
        (1, 1),
    ],
)
def test_as_many_as_were_replaced_and_do_not_work_are_the_last_ones(available: int, fewest: int) -> None:
    stopped = ordered(Report(2, pods=4, updated=2, available=available), Spec(2, "bad", 4, 1, partition=2))
    assert bounds(stopped, (Spec(3, "v2", 4, 1, partition=3),)).fewest == fewest


@pytest.mark.parametrize(
    ("available", "partition", "fewest"),
    [
        (3, 0, 1),  # it may be replacing another one just now, and does not wait for that
        (2, 0, 1),  # that is the one it waits for
        (3, 2, 2),  # there are no others to replace
    ],
)
def test_a_kind_with_an_order_does_not_wait_for_what_another_template_has_begun(
    available: int, partition: int, fewest: int
) -> None:
    begun = ordered(Report(1, pods=3, updated=1, available=available), Spec(1, "v1", 3, 1, partition=partition))
    found = bounds(begun, (Spec(2, "v2", 3, 1, partition=2),))
    assert (found.fewest, found.unavailable) == (fewest, 1)


def test_a_kind_with_an_order_is_scaled_down_from_the_end_whether_or_not_others_work() -> None:
    member = ordered(Report(1, pods=3, updated=3, available=2), Spec(1, "v1", 3, 1))
    assert bounds(member, (Spec(2, "v1", 2, 1),)).fewest == 1
    unordered = Member("a", 3, "v1", (Spec(1, "v1", 3, 1),), Report(1, pods=3, updated=3, available=2))
    assert bounds(unordered, (Spec(2, "v1", 2, 1),)).fewest == 2


@pytest.mark.parametrize(
    ("pods", "updated", "fewest"),
    [
        (2, 0, 1),  # by the spec before, a pod may be on its way out that is still counted
        (3, 2, 1),  # the old one may be
        (3, 3, 2),  # it has got to what it is asked for
    ],
)
def test_a_spec_that_asks_for_more_pods_proves_nothing_before_they_are_there(
    pods: int, updated: int, fewest: int
) -> None:
    specs = Spec(5, "v2", 2, 1), Spec(6, "v2", 3, 1)
    member = Member("a", 4, "v2", specs, Report(6, pods=pods, updated=updated, available=2))
    assert bounds(member).fewest == fewest


def test_a_pod_that_is_asked_for_and_not_there_yet_is_none_that_may_work() -> None:
    member = Member("a", 5, "v1", (Spec(1, "v1", 4, 1),), Report(1, pods=4, updated=4, available=2))
    assert bounds(member, (Spec(2, "v1", 5, 1),)).steady == 4


def test_pods_that_were_reported_as_broken_may_work_by_now() -> None:
    member = Member("a", 4, "v2", (Spec(1, "v1", 4, 0, 1),), Report(1, pods=4, updated=4, available=0))
    found = bounds(member, (Spec(2, "v2", 3, 0, 1),))
    assert (found.fewest, found.steady) == (0, 3)


def test_bounds_of_clusters_are_added_up_and_taken_away_one_by_one() -> None:
    one, other = Bounds(1, 2, 3, 4, 5, 6, 7), Bounds(10, 20, 30, 40, 50, 60, 70)
    assert one + other == Bounds(11, 22, 33, 44, 55, 66, 77)
    assert other - one == Bounds(9, 18, 27, 36, 45, 54, 63)


V1 = Spec(1, "v1", 4, 1)
AT_REST = Report(1, pods=4, updated=4, available=4)


@pytest.mark.parametrize(
    ("report", "specs", "also", "expected"),
    [
        pytest.param(Report(0, pods=3), [], [], Bounds(most=3), id="nothing was written"),
        pytest.param(AT_REST, [V1], [], Bounds(0, 0, 4, 4, 4, 0), id="at rest"),
        pytest.param(AT_REST, [V1], [Spec(2, "v2", 4, 2, 1)], Bounds(2, 1, 2, 2, 5, 4, 3), id="about to roll"),
        pytest.param(AT_REST, [V1, Spec(2, "v2", 4, 2, 1)], [], Bounds(2, 1, 2, 2, 5, 4, 3), id="rolls, or not yet"),
        pytest.param(AT_REST, [V1], [Spec(2, "v2", 4, 9, 9)], Bounds(4, 4, 0, 0, 8, 4, 8), id="no more than it has"),
        pytest.param(
            AT_REST, [V1], [Spec(2, "v2", 4, 2, 0, 3)], Bounds(1, 0, 3, 3, 4, 1, 1), id="as the partition says"
        ),
        pytest.param(AT_REST, [V1], [Spec(2, "v1", 2, 1)], Bounds(0, 0, 2, 2, 4, 0), id="about to scale down"),
        pytest.param(
            Report(2, pods=5, updated=3, available=4),
            [Spec(2, "v2", 4, 2, 1)],
            [],
            Bounds(2, 1, 2, 2, 5, 4, 3),
            id="two of three new pods are proven",
        ),
        pytest.param(
            Report(2, pods=4, updated=3, available=4, updated_available=0),
            [Spec(2, "v2", 4, 4)],
            [],
            Bounds(4, 0, 3, 0, 4, 4, 4),
            id="only one old pod is left to take",
        ),
        pytest.param(
            Report(2, pods=4, updated=3, available=4, updated_available=0),
            [Spec(2, "v2", 4, 4)],
            [Spec(3, "v2", 3, 4)],
            Bounds(4, 0, 2, 0, 4, 4, 4),
            id="and one goes to scale down",
        ),
        pytest.param(
            Report(2, pods=4, updated=1, available=3, updated_available=0),
            [Spec(2, "v2", 4, 1, 0, 3)],
            [],
            Bounds(1, 0, 3, 4, 4, 1, 1),
            id="none is left to replace, and the one that was is not proven",
        ),
        pytest.param(
            Report(2, pods=4, updated=1, available=4),
            [Spec(2, "v2", 4, 1, 0, 3)],
            [Spec(3, "v2", 4, 0, 9, 1)],
            Bounds(0, 2, 4, 4, 6, 3, 2),
            id="extra pods only for those that are replaced",
        ),
        pytest.param(
            Report(2, pods=4, updated=3, available=4),
            [Spec(2, "v2", 4, 1, 0, 2)],
            [],
            Bounds(0, 0, 4, 4, 4, 3),
            id="more new pods than the partition lets through now",
        ),
        pytest.param(
            Report(0, pods=4, updated=4, available=4),
            [Spec(2, "v2", 4, 1), Spec(3, "v2", 4, 3)],
            [],
            Bounds(3, 0, 1, 1, 4, 4, 3),
            id="updated to what is not known",
        ),
        pytest.param(
            Report(2, pods=4, updated=4, available=4),
            [Spec(2, "v2", 4, 1), Spec(3, "v3", 4, 1)],
            [Spec(4, "v2", 4, 0, 9)],
            Bounds(1, 4, 3, 3, 8, 4, 4),
            id="back to what it had, and others may be there meanwhile",
        ),
        pytest.param(
            AT_REST,
            [V1, Spec(2, "v0", 4, 0, 3)],
            [Spec(3, "v2", 4, 0, 9)],
            Bounds(0, 7, 4, 4, 11, 4, 7),
            id="the extra pods of the one before are replaced, too",
        ),
    ],
)
def test_what_a_cluster_may_come_to(report: Report, specs: list[Spec], also: list[Spec], expected: Bounds) -> None:
    assert bounds(Member("a", 4, "v2", tuple(specs), report), also) == expected


@pytest.mark.parametrize(
    ("report", "specs", "updated"),
    [
        pytest.param(Report(1), [Spec(1, "v1", 0), Spec(2, "v2", 4, 1, 0, 2)], 4, id="it had no pods"),
        pytest.param(
            Report(1, pods=1, updated=1, is_back=True),
            [Spec(1, "v1", 1), Spec(2, "v2", 4, 1, 0, 2)],
            2,
            id="it had one",
        ),
        pytest.param(
            Report(1, pods=1, updated=1), [Spec(1, "v1", 1), Spec(2, "v2", 4, 1, 0, 2)], 3, id="it may go back to v2"
        ),
        pytest.param(Report(2, pods=2, updated=2), [Spec(2, "v2", 4, 1, 0, 3)], 4, id="all are new ones"),
        pytest.param(Report(2, pods=2, updated=1), [Spec(2, "v2", 4, 1, 0, 3)], 1, id="one is an old one"),
        pytest.param(
            Report(2, pods=2, updated=1, is_back=True),
            [Spec(2, "v2", 4, 1, 0, 3)],
            3,
            id="those that are added are new",
        ),
        pytest.param(
            Report(2, pods=4, updated=2), [Spec(2, "v2", 4, 1), Spec(3, "v2", 6, 1, 0, 3)], 6, id="all may be new ones"
        ),
        pytest.param(
            Report(2, pods=4, updated=2), [Spec(2, "v2", 4, 1, 0, 2), Spec(3, "v2", 6, 1, 0, 3)], 3, id="old ones stay"
        ),
        pytest.param(
            AT_REST, [V1, Spec(2, "v2", 4, 1, 0, 3), Spec(3, "v2", 4, 1, 0, 2)], 4, id="it may have begun before"
        ),
    ],
)
def test_a_cluster_that_may_have_no_old_pods_creates_new_ones_whatever_its_partition(
    report: Report, specs: list[Spec], updated: int
) -> None:
    assert bounds(Member("a", 4, "v2", tuple(specs), report)).updated == updated


def test_a_kind_with_an_order_goes_on_when_the_pods_of_its_own_template_are_available() -> None:
    member = ordered(Report(2, pods=3, updated=1, available=3), Spec(2, "v2", 3, 1))
    assert bounds(member).fewest == 2


def test_which_pods_are_the_last_ones_is_not_known_after_another_release() -> None:
    specs = Spec(2, "bad", 3, 1, partition=2), Spec(3, "v2", 3, 1)
    member = ordered(Report(2, pods=3, updated=1, available=2), *specs)
    assert bounds(member).fewest == 2
    assert bounds(member, (Spec(4, "v3", 3, 1),)).fewest == 0  # the one before may have begun with another pod


def test_a_pod_that_was_replaced_counts_as_taken_until_it_is_proven_also_if_no_more_follow() -> None:
    specs = Spec(2, "v1", 2, 1), Spec(4, "v2", 2, 1, partition=1)
    assert bounds(ordered(Report(4, pods=2, updated=1, available=1), *specs)).steady == 1
    assert bounds(ordered(Report(4, pods=2, updated=1, available=2), *specs)).steady == 2
    all_replaced = Spec(2, "v1", 2, 1), Spec(4, "v2", 2, 1)
    assert bounds(ordered(Report(4, pods=2, updated=2, available=1), *all_replaced)).steady == 1


def test_what_was_granted_and_gets_to_new_pods_alone_takes_none_that_is_there() -> None:
    """By their order the last ones go first, and those are to be created."""
    specs = Spec(4, "v1", 2, 1, partition=1), Spec(5, "bad", 4, 1, partition=3)
    member = Member("a", 4, "v2", specs, Report(4, 2, 1, 2), is_ordered=True, superseded=1)
    assert bounds(member, (replace(specs[0], seq=6),)).fewest == 2


@pytest.mark.parametrize("is_ordered", [True, False])
@pytest.mark.parametrize(
    ("wanted", "available", "held"),
    [
        ("v2", 0, 2),  # neither is proven: nobody else may lose one for the same template
        ("v2", 1, 1),
        ("v2", 2, 0),
        ("v3", 0, 0),  # given up: the next template needs the budget
    ],
)
def test_what_was_replaced_by_the_wanted_template_holds_the_budget_until_it_is_proven(
    wanted: str, available: int, held: int, *, is_ordered: bool
) -> None:
    specs = Spec(1, "v1", 2, 1), Spec(2, "v2", 2, 2)
    member = Member("a", 2, wanted, specs, Report(2, 2, 2, available), is_ordered=is_ordered)
    assert bounds(member).unavailable == held


def test_pods_that_are_only_starting_were_not_taken_from_anybody() -> None:
    assert bounds(ordered(Report(1, pods=2, updated=2, available=0), Spec(1, "v2", 2, 1))).steady == 2


def test_to_remove_pods_that_were_replaced_and_do_not_work_costs_nothing() -> None:
    stopped = ordered(Report(2, pods=3, updated=1, available=2), Spec(2, "bad", 3, 1, partition=2))
    assert bounds(stopped).steady == 2
    assert bounds(stopped, (Spec(3, "bad", 2, 1, partition=2),)).steady == 2
    assert bounds(stopped, (Spec(3, "bad", 1, 1, partition=2),)).steady == 1


@pytest.mark.parametrize(
    ("report", "fewest"),
    [
        (Report(3, pods=3, updated=2, available=3, is_back=True), 2),  # the last one may be on its way out
        (Report(3, pods=3, updated=2, available=2, is_back=True), 1),  # and another one not available
        (Report(3, pods=3, updated=3, available=3, is_back=True), 3),  # all of them have come back
        (Report(3, pods=3, updated=1, available=3), 3),  # no other one has the template: this is the last one
    ],
)
def test_pods_that_were_kept_back_prove_nothing_of_those_that_go_back_to_their_template(
    report: Report, fewest: int
) -> None:
    found = bounds(ordered(report, Spec(2, "v3", 3, 1, partition=2), Spec(3, "v2", 3, 1, partition=2)))
    assert (found.fewest, found.steady) == (fewest, 3 if fewest == 3 else 2)


def test_of_pods_that_go_back_those_are_proven_that_are_more_than_were_kept_back() -> None:
    specs = Spec(2, "v3", 4, 1, partition=1), Spec(3, "v2", 4, 1, partition=1)
    assert bounds(ordered(Report(3, pods=4, updated=3, available=4, is_back=True), *specs)).fewest == 3
    kept = Spec(2, "v3", 4, 1, partition=1), Spec(3, "v2", 4, 1, partition=3)
    assert bounds(ordered(Report(3, pods=5, updated=4, available=5, is_back=True), *kept)).fewest == 4


def test_what_is_not_known_may_have_the_wanted_template_and_all_pods_there_may_be() -> None:
    unknown = Spec(7, UNKNOWN, 11, 11, 11)
    member = Member("a", 4, "v2", (unknown, Spec(8, "v1", 4, 1)), Report(3, pods=4, updated=4, available=4))
    assert bounds(member) == Bounds(unavailable=11, surge=4, fewest=0, steady=0, most=15, updated=11, unproven=15)


@pytest.mark.parametrize("is_ordered", [False, True])
def test_a_spec_changes_nothing_of_what_those_before_it_may_come_to(*, is_ordered: bool) -> None:
    random = Random(7)
    for _ in range(2_000):
        reported = random.randint(0, 4)
        report = Report(reported, pods := random.randint(0, 5), random.randint(0, pods), random.randint(0, pods))
        specs = [spec_of(random, seq) for seq in range(1, random.randint(1, 5))]
        member = Member("a", random.randint(0, 5), "v2", tuple(specs), report, is_ordered=is_ordered)
        following = spec_of(random, 9)
        assert bounds_with(bounds(member), member, following) == bounds(member, (following,)), member


def spec_of(random: Random, seq: int) -> Spec:
    template, replicas = random.choice(["v1", "v2", UNKNOWN]), random.randint(0, 5)
    return Spec(seq, template, replicas, random.randint(0, 2), random.randint(0, 2), random.randint(0, replicas))


@pytest.mark.parametrize(("replicas", "most"), [(1, 2), (2, 4)])
def test_a_deployment_that_gets_more_replicas_with_a_template_may_make_some_of_the_one_before(
    replicas: int, most: int
) -> None:
    """Its controller scales what is there first: then it has as many to replace."""
    before, rolling = Spec(19, "v1", 1, 1), Spec(20, "v2", replicas, 0, 2)
    member = Member("a", replicas, "v2", (before, rolling), Report(20, 1, 0, 1))
    assert bounds(member).most == most
    granted = Member("a", replicas, "v2", (before,), Report(19, 1, 1, 1))
    assert bounds(granted, (rolling,)).most == most
    ordered = Member("a", replicas, "v2", (before, rolling), Report(20, 1, 0, 1), is_ordered=True)
    assert bounds(ordered).most == replicas + 1


@pytest.mark.parametrize(("partition", "fewest"), [(0, 3), (1, 2)])
def test_a_cloneset_that_keeps_others_back_may_give_up_its_own_pods_beyond_what_is_let_through(
    partition: int, fewest: int
) -> None:
    """It went back to an earlier template, and counts pods of that which it kept back; none of the others works."""
    before = Spec(12, "v1", 5, 2, 0, 2)
    member = Member("a", 1, "v1", (before,), Report(12, 5, 3, 3, 3, is_back=True))
    assert bounds(member, (Spec(14, "v1", 3, 2, 0, partition),)).fewest == fewest


def test_what_an_earlier_spec_may_still_give_up_is_no_proof_for_a_later_one() -> None:
    """The pod too many is of another template, and one of its own goes as soon as that works."""
    specs = Spec(4, "v2", 2, 0, 1, 1), Spec(5, "v1", 2, 0, 1, 1)
    member = Member("a", 2, "v1", specs, Report(5, 3, 2, 2, 2, is_back=True))
    assert bounds(member, (Spec(6, "v1", 2, 1),)).unavailable == 1
    assert bounds(member, (Spec(6, "v1", 2, 0, 1),)).unavailable == 0


@pytest.mark.parametrize(
    ("report", "before", "spec", "expected"),
    [
        # Pods 3 and 4 have it; those that are added come after them.
        (Report(2, 5, 2, 5), Spec(2, "v2", 5, 1, partition=3), Spec(3, "v2", 7, 1, partition=3), 4),
        (Report(2, 5, 2, 5), Spec(2, "v2", 5, 1, partition=3), Spec(3, "v2", 7, 1, partition=4), 4),
        (Report(2, 5, 2, 5), Spec(2, "v2", 5, 1, partition=3), Spec(3, "v2", 7, 1, partition=6), 3),
        (Report(2, 5, 2, 5), Spec(2, "v2", 5, 1, partition=3), Spec(3, "v2", 7, 1, partition=7), 2),
        # Pod 4 has it, and 3 is to get it.
        (Report(2, 5, 1, 5), Spec(2, "v2", 5, 1, partition=3), Spec(3, "v2", 7, 1, partition=6), 3),
        # None has it yet.
        (Report(2, 5, 0, 5), Spec(2, "v2", 5, 1, partition=5), Spec(3, "v2", 7, 1, partition=6), 1),
        # It may be adding pods by what it was asked for before.
        (Report(2, 2, 1, 2), Spec(2, "v2", 4, 1, partition=1), Spec(3, "v2", 6, 1, partition=3), 5),
        # Nobody knows how many have it: perhaps all.
        (Report(1, 5, 5, 5), Spec(2, "v2", 5, 1, partition=3), Spec(3, "v2", 7, 1, partition=6), 7),
        # All pods have another template than it is to have, and the last two get that one.
        (Report(2, 5, 5, 5), Spec(2, "v1", 5, 1), Spec(3, "v2", 5, 1, partition=3), 2),
        # To have fewer takes the last ones away.
        (Report(2, 5, 2, 5), Spec(2, "v2", 5, 1, partition=3), Spec(3, "v2", 4, 1, partition=4), 2),
    ],
)
def test_pods_that_have_the_template_keep_it_below_the_partition_of_a_kind_that_goes_by_their_order(
    report: Report, before: Spec, spec: Spec, expected: int
) -> None:
    member = Member("a", 7, "v2", (before,), report, is_ordered=True)
    assert bounds(member, (spec,)).updated == expected


@pytest.mark.parametrize(
    ("report", "before", "spec", "expected"),
    [
        (Report(2, 5, 1, 3), Spec(2, "v2", 4, 0, 1), Spec(3, "v2", 3, 0, 1), 2),
        (Report(2, 5, 1, 5), Spec(2, "v2", 4, 0, 1), Spec(3, "v2", 3, 0, 1), 3),
        # It may be creating the fifth pod.
        (Report(2, 4, 0, 3), Spec(2, "v2", 4, 0, 1), Spec(3, "v2", 3, 0, 1), 2),
        # As many pods as there may be: it is scaled by none.
        (Report(2, 4, 0, 3), Spec(2, "v2", 4, 0, 0), Spec(3, "v2", 3, 0, 1), 3),
        # With as many replicas, and fewer that may be extra, none goes that is needed.
        (Report(2, 5, 1, 3), Spec(2, "v2", 4, 0, 1), Spec(3, "v2", 4, 0, 0), 3),
        # What reports to act on it may not have done so yet.
        (Report(3, 5, 1, 3), Spec(2, "v2", 4, 0, 1), Spec(3, "v2", 3, 0, 1), 2),
        # One ReplicaSet has all pods: those that do not work go first.
        (Report(2, 4, 4, 3), Spec(2, "v2", 4, 0, 0), Spec(3, "v2", 3, 0, 0), 3),
        # The ReplicaSet of the next template has none yet.
        (Report(2, 4, 4, 3), Spec(2, "v1", 4, 0, 0), Spec(3, "v2", 3, 0, 0), 2),
    ],
)
def test_a_deployment_that_is_scaled_down_while_it_rolls_may_take_away_pods_that_work(
    report: Report, before: Spec, spec: Spec, expected: int
) -> None:
    member = Member("a", 3, "v2", (before,), report, has_sets=True)
    assert bounds(member, (spec,)).fewest == expected
    assert bounds(replace(member, has_sets=False), (spec,)).fewest >= expected


def test_pods_that_a_deployment_may_take_away_to_be_scaled_down_are_not_taken_for_broken() -> None:
    specs = Spec(2, "v2", 4, 0, 1), Spec(3, "v2", 3, 0, 1)
    member = Member("a", 2, "v2", specs, Report(3, 5, 1, 3), has_sets=True)
    held = bounds(member)
    assert Headroom(Aim(3, 1, 1), member, held, held, Bounds(1, 1), is_idle=False).broken(3) == 0


@pytest.mark.parametrize(
    ("report", "before", "spec", "expected"),
    [
        # One was replaced, and does not work; another one is extra then.
        (Report(2, 4, 1, 3), Spec(2, "v2", 4, 1), Spec(3, "v2", 4, 0, 1), 2),
        # It may have begun with that one, and not said so.
        (Report(2, 4, 0, 4), Spec(2, "v2", 4, 1), Spec(3, "v2", 4, 0, 1), 2),
        (Report(2, 4, 1, 3), Spec(2, "v2", 4, 1), Spec(3, "v2", 4, 1, 0), 1),
        # The one that does not work is the extra one.
        (Report(2, 5, 1, 4), Spec(2, "v2", 4, 0, 1), Spec(3, "v2", 4, 0, 1), 1),
        (Report(2, 5, 2, 3), Spec(2, "v2", 4, 1, 1), Spec(3, "v2", 4, 1, 1), 2),
        # Another template is proven by pods of its own.
        (Report(2, 4, 1, 3), Spec(2, "v1", 4, 1), Spec(3, "v2", 4, 0, 1), 1),
    ],
)
def test_pods_that_are_extra_come_on_top_of_those_that_took_the_place_of_others(
    report: Report, before: Spec, spec: Spec, expected: int
) -> None:
    member = Member("a", 4, "v2", (before,), report, has_sets=True)
    assert bounds(member, (spec,)).unproven == expected


@pytest.mark.parametrize(("updated", "most"), [(0, 6), (1, 6), (3, 6), (4, 4)])
def test_a_deployment_may_have_all_its_extra_pods_until_none_is_left_to_replace(updated: int, most: int) -> None:
    """If it is paused meanwhile, its ReplicaSets get what is left of them."""
    member = Member("a", 4, "v2", (Spec(2, "v2", 4, 1, 2),), Report(2, 4, updated, 4), has_sets=True)
    assert bounds(member).most == most
    assert bounds(member).surge == most - 4

"""Moves: what one cluster is asked for next on its way to the wanted template, decision by decision."""

from __future__ import annotations

import pytest

from kedge.plan.aligning.aim import Aim, AlignCode
from kedge.plan.aligning.bounds import Bounds, bounds
from kedge.plan.aligning.headroom import Headroom
from kedge.plan.aligning.ledger import Member, Report, Spec
from kedge.plan.aligning.moves import next_move

AIM = Aim(5, 1, 0, 2, is_partitioned=True)


@pytest.mark.parametrize(
    ("goal", "expected"),
    [
        (2, Spec(0, "v1", 5, 1, 0, 2)),
        (3, Spec(0, "v1", 5, 1, 0, 2)),
        (4, AlignCode.budget_spent),
    ],
    ids=["more than are wanted", "as many as are wanted", "fewer than are wanted"],
)
def test_a_release_that_is_wanted_again_goes_on_from_the_pods_that_have_it(
    goal: int, expected: Spec | AlignCode
) -> None:
    """Another one was granted meanwhile, and never written."""
    specs = Spec(1, "v1", 5, 1, 0, 2), Spec(2, "v2", 5, 1, 0, 2)
    member = Member("a", 5, "v1", specs, Report(1, 5, 3, 5, 3), superseded=1)
    held = bounds(member)
    room = Headroom(AIM, member, held, held, Bounds(1, 0), is_idle=False)
    assert next_move(room, goal, 5) == expected


def test_a_cluster_that_is_to_keep_all_its_pods_back_is_left_alone() -> None:
    member = Member("a", 5, "v1", (Spec(1, "v0", 5, 1, 0, 2),), Report(1, 5, 3, 5, 3))
    held = bounds(member)
    room = Headroom(AIM, member, held, held, Bounds(1, 0), is_idle=True)
    assert next_move(room, 0, 5) == AlignCode.rolling


@pytest.mark.parametrize("is_back", [False, True])
def test_a_statefulset_that_went_back_replaces_no_more_than_are_let_through(*, is_back: bool) -> None:
    """Its first pod and its last one have the template that is wanted again, and the one between has another."""
    member = Member("a", 3, "v1", (Spec(2, "v1", 3, 1, 0, 2),), Report(2, 3, 2, 3, is_back=is_back), is_ordered=True)
    held = bounds(member)
    room = Headroom(Aim(3, 1, 0, 2, is_partitioned=True), member, held, held, Bounds(1, 0), is_idle=True)
    assert next_move(room, 2, 3) == (AlignCode.kept_back if is_back else Spec(0, "v1", 3, 1, 0, 1))

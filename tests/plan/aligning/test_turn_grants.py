"""What may be let through by a turn, which may bring any template; and replicas that pay for their move."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kedge.plan.aligning.aim import Aim
from kedge.plan.aligning.alignment import align
from kedge.plan.aligning.ledger import Member, Report, Spec
from kedge.plan.aligning.turn_grants import turn_grants


def at_rest(name: str, now: int, wanted: int, *, template: str = "v1", available: int | None = None) -> Member:
    """A cluster whose pods all have v1."""
    report = Report(1, now, now, now if available is None else available)
    return Member(name, wanted, template, (Spec(1, "v1", now, 1),), report)


def granted(aim: Aim, *members: Member) -> dict[str, tuple[int, int, int]]:
    """Replicas, unavailable and surge of what is granted."""
    found = turn_grants(aim, members, align(aim, members).specs)
    return {name: (spec.replicas, spec.unavailable, spec.surge) for name, spec in found.items()}


@pytest.mark.parametrize(
    ("aim", "members", "found"),
    [
        # With no room above, one side goes first: the pod that goes makes room for one that is extra.
        (Aim(10, 1, 0), (at_rest("a", 4, 6), at_rest("b", 6, 4)), {"b": (5, 0, 1)}),
        # Then the other side grows: the pod that may be missing is the one that it gets.
        (Aim(10, 1, 0), (at_rest("a", 4, 6), at_rest("b", 5, 4)), {"a": (5, 1, 0)}),
        # With room above, and none below, it is the other way round.
        (Aim(10, 0, 1), (at_rest("a", 4, 6), at_rest("b", 6, 4)), {"a": (5, 1, 0)}),
        (Aim(10, 0, 1), (at_rest("a", 5, 6), at_rest("b", 6, 4)), {"b": (5, 0, 1)}),
        # Both at once, within what is sure to be available and what there may be.
        (Aim(10, 2, 1), (at_rest("a", 4, 6), at_rest("b", 6, 4)), {"a": (5, 1, 0), "b": (4, 0, 1)}),
        # Replicas that are added or taken away for good need no budget.
        (Aim(6, 1, 0), (at_rest("a", 4, 6),), {"a": (6, 1, 0)}),
        (Aim(4, 0, 1), (at_rest("a", 6, 4),), {"a": (4, 0, 1)}),
        # A release gets the budget, as it is.
        (Aim(10, 2, 1), (at_rest("a", 4, 4, template="v2"), at_rest("b", 6, 6, template="v2")), {"b": (6, 2, 1)}),
        # A cluster without pods may have any number.
        (Aim(4, 1, 0), (at_rest("a", 4, 4), at_rest("b", 1, 0)), {"b": (0, 1, 0)}),
        # Nothing is taken away that has to stay: a pod is broken already.
        (Aim(10, 1, 0), (at_rest("a", 4, 6, available=3), at_rest("b", 6, 4)), {}),
    ],
)
def test_ways_to_grant(aim: Aim, members: tuple[Member, ...], found: dict[str, tuple[int, int, int]]) -> None:
    assert granted(aim, *members) == found


def test_what_a_cluster_has_anyway_is_not_granted_again() -> None:
    member = at_rest("a", 4, 4)
    last = member.specs[0]
    assert turn_grants(Aim(4, 1, 0), [member], {"a": replace(last, seq=2)}) == {}
    assert turn_grants(Aim(4, 2, 0), [member], {"a": replace(last, seq=2, unavailable=2)}) == {
        "a": replace(last, seq=2, unavailable=2)
    }


def test_a_workload_that_is_recreated_moves_whole_or_not_at_all() -> None:
    member = at_rest("a", 2, 2, template="v2")
    assert granted(Aim(2, 2, 0, recreates=True), member) == {"a": (2, 2, 0)}
    asked = {"a": Spec(2, "v2", 2, 2)}
    assert turn_grants(Aim(2, 1, 0, recreates=True), [member], asked) == {}


def test_a_cluster_that_is_only_scaled_gets_the_template_with_it_as_its_work_has_no_other() -> None:
    member = at_rest("a", 4, 6, template="v2")
    found = turn_grants(Aim(6, 1, 0), [member], {"a": replace(member.specs[0], seq=2, replicas=6)})
    assert found == {"a": Spec(2, "v2", 6, 1, 0)}

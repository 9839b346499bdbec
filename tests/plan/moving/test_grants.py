"""Which units move now, and what the others wait for: tables, and what holds of all units in any state."""

from __future__ import annotations

from collections.abc import Sequence, Set
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from kedge.plan.moving.allowance import Allowance
from kedge.plan.moving.budget import Budget
from kedge.plan.moving.exposure import Exposure
from kedge.plan.moving.grants import Grants, grant
from kedge.plan.moving.unit import Proof, Unit
from kedge.plan.moving.wait import Blocker, Code, Wait

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
LATER = datetime(2030, 1, 1, 13, tzinfo=UTC)
OLD, NEW = "1", "2"


def old(key: str, proof: Proof = Proof.proven, place: str = "") -> Unit:
    return Unit(key, OLD, NEW, proof, place=place)


def new(key: str, proof: Proof = Proof.proven) -> Unit:
    return Unit(key, NEW, NEW, proof)


def missing(key: str) -> Unit:
    return Unit(key, "", NEW, Proof.nothing)


def leaving(key: str, proof: Proof = Proof.proven, place: str = "") -> Unit:
    return Unit(key, OLD, "", proof, place=place)


def granted(units: Sequence[Unit], budget: Budget, exposure: Exposure | None = None, **how: object) -> Grants:
    return grant(units, budget, order=[unit.key for unit in units], exposure=exposure, **how)  # type: ignore[arg-type]


def waits(found: Grants) -> dict[str, str]:
    return {key: wait.code for key, wait in found.waiting.items()}


def keys(wait: Wait) -> list[str]:
    return [one.key for one in wait.blockers]


@pytest.mark.parametrize(
    ("units", "budget", "moved"),
    [
        ([old("a"), old("b"), old("c")], Budget(3, 1), "a"),
        ([old("a"), old("b"), old("c")], Budget(3, 2), "ab"),
        ([old("a"), old("b"), old("c")], Budget(3, 0), ""),
        ([old("a"), old("b"), old("c")], Budget(3, 4), "abc"),
        ([old("a"), old("b")], Budget(3, 1), ""),
        ([new("a"), old("b"), old("c")], Budget(3, 1), "b"),
        ([new("a", Proof.pending), old("b"), old("c")], Budget(3, 1), ""),
        ([new("a", Proof.failed), old("b"), old("c")], Budget(3, 1), ""),
        ([new("a", Proof.pending), old("b"), old("c")], Budget(3, 2), "b"),
        # What is known not to work needs no budget; what is not known to work needs it, and costs nothing.
        ([new("a", Proof.pending), old("b", Proof.failed), old("c")], Budget(3, 1), "b"),
        ([new("a", Proof.pending), old("b", Proof.gone), old("c")], Budget(3, 1), "b"),
        ([new("a", Proof.pending), old("b", Proof.nothing), old("c")], Budget(3, 1), "b"),
        ([new("a", Proof.pending), old("b", Proof.unknown), old("c")], Budget(3, 1), ""),
        ([old("a", Proof.unknown), old("b"), old("c")], Budget(3, 1), "a"),
        ([old("a", Proof.untracked), old("b"), old("c")], Budget(3, 1), "a"),
        # One that is on its way out is not asked for anything.
        ([old("a", Proof.leaving), old("b"), old("c"), old("d")], Budget(3, 1), "b"),
        # Additions need room, removals budget.
        ([old("a"), missing("b")], Budget(1, 0, 1), "b"),
        ([old("a"), missing("b")], Budget(1, 0, 0), ""),
        ([missing("a"), missing("b"), missing("c")], Budget(2, 0, 0), "ab"),
        ([leaving("a"), new("b"), new("c")], Budget(2, 0), "a"),
        ([leaving("a"), new("b"), new("c")], Budget(3, 0), ""),
        ([leaving("a"), leaving("b"), new("c")], Budget(2, 0), "a"),
    ],
)
def test_who_moves_follows_from_budget_and_proof(units: Sequence[Unit], budget: Budget, moved: str) -> None:
    assert "".join(granted(units, budget).moved) == moved


@pytest.mark.parametrize(
    ("units", "limit", "moved"),
    [
        ([old("a", Proof.failed), old("b", Proof.failed)], 1, "a"),
        ([old("a", Proof.failed), old("b", Proof.failed)], 2, "ab"),
        ([new("a", Proof.pending), old("b", Proof.failed)], 1, ""),
        ([new("a", Proof.failed), old("b", Proof.failed)], 1, ""),
        ([new("a"), old("b", Proof.failed), old("c", Proof.failed)], 1, "bc"),
        ([new("a", Proof.gone), old("b", Proof.failed)], 1, "b"),
        ([new("a", Proof.leaving), old("b", Proof.failed)], 1, "b"),
        ([missing("a"), missing("b"), old("c", Proof.failed)], 1, "abc"),
        ([leaving("a", Proof.failed), leaving("b", Proof.failed)], 1, "ab"),
    ],
)
def test_a_revision_that_nobody_has_proven_reaches_no_more_units_than_the_exposure(
    units: Sequence[Unit], limit: int, moved: str
) -> None:
    assert "".join(granted(units, Budget(9, 9, 9), Exposure(limit)).moved) == moved


def test_without_an_exposure_whatever_does_not_work_moves() -> None:
    units = [new("a", Proof.failed), old("b", Proof.failed), old("c", Proof.failed)]
    assert granted(units, Budget(3, 1)).moved == ("b", "c")


def test_exposure_is_counted_for_each_revision() -> None:
    other = Unit("b", OLD, "3", Proof.failed)
    found = granted([new("a", Proof.pending), other, old("c", Proof.failed)], Budget(3, 3), Exposure(1))
    assert found.moved == ("b",)
    assert waits(found) == {"c": Code.revision_unproven}


def test_units_are_asked_in_the_order_given() -> None:
    units = [old("a"), old("b"), old("c")]
    assert grant(units, Budget(3, 2), order=["c", "a", "b"]).moved == ("c", "a")


@pytest.mark.parametrize(("units", "spare"), [("aaa", 0), ("aa.", 0), ("a..", 1), ("...", 2)])
def test_how_many_more_could_be_taken_down_is_told(units: str, spare: int) -> None:
    found = [old(f"u{number}") if one == "a" else new(f"u{number}") for number, one in enumerate(units)]
    assert granted(found, Budget(3, 2)).spare == spare


def test_units_are_added_so_many_at_a_time() -> None:
    units = [new("a", Proof.pending), missing("b"), missing("c"), missing("d")]
    found = granted(units, Budget(4, 1), add_at_once=2)
    assert found.moved == ("b",)
    assert waits(found) == {"c": Code.in_turn, "d": Code.in_turn}
    assert found.waiting["c"].numbers == {"atOnce": 2, "unproven": 2, "missing": 0}
    assert keys(found.waiting["c"]) == ["a", "b", "c", "d"]
    assert granted(units, Budget(4, 1)).moved == ("b", "c", "d")
    assert granted([new("a"), *units[1:]], Budget(4, 1), add_at_once=2).moved == ("b", "c")
    assert granted([leaving("a", Proof.failed), *units[1:]], Budget(4, 1), add_at_once=1).moved == ("a", "b")


def test_a_unit_that_an_earlier_request_may_still_move_counts_as_if_it_had_been_moved() -> None:
    units = [Unit("a", OLD, NEW, Proof.unknown), Unit("b", OLD, NEW, Proof.failed)]
    found = granted(units, Budget(2, 1), Exposure(1), in_doubt={"a"})
    assert found.moved == ()
    assert found.waiting["b"].code == Code.revision_unproven
    assert [blocker.key for blocker in found.waiting["b"].blockers] == ["a"]
    assert granted(units, Budget(2, 1), Exposure(2), in_doubt={"a"}).moved == ("b",)
    assert granted(units, Budget(2, 2), Exposure(1), in_doubt={"a"}).moved == ("a",)
    proven = [*units, Unit("c", NEW, NEW, Proof.proven)]
    assert granted(proven, Budget(3, 1), Exposure(1), in_doubt={"a"}).moved == ("b",)


def test_a_unit_that_is_charged_costs_as_if_it_were_proven() -> None:
    units = [old("a", Proof.untracked), old("b"), old("c")]
    assert granted(units, Budget(3, 1)).moved == ("a",)
    assert granted(units, Budget(3, 1), charged={"a"}).moved == ()


def test_units_of_one_place_count_once_and_each_costs_it() -> None:
    second = leaving("a-2", place="a")
    units = [Unit("a-1", NEW, NEW, Proof.proven, place="a"), second, new("b")]
    assert granted(units, Budget(2, 0)).moved == ()
    assert granted(units, Budget(2, 1)).moved == ("a-2",)
    both = [old("a-1", place="a"), second, old("b")]
    assert grant(both, Budget(2, 1), order=["a-2", "a-1", "b"]).moved == ("a-2", "a-1")
    assert grant([*both, missing("c")], Budget(3, 1), order=["c"]).moved == ("c",)


def test_units_that_the_scope_holds_back_wait_for_what_it_says() -> None:
    paused = Wait("a", "Paused")
    found = granted([old("a"), old("b")], Budget(2, 1), held={"a": paused})
    assert found == Grants(("b",), {"a": paused}, spare=0)


def test_what_a_unit_without_budget_waits_for_is_told_in_numbers_and_blockers() -> None:
    proving = Unit("d", NEW, NEW, Proof.untracked, NOW, LATER)
    units = [old("a"), old("b"), proving, new("f", Proof.failed), new("e", Proof.failed)]
    found = granted(units, Budget(7, 5), Exposure(9))
    assert found.waiting == {
        "b": Wait(
            "b",
            Code.budget_spent,
            {"desired": 7, "maxUnavailable": 5, "available": 2, "missing": 2},
            (
                Blocker("e", Proof.failed),
                Blocker("f", Proof.failed),
                Blocker("d", Proof.untracked, NOW, LATER),
            ),
        )
    } | {"a": found.waiting["a"]}
    found = granted([old("a"), old("b")], Budget(2, 1))
    assert found.waiting["b"].blockers == (Blocker("a", Proof.pending),)


def test_what_a_unit_without_room_waits_for_are_those_that_leave_or_else_all_that_hold() -> None:
    numbers = {"desired": 1, "maxSurge": 1, "most": 2, "holding": 2}
    found = granted([missing("c"), new("b"), leaving("a")], Budget(1, 0, 1))
    assert found.waiting["c"] == Wait("c", Code.no_room, numbers, (Blocker("a", Proof.pending),))
    found = granted([missing("c"), new("b"), new("a", Proof.leaving)], Budget(1, 0, 1))
    assert keys(found.waiting["c"]) == ["a"]
    found = granted([new("b"), missing("c"), missing("d")], Budget(1, 0, 1))
    assert found.waiting["d"] == Wait(
        "d", Code.no_room, numbers, (Blocker("b", Proof.proven), Blocker("c", Proof.pending))
    )


def test_what_a_unit_without_proof_waits_for_are_those_that_hold_the_revision() -> None:
    found = granted([new("z", Proof.failed), old("b", Proof.failed), old("c", Proof.failed)], Budget(3, 3), Exposure(2))
    blockers = (Blocker("b", Proof.pending), Blocker("z", Proof.failed))
    assert found.waiting == {"c": Wait("c", Code.revision_unproven, {"limit": 2, "holding": 2}, blockers)}


# What holds of any units


class Case(Struct, frozen=True):
    """Units in an order, and what they may spend."""

    units: list[Unit]
    budget: Budget
    exposure: Exposure | None
    add_at_once: int | None
    charged: Set[str]
    in_doubt: Set[str]
    held: Set[str]

    @property
    def grants(self) -> Grants:
        return granted(
            self.units,
            self.budget,
            self.exposure,
            add_at_once=self.add_at_once,
            charged=self.charged,
            in_doubt=self.in_doubt,
            held={unit.key: Wait(unit.key, "Held") for unit in self.units if unit.key in self.held},
        )


KEYS = [f"u{number}" for number in range(7)]
REVISIONS = st.sampled_from((OLD, OLD, NEW, NEW, ""))


def unit(key: str) -> st.SearchStrategy[Unit]:
    proof = st.sampled_from((*Proof, Proof.proven, Proof.proven, Proof.proven))
    found = st.builds(Unit, key=st.just(key), held=REVISIONS, wanted=st.sampled_from((NEW, NEW, "")), proof=proof)
    return found.filter(lambda one: one.holds or one.proof is not Proof.proven)


CASES = st.builds(
    Case,
    units=st.tuples(*(st.one_of(st.none(), unit(key)) for key in KEYS))
    .map(lambda found: [one for one in found if one is not None])
    .flatmap(st.permutations),
    budget=st.builds(Budget, st.integers(0, 7), st.integers(0, 4), st.integers(0, 3)),
    exposure=st.one_of(st.none(), st.builds(Exposure, st.integers(0, 3))),
    add_at_once=st.one_of(st.none(), st.integers(1, 3)),
    charged=st.frozensets(st.sampled_from(KEYS), max_size=2),
    in_doubt=st.frozensets(st.sampled_from(KEYS), max_size=2),
    held=st.frozensets(st.sampled_from(KEYS), max_size=2),
)


def may_move(case: Case, moved: Set[str], one: Unit) -> bool:
    """Whether a unit may move once these have: written down once more, from the promises."""
    before = [other for other in case.units if other.key in moved]
    if one.adds:
        added = sum(other.adds for other in before)
        holding = sum(other.holds for other in case.units) + added
        unproven = sum(other.holds and other.is_wanted and not other.is_proven for other in case.units) + added
        return holding < case.budget.most and (case.add_at_once is None or unproven < case.add_at_once)
    stay = [other for other in case.units if other.is_proven and other.key not in moved]
    others = len(stay) - (one.is_proven or one.key in case.charged)
    broken = one.proof in (Proof.failed, Proof.gone, Proof.nothing)
    if not broken and others < max(0, case.budget.desired - case.budget.max_unavailable):
        return False
    if (
        case.exposure is None
        or not one.wanted
        or any(other.is_proven and other.held == one.wanted for other in case.units)
    ):
        return True
    counted = [
        other
        for other in case.units
        if other.proof not in (Proof.gone, Proof.leaving)
        and (other.held == one.wanted or (other.key in case.in_doubt and other.wanted == one.wanted))
    ]
    holders = {other.key for other in (*counted, *(other for other in before if other.changes))} - {one.key}
    return len(holders) < case.exposure.limit


@given(CASES)
def test_nobody_moves_over_budget_room_or_exposure_and_whoever_can_move_does(case: Case) -> None:
    found = case.grants
    moved: set[str] = set()
    for one in case.units:
        if not one.is_moving or one.key in case.held:
            assert one.key not in found.moved
            continue
        assert may_move(case, moved, one) is (one.key in found.moved)
        moved |= {one.key} & set(found.moved)


@given(CASES)
def test_the_order_is_kept(case: Case) -> None:
    assert list(case.grants.moved) == [one.key for one in case.units if one.key in case.grants.moved]


@given(CASES)
def test_everyone_who_is_to_move_moves_or_waits_and_nobody_else_does(case: Case) -> None:
    found = case.grants
    asked = {one.key for one in case.units if one.is_moving}
    held = {one.key for one in case.units if one.key in case.held}
    assert set(found.moved) | set(found.waiting) == asked | held
    assert not set(found.moved) & set(found.waiting)
    assert all(wait.unit == key for key, wait in found.waiting.items())


@given(CASES)
def test_whatever_a_unit_waits_for_is_real(case: Case) -> None:
    found = case.grants
    units = {one.key: one for one in case.units}
    for wait in found.waiting.values():
        for blocker in wait.blockers:
            one = units[blocker.key]
            takes_room = wait.code == Code.no_room and one.holds
            is_doubtful = wait.code == Code.revision_unproven and one.key in case.in_doubt
            assert not one.is_proven or one.key in found.moved or takes_room or is_doubtful
            assert blocker.proof is (Proof.pending if one.key in found.moved else one.proof)
        assert wait.blockers or wait.code == "Held" or _cannot_be_had(case, wait)


def _cannot_be_had(case: Case, wait: Wait) -> bool:
    """Whether nothing that is there is waited for: the numbers alone forbid it."""
    if wait.code == Code.no_room:
        return case.budget.most == 0
    if wait.code == Code.revision_unproven:
        return wait.numbers["limit"] == 0
    return wait.numbers["missing"] > 0 or case.budget.max_unavailable == 0 or wait.unit in case.charged


@given(CASES)
def test_where_everything_is_proven_and_something_may_be_down_something_moves(case: Case) -> None:
    units = [Unit(one.key, OLD, NEW, Proof.proven) for one in case.units]
    budget = Budget(len(units), max(1, case.budget.max_unavailable))
    assert bool(granted(units, budget, Exposure(1)).moved) is bool(units)


# With an allowance


@pytest.mark.parametrize(
    ("limit", "held", "moved"),
    [(1, {}, ""), (2, {}, "a"), (4, {}, "ac"), (5, {}, "ab"), (7, {}, "abc"), (7, {"x": 3}, "ac"), (2, {"x": 5}, "")],
)
def test_units_move_while_their_prices_are_left(limit: int, held: dict[str, int], moved: str) -> None:
    allowance = Allowance(limit, held, {"a": 2, "b": 3, "c": 2})
    found = granted([old("a"), old("b"), old("c"), new("x", Proof.pending)], Budget(4, 4), allowance=allowance)
    assert "".join(found.moved) == moved
    assert set(waits(found).values()) <= {Code.allowance_spent}
    assert found.allowance is not None
    assert found.allowance.spent == sum(held.values()) + sum(allowance.prices[key] for key in moved)


def test_a_unit_that_costs_nothing_moves_even_if_nothing_is_left_and_additions_cost_nothing() -> None:
    allowance = Allowance(1, {"x": 5}, {"a": 0, "b": 1, "c": 9})
    found = granted([old("a"), old("b"), missing("c"), new("x", Proof.failed)], Budget(4, 4), allowance=allowance)
    assert found.moved == ("a", "c")
    wait = found.waiting["b"]
    assert (wait.code, wait.numbers) == (Code.allowance_spent, {"limit": 1, "spent": 5, "price": 1})
    assert keys(wait) == ["x"]

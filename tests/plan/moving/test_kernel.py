"""Units, budgets, gates and divisions: the arithmetic of the kernel."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.plan.moving.budget import Budget
from kedge.plan.moving.division import divide
from kedge.plan.moving.exposure import Exposure
from kedge.plan.moving.gate import Closed, GateCode, Open, combined, timed, while_proven
from kedge.plan.moving.unit import Proof, Unit
from kedge.plan.moving.wait import Blocker, Wait

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


# Units


@pytest.mark.parametrize(
    ("held", "wanted", "proof", "does"),
    [
        ("1", "2", Proof.proven, "changes"),
        ("1", "", Proof.proven, "leaves"),
        ("", "1", Proof.nothing, "adds"),
        ("1", "1", Proof.proven, ""),
        ("", "", Proof.nothing, ""),
        ("1", "2", Proof.leaving, ""),
        ("1", "", Proof.leaving, ""),
        ("", "1", Proof.leaving, ""),
    ],
)
def test_a_unit_is_added_changed_or_leaves(held: str, wanted: str, proof: Proof, does: str) -> None:
    unit = Unit("a", held, wanted, proof)
    assert [name for name in ("adds", "changes", "leaves") if getattr(unit, name)] == ([does] if does else [])
    assert unit.is_moving is bool(does)
    assert unit.holds is bool(held)
    assert unit.is_wanted is bool(wanted)


@pytest.mark.parametrize("proof", Proof)
def test_only_what_is_known_not_to_work_needs_no_budget(proof: Proof) -> None:
    unit = Unit("a", "1", "2", proof)
    assert unit.needs_no_budget is (proof in (Proof.failed, Proof.gone, Proof.nothing))
    assert unit.is_proven is (proof is Proof.proven)


def test_a_unit_without_a_place_counts_for_itself() -> None:
    assert Unit("a", "", "", Proof.nothing).counted_as == "a"
    assert Unit("a", "", "", Proof.nothing, place="b").counted_as == "b"


# Budgets


@pytest.mark.parametrize(
    ("budget", "available", "stay", "down"),
    [
        (Budget(3, 1), 3, 2, 1),
        (Budget(3, 1), 2, 2, 0),
        (Budget(3, 1), 1, 2, 0),
        (Budget(3, 0), 3, 3, 0),
        (Budget(3, 5), 2, 0, 2),
    ],
)
def test_so_many_must_stay_available(budget: Budget, available: int, stay: int, down: int) -> None:
    assert budget.must_stay_available == stay
    assert budget.may_take_down(available) == down
    assert budget.is_kept_by(available) is (available >= stay)


@pytest.mark.parametrize(("holding", "room"), [(0, 4), (3, 1), (4, 0), (9, 0)])
def test_so_many_may_be_added(holding: int, room: int) -> None:
    assert Budget(3, 1, 1).most == 4
    assert Budget(3, 1, 1).may_add(holding) == room


def test_an_exposure_has_room_for_so_many() -> None:
    assert [Exposure(2).has_room(others) for others in (0, 1, 2)] == [True, True, False]


# Gates


def test_a_timed_gate_opens_when_its_time_has_passed() -> None:
    until = NOW + HOUR
    wait = Wait("canary", GateCode.time, {"seconds": 3600}, (Blocker("canary", since=NOW, until=until),))
    told = Wait("canary", GateCode.time, {"seconds": 3600}, (Blocker("canary", None, NOW, until, "1h"),))
    assert timed("canary", NOW, HOUR, NOW, "1h") == Closed((told,), until)
    assert timed("canary", NOW, HOUR, NOW) == Closed((wait,), until)
    assert timed("canary", NOW, HOUR, until - timedelta(seconds=1)) == Closed((wait,), until)
    assert timed("canary", NOW, HOUR, until) == Open()


def test_a_gate_is_open_only_while_what_is_behind_it_is_proven() -> None:
    proven = Unit("a", "1", "1", Proof.proven)
    pending = Unit("b", "1", "1", Proof.pending)
    untracked = Unit("c", "1", "1", Proof.untracked, NOW, NOW + HOUR)
    failed = Unit("d-1", "1", "1", Proof.failed, place="d")
    assert while_proven("canary", [proven]) == Open()
    assert while_proven("canary", []) == Open()
    blockers = (
        Blocker("b", Proof.pending),
        Blocker("c", Proof.untracked, NOW, NOW + HOUR),
        Blocker("d", Proof.failed, reported="0 of 3"),
    )
    wait = Wait("canary", GateCode.proof_lost, {"lost": 3}, blockers)
    assert while_proven("canary", [proven, pending, untracked, failed], {"d-1": "0 of 3"}) == Closed(
        (wait,), NOW + HOUR
    )
    assert isinstance(found := while_proven("canary", [failed]), Closed)
    assert found.until is None
    later = Unit("e", "1", "1", Proof.untracked, NOW, NOW + 2 * HOUR)
    assert isinstance(found := while_proven("canary", [later, untracked]), Closed)
    assert found.until == NOW + HOUR


def test_several_gates_are_open_if_all_are_and_wait_for_all_that_the_closed_ones_do() -> None:
    first, second = Wait("a", "One"), Wait("a", "Two")
    assert combined([]) == Open()
    assert combined([Open(), Open()]) == Open()
    assert combined([Closed((first,)), Open(), Closed((second,))]) == Closed((first, second))
    late, early = Closed((first,), NOW + HOUR), Closed((second,), NOW)
    assert combined([late, early, Closed((first,))]) == Closed((first, second, first), NOW)


# Divisions

SHARES = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 12), max_size=6)


@pytest.mark.parametrize(
    ("shares", "budget", "parts"),
    [
        *(
            ((3, 7), budget, parts)
            for budget, parts in enumerate(
                [(0, 0), (0, 1), (1, 1), (1, 2), (1, 3), (2, 3), (2, 4), (2, 5), (2, 6), (3, 6), (3, 7)]
            )
        ),
        ((10, 5), 6, (4, 2)),
        ((3, 3, 4), 5, (2, 1, 2)),
        ((0, 2), 1, (0, 1)),
        ((1, 1), 9, (1, 1)),
        ((), 3, ()),
    ],
)
def test_a_budget_is_divided_in_proportion(shares: tuple[int, ...], budget: int, parts: tuple[int, ...]) -> None:
    found = divide(budget, dict(zip("abc", shares, strict=False)))
    assert tuple(found.values()) == parts


@given(SHARES, st.integers(0, 80))
def test_all_of_a_budget_is_given_and_nobody_gets_more_than_his_share(shares: dict[str, int], budget: int) -> None:
    found = divide(budget, shares)
    assert sum(found.values()) == min(budget, sum(shares.values()))
    assert all(found[name] <= share for name, share in shares.items())


@given(SHARES, st.integers(0, 80))
def test_a_larger_budget_takes_nothing_away(shares: dict[str, int], budget: int) -> None:
    less, more = divide(budget, shares), divide(budget + 1, shares)
    assert all(more[name] >= less[name] for name in shares)


@given(SHARES, st.integers(0, 80), st.integers(0, 80))
def test_what_was_given_is_never_taken_back(shares: dict[str, int], before: int, budget: int) -> None:
    given_before = divide(before, shares)
    found = divide(budget, shares, given_before)
    assert all(found[name] >= part for name, part in given_before.items())
    assert sum(found.values()) == max(min(budget, sum(shares.values())), sum(given_before.values()))


@given(SHARES, st.integers(0, 80), st.randoms(use_true_random=False))
def test_the_order_of_the_shares_does_not_matter(shares: dict[str, int], budget: int, random: object) -> None:
    names = list(shares)
    random.shuffle(names)  # type: ignore[attr-defined]
    assert divide(budget, {name: shares[name] for name in names}) == divide(budget, shares)

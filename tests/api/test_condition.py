"""Conditions: finding, judging and setting them."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from kedge.api.condition import FALSE, TRUE, UNKNOWN, Condition, Observed, find_condition, is_true, set_condition

NOON = datetime(2025, 3, 12, 12, 0, 0, tzinfo=UTC)


def condition(type_: str = "Ready", status: str = TRUE, *, at: datetime = NOON, generation: int = 1) -> Condition:
    return Condition(
        type=type_, status=status, last_transition_time=at, reason="Why", message="", observed_generation=generation
    )


def test_a_condition_is_found_by_its_type() -> None:
    conditions = (condition("A"), condition("B"))
    assert find_condition(conditions, "B") is conditions[1]
    assert find_condition(conditions, "C") is None


@pytest.mark.parametrize(
    ("status", "generation", "expected"),
    [
        (TRUE, None, True),
        (TRUE, 1, True),
        (TRUE, 2, False),
        (FALSE, 1, False),
        (UNKNOWN, None, False),
    ],
)
def test_a_condition_is_true_if_it_says_so_of_the_generation_asked_for(
    status: str, generation: int | None, expected: bool
) -> None:
    assert is_true((condition(status=status),), "Ready", generation=generation) is expected


def test_what_is_not_there_is_not_true() -> None:
    assert not is_true((), "Ready")


def test_conditions_of_built_in_kinds_are_judged_alike() -> None:
    assert is_true((Observed(type="Available", status=TRUE),), "Available")


def test_a_new_condition_goes_to_the_end() -> None:
    assert [c.type for c in set_condition((condition("A"),), condition("B"))] == ["A", "B"]


def test_a_condition_stays_in_its_place() -> None:
    conditions = (condition("A"), condition("B"), condition("C"))
    changed = set_condition(conditions, condition("B", FALSE))
    assert [(c.type, c.status) for c in changed] == [("A", TRUE), ("B", FALSE), ("C", TRUE)]


def test_the_time_of_the_last_change_stays_while_the_status_does() -> None:
    [kept] = set_condition((condition(),), condition(at=NOON + timedelta(hours=1), generation=2))
    assert kept.last_transition_time == NOON
    assert kept.observed_generation == 2


def test_the_time_of_the_last_change_moves_with_the_status() -> None:
    [moved] = set_condition((condition(),), condition(status=FALSE, at=NOON + timedelta(hours=1)))
    assert moved.last_transition_time == NOON + timedelta(hours=1)


def test_times_are_kept_to_the_second_as_kubernetes_prints_them() -> None:
    [cut] = set_condition((), condition(at=NOON + timedelta(microseconds=999_999)))
    assert b'"2025-03-12T12:00:00Z"' in msgspec.json.encode(cut)


def test_setting_changes_no_argument() -> None:
    before = (condition(),)
    set_condition(before, condition(status=FALSE))
    assert before == (condition(),)


def test_an_empty_message_is_written_because_the_schema_requires_it() -> None:
    assert msgspec.json.decode(msgspec.json.encode(condition()))["message"] == ""

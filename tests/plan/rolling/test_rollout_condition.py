"""Standing: what a binding says of its rollout."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, Condition, find_condition
from kedge.api.placement_kinds import Binding
from kedge.api.reasons import NOT_STARTED, ROLLOUT_STARTED, STARTED
from kedge.plan.rolling.rollout_condition import lacks_rollout_condition, rollout_started_condition
from plan.rolling.making import AVAILABLE, NOW, binding, scheduled, unscheduled


def started(found: Binding, why: str | None = None) -> tuple[str, str, int | None, str] | None:
    said = find_condition(rollout_started_condition(found, why, NOW), ROLLOUT_STARTED)
    return None if said is None else (said.status, said.reason, said.observed_generation, said.message)


def placed(found: Binding, *, generation: int) -> Binding:
    """With the word that it was started at this generation."""
    said = Condition(
        type=ROLLOUT_STARTED,
        status=TRUE,
        reason=STARTED,
        message="once",
        last_transition_time=NOW - timedelta(hours=1),
        observed_generation=generation,
    )
    conditions = (said, *found.status.conditions)
    return replace(found, status=replace(found.status, conditions=conditions))


def test_a_binding_that_waits_says_what_for() -> None:
    assert started(binding("a"), "a waits: so") == (FALSE, NOT_STARTED, 3, "a waits: so")
    assert started(scheduled("a"), "a waits: so") == (FALSE, NOT_STARTED, 1, "a waits: so")


def test_a_binding_that_has_what_is_wanted_says_so_at_its_generation() -> None:
    assert started(binding("a")) == (TRUE, STARTED, 3, "a was given crp-0-snapshot")


def test_a_binding_that_was_only_picked_says_nothing() -> None:
    assert started(scheduled("a")) is None


def test_a_cluster_to_be_removed_changes_its_words_alone() -> None:
    found = placed(unscheduled("a", generation=4), generation=3)
    assert started(found, "a waits to be removed") == (TRUE, STARTED, 3, "a waits to be removed")
    assert not lacks_rollout_condition(found)
    assert started(unscheduled("a"), "a waits to be removed") is None


def test_a_binding_on_its_way_out_is_left_alone() -> None:
    found = binding("a", deleting=True)
    assert rollout_started_condition(found, "waits", NOW) == found.status.conditions


def test_the_conditions_of_others_are_kept_and_so_is_the_time_while_nothing_changes() -> None:
    found = placed(binding("a"), generation=2)
    said = rollout_started_condition(found, None, NOW)
    assert said[1:] == found.status.conditions[1:]
    assert len(said) == 1 + len(AVAILABLE)
    assert said[0].last_transition_time == NOW - timedelta(hours=1)


def test_somebody_waits_for_the_first_word_about_each_generation() -> None:
    assert lacks_rollout_condition(scheduled("a"))
    assert lacks_rollout_condition(placed(binding("a"), generation=2))
    assert not lacks_rollout_condition(placed(binding("a"), generation=3))

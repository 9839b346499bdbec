"""What Works say, folded into what a binding says."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, UNKNOWN, Condition, find_condition
from kedge.api.reasons import (
    ALL_AVAILABLE,
    APPLIED,
    APPLY_IN_PROGRESS,
    AVAILABLE,
    NO_OVERRIDE,
    NOT_ALL_TRACKABLE,
    PREPARING,
    ROLLOUT_STARTED,
    WORK_APPLIED,
    WORK_AVAILABLE,
    WORK_NOT_APPLIED,
    WORK_NOT_AVAILABLE,
    WORK_SYNCED,
    WORK_SYNCHRONIZED,
    WORK_UNTRACKABLE,
)
from kedge.api.work import ManifestCondition, Work
from kedge.plan.working import folding
from kedge.plan.working.folding import folded, spoken
from kedge.plan.working.kept import kept
from plan.working.objects import LATER, NOON, binding, failing, said, work

HALF_PAST, EVEN_LATER = NOON + timedelta(minutes=30), LATER + timedelta(hours=1)
APPLIED_YES, AVAILABLE_YES = said(APPLIED), said(AVAILABLE)
TABLE: list[tuple[str, list[Work], list[str]]] = [
    ("nothing reported", [work()], [APPLY_IN_PROGRESS]),
    ("reported of an older generation", [work(said(APPLIED, generation=0))], [APPLY_IN_PROGRESS]),
    ("a part not reported", [work(APPLIED_YES, AVAILABLE_YES), work(name="crp-0")], [APPLY_IN_PROGRESS]),
    ("a part not applied", [work(APPLIED_YES, AVAILABLE_YES), work(said(APPLIED, FALSE))], [WORK_NOT_APPLIED]),
    ("one refused, one silent", [work(said(APPLIED, FALSE)), work(name="crp-0")], [WORK_NOT_APPLIED]),
    ("not known whether applied", [work(said(APPLIED, UNKNOWN), AVAILABLE_YES)], [APPLY_IN_PROGRESS]),
    ("applied, and no more", [work(APPLIED_YES)], [WORK_APPLIED]),
    ("not available", [work(APPLIED_YES, said(AVAILABLE, FALSE))], [WORK_APPLIED, WORK_NOT_AVAILABLE]),
    ("not known", [work(APPLIED_YES, said(AVAILABLE, UNKNOWN))], [WORK_APPLIED]),
    (
        "one part cannot be tracked",
        [work(APPLIED_YES, AVAILABLE_YES), work(APPLIED_YES, said(AVAILABLE, reason=NOT_ALL_TRACKABLE))],
        [WORK_APPLIED, WORK_UNTRACKABLE],
    ),
    (
        "one part is not known to work",
        [work(APPLIED_YES, AVAILABLE_YES), work(APPLIED_YES, said(AVAILABLE, UNKNOWN))],
        [WORK_APPLIED],
    ),
    ("all well", [work(APPLIED_YES, AVAILABLE_YES)], [WORK_APPLIED, WORK_AVAILABLE]),
]


@pytest.mark.parametrize(("works", "reasons"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_what_works_come_to(works: list[Work], reasons: list[str]) -> None:
    told = folded(works, "made")
    assert [one.reason for one in told.findings] == [NO_OVERRIDE, WORK_SYNCED, *reasons]


def test_only_the_first_hundred_failures_are_listed_and_the_rest_is_counted() -> None:
    objects = tuple(failing(f"map-{number}", AVAILABLE) for number in range(150))
    told = folded([kept(work(APPLIED_YES, said(AVAILABLE, FALSE), objects=objects))], "")
    assert len(told.failed) == 100
    assert told.findings[-1].message.endswith("and 147 more")


def test_what_was_said_of_an_older_generation_is_no_failure() -> None:
    old = work(said(APPLIED, generation=0), objects=(failing("one", AVAILABLE),))
    assert folded([kept(old)], "").failed == ()


def test_an_object_that_was_not_tried_yet_is_no_failure() -> None:
    waiting = work(said(APPLIED, FALSE), objects=(failing("one", APPLIED, PREPARING),))
    assert folded([kept(waiting)], "").failed == ()


def causes(*objects: ManifestCondition, kind: str = AVAILABLE) -> str:
    conditions = [said(APPLIED, FALSE)] if kind == APPLIED else [APPLIED_YES, said(AVAILABLE, FALSE)]
    return folded([kept(work(*conditions, objects=objects))], "").findings[-1].message


def cluster_wide(name: str, message: str = "") -> ManifestCondition:
    found = failing(name, AVAILABLE, message=message)
    return replace(found, identifier=replace(found.identifier, namespace=""))


@pytest.mark.parametrize(
    ("objects", "told"),
    [
        ((failing("one", AVAILABLE),), "ConfigMap shop/one is not available"),
        ((failing("one", AVAILABLE, message="it waits"),), "ConfigMap shop/one is not available: it waits"),
        ((failing("one", AVAILABLE, message="ConfigMap shop/one waits"),), "ConfigMap shop/one waits"),
        ((cluster_wide("one", "it waits"),), "ConfigMap one is not available: it waits"),
        (
            tuple(failing(name, AVAILABLE, message=f"ConfigMap shop/{name} waits") for name in "abc"),
            "ConfigMap shop/a waits; ConfigMap shop/b waits; ConfigMap shop/c waits",
        ),
        (
            tuple(failing(name, AVAILABLE, message=f"ConfigMap shop/{name} waits") for name in "abcd"),
            "ConfigMap shop/a waits; ConfigMap shop/b waits; ConfigMap shop/c waits; and 1 more",
        ),
    ],
)
def test_the_objects_that_are_the_cause_are_named(objects: tuple[ManifestCondition, ...], told: str) -> None:
    assert causes(*objects) == told


def test_what_is_not_available_is_no_cause_of_what_is_not_applied() -> None:
    assert (
        causes(failing("one", AVAILABLE), failing("two", APPLIED), kind=APPLIED) == "ConfigMap shop/two is not applied"
    )


@pytest.mark.parametrize("length", [1023, 1024, 1025, 3000])
def test_a_message_is_cut_where_it_gets_too_long(length: int) -> None:
    assert folding.cut("x" * length) == ("x" * length if length <= 1024 else "x" * 1023 + "…")


@pytest.mark.parametrize(
    ("conditions", "untracked"),
    [
        ((), False),
        ((said(AVAILABLE, reason=WORK_UNTRACKABLE),), True),
        ((said(AVAILABLE, FALSE, reason=WORK_UNTRACKABLE),), False),
        ((AVAILABLE_YES,), False),
    ],
)
def test_a_binding_is_untracked_if_it_counts_as_available_by_time_alone(
    conditions: tuple[Condition, ...], untracked: bool
) -> None:
    assert folding.is_untracked(binding(*conditions)) is untracked


def test_of_what_is_kept_in_memory_only_failures_have_a_status() -> None:
    well = replace(failing("two", AVAILABLE), conditions=(AVAILABLE_YES,))
    held = kept(work(APPLIED_YES, objects=(failing("one", AVAILABLE), well)))
    assert [each.identifier.name for each in held.status.manifest_conditions] == ["one"]
    assert [each.name for each in folding.failures(work(objects=(well,)))] == []


def test_a_member_that_names_no_object_is_quoted() -> None:
    told = folded([work(said(APPLIED, FALSE, message="something is wrong"))], "")
    assert told.findings[-1].message == "something is wrong"


def test_the_rollouts_condition_stays_where_it_is() -> None:
    started = said(ROLLOUT_STARTED, generation=7)
    status = spoken(binding(started), folded([work()], ""), LATER)
    assert status.conditions[0] == started


def test_a_condition_that_stays_keeps_its_time_and_gets_the_new_generation() -> None:
    before = binding(said(APPLIED, reason=WORK_APPLIED), generation=2)
    found = find_condition(spoken(before, folded([work(APPLIED_YES)], ""), LATER).conditions, APPLIED)
    assert found is not None
    assert (found.last_transition_time, found.observed_generation) == (NOON, 2)


@pytest.mark.parametrize(
    ("told", "since"),
    [
        (LATER, LATER),  # by a member that says both at once, when all works
        (HALF_PAST, HALF_PAST),
        (EVEN_LATER, EVEN_LATER),
        (NOON, EVEN_LATER),  # before it was asked to: by a clock that is behind, or a member that does not say anew
        (EVEN_LATER + timedelta(seconds=1), EVEN_LATER),  # by a clock that is ahead
    ],
)
def test_all_is_applied_since_the_member_says_so_if_that_can_be(told: datetime, since: datetime) -> None:
    asked = binding(replace(said(APPLIED, FALSE), last_transition_time=HALF_PAST))
    works = [work(replace(APPLIED_YES, last_transition_time=told), AVAILABLE_YES)]
    status = spoken(asked, folded(works, ""), EVEN_LATER)
    assert {one.type: one.last_transition_time for one in status.conditions if one.type in (APPLIED, AVAILABLE)} == {
        APPLIED: since,
        AVAILABLE: EVEN_LATER,
    }


def test_of_several_works_the_last_to_be_applied_counts() -> None:
    asked = binding(replace(said(APPLIED, FALSE), last_transition_time=NOON))
    works = [work(replace(APPLIED_YES, last_transition_time=one)) for one in (LATER, HALF_PAST)]
    found = find_condition(spoken(asked, folded(works, ""), EVEN_LATER).conditions, APPLIED)
    assert found is not None
    assert found.last_transition_time == LATER


@pytest.mark.parametrize(
    ("before", "since"),
    [
        (said(AVAILABLE, reason=WORK_UNTRACKABLE), NOON),
        (said(AVAILABLE, reason=WORK_AVAILABLE), LATER),
        (said(AVAILABLE, FALSE, reason=WORK_NOT_AVAILABLE), LATER),
    ],
)
def test_what_cannot_be_tracked_is_so_since_it_became_so(before: Condition, since: object) -> None:
    works = [work(APPLIED_YES, said(AVAILABLE, reason=NOT_ALL_TRACKABLE))]
    found = find_condition(spoken(binding(before), folded(works, ""), LATER).conditions, AVAILABLE)
    assert found is not None
    assert found.last_transition_time == since


CONDITIONS = st.builds(
    said,
    st.sampled_from([APPLIED, AVAILABLE]),
    st.sampled_from([TRUE, FALSE, UNKNOWN]),
    st.sampled_from([ALL_AVAILABLE, NOT_ALL_TRACKABLE, "Else"]),
    generation=st.integers(0, 2),
)
WORKS = st.lists(
    st.builds(
        lambda conditions, generation: work(*conditions, generation=generation),
        st.lists(CONDITIONS, max_size=2, unique_by=lambda one: one.type),
        st.integers(1, 2),
    ),
    min_size=1,
    max_size=4,
)


def proves(one: Work) -> bool:
    return all(
        (found := find_condition(one.status.conditions, kind)) is not None
        and found.status == TRUE
        and found.observed_generation == one.metadata.generation
        for kind in (APPLIED, AVAILABLE)
    )


@given(WORKS)
def test_available_is_said_exactly_when_every_work_proves_it(works: list[Work]) -> None:
    findings = folded(works, "").findings
    available = any(one.type == AVAILABLE and one.status == TRUE for one in findings)
    assert available == all(proves(one) for one in works)


@given(WORKS)
def test_nothing_follows_what_does_not_hold(works: list[Work]) -> None:
    assert all(one.status == TRUE for one in folded(works, "").findings[:-1])


@given(WORKS)
def test_saying_it_again_changes_nothing(works: list[Work]) -> None:
    first = spoken(binding(said(ROLLOUT_STARTED)), folded(works, ""), NOON)
    again = spoken(replace(binding(), status=first), folded(works, ""), LATER)
    assert again == first


def test_a_status_on_the_move_says_nothing_of_the_works() -> None:
    before = binding(said(APPLIED), said(AVAILABLE, reason=WORK_UNTRACKABLE))
    assert folding.is_untracked(before)
    status = spoken(before, folding.moving(), LATER)
    assert [one.reason for one in status.conditions] == [NO_OVERRIDE]


@pytest.mark.parametrize(("works", "reason"), [(row[1], row[2][-1]) for row in TABLE], ids=[row[0] for row in TABLE])
def test_only_how_far_a_cluster_has_come_is_underway(works: list[Work], reason: str) -> None:
    told = folded(works, "made")
    is_telling = reason in (APPLY_IN_PROGRESS, WORK_APPLIED, WORK_NOT_AVAILABLE)
    synced = said(WORK_SYNCHRONIZED)
    assert folding.is_underway(binding(synced), told) is is_telling
    assert folding.is_underway(binding(synced, said(AVAILABLE), generation=2), told) is is_telling
    assert not folding.is_underway(binding(synced, said(AVAILABLE)), told), "it counted as available"
    assert not folding.is_underway(binding(), told), "it was not said before that it has Works"


def test_what_keeps_works_from_being_made_is_told_at_once() -> None:
    for told in (folding.not_overridden("why"), folding.not_synchronized("why")):
        assert not folding.is_underway(binding(said(WORK_SYNCHRONIZED)), told)


def test_what_was_not_written_counts_for_the_times_of_what_is() -> None:
    before = binding(said(APPLIED), said(AVAILABLE), generation=2)
    unsaid = spoken(before, folded([work()], ""), LATER)
    status = spoken(before, folded([work(APPLIED_YES, AVAILABLE_YES)], ""), EVEN_LATER, unsaid)
    since = {one.type: one.last_transition_time for one in status.conditions}
    assert since[WORK_SYNCHRONIZED] == LATER
    assert since[APPLIED] == since[AVAILABLE] == EVEN_LATER
    unwritten = spoken(before, folded([work(APPLIED_YES, AVAILABLE_YES)], ""), EVEN_LATER)
    assert find_condition(unwritten.conditions, APPLIED) != find_condition(status.conditions, APPLIED)

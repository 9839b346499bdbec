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
from kedge.plan.working.binding_status import (
    binding_status,
    failures,
    is_in_progress,
    is_unobservable,
    not_overridden,
    not_synchronized,
    report_from_works,
    works_change,
)
from kedge.plan.working.work_contents import compacted
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
def test_the_conditions_that_works_give(works: list[Work], reasons: list[str]) -> None:
    told = report_from_works(works, "made")
    assert [one.reason for one in told.findings] == [NO_OVERRIDE, WORK_SYNCED, *reasons]


def test_only_the_first_hundred_failures_are_listed_and_the_rest_is_counted() -> None:
    objects = tuple(failing(f"map-{number}", AVAILABLE) for number in range(150))
    told = report_from_works([compacted(work(APPLIED_YES, said(AVAILABLE, FALSE), objects=objects))], "")
    assert len(told.failed) == 100
    assert told.findings[-1].message.endswith("and 147 more")


def test_a_failure_of_an_older_generation_does_not_count() -> None:
    old = work(said(APPLIED, generation=0), objects=(failing("one", AVAILABLE),))
    assert report_from_works([compacted(old)], "").failed == ()


def test_an_object_that_was_not_tried_yet_has_not_failed() -> None:
    waiting = work(said(APPLIED, FALSE), objects=(failing("one", APPLIED, PREPARING),))
    assert report_from_works([compacted(waiting)], "").failed == ()


def causes(*objects: ManifestCondition, kind: str = AVAILABLE) -> str:
    conditions = [said(APPLIED, FALSE)] if kind == APPLIED else [APPLIED_YES, said(AVAILABLE, FALSE)]
    return report_from_works([compacted(work(*conditions, objects=objects))], "").findings[-1].message


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
def test_the_objects_that_failed_are_named(objects: tuple[ManifestCondition, ...], told: str) -> None:
    assert causes(*objects) == told


def test_an_unavailable_object_is_not_named_as_not_applied() -> None:
    assert (
        causes(failing("one", AVAILABLE), failing("two", APPLIED), kind=APPLIED) == "ConfigMap shop/two is not applied"
    )


@pytest.mark.parametrize("length", [1023, 1024, 1025, 3000])
def test_a_message_is_cut_at_the_limit(length: int) -> None:
    assert not_overridden("x" * length).findings[0].condition(None, 1, NOON).message == (
        "x" * length if length <= 1024 else "x" * 1023 + "…"
    )


@pytest.mark.parametrize(
    ("conditions", "untracked"),
    [
        ((), False),
        ((said(AVAILABLE, reason=WORK_UNTRACKABLE),), True),
        ((said(AVAILABLE, FALSE, reason=WORK_UNTRACKABLE),), False),
        ((AVAILABLE_YES,), False),
    ],
)
def test_a_binding_is_unobservable_if_it_is_available_by_time_alone(
    conditions: tuple[Condition, ...], untracked: bool
) -> None:
    assert is_unobservable(binding(*conditions)) is untracked


def test_a_compacted_work_keeps_only_failed_manifest_conditions() -> None:
    well = replace(failing("two", AVAILABLE), conditions=(AVAILABLE_YES,))
    held = compacted(work(APPLIED_YES, objects=(failing("one", AVAILABLE), well)))
    assert [each.identifier.name for each in held.status.manifest_conditions] == ["one"]
    assert [each.name for each in failures(work(objects=(well,)))] == []


def test_if_no_failed_object_is_named_the_message_of_the_work_is_used() -> None:
    told = report_from_works([work(said(APPLIED, FALSE, message="something is wrong"))], "")
    assert told.findings[-1].message == "something is wrong"


def test_the_rollouts_condition_is_kept_in_its_place() -> None:
    started = said(ROLLOUT_STARTED, generation=7)
    status = binding_status(binding(started), report_from_works([work()], ""), LATER)
    assert status.conditions[0] == started


def test_a_condition_that_stays_keeps_its_time_and_gets_the_new_generation() -> None:
    before = binding(said(APPLIED, reason=WORK_APPLIED), generation=2)
    found = find_condition(
        binding_status(before, report_from_works([work(APPLIED_YES)], ""), LATER).conditions, APPLIED
    )
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
def test_applied_has_the_members_time_if_that_is_possible(told: datetime, since: datetime) -> None:
    asked = binding(replace(said(APPLIED, FALSE), last_transition_time=HALF_PAST))
    works = [work(replace(APPLIED_YES, last_transition_time=told), AVAILABLE_YES)]
    status = binding_status(asked, report_from_works(works, ""), EVEN_LATER)
    assert {one.type: one.last_transition_time for one in status.conditions if one.type in (APPLIED, AVAILABLE)} == {
        APPLIED: since,
        AVAILABLE: EVEN_LATER,
    }


def test_of_several_works_the_last_applied_one_gives_the_time() -> None:
    asked = binding(replace(said(APPLIED, FALSE), last_transition_time=NOON))
    works = [work(replace(APPLIED_YES, last_transition_time=one)) for one in (LATER, HALF_PAST)]
    found = find_condition(binding_status(asked, report_from_works(works, ""), EVEN_LATER).conditions, APPLIED)
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
def test_becoming_unobservable_is_a_transition(before: Condition, since: object) -> None:
    works = [work(APPLIED_YES, said(AVAILABLE, reason=NOT_ALL_TRACKABLE))]
    found = find_condition(binding_status(binding(before), report_from_works(works, ""), LATER).conditions, AVAILABLE)
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
def test_available_is_true_only_if_every_work_is(works: list[Work]) -> None:
    findings = report_from_works(works, "").findings
    available = any(one.type == AVAILABLE and one.status == TRUE for one in findings)
    assert available == all(proves(one) for one in works)


@given(WORKS)
def test_no_condition_follows_one_that_is_not_true(works: list[Work]) -> None:
    assert all(one.status == TRUE for one in report_from_works(works, "").findings[:-1])


@given(WORKS)
def test_the_same_report_gives_the_same_status(works: list[Work]) -> None:
    first = binding_status(binding(said(ROLLOUT_STARTED)), report_from_works(works, ""), NOON)
    again = binding_status(replace(binding(), status=first), report_from_works(works, ""), LATER)
    assert again == first


def test_while_works_change_their_conditions_are_removed() -> None:
    before = binding(said(APPLIED), said(AVAILABLE, reason=WORK_UNTRACKABLE))
    assert is_unobservable(before)
    status = binding_status(before, works_change(), LATER)
    assert [one.reason for one in status.conditions] == [NO_OVERRIDE]


@pytest.mark.parametrize(("works", "reason"), [(row[1], row[2][-1]) for row in TABLE], ids=[row[0] for row in TABLE])
def test_only_progress_of_an_unavailable_cluster_is_in_progress(works: list[Work], reason: str) -> None:
    told = report_from_works(works, "made")
    is_telling = reason in (APPLY_IN_PROGRESS, WORK_APPLIED, WORK_NOT_AVAILABLE)
    synced = said(WORK_SYNCHRONIZED)
    assert is_in_progress(binding(synced), told) is is_telling
    assert is_in_progress(binding(synced, said(AVAILABLE), generation=2), told) is is_telling
    assert not is_in_progress(binding(synced, said(AVAILABLE)), told), "it counted as available"
    assert not is_in_progress(binding(), told), "it was not said before that it has Works"


def test_a_problem_with_creating_works_is_not_just_progress() -> None:
    for told in (not_overridden("why"), not_synchronized("why")):
        assert not is_in_progress(binding(said(WORK_SYNCHRONIZED)), told)


def test_a_pending_status_keeps_its_transition_times() -> None:
    before = binding(said(APPLIED), said(AVAILABLE), generation=2)
    unsaid = binding_status(before, report_from_works([work()], ""), LATER)
    status = binding_status(before, report_from_works([work(APPLIED_YES, AVAILABLE_YES)], ""), EVEN_LATER, unsaid)
    since = {one.type: one.last_transition_time for one in status.conditions}
    assert since[WORK_SYNCHRONIZED] == LATER
    assert since[APPLIED] == since[AVAILABLE] == EVEN_LATER
    unwritten = binding_status(before, report_from_works([work(APPLIED_YES, AVAILABLE_YES)], ""), EVEN_LATER)
    assert find_condition(unwritten.conditions, APPLIED) != find_condition(status.conditions, APPLIED)

"""What a Work says of itself."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from kedge.api import reasons
from kedge.api.work import BackReportedStatus, ManifestCondition, WorkResourceIdentifier, WorkStatus
from kedge.plan.applying.work_status import (
    MAX_STATUS_BYTES,
    ApplyResult,
    not_applied_in,
    wait_before_retry,
    work_status,
)
from kedge.plan.availability import Verdict

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(seconds=90)
UP = Verdict(available=True, trackable=True, message="up")
DOWN = Verdict(available=False, trackable=True, message="Deployment shop/web has 0 of 3 updated replicas")
WHO_KNOWS = Verdict(available=True, trackable=False, message="who knows")


def result(
    verdict: Verdict | None = UP, ordinal: int = 0, *, name: str = "", said: BackReportedStatus | None = None
) -> ApplyResult:
    """One that was applied, or (without a verdict) refused."""
    identifier = WorkResourceIdentifier(ordinal=ordinal, version="v1", kind="ConfigMap", name=name or f"m{ordinal}")
    return ApplyResult(
        identifier=identifier,
        applied=verdict is not None,
        reason="Applied" if verdict else "ManifestApplyFailed",
        message="done" if verdict else "the member refused it",
        generation=3 if verdict else None,
        verdict=verdict,
        back_reported=said,
        retry=verdict is None,
    )


def said(status: WorkStatus) -> list[tuple[str, str, str]]:
    return [(one.type, one.status, one.reason) for one in status.conditions]


TABLE = [
    ([], "True AllManifestsApplied", "True AllManifestsAvailable"),
    ([UP, UP], "True AllManifestsApplied", "True AllManifestsAvailable"),
    ([UP, DOWN], "True AllManifestsApplied", "False SomeManifestsAreNotAvailable"),
    ([UP, WHO_KNOWS], "True AllManifestsApplied", "True WorkNotTrackable"),
    ([DOWN, WHO_KNOWS], "True AllManifestsApplied", "False SomeManifestsAreNotAvailable"),
    ([UP, None], "False SomeManifestsAreNotApplied", ""),
    ([None, DOWN], "False SomeManifestsAreNotApplied", ""),
]


@pytest.mark.parametrize(("verdicts", "applied", "available"), TABLE)
def test_the_conditions_of_a_work_summarise_its_manifests(
    verdicts: list[Verdict | None], applied: str, available: str
) -> None:
    results = [result(verdict, ordinal) for ordinal, verdict in enumerate(verdicts)]
    status = work_status(results, WorkStatus(), 4, NOW)
    found = {type_: f"{holds} {reason}" for type_, holds, reason in said(status)}
    assert (found["Applied"], found.get("Available", "")) == (applied, available)
    assert {one.observed_generation for one in status.conditions} == {4}


def test_a_manifest_condition_has_the_generation_of_its_object() -> None:
    status = work_status([result(UP), result(None, 1)], WorkStatus(), 4, NOW)
    assert [[one.observed_generation for one in each.conditions] for each in status.manifest_conditions] == [
        [3, 3],
        [None],
    ]


@pytest.mark.parametrize(
    ("verdict", "conditions"),
    [
        (UP, [("Applied", "True", "Applied"), ("Available", "True", "ManifestAvailable")]),
        (DOWN, [("Applied", "True", "Applied"), ("Available", "False", "ManifestNotAvailableYet")]),
        (WHO_KNOWS, [("Applied", "True", "Applied"), ("Available", "True", "ManifestNotTrackable")]),
        (None, [("Applied", "False", "ManifestApplyFailed")]),
    ],
)
def test_a_manifest_reports_whether_it_is_applied_and_available(
    verdict: Verdict | None, conditions: list[tuple[str, str, str]]
) -> None:
    [found] = work_status([result(verdict)], WorkStatus(), 1, NOW).manifest_conditions
    assert [(one.type, one.status, reason_in_peer(one.reason)) for one in found.conditions] == conditions


def reason_in_peer(reason: str) -> str:
    return {
        reasons.MANIFEST_AVAILABLE: "ManifestAvailable",
        reasons.MANIFEST_NOT_AVAILABLE: "ManifestNotAvailableYet",
        reasons.MANIFEST_NOT_TRACKABLE: "ManifestNotTrackable",
    }.get(reason, reason)


def test_without_a_verdict_availability_is_not_reported() -> None:
    silent = msgspec.structs.replace(result(UP, 1), verdict=None)
    found = work_status([result(UP), silent], WorkStatus(), 1, NOW)
    assert said(found)[1] == ("Available", "True", "AllManifestsAvailable")
    assert [one.type for one in found.manifest_conditions[1].conditions] == ["Applied"]


def test_the_objects_a_work_reports_as_not_applied() -> None:
    status = work_status([result(UP), result(None, 1), result(DOWN, 2)], WorkStatus(), 1, NOW)
    untold = ManifestCondition(identifier=result(UP, 3).identifier, conditions=())
    status = msgspec.structs.replace(status, manifest_conditions=(*status.manifest_conditions, untold))
    assert {each.name for each in not_applied_in(status)} == {"m1"}


def test_availability_is_not_reported_once_something_is_not_applied() -> None:
    before = work_status([result(UP)], WorkStatus(), 1, NOW)
    after = work_status([result(None)], before, 2, LATER)
    assert [one.type for one in after.conditions] == ["Applied"]
    assert [one.type for one in after.manifest_conditions[0].conditions] == ["Applied"]


def test_the_first_object_that_is_not_available_is_named() -> None:
    status = work_status([result(UP), result(DOWN, 1)], WorkStatus(), 1, NOW)
    assert status.conditions[1].message == (
        "1 of 2 manifests are available; Deployment shop/web has 0 of 3 updated replicas"
    )
    status = work_status([result(UP), result(None, 1)], WorkStatus(), 1, NOW)
    assert status.conditions[0].message == "1 of 2 manifests are applied; ConfigMap m1: the member refused it"


def test_the_same_results_give_the_same_status() -> None:
    results = [result(UP), result(DOWN, 1), result(None, 2), result(None, 3, name="m2")]
    before = work_status(results, WorkStatus(), 1, NOW)
    assert work_status(results, before, 1, LATER) == before


def test_a_transition_time_changes_only_with_the_status() -> None:
    before = work_status([result(DOWN)], WorkStatus(), 1, NOW)
    same = work_status([result(DOWN)], before, 1, LATER)
    other = work_status([result(UP)], before, 1, LATER)
    assert [one.last_transition_time for one in same.conditions] == [NOW, NOW]
    assert [one.last_transition_time for one in other.conditions] == [NOW, LATER]
    assert [one.last_transition_time for one in other.manifest_conditions[0].conditions] == [NOW, LATER]


def test_applied_has_the_time_of_the_newest_generation() -> None:
    before = work_status([result(UP)], WorkStatus(), 1, NOW)
    after = work_status([result(UP)], before, 2, LATER)
    assert [one.last_transition_time for one in after.conditions] == [LATER, NOW]
    assert [one.last_transition_time for one in after.manifest_conditions[0].conditions] == [NOW, NOW]


def test_an_object_keeps_its_times_at_another_ordinal() -> None:
    before = work_status([result(UP), result(UP, 1)], WorkStatus(), 1, NOW)
    after = work_status([result(UP, 0, name="m1")], before, 2, LATER)
    assert after.manifest_conditions[0].conditions[0].last_transition_time == NOW


def test_objects_that_could_not_be_removed_are_reported() -> None:
    status = work_status([result(UP)], WorkStatus(), 1, NOW, left_behind="ConfigMap shop/old: forbidden")
    assert status.conditions[0].status == "True"
    assert "ConfigMap shop/old: forbidden" in status.conditions[0].message


def test_an_unchanged_reported_status_keeps_its_time() -> None:
    first, second = (BackReportedStatus(observation_time=time, observed_status={"a": 1}) for time in (NOW, LATER))
    before = work_status([result(said=first)], WorkStatus(), 1, NOW)
    assert work_status([result(said=second)], before, 1, LATER) == before


def test_a_status_that_would_be_too_large_leaves_out_reported_statuses_and_says_so_once() -> None:
    long = BackReportedStatus(observation_time=NOW, observed_status={"text": "x" * 1000})
    results = [result(UP, ordinal, said=long) for ordinal in range(2000)]
    status = work_status(results, WorkStatus(), 1, NOW)
    assert len(msgspec.json.encode(status)) <= MAX_STATUS_BYTES
    assert said(status)[-1] == ("StatusTrimmed", "True", "StatusTrimmed")
    assert work_status(results, status, 1, LATER) == status
    assert len(work_status([result(UP)], status, 1, LATER).conditions) == 2


def test_a_status_may_be_exactly_as_large_as_allowed() -> None:
    assert MAX_STATUS_BYTES == 1_415_578

    def of_size(length: int, *, told: bool = True) -> WorkStatus:
        long = BackReportedStatus(observation_time=NOW, observed_status={"text": "x" * length})
        return work_status([result(said=long if told else None), result(UP, 1)], WorkStatus(), 1, NOW)

    length = MAX_STATUS_BYTES - len(msgspec.json.encode(of_size(0)))
    assert [len(of_size(each).conditions) for each in (length, length + 1)] == [2, 3]
    assert len(of_size(length + 1, told=False).conditions) == 2


@pytest.mark.parametrize("length", [2047, 2048, 2049])
def test_a_message_is_cut_at_the_limit(length: int) -> None:
    wordy = Verdict(available=False, trackable=True, message="x" * length)
    [found] = work_status([result(wordy)], WorkStatus(), 1, NOW).manifest_conditions
    assert found.conditions[1].message == ("x" * length if length <= 2048 else "x" * 2047 + "…")


def test_a_known_retry_time_is_not_exceeded() -> None:
    failing, later = result(None), [msgspec.structs.replace(result(UP), retry_after=each) for each in (0.3, 7.0)]
    status = work_status([failing], WorkStatus(), 1, NOW)
    assert wait_before_retry([*later, result(UP)], status, NOW) == 0.3
    assert wait_before_retry([later[1]], status, NOW) == 7.0
    assert wait_before_retry([later[1], failing], status, NOW) == 0.5
    assert wait_before_retry([*later, failing], status, NOW) == 0.3
    assert wait_before_retry([failing], WorkStatus(), NOW) == 0.5


def test_a_long_message_is_cut() -> None:
    wordy = Verdict(available=False, trackable=True, message="x" * 5000)
    status = work_status([result(wordy)], WorkStatus(), 1, NOW)
    assert max(len(one.message) for one in (*status.conditions, *status.manifest_conditions[0].conditions)) == 2048


def test_failed_objects_are_retried_soon_and_then_less_often() -> None:
    failing = [result(None)]
    status = work_status(failing, WorkStatus(), 1, NOW)
    waits = [wait_before_retry(failing, status, NOW + timedelta(seconds=age)) for age in (0, 1, 4, 10, 3600)]
    assert waits == [0.5, 0.5, 1.0, 2.5, 5.0]
    assert wait_before_retry([result(UP)], status, NOW) is None

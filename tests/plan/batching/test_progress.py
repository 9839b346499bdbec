"""The status after an event and while something is waited for; its conditions are those of where it is."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.oam.rollout_plan import ObjectReference
from kedge.api.oam.rollout_status import (
    BatchState,
    HookResult,
    MetricResult,
    PlannedBatch,
    Remembered,
    RollingState,
    RolloutStatus,
    SourceRecord,
)
from kedge.api.oam.rollouts import AppRolloutStatus
from kedge.plan.batching.progress import PAUSED, is_only_reported, moved, reported, state_of, without_future
from kedge.plan.batching.rollout_waits import BatchCode, waiting_for
from kedge.plan.batching.states import Illegal, RolloutEvent, RolloutState
from kedge.plan.batching.steps import Move
from kedge.plan.moving.wait import Wait
from plan.batching.making import NOW

R = RollingState
B = BatchState
E = RolloutEvent
LATER = NOW + timedelta(minutes=1)
FULL = AppRolloutStatus(
    rollout_original_size=3,
    rollout_target_size=4,
    target_generation="new",
    last_applied_pod_template_identifier="old",
    rolling_state=R.rolling,
    batch_rolling_state=B.ready,
    current_batch=1,
    upgraded_replicas=3,
    upgraded_ready_replicas=2,
    observed_generation=3,
    message="it is paused",
    waiting_since=NOW,
    batch_started_at=NOW,
    batch_available_at=NOW,
    batches=(PlannedBatch(replicas=4, goal=4),),
    sources=(SourceRecord(api_version="apps/v1", kind="Deployment", name="v1", replicas=3),),
    target_before=1,
    hooks=(HookResult(id="1", name="gate", state="Accepted"),),
    metrics=(MetricResult(name="errors", batch=0),),
    remembered=(Remembered(ObjectReference(name="x"), "{}"),),
    desired_size=4,
    retried="1",
    failure="no",
    runs=1,
    last_target_app_revision="v2",
)


def test_a_rollout_without_a_status_is_at_the_beginning() -> None:
    assert state_of(RolloutStatus()) == RolloutState(R.locating, B.initializing)
    assert state_of(FULL) == RolloutState(R.rolling, B.ready)


def test_nothing_is_later_than_now() -> None:
    hooks, metrics = (replace(FULL.hooks[0], time=LATER),), (replace(FULL.metrics[0], time=LATER),)
    times = {"batch_started_at": LATER, "batch_available_at": LATER}
    found = without_future(replace(FULL, hooks=hooks, metrics=metrics, **times), NOW)
    assert (found.batch_started_at, found.batch_available_at) == (NOW, NOW)
    assert (found.hooks[0].time, found.metrics[0].time) == (NOW, NOW)
    assert without_future(found, LATER) == found
    assert without_future(FULL, NOW) == FULL


@pytest.mark.parametrize(("desired", "size", "expected"), [(0, 4, 4), (3, 4, 3), (0, -1, 0), (0, 0, 0)])
def test_a_new_beginning_keeps_the_size_that_it_was_to_have(desired: int, size: int, expected: int) -> None:
    before = RolloutStatus(rolling_state=R.abandoning, desired_size=desired, rollout_target_size=size)
    found = moved(Move(E.finalized, before), before, NOW)
    assert isinstance(found, RolloutStatus)
    assert found.desired_size == expected


@pytest.mark.parametrize(
    ("state", "event", "size", "applied"),
    [
        (R.failed, E.modified, -1, ""),
        (R.failed, E.retried, 0, ""),
        (R.verifying, E.modified, -1, ""),
        (R.failed, E.modified, 3, "old"),
        (R.abandoning, E.finalized, 3, "old"),
        (R.succeeded, E.modified, 3, "old"),
        (R.succeeded, E.modified, 0, "old"),
    ],
)
def test_what_ran_before_a_rollout_that_never_had_a_size_may_be_asked_for_again(
    state: R, event: E, size: int, applied: str
) -> None:
    before = RolloutStatus(rolling_state=state, rollout_target_size=size, last_applied_pod_template_identifier="old")
    found = moved(Move(event, before), before, NOW)
    assert isinstance(found, RolloutStatus)
    assert found.last_applied_pod_template_identifier == applied


def test_an_event_changes_the_state_and_nothing_else() -> None:
    before = replace(FULL, batch_rolling_state=B.rolling)
    given = replace(before, upgraded_replicas=9)
    found = moved(Move(E.batch_rolled, given), before, LATER)
    assert found == replace(given, batch_rolling_state=B.verifying, waiting_since=LATER, message="")
    found = moved(Move(E.failed, given, "why"), before, LATER)
    assert isinstance(found, AppRolloutStatus)
    assert (found.rolling_state, found.batch_rolling_state) == (R.failing, B.initializing)
    assert found.message == "why"


def test_the_next_batch_is_the_next_one() -> None:
    found = moved(Move(E.batch_approved, FULL), FULL, LATER)
    assert isinstance(found, AppRolloutStatus)
    assert (found.current_batch, found.batch_rolling_state) == (2, B.initializing)


def test_an_event_that_cannot_happen_changes_nothing() -> None:
    assert moved(Move(E.located, FULL), FULL, LATER) == Illegal(RolloutState(R.rolling, B.ready), E.located)


FORGOTTEN: dict[str, Any] = {
    "rolling_state": R.locating,
    "batch_rolling_state": B.initializing,
    "target_generation": "",
    "rollout_target_size": -1,
    "batches": (),
    "current_batch": 0,
    "upgraded_replicas": 0,
    "upgraded_ready_replicas": 0,
    "batch_started_at": None,
    "batch_available_at": None,
    "runs": 2,
    "hooks": (),
    "metrics": (),
    "failure": "",
    "message": "",
    "waiting_since": LATER,
}


@pytest.mark.parametrize(
    ("state", "event", "also"),
    [
        (R.abandoning, E.finalized, {}),
        (R.failed, E.retried, {}),
        (R.failed, E.modified, {}),
        (R.verifying, E.modified, {}),
        (R.succeeded, E.modified, {"desired_size": 0, "sources": (), "target_before": 0}),
    ],
)
def test_a_new_beginning_keeps_what_was_before_all_of_it_unless_it_succeeded(
    state: R, event: E, also: dict[str, Any]
) -> None:
    before = replace(FULL, rolling_state=state)
    assert moved(Move(event, before), before, LATER) == replace(FULL, **FORGOTTEN | also)


# What it says


WAIT = waiting_for("the rollout", BatchCode.last_batch, batch=0, batches=2)
PAUSE = Wait("the rollout", BatchCode.paused)


def test_it_says_what_it_waits_for_and_since_when() -> None:
    found = reported(FULL, PAUSE, 7, now=LATER, generation=8)
    assert (found.message, found.waiting_since) == ("it is paused", NOW)
    assert (found.observed_generation, found.upgraded_ready_replicas, found.upgraded_replicas) == (8, 7, 3)
    found = reported(FULL, WAIT, None, now=LATER, generation=8)
    assert found.message == "batch 0 is the last one that may roll, of 2: raise batchPartition to go on"
    assert (found.waiting_since, found.upgraded_ready_replicas) == (LATER, 2)
    found = reported(FULL, None, None, now=LATER, generation=8)
    assert (found.message, found.waiting_since) == ("it is paused", NOW)


def conditions(state: R | None, batch: B | None = None, wait: Wait | None = None, **more: Any) -> dict[str, str]:
    status = RolloutStatus(rolling_state=state, batch_rolling_state=batch, **more)
    found = reported(status, wait, None, now=NOW, generation=8).conditions
    assert all((one.observed_generation, one.last_transition_time) == (8, NOW) for one in found)
    return {one.type: f"{one.status} {one.reason} {one.message}".strip() for one in found}


VERIFIED = {"RolloutSpecVerifying": "True Done"}
INITIALIZED = VERIFIED | {"RolloutInitializing": "True Done"}
ROLLED = INITIALIZED | {"RolloutInProgress": "True Done"}
RUNS = INITIALIZED | {"RolloutInProgress": "False InProgress", PAUSED: "False NotPaused"}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (None, {"RolloutSpecVerifying": "False InProgress"}),
        (R.locating, {"RolloutSpecVerifying": "False InProgress"}),
        (R.verifying, {"RolloutSpecVerifying": "False InProgress"}),
        (R.initializing, VERIFIED | {"RolloutInitializing": "False InProgress"}),
        (R.finalising, ROLLED | {"RolloutFinalizing": "False InProgress"}),
        (R.succeeded, ROLLED | {"RolloutFinalizing": "True Done", "RolloutSucceed": "True Done"}),
        (R.failing, {"RolloutFailing": "False InProgress"}),
        (R.abandoning, {"RolloutAbandoning": "False InProgress"}),
        (R.deleting, {"RolloutDeleting": "False InProgress"}),
        (R.failed, {"RolloutFailed": "True Failed"}),
    ],
)
def test_the_conditions_of_each_state(state: R | None, expected: dict[str, str]) -> None:
    for batch in (None, *B):
        assert conditions(state, batch) == expected


@pytest.mark.parametrize(
    ("batch", "expected"),
    [
        (None, {"BatchInitializing": "False InProgress"}),
        (B.initializing, {"BatchInitializing": "False InProgress"}),
        (B.rolling, {"BatchInitializing": "True Done"}),
        (B.verifying, {"BatchInitializing": "True Done", "BatchVerifying": "False InProgress"}),
        (B.verify_failed, {"BatchRolloutFailed": "False InProgress"}),
        (
            B.finalizing,
            {"BatchInitializing": "True Done", "BatchVerifying": "True Done", "BatchFinalizing": "False InProgress"},
        ),
        (
            B.ready,
            {
                "BatchInitializing": "True Done",
                "BatchVerifying": "True Done",
                "BatchFinalizing": "True Done",
                "BatchReady": "True Done",
            },
        ),
    ],
)
def test_the_conditions_of_each_batch_state(batch: B | None, expected: dict[str, str]) -> None:
    assert conditions(R.rolling, batch) == RUNS | expected


def test_conditions_say_what_is_waited_for() -> None:
    said = "batch 0 is the last one that may roll, of 2: raise batchPartition to go on"
    assert conditions(R.verifying, wait=WAIT) == {"RolloutSpecVerifying": f"False Partition {said}"}
    assert conditions(R.rolling, B.verifying, WAIT)["BatchVerifying"] == f"False Partition {said}"
    found = conditions(R.rolling, B.ready, WAIT)
    assert found["RolloutInProgress"] == f"False Partition {said}"
    assert found["BatchReady"] == f"True Done {said}"
    assert conditions(R.failed, failure="no luck") == {"RolloutFailed": "True Failed no luck"}
    assert conditions(R.initializing, message="so far")["RolloutInitializing"] == "False InProgress so far"


def test_a_pause_is_a_condition_only_as_long_as_it_lasts() -> None:
    assert conditions(R.rolling, B.rolling, PAUSE)[PAUSED] == "True Paused"
    paused = reported(FULL, PAUSE, None, now=NOW, generation=8)
    found = reported(paused, WAIT, None, now=LATER, generation=9)
    (condition,) = (one for one in found.conditions if one.type == PAUSED)
    assert (condition.status, condition.last_transition_time) == ("False", LATER)
    same = reported(found, WAIT, None, now=LATER + timedelta(1), generation=9)
    assert same.conditions == found.conditions
    left = reported(replace(found, rolling_state=R.succeeded), None, None, now=LATER, generation=9)
    assert [one.type for one in left.conditions] == [
        "RolloutSpecVerifying",
        "RolloutInitializing",
        "RolloutInProgress",
        "RolloutFinalizing",
        "RolloutSucceed",
    ]


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ({}, True),
        ({"message": "2 of 4", "waiting_since": LATER}, True),
        ({"upgraded_ready_replicas": 7}, True),
        ({"conditions": ()}, True),
        ({"upgraded_replicas": 7}, False),
        ({"batch_rolling_state": B.verifying}, False),
        ({"rolling_state": R.finalising}, False),
        ({"batch_available_at": LATER}, False),
        ({"batch_started_at": LATER}, False),
        ({"hooks": ()}, False),
        ({"remembered": ()}, False),
        ({"observed_generation": 99}, False),
    ],
)
def test_what_a_wait_says_can_be_lost_and_nothing_else(change: dict[str, Any], wanted: bool) -> None:
    assert is_only_reported(FULL, replace(FULL, **change)) is wanted

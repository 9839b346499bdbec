"""A status that is not ours, or that nobody could have written: no step fails, and none succeeds without proof."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.oam.rollout_plan import HookType, ObjectReference, RolloutPlan, RolloutWebhook
from kedge.api.oam.rollout_status import (
    BatchState,
    HookResult,
    PlannedBatch,
    RollingState,
    RolloutStatus,
    SourceRecord,
)
from kedge.plan.batching.moves import Moves, Workloads
from kedge.plan.batching.partition_moves import PartitionMoves
from kedge.plan.batching.progress import moved, reported
from kedge.plan.batching.rollout import step
from kedge.plan.batching.rollout_story import explained_rollout, tell_rollout
from kedge.plan.batching.scale_moves import ScaleMoves
from kedge.plan.batching.states import RolloutEvent, is_others
from kedge.plan.batching.steps import BatchRolloutInput, Hold, Move
from kedge.plan.workloads.clone_sets import CloneSets
from kedge.plan.workloads.deployments import Deployments
from plan.batching.making import NOW, V1, WAIT, WHO, Answers, deployment, plan_of, rolling, workloads
from plan.batching.rollout_examples import every_kind
from plan.batching.test_properties import MOVES, PLANS

MOSTLY_NOT = st.sampled_from([False, False, False, True])
R, B, E = RollingState, BatchState, RolloutEvent
NUMBERS = st.one_of(st.integers(-3, 12), st.sampled_from([-(2**31), 2**31 - 1]))
TIMES = st.sampled_from([None, NOW, datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC)])
TARGET = ObjectReference(api_version="apps/v1", kind="Deployment", name="v2")
HOOK = RolloutWebhook(type=HookType.pre_batch_rollout, name="ask", url="https://gate.example.com/ask")
STATUSES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "rolling_state": st.sampled_from([None, *R, *[R.rolling] * 6]),
        "batch_rolling_state": st.sampled_from([None, *B]),
        "batches": st.lists(st.builds(PlannedBatch, replicas=NUMBERS, goal=NUMBERS), max_size=3).map(tuple),
        "target_workload": st.sampled_from([None, TARGET, TARGET, TARGET, ObjectReference(kind="Job", name="x")]),
        "sources": st.sampled_from([(), (V1,), (SourceRecord(api_version="", kind="", name="", replicas=-1),)]),
        "hooks": st.builds(
            HookResult, id=st.just("x"), name=st.just("ask"), state=st.sampled_from(["Failed", "?"]), time=TIMES
        ).map(lambda one: (one,)),
        **dict.fromkeys(("current_batch", "rollout_target_size", "rollout_original_size", "desired_size"), NUMBERS),
        **dict.fromkeys(("upgraded_replicas", "upgraded_ready_replicas", "target_before", "runs"), NUMBERS),
        **dict.fromkeys(("batch_started_at", "batch_available_at", "waiting_since"), TIMES),
    }
)


@st.composite
def observations(draw: st.DrawFn) -> BatchRolloutInput:
    plan: RolloutPlan = draw(PLANS)
    plan = RolloutPlan(
        rollout_batches=plan.rollout_batches,
        rollout_strategy=plan.rollout_strategy,
        paused=draw(MOSTLY_NOT),
        revert_on_delete=plan.revert_on_delete,
        target_size=draw(st.none() | st.integers(0, 10)),
        progress_deadline_seconds=draw(st.sampled_from([None, 1, 2**31 - 1])),
        rollout_webhooks=draw(st.sampled_from([(), (HOOK,)])),
    )
    target, source = deployment("v2", draw(st.integers(0, 9))), deployment("v1", draw(st.integers(0, 9)))
    moves: list[tuple[Workloads, Moves]] = [
        (workloads(target, source), MOVES),
        (workloads(target), ScaleMoves(Deployments())),
        (workloads(target, in_place=True), PartitionMoves(CloneSets())),
    ]
    found = draw(st.sampled_from(moves))
    is_located = not draw(MOSTLY_NOT)
    return BatchRolloutInput(
        WHO,
        plan,
        RolloutStatus(**draw(STATUSES)),
        "v2",
        draw(st.sampled_from(["v2", "v2", "v2", "v3", ""])),
        workloads=found[0] if is_located else None,
        moves=found[1] if is_located else None,
        is_deleting=draw(MOSTLY_NOT),
        is_aborted=draw(MOSTLY_NOT),
        retry=draw(st.sampled_from(["", "1"])),
    )


@given(observations())
def test_no_status_fails_a_step_and_each_step_can_be_taken(seen: BatchRolloutInput) -> None:
    found = step(seen, NOW)
    status = seen.status
    if isinstance(found, Move):
        after = moved(found, status, NOW)
        assert isinstance(after, RolloutStatus), after
        status = after
    wait = found.wait if isinstance(found, Hold) else None
    assert reported(status, wait, None, now=NOW, generation=3).observed_generation == 3


@given(observations())
def test_what_another_controller_wrote_is_begun_anew_or_let_go_of_and_never_ends_well(seen: BatchRolloutInput) -> None:
    if not is_others(seen.status):
        return
    found = step(seen, NOW)
    assert isinstance(found, Hold) or (isinstance(found, Move) and found.event in (E.adopted, E.deleted))


@pytest.mark.parametrize("interval", [None, 60])
def test_a_batch_that_began_in_the_future_begins_now(interval: int | None) -> None:
    plan = plan_of(2, 2, progress_deadline_seconds=2**31 - 1)
    batches = tuple(replace(one, instance_interval=interval) for one in plan.rollout_batches or ())
    future = {"batch_started_at": datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)}
    for state in (B.rolling, B.verifying):
        seen = rolling(
            state, plan=replace(plan, rollout_batches=batches), status=future, moves=Answers(roll=WAIT, check=WAIT)
        )
        found = step(seen, NOW)
        assert isinstance(found, Hold)
        assert found.until is not None


@given(STATUSES)
def test_every_status_can_be_told(status: dict[str, Any]) -> None:
    for one in every_kind(status):
        assert explained_rollout(tell_rollout(one), NOW)

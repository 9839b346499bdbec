"""One step of a rollout: what it answers in each state, and what may interrupt it in any."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kedge.api.oam.rollout_plan import (
    HookType,
    OnDeadline,
    RolloutBatch,
    RolloutPlan,
    RolloutStrategy,
    RolloutWebhook,
)
from kedge.api.oam.rollout_status import BatchState, PlannedBatch, RollingState, RolloutStatus, SourceRecord
from kedge.plan.batching.moves import DONE, Step, Verified, Workload, Write
from kedge.plan.batching.progress import moved
from kedge.plan.batching.rollout import ADOPTED, is_modified, step
from kedge.plan.batching.rollout_waits import BatchCode, sentence
from kedge.plan.batching.spec_rules import fixed_part
from kedge.plan.batching.states import ENDED, RolloutEvent
from kedge.plan.batching.steps import Act, Ended, Hold, Move, Next, Note
from kedge.plan.batching.waits import MoveCode
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.traffic.routes import TrafficCode
from plan.batching.making import (
    DECREASE,
    NOW,
    PLAN,
    ROUTE,
    TRAFFIC,
    WAIT,
    WHO,
    WRITE,
    Answers,
    asked_of,
    deployment,
    observed,
    plan_of,
    ref,
    rolling,
    weights_in,
    workloads,
)
from plan.batching.test_autoscalers import hpa

R = RollingState
B = BatchState
E = RolloutEvent
LEAVING = {R.failing, R.abandoning, R.deleting}
MINUTE = timedelta(minutes=1)
MISSING = Wait("the target", BatchCode.missing)
every_state = pytest.mark.parametrize("state", R)


def event(found: Next) -> RolloutEvent | None:
    return found.event if isinstance(found, Move) else None


def held(found: Next) -> str:
    assert isinstance(found, Hold), found
    return sentence(found.wait)


def code(found: Next) -> str:
    assert isinstance(found, Hold), found
    return found.wait.code


# In any state


@every_state
def test_a_deletion_is_heard_in_every_state(state: R) -> None:
    seen = observed(state, is_deleting=True, wanted="v3", is_aborted=True)
    found = step(seen, NOW)
    if state in ENDED:
        assert found == Ended()
    elif state is R.deleting:
        assert event(found) is E.finalized
    else:
        assert found == Move(E.deleted, seen.status)


@every_state
def test_another_target_is_heard_in_every_state_but_where_it_makes_no_difference_or_comes_too_late(state: R) -> None:
    seen = observed(state, wanted="v3", is_aborted=True)
    found = step(seen, NOW)
    if state in (R.locating, R.abandoning, R.deleting):
        assert event(found) is not E.modified
    else:
        assert found == Move(E.modified, seen.status)


@every_state
def test_an_abort_fails_what_has_not_ended(state: R) -> None:
    seen = observed(state, is_aborted=True)
    found = step(seen, NOW)
    if state in ENDED or state in LEAVING:
        assert event(found) is not E.failed
    else:
        failed = replace(seen.status, failure="it was aborted", observed_generation=seen.identity.generation)
        assert found == Move(E.failed, failed, "it was aborted")


@pytest.mark.parametrize(
    ("moving", "wanted", "size", "fixed", "expected"),
    [
        ("", "v2", None, None, False),
        ("v2", "v2", None, None, False),
        ("v2", "v3", None, None, True),
        ("v2", "v2", 1, 2, True),
        ("v2", "v2", 2, 2, False),
        ("v2", "v2", 0, 2, True),
        ("v2", "v2", None, 2, False),
        ("v2", "v2", 1, None, False),  # its size is not known yet
        ("", "v2", 1, 2, False),
    ],
)
def test_whether_it_is_asked_for_something_else(
    moving: str, wanted: str, size: int | None, fixed: int | None, expected: bool
) -> None:
    seen = observed(R.succeeded, plan=RolloutPlan(target_size=size), moving=moving, wanted=wanted)
    batches = (PlannedBatch(replicas=fixed, goal=fixed),) if fixed is not None else ()
    seen = replace(
        seen, status=replace(seen.status, rollout_target_size=fixed if fixed is not None else -1, batches=batches)
    )
    assert is_modified(seen) is expected
    assert event(step(seen, NOW)) == (E.modified if expected else None)


OTHER_PLAN = plan_of(2, 1, "100%")
WITH_V0 = workloads(deployment("v2", 0), deployment("v1", 4), deployment("v0", 1))


@pytest.mark.parametrize("more", [{"plan": OTHER_PLAN}, {"workloads": WITH_V0}])
@pytest.mark.parametrize(
    ("state", "batch", "expected"),
    [
        (R.initializing, None, True),
        (R.initializing, B.ready, True),
        (R.rolling, None, True),
        (R.rolling, B.initializing, True),
        (R.rolling, B.rolling, True),
        (R.rolling, B.verifying, False),  # nothing of this batch moves any more
        (R.rolling, B.ready, False),
        (R.finalising, B.rolling, False),
        (R.succeeded, B.rolling, False),
        (R.failed, B.rolling, False),
    ],
)
def test_what_comes_back_to_its_target_with_another_beginning_begins_anew(
    state: R, batch: B | None, more: dict[str, Any], *, expected: bool
) -> None:
    """It was asked for another target in between: else nothing of this could change."""
    seen = replace(observed(state, batch), **more)
    assert is_modified(seen) is expected
    assert (event(step(seen, NOW)) == E.modified) is expected


def test_later_batches_or_a_plan_that_does_not_add_up_are_no_other_beginning() -> None:
    for plan in (plan_of(1, 1, "100%"), plan_of(2, 3, "100%")):
        assert not is_modified(replace(rolling(B.rolling), plan=plan))
    assert not is_modified(replace(rolling(B.rolling), plan=OTHER_PLAN, workloads=None))
    assert is_modified(replace(rolling(B.rolling, status={"current_batch": 1}), plan=plan_of(1, 1, "100%")))


@pytest.mark.parametrize("state", sorted(ENDED))
def test_what_has_ended_is_left_alone(state: R) -> None:
    moves = Answers()
    for seen in (observed(state, moves=moves), observed(state, moves=moves, workloads=None)):
        assert step(seen, NOW) == Ended()
    assert moves.asked == []


@pytest.mark.parametrize(
    ("state", "retry", "retried", "expected"),
    [
        (R.failed, "1", "", True),
        (R.failed, "2", "1", True),
        (R.failed, "1", "1", False),
        (R.failed, "", "1", False),
        (R.succeeded, "1", "", False),
    ],
)
def test_a_failed_rollout_is_tried_again_when_somebody_asks(state: R, retry: str, retried: str, expected: bool) -> None:
    seen = observed(state, retry=retry, status={"retried": retried})
    found = step(seen, NOW)
    assert found == (Move(E.retried, replace(seen.status, retried=retry)) if expected else Ended())
    assert step(replace(seen, is_deleting=True), NOW) == Ended()


@pytest.mark.parametrize(
    ("state", "batches", "generation", "expected"),
    [
        (R.failed, False, 2, E.retried),
        (R.failed, False, 3, None),
        (R.failed, True, 2, None),
        (R.succeeded, False, 2, None),
    ],
)
def test_what_failed_before_it_touched_anything_may_be_mended_by_an_edit(
    state: R, batches: bool, generation: int, expected: E | None
) -> None:
    seen = observed(state, status={"observed_generation": generation})
    if not batches:
        seen = replace(seen, status=replace(seen.status, batches=()))
    assert event(step(seen, NOW)) is expected


# Before the first batch


def test_a_rollout_without_a_status_is_at_the_beginning() -> None:
    for state in (None, R.locating):
        found = step(observed(state, moving=""), NOW)
        assert isinstance(found, Move)
        assert found.event is E.located
        assert found.status.sources == (SourceRecord(api_version="apps/v1", kind="Deployment", name="v1", replicas=3),)
        assert found.status.target_before == 1


NOWHERE: dict[str, Any] = {"workloads": None, "moves": None}
WAITS = Wait("component", "ComponentMissing")


@pytest.mark.parametrize("state", [R.locating, R.verifying, R.initializing, R.rolling])
def test_what_cannot_be_found_is_waited_for_or_fails(state: R) -> None:
    assert step(observed(state, **NOWHERE), NOW) == Hold(MISSING)
    assert step(observed(state, **NOWHERE, wait=WAITS), NOW) == Hold(WAITS)
    found = step(observed(state, **NOWHERE, wait=WAITS, problem="no such kind"), NOW)
    assert isinstance(found, Move)
    assert (found.event, found.message, found.status.failure) == (E.failed, "no such kind", "no such kind")


@pytest.mark.parametrize("state", [R.verifying, R.initializing, R.rolling])
def test_workloads_without_moves_are_not_enough(state: R) -> None:
    assert step(observed(state, moves=None), NOW) == Hold(MISSING)
    assert step(observed(state, workloads=None), NOW) == Hold(MISSING)


def test_it_is_not_located_while_something_is_missing() -> None:
    assert step(observed(R.locating, wait=WAITS), NOW) == Hold(WAITS)
    assert event(step(observed(R.locating, problem="x"), NOW)) is E.failed


def test_a_source_that_is_missing_is_waited_for_and_what_to_do_is_said() -> None:
    seen = observed(R.locating, workloads=workloads(deployment("v2", 0), Workload(ref("v1"))))
    assert held(step(seen, NOW)) == "Deployment shop/v1 does not exist: if nothing ran before, remove it from sourceRef"


# Begun by another controller


@pytest.mark.parametrize("state", [R.initializing, R.rolling, R.finalising, R.abandoning])
@pytest.mark.parametrize("missing", ["batches", "target_workload"])
def test_what_another_controller_began_begins_anew_with_the_size_that_it_was_to_have(state: R, missing: str) -> None:
    nothing: dict[str, Any] = {"batches": (), "target_workload": None}
    seen = observed(state, B.ready, status={missing: nothing[missing], "current_batch": 1}, **NOWHERE)
    found = step(seen, NOW)
    assert found == Move(E.adopted, seen.status, ADOPTED)
    after = moved(found, seen.status, NOW)
    assert isinstance(after, RolloutStatus)
    assert (after.rolling_state, after.current_batch, after.desired_size) == (R.locating, 0, 4)


def test_without_a_size_it_is_to_have_all_pods_that_are_asked_for() -> None:
    unknown = {"batches": (), "rollout_target_size": -1}
    found = step(observed(R.rolling, status=unknown), NOW)
    assert isinstance(found, Move)
    assert (found.event, found.status.rollout_target_size) == (E.adopted, 4)
    assert step(observed(R.rolling, status=unknown, workloads=None), NOW) == Hold(MISSING)
    assert (
        event(step(observed(R.rolling, plan=RolloutPlan(target_size=3), status=unknown, **NOWHERE), NOW)) is E.adopted
    )


def test_what_another_controller_ended_is_begun_anew_only_for_another_size_or_target() -> None:
    ended = {"batches": (), "target_workload": None, "rollout_target_size": 4, "observed_generation": 0}
    for state in sorted(ENDED):
        assert step(observed(state, status=ended), NOW) == Ended()
        assert event(step(observed(state, status=ended, is_deleting=True), NOW)) is None
    assert event(step(observed(R.succeeded, plan=RolloutPlan(target_size=5), status=ended), NOW)) is E.modified
    assert event(step(observed(R.succeeded, wanted="v3", status=ended), NOW)) is E.modified
    assert event(step(observed(R.failed, retry="1", status=ended), NOW)) is E.retried


def test_what_verification_finds_is_fixed() -> None:
    moves = Answers(verify=Verified(3, 4, "hash"))
    seen = observed(R.verifying, moves=moves, status={"current_batch": 2, "batches": ()})
    found = step(seen, NOW)
    assert found == Move(
        E.verified,
        replace(
            seen.status,
            rollout_original_size=3,
            rollout_target_size=4,
            desired_size=4,
            target_generation="hash",
            batches=(
                PlannedBatch(replicas=1, goal=1),
                PlannedBatch(replicas=2, goal=3),
                PlannedBatch(replicas=1, goal=4),
            ),
            fixed_plan=fixed_part(PLAN),
            current_batch=0,
        ),
    )


def test_a_scale_operation_is_planned_as_one() -> None:
    plan = RolloutPlan(num_batches=2)
    alone = workloads(deployment("v2", 3))
    seen = observed(R.verifying, plan=plan, workloads=alone, moves=Answers(verify=Verified(3, 7, "hash")))
    found = step(seen, NOW)
    assert isinstance(found, Move)
    assert [one.goal for one in found.status.batches] == [5, 7]


def test_verification_may_wait_or_fail() -> None:
    assert step(observed(R.verifying, moves=Answers(verify=WAIT)), NOW) == Hold(WAIT.wait or MISSING)
    found = step(observed(R.verifying, moves=Answers(verify=Step(failure="no"))), NOW)
    assert isinstance(found, Move)
    assert (found.event, found.message) == (E.failed, "no")
    found = step(observed(R.verifying, moves=Answers(verify=Verified(3, 3, "hash"))), NOW)
    assert isinstance(found, Move)
    assert (found.event, found.status.failure) == (
        E.failed,
        "the batches before the last one take 3 of 3 pods, which leaves none to the last one",
    )


INVALID = plan_of(1, 2, "100%", num_batches=2)


@pytest.mark.parametrize("state", [R.verifying, R.rolling])
def test_a_plan_that_is_not_valid_holds_the_rollout_where_it_is(state: R) -> None:
    moves = Answers(verify=Verified(3, 4, "hash"))
    found = step(observed(state, plan=INVALID, moves=moves), NOW)
    assert code(found) == BatchCode.invalid
    assert held(found).startswith("spec.rolloutPlan.numBatches: ")
    assert moves.asked == []


def hook(type_: HookType) -> RolloutWebhook:
    return RolloutWebhook(type=type_, name="gate", url="https://hooks/gate")


def with_hook(type_: HookType, plan: RolloutPlan = PLAN) -> RolloutPlan:
    return replace(plan, rollout_webhooks=(hook(type_),))


def test_the_workloads_are_taken_over_after_hooks_and_autoscalers() -> None:
    moves = Answers(initialize=WRITE)
    found = step(observed(R.initializing, plan=with_hook(HookType.initialize_rollout), moves=moves), NOW)
    assert asked_of(found) == ("initializing", None)
    found = step(observed(R.initializing, autoscalers=(hpa(scales=ref("v1")),), moves=moves), NOW)
    assert code(found) == BatchCode.autoscaler
    assert moves.asked == []
    assert step(observed(R.initializing, moves=moves), NOW) == Act(WRITE.writes)
    assert moves.asked == [("initialize", WHO.claim)]
    assert WHO.claim == "Rollout/web/uid-1"
    seen = observed(R.initializing)
    assert step(seen, NOW) == Move(E.initialized, seen.status)


def test_a_target_that_is_created_to_know_its_size_waits_for_a_pause_and_for_hooks() -> None:
    creating = Step((Write(ref("v2"), create={"kind": "DaemonSet"}),))
    paused = step(observed(R.verifying, plan=replace(PLAN, paused=True), moves=Answers(verify=creating)), NOW)
    assert paused == Hold(Wait("the rollout", BatchCode.paused))
    hooked = with_hook(HookType.initialize_rollout)
    assert asked_of(step(observed(R.verifying, plan=hooked, moves=Answers(verify=creating)), NOW)) == (
        "initializing",
        None,
    )
    assert step(observed(R.verifying, moves=Answers(verify=creating)), NOW) == Act(creating.writes)
    waits = Answers(verify=Step(wait=Wait("DaemonSet shop/web", "Scaling")))
    assert code(step(observed(R.verifying, plan=hooked, moves=waits), NOW)) == "Scaling"


# Batches


def test_a_paused_rollout_takes_its_workloads_over_and_scales_none() -> None:
    paused = RolloutPlan(paused=True)
    claiming = Step((Write(ref("v1"), {"metadata": {"annotations": {"claim": "web"}}}), Write(ref("v2"), create={})))
    assert step(observed(R.initializing, plan=paused, moves=Answers(initialize=claiming)), NOW) == Act(claiming.writes)
    scaling = Step((*claiming.writes, Write(ref("v2"), {"spec": {"replicas": 0}})))
    found = step(observed(R.initializing, plan=paused, moves=Answers(initialize=scaling)), NOW)
    assert found == Hold(Wait("the rollout", BatchCode.paused))
    assert step(observed(R.initializing, moves=Answers(initialize=scaling)), NOW) == Act(scaling.writes)


def test_what_was_fixed_when_it_began_holds_it_until_it_is_as_before() -> None:
    moves, fixed = Answers(roll=WRITE), {"fixed_plan": fixed_part(PLAN)}
    changed = replace(PLAN, rollout_strategy=RolloutStrategy.decrease_first)
    assert code(step(rolling(B.rolling, plan=changed, status=fixed, moves=moves), NOW)) == BatchCode.invalid
    assert moves.asked == []
    assert step(rolling(B.rolling, plan=PLAN, status=fixed, moves=moves), NOW) == Act(WRITE.writes)


def test_a_paused_rollout_stands_still_before_anything_else() -> None:
    moves = Answers(roll=WRITE)
    for batch in B:
        plan = replace(INVALID, paused=True)
        found = step(rolling(batch, plan=plan, moves=moves), NOW)
        assert found == Hold(Wait("the rollout", BatchCode.paused))
    assert moves.asked == []


@pytest.mark.parametrize(
    ("code", "numbers", "words"),
    [
        (MoveCode.not_found, {}, "Deployment shop/v2 does not exist"),
        (MoveCode.not_observed, {}, "Deployment shop/v2 has changed, and its controller has not reported on that yet"),
        (MoveCode.pods_left, {"pods": 3, "goal": 2}, "Deployment shop/v2 has 3 pods and is to have 2"),
        (
            MoveCode.not_available,
            {"available": 0, "goal": 1, "tolerated": 0},
            "earlier batches have to stay available, and 0 of 1 pods of Deployment shop/v2 are",
        ),
    ],
)
def test_what_an_earlier_batch_lost_is_said_with_the_numbers_that_are_known(
    code: str, numbers: dict[str, int], words: str
) -> None:
    moves = Answers(check=Step(wait=Wait("Deployment shop/v2", code, numbers)))
    found = step(rolling(B.initializing, status={"current_batch": 1}, moves=moves), NOW)
    assert isinstance(found, Hold)
    assert sentence(found.wait).startswith(words)


def test_a_batch_begins_when_those_before_it_are_available_and_everybody_agrees() -> None:
    second = {"current_batch": 1, "batch_available_at": NOW}
    seen = rolling(B.initializing, status=second)
    assert step(seen, NOW) == Move(
        E.batch_initialized, replace(seen.status, batch_started_at=NOW, batch_available_at=None)
    )
    none = observed(R.rolling, None)
    assert event(step(none, NOW)) is E.batch_initialized
    moves = Answers(check=WAIT)
    lost = step(rolling(B.initializing, status=second, moves=moves), NOW)
    assert lost == Hold(replace(WAIT.wait or MISSING, code=BatchCode.proof_lost))
    assert [(name, batch.index, batch.goal) for name, batch in moves.asked] == [("check", 0, 1)]
    assert event(step(rolling(B.initializing, moves=moves), NOW)) is E.batch_initialized
    autoscalers = (hpa(scales=ref("v1")),)
    plan = with_hook(HookType.pre_batch_rollout)
    found = step(rolling(B.initializing, status=second, autoscalers=autoscalers, plan=plan), NOW)
    assert code(found) == BatchCode.autoscaler
    found = step(rolling(B.initializing, status=second, plan=plan), NOW)
    assert asked_of(found) == ("batchInitializing", 1)


def test_a_batch_is_rolled_until_it_is_done() -> None:
    second = {"current_batch": 1}
    moves = Answers(roll=WRITE)
    assert step(rolling(B.rolling, status=second, moves=moves), NOW) == Act(WRITE.writes)
    ((_, asked),) = moves.asked
    assert (asked.index, asked.before, asked.goal, asked.total) == (1, 1, 3, 4)
    assert step(rolling(B.rolling, status=second, moves=Answers(roll=WAIT)), NOW) == Hold(WAIT.wait or MISSING)
    seen = rolling(B.rolling, status=second)
    assert step(seen, NOW) == Move(E.batch_rolled, replace(seen.status, upgraded_replicas=3))
    found = step(rolling(B.rolling, moves=Answers(roll=Step(failure="no"))), NOW)
    assert event(found) is E.failed


def paced(seconds: int, **more: Any) -> RolloutPlan:
    batches = (RolloutBatch(replicas=3, instance_interval=seconds), RolloutBatch(replicas="100%"))
    return RolloutPlan(rollout_batches=batches, **more)


@pytest.mark.parametrize(
    ("after", "goal", "next_pod"), [(0, 1, 10), (9, 1, 10), (10, 2, 20), (19, 2, 20), (20, 3, None), (99, 3, None)]
)
def test_the_pods_of_a_batch_begin_one_after_the_other(after: int, goal: int, next_pod: int | None) -> None:
    since, moves = NOW - timedelta(seconds=after), Answers()
    found = step(rolling(B.rolling, plan=paced(10), moves=moves, status={"batch_started_at": since}), NOW)
    assert [batch.goal for _, batch in moves.asked] == [goal]
    if next_pod is None:
        assert event(found) is E.batch_rolled
    else:
        assert isinstance(found, Hold)
        assert found.until == since + timedelta(seconds=next_pod)
        assert found.wait.unit == "batch 0"
        assert sentence(found.wait) == f"{goal} of 3 pods of the batch have begun, one every 10 s"
        waiting = rolling(B.rolling, plan=paced(10), moves=Answers(roll=WAIT), status={"batch_started_at": since})
        assert step(waiting, NOW) == Hold(WAIT.wait or MISSING)


def test_the_pods_of_a_later_batch_are_counted_from_where_it_began() -> None:
    batches = (RolloutBatch(replicas=1), RolloutBatch(replicas=2, instance_interval=10), RolloutBatch(replicas="100%"))
    status = {"batch_started_at": NOW, "current_batch": 1}
    found = step(rolling(B.rolling, plan=RolloutPlan(rollout_batches=batches), status=status), NOW)
    assert held(found) == "1 of 2 pods of the batch have begun, one every 10 s"


def test_pods_are_removed_one_after_the_other_too() -> None:
    plan = paced(10, target_size=0)
    moves = Answers()
    status = {"rollout_original_size": 4, "rollout_target_size": 0, "batch_started_at": NOW}
    batches = (PlannedBatch(replicas=3, goal=1), PlannedBatch(replicas=1, goal=0))
    seen = rolling(B.rolling, plan=plan, moves=moves, workloads=workloads(deployment("v2", 4)))
    step(replace(seen, status=msgspec.structs.replace(seen.status, batches=batches, **status)), NOW)
    assert [(batch.before, batch.goal) for _, batch in moves.asked] == [(4, 3)]


ADDS = replace(WRITE.writes[0], takes_away=False)
WITH_TRAFFIC = replace(PLAN, traffic=TRAFFIC)


@pytest.mark.parametrize(
    ("plan", "sources", "answer", "waits"),
    [
        (WITH_TRAFFIC, 1, WRITE, True),
        (WITH_TRAFFIC, 1, Step((ADDS, *WRITE.writes)), True),
        (WITH_TRAFFIC, 1, Step((ADDS,)), False),
        (WITH_TRAFFIC, 1, DONE, False),
        (WITH_TRAFFIC, 1, replace(WRITE, makes_room=True), False),
        (WITH_TRAFFIC, 0, WRITE, False),
        (replace(WITH_TRAFFIC, rollout_strategy=DECREASE), 1, WRITE, False),
        (PLAN, 1, WRITE, False),
    ],
)
def test_pods_are_taken_away_when_their_traffic_has_gone(
    plan: RolloutPlan, sources: int, answer: Step, waits: bool
) -> None:
    these = workloads(deployment("v2", 1), *[deployment("v1", 3)][:sources])
    found = step(rolling(B.rolling, plan=plan, workloads=these, moves=Answers(roll=answer)), NOW)
    assert (isinstance(found, Hold) and found.wait.code == TrafficCode.route_missing) is waits


def test_traffic_follows_the_pods_that_have_begun() -> None:
    """One pod of four has begun, so that it gets a quarter."""
    plan = replace(paced(10), traffic=TRAFFIC)
    recorded = step(rolling(B.rolling, plan=plan, moves=Answers(roll=WRITE), route=ROUTE), NOW)
    assert isinstance(recorded, Note)
    status = {"remembered": recorded.status.remembered, "batch_started_at": NOW}
    found = step(rolling(B.rolling, plan=plan, moves=Answers(roll=WRITE), route=ROUTE, status=status), NOW)
    assert isinstance(found, Act)
    assert found.route is not None
    assert weights_in(found.route.patch) == [75, 25]


# Verification


def test_a_batch_is_available_when_pods_traffic_and_metrics_say_so() -> None:
    seen = rolling(B.verifying)
    assert step(seen, NOW) == Note(replace(seen.status, batch_available_at=NOW))
    seen = rolling(B.verifying, status={"batch_available_at": NOW})
    assert step(seen, NOW) == Move(E.batch_available, seen.status)
    found = step(rolling(B.verifying, plan=WITH_TRAFFIC), NOW)
    assert code(found) == TrafficCode.route_missing
    alone = workloads(deployment("v2", 1))
    found = step(rolling(B.verifying, plan=WITH_TRAFFIC, workloads=alone), NOW)
    assert isinstance(found, Note)


def test_a_batch_that_is_not_available_any_more_is_measured_anew() -> None:
    moves = Answers(check=WAIT)
    assert step(rolling(B.verifying, moves=moves), NOW) == Hold(WAIT.wait or MISSING)
    seen = rolling(B.verifying, moves=moves, status={"batch_available_at": NOW})
    assert step(seen, NOW) == Note(replace(seen.status, batch_available_at=None))


def test_a_batch_that_is_said_to_have_failed_fails_the_rollout() -> None:
    found = step(rolling(B.verify_failed), NOW)
    assert isinstance(found, Move)
    assert (found.event, found.message) == (E.failed, "batch 0 failed its verification")


# Between batches


@pytest.mark.parametrize(
    ("current", "expected"), [(0, E.batch_finished), (1, E.batch_finished), (2, E.all_batches_finished)]
)
def test_after_the_last_batch_all_are_finished(current: int, expected: E) -> None:
    seen = rolling(B.finalizing, status={"current_batch": current})
    assert step(seen, NOW) == Move(expected, seen.status)
    found = step(
        rolling(B.finalizing, plan=with_hook(HookType.post_batch_rollout), status={"current_batch": current}), NOW
    )
    assert asked_of(found) == ("batchFinalizing", current)


@pytest.mark.parametrize(
    ("partition", "current", "goes_on"),
    [(None, 0, True), (0, 0, False), (1, 0, True), (1, 1, False), (0, 1, False), (2, 1, True), (9, 1, True)],
)
def test_no_batch_after_the_partition_begins(partition: int | None, current: int, goes_on: bool) -> None:
    for field in ("batch_partition", "last_batch_to_rollout"):
        plan = msgspec.structs.replace(PLAN, **{field: partition})
        seen = rolling(B.ready, plan=plan, status={"current_batch": current})
        found = step(seen, NOW)
        if goes_on:
            assert found == Move(E.batch_approved, seen.status)
        else:
            assert isinstance(found, Hold)
            assert found.wait.unit == "the rollout"
            assert held(found) == (
                f"batch {current} is the last one that may roll, of 3: raise batchPartition to go on"
            )


def test_batches_that_have_not_begun_may_be_changed() -> None:
    seen = rolling(B.ready)
    other = replace(seen, plan=plan_of(1, 1, "100%"))
    found = step(other, NOW)
    assert isinstance(found, Note)
    assert [one.goal for one in found.status.batches] == [1, 2, 4]
    found = step(replace(seen, plan=plan_of(2, 1, "100%")), NOW)
    assert held(found) == "only batches after batch 0 can be changed: it has begun"
    assert code(found) == BatchCode.invalid
    found = step(replace(seen, plan=plan_of(1, 3, "100%")), NOW)
    assert held(found).startswith("the batches before the last one take 4 of 4 pods")


# Deadlines


@pytest.mark.parametrize("batch", [B.rolling, B.verifying])
@pytest.mark.parametrize(
    ("on_deadline", "after", "expected"),
    [
        (None, 0, "waits"),
        (None, 29, "waits"),
        (None, 30, "fails"),
        (OnDeadline.fail, 31, "fails"),
        (OnDeadline.hold, 29, "waits"),
        (OnDeadline.hold, 30, "holds"),
    ],
)
def test_a_batch_that_takes_too_long_fails_or_is_held(
    batch: B, on_deadline: OnDeadline | None, after: int, expected: str
) -> None:
    plan = replace(PLAN, progress_deadline_seconds=30, on_deadline=on_deadline)
    since = NOW - timedelta(seconds=after)
    wait = replace(WAIT.wait or MISSING, blockers=(Blocker("v2-1", reported="ImagePullBackOff"), Blocker("v2-2")))
    moves = Answers(roll=Step(wait=wait), check=Step(wait=wait))
    status = {"batch_started_at": since, "current_batch": 1}
    found = step(rolling(batch, plan=plan, moves=moves, status=status), NOW)
    if expected == "waits":
        assert found == Hold(wait, since + timedelta(seconds=30))
    elif expected == "holds":
        assert isinstance(found, Hold)
        assert (found.wait.unit, found.until) == ("Deployment shop/v2", None)
        assert sentence(found.wait) == "the batch takes longer than 30 s: ImagePullBackOff"
    else:
        assert isinstance(found, Move)
        late = "batch 1 was not available within 30 s: 0 of 1 pods of Deployment shop/v2 are available"
        assert (found.event, found.message[: len(late)]) == (E.failed, late)
        assert "v2-1" in found.message


@pytest.mark.parametrize(("until", "expected"), [(5, 5), (90, 30), (None, 30)])
def test_a_deadline_does_not_make_a_wait_longer(until: int | None, expected: int) -> None:
    plan = replace(PLAN, progress_deadline_seconds=30)
    blockers = (Blocker("v2-1", until=None if until is None else NOW + timedelta(seconds=until)),)
    moves = Answers(
        roll=Step(wait=Wait("v2", MoveCode.not_available, WAIT.wait.numbers if WAIT.wait else {}, blockers))
    )
    found = step(rolling(B.rolling, plan=plan, moves=moves, status={"batch_started_at": NOW}), NOW)
    assert isinstance(found, Hold)
    assert found.until == NOW + timedelta(seconds=expected)


def test_without_a_deadline_or_a_start_a_wait_has_no_end() -> None:
    moves = Answers(roll=WAIT)
    deadline = replace(PLAN, progress_deadline_seconds=30)
    assert step(rolling(B.rolling, plan=deadline, moves=moves), NOW) == Hold(WAIT.wait or MISSING)
    started = {"batch_started_at": NOW - MINUTE}
    assert step(rolling(B.rolling, moves=moves, status=started), NOW) == Hold(WAIT.wait or MISSING)
    writing = rolling(B.rolling, plan=deadline, moves=Answers(roll=WRITE), status=started)
    assert step(writing, NOW) == Act(WRITE.writes)

"""How a rollout ends: what is given back in which order, and that nothing that is gone keeps it from ending."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.oam.rollout_plan import HookType, OnAutoscaler, RolloutPlan, RolloutWebhook
from kedge.api.oam.rollout_status import Remembered, RollingState, SourceRecord
from kedge.plan.batching.autoscalers import Autoscaler, autoscaler_step
from kedge.plan.batching.moves import Step, Write
from kedge.plan.batching.records import with_old_target
from kedge.plan.batching.rollout import step
from kedge.plan.batching.states import RolloutEvent
from kedge.plan.batching.steps import Act, BatchRolloutInput, Hold, Move, Next, Note
from kedge.plan.batching.traffic import GIVE_UP, LOOK_AGAIN, TrafficRecord, remembered_ref
from kedge.plan.moving.wait import Blocker, Wait
from kedge.plan.traffic.routes import RouteProblem, TrafficCode
from kedge.plan.traffic.shifting import WeightsBefore
from plan.batching.making import (
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
    ref,
    weights_in,
    workloads,
)
from plan.batching.test_autoscalers import hpa, written
from plan.traffic.manifests import patched

R = RollingState
E = RolloutEvent
ENDINGS = (R.finalising, R.failing, R.abandoning, R.deleting)
SECOND = timedelta(seconds=1)
HOOK = replace(
    PLAN, rollout_webhooks=(RolloutWebhook(type=HookType.finalize_rollout, name="end", url="https://hooks/end"),)
)
every_ending = pytest.mark.parametrize("state", ENDINGS)
way_back = pytest.mark.parametrize("state", ENDINGS[1:])


def ending(state: R, **more: Any) -> BatchRolloutInput:
    return observed(state, **{"is_deleting": state is R.deleting, **more})


def stopped(scales: str = "v1") -> Autoscaler:
    """An HPA that the rollout has stopped."""
    one = hpa(scales=ref(scales))
    found = autoscaler_step((one,), [ref(scales)], OnAutoscaler.take_over, WHO.claim)
    return written([one], found.step.writes)[0]


# All ways of ending


@every_ending
def test_workloads_are_let_go_of_then_hooks_are_told(state: R) -> None:
    moves = Answers(finalize=WRITE)
    assert step(ending(state, plan=HOOK, moves=moves), NOW) == Act(WRITE.writes)
    assert moves.asked == [("finalize", state is R.finalising)]
    wait = Wait("v2", "Leaving", {}, (Blocker("a", until=NOW + SECOND), Blocker("b", until=NOW), Blocker("c")))
    assert step(ending(state, moves=Answers(finalize=Step(wait=wait))), NOW) == Hold(wait, NOW)
    assert asked_of(step(ending(state, plan=HOOK), NOW)) == (state.value, None)


@every_ending
def test_what_is_gone_does_not_keep_it_from_ending(state: R) -> None:
    for gone in ({"workloads": None}, {"moves": None}, {"workloads": None, "moves": None, "problem": "x"}):
        found = step(ending(state, plan=replace(PLAN, revert_on_delete=True), **gone), NOW)
        assert isinstance(found, Move)
        assert found.event is E.finalized
    found = step(ending(state, moves=Answers(finalize=Step(failure="cannot"))), NOW)
    assert isinstance(found, Move)
    assert found.event is E.finalized


@every_ending
def test_autoscalers_go_on_before_the_workloads_are_let_go_of(state: R) -> None:
    moves = Answers(finalize=WRITE)
    found = step(ending(state, autoscalers=(stopped(),), moves=moves), NOW)
    assert isinstance(found, Act)
    assert moves.asked == []
    (write,) = found.writes
    assert (write.patch or {})["spec"]["scaleTargetRef"]["name"] == ("v2" if state is R.finalising else "v1")
    away = step(ending(state, autoscalers=(stopped(),), moves=moves, workloads=None), NOW)
    assert isinstance(away, Act)
    assert (away.writes[0].patch or {})["spec"]["scaleTargetRef"]["name"] == "v1"


KEPT = Remembered(TRAFFIC.route_ref, "{}")


def test_a_success_is_remembered_by_its_template() -> None:
    given = {"remembered": (KEPT,), "target_generation": "new", "desired_size": 4}
    seen = ending(R.finalising, status=given)
    assert step(seen, NOW) == Move(
        E.finalized,
        replace(seen.status, remembered=(), last_applied_pod_template_identifier="new", desired_size=0),
    )


def test_after_a_failure_what_has_moved_stays() -> None:
    moves = Answers(revert=WRITE)
    for state in (R.failing, R.deleting):
        seen = ending(state, moves=moves, status={"remembered": (KEPT,), "target_generation": "new"})
        assert seen.workloads is not None
        recorded = with_old_target(seen.status, seen.workloads.target) if state is R.failing else seen.status
        assert step(seen, NOW) == Move(E.finalized, replace(recorded, remembered=()))
    assert {name for name, _ in moves.asked} == {"finalize"}


def test_a_target_that_is_abandoned_is_one_of_the_old_revisions() -> None:
    seen = ending(R.abandoning, status={"target_before": 1})
    record = SourceRecord(api_version="apps/v1", kind="Deployment", name="v2", replicas=1)
    assert step(seen, NOW) == Move(E.finalized, replace(seen.status, sources=(*seen.status.sources, record)))
    seen = replace(seen, workloads=None)
    assert step(seen, NOW) == Move(E.finalized, seen.status)


# Taken back


BACK = replace(PLAN, revert_on_delete=True)


def test_it_is_taken_back_if_that_was_asked_for_and_something_had_begun() -> None:
    moves = Answers(revert=WRITE)
    seen = ending(R.deleting, plan=BACK, moves=moves)
    assert step(seen, NOW) == Act(WRITE.writes)
    ((_, asked),) = moves.asked
    assert asked.index == 1, "the largest batch"
    assert step(ending(R.deleting, plan=BACK, moves=Answers(revert=WAIT)), NOW) == Hold(WAIT.wait or Wait("", ""))
    for other in (ending(R.deleting, moves=moves), ending(R.deleting, plan=BACK, moves=moves, status={"batches": ()})):
        assert isinstance(step(other, NOW), Move)
    assert isinstance(step(ending(R.failing, plan=BACK, moves=moves), NOW), Move)


def test_what_cannot_be_taken_back_is_said_once_and_does_not_keep_it_from_ending() -> None:
    moves = Answers(revert=Step(failure="what it was before is not known"), finalize=WRITE)
    seen = ending(R.deleting, plan=BACK, moves=moves)
    found = step(seen, NOW)
    assert found == Note(
        replace(seen.status, failure="what it was before is not known"), ("what it was before is not known",)
    )
    assert step(replace(seen, status=found.status), NOW) == Act(WRITE.writes)


# Traffic


class Ending:
    """A rollout with weights that it has changed, on its way out."""

    def __init__(self, state: R = R.deleting, plan: RolloutPlan = PLAN, percent: int = 25, **answers: Any) -> None:
        self.now, self.route = NOW, ROUTE
        self.warnings: list[str] = []
        self.seen = observed(R.rolling, plan=replace(plan, traffic=TRAFFIC), moves=Answers(**answers))
        self.remember(percent)
        status = replace(self.seen.status, rolling_state=state)
        self.seen = replace(self.seen, status=status, is_deleting=state is R.deleting)

    def remember(self, percent: int) -> None:
        """The first batch gets its share of the traffic."""
        from kedge.plan.batching.traffic import traffic_step, with_remembered

        for _ in range(2):
            found = traffic_step(self.seen.plan, self.seen.status, self.route, percent, NOW)
            assert found.remembered is not None
            self.seen = replace(self.seen, status=with_remembered(self.seen.status, found.remembered))
            self.route = patched(self.route, found.patch) if found.patch is not None else self.route

    def next(self, route: Any = "as it is") -> Next:
        """What comes next; what is to be noted is noted before."""
        for _ in range(9):
            self.seen = replace(self.seen, route=self.route if route == "as it is" else route)
            found = step(self.seen, self.now)
            if not isinstance(found, Note):
                return found
            self.warnings += found.warnings
            self.seen = replace(self.seen, status=found.status)
        raise AssertionError("it never ends")

    def shifted(self) -> list[int]:
        """The weights that are written next."""
        found = self.next()
        assert isinstance(found, Act)
        assert found.route is not None
        assert found.route.ref.name == "web"
        self.seen = replace(self.seen, status=found.route.status)
        self.route = patched(self.route, found.route.patch)
        return weights_in(found.route.patch)


def is_let_go(found: Next) -> bool:
    return found == Act(WRITE.writes)


@way_back
def test_weights_are_given_back_before_anything_else(state: R) -> None:
    ended = Ending(state, finalize=WRITE)
    assert ended.shifted() == [1, 0]
    assert is_let_go(ended.next())
    assert remembered_ref(ended.seen.status) is None
    assert ended.warnings == []


def test_after_a_success_the_target_keeps_its_traffic() -> None:
    ended = Ending(R.finalising, finalize=WRITE)
    assert is_let_go(ended.next())


@way_back
def test_a_route_that_is_gone_is_said_and_not_waited_for(state: R) -> None:
    ended = Ending(state, finalize=WRITE)
    assert is_let_go(ended.next(route=None))
    assert ended.warnings == ["HTTPRoute shop/web is gone: its weights are not given back"]


FORBIDDEN = RouteProblem("reading it is forbidden")


@pytest.mark.parametrize("state", [R.failing, R.abandoning])
def test_who_is_not_deleted_waits_for_a_route_as_long_as_it_takes(state: R) -> None:
    ended = Ending(state, finalize=WRITE)
    for _ in range(3):
        found = ended.next(route=FORBIDDEN)
        assert isinstance(found, Hold)
        assert found.wait.code == TrafficCode.route_unread
        ended.now += GIVE_UP
    assert ended.warnings == []


def test_a_deletion_waits_for_a_route_for_some_minutes_and_then_says_that_it_gave_up() -> None:
    ended = Ending(finalize=WRITE)
    for after in (timedelta(), GIVE_UP - SECOND):
        ended.now = NOW + after
        found = ended.next(route=FORBIDDEN)
        assert isinstance(found, Hold)
        assert (found.wait.code, found.until) == (TrafficCode.route_unread, ended.now + LOOK_AGAIN)
    ended.now = NOW + GIVE_UP
    assert is_let_go(ended.next(route=FORBIDDEN))
    assert ended.warnings == [
        (
            "the weights of HTTPRoute shop/web are left as they are, since the rollout is being deleted: "
            "HTTPRoute shop/web: reading it is forbidden"
        )
    ]
    assert remembered_ref(ended.seen.status) is None


def test_a_deletion_gives_up_weights_that_the_server_refuses() -> None:
    ended = Ending(finalize=WRITE)
    for after in (timedelta(), GIVE_UP - SECOND):
        ended.now = NOW + after
        found = ended.next()
        assert isinstance(found, Act)
        assert found.route is not None
    ended.now = NOW + GIVE_UP
    assert is_let_go(ended.next())
    assert ended.warnings[0].endswith("since the rollout is being deleted: the server refuses the change")


LOWERS_TARGET = Write(ref("v2"), {"spec": {"replicas": 1}}, takes_away=True)
FEWER = Step((LOWERS_TARGET,))


def test_traffic_leaves_the_pods_of_the_target_before_they_go() -> None:
    ended = Ending(plan=BACK, revert=FEWER, percent=75)
    assert ended.shifted() == [75, 25]
    assert ended.next() == Act(FEWER.writes)


@pytest.mark.parametrize(
    "revert",
    [
        WRITE,
        Step((replace(LOWERS_TARGET, takes_away=False),)),
        Step((Write(ref("v2"), create={}, takes_away=True),)),
    ],
)
def test_traffic_stays_while_the_target_keeps_its_pods(revert: Step) -> None:
    assert Ending(plan=BACK, revert=revert, percent=75).next() == Act(revert.writes)


def test_traffic_that_was_never_divided_is_not_divided_on_the_way_back() -> None:
    plan = replace(BACK, traffic=TRAFFIC)
    assert step(ending(R.deleting, plan=plan, moves=Answers(revert=FEWER), route=ROUTE), NOW) == Act(FEWER.writes)
    alone = Ending(plan=BACK, revert=FEWER, percent=75)
    alone.seen = replace(alone.seen, workloads=workloads(deployment("v2", 3)))
    assert alone.next() == Act(FEWER.writes)


def test_a_route_that_nobody_accepts_any_more_is_given_up_once_for_all_the_way_back() -> None:
    ended = Ending(plan=BACK, revert=FEWER, percent=75, finalize=WRITE)
    assert isinstance(ended.next(route=None), Hold)
    ended.now += GIVE_UP
    assert ended.next(route=None) == Act(FEWER.writes)
    assert len(ended.warnings) == 1
    emptied = Step((replace(LOWERS_TARGET, patch={"spec": {"replicas": 0}}),))
    ended.seen = replace(ended.seen, moves=Answers(revert=emptied, finalize=WRITE))
    assert isinstance(ended.next(route=None), Hold)
    ended.now += LOOK_AGAIN - SECOND
    assert isinstance(ended.next(route=None), Hold)
    ended.now += SECOND
    assert ended.next(route=None) == Act(emptied.writes)
    assert len(ended.warnings) == 1


def test_traffic_that_was_changed_in_the_plan_does_not_keep_a_deletion_from_its_end() -> None:
    ended = Ending(plan=BACK, revert=FEWER, percent=75)
    other = replace(TRAFFIC, target_service="web-v3")
    ended.seen = replace(ended.seen, plan=replace(ended.seen.plan, traffic=other))
    found = ended.next()
    assert isinstance(found, Hold)
    assert "that can only be changed between rollouts" in found.wait.blockers[0].reported
    ended.now += GIVE_UP
    assert ended.next() == Act(FEWER.writes)
    (warning,) = ended.warnings
    assert warning.endswith("that can only be changed between rollouts")


def test_a_record_of_before_deletions_were_bounded_is_read() -> None:
    record = TrafficRecord(TRAFFIC.provider, "a", "b", WeightsBefore((), 0))
    assert (record.aim, record.tried_since, record.gave_up) == (None, None, False)

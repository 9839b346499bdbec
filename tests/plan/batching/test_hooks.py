"""Rollout webhooks: who is called when, what answers mean, and what is kept of them."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.oam.rollout_plan import HookType, RolloutBatch, RolloutPlan, RolloutWebhook
from kedge.api.oam.rollout_status import HookResult, PlannedBatch, RolloutStatus
from kedge.api.oam.rollouts import AppRolloutStatus
from kedge.plan.batching.hooks import (
    FINAL_ATTEMPTS,
    Answered,
    HookCall,
    HookCode,
    HookIdentity,
    HookOutcome,
    HookPoint,
    HookState,
    HookStep,
    Unanswered,
    hook_wait_text,
    next_call,
    recorded,
    under_way,
    verdict,
)
from kedge.plan.moving.wait import Blocker, Wait

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
INITIALIZE, PRE, POST, FINALIZE = HookType
START = HookPoint(INITIALIZE, None, "initializing")
BEFORE = HookPoint(PRE, 0, "batchInitializing")
AFTER = HookPoint(POST, 0, "batchFinalizing")
END = HookPoint(FINALIZE, None, "finalising")
WHO = HookIdentity("Rollout", "shop", "web", "uid-1", 3, "web-v2", "web-v1")
YES, NO, DOWN = Answered(200), Answered(403, "frozen"), Unanswered("no answer within 10 s")
FRESH = RolloutStatus()


def hook(kind: HookType, name: str = "gate", **given: object) -> RolloutWebhook:
    return msgspec.convert(
        {"type": kind, "name": name, "url": f"https://me:hunter2@hooks/{name}?token=hunter2", **given}, RolloutWebhook
    )


def plan(*hooks: RolloutWebhook, batch: tuple[RolloutWebhook, ...] = ()) -> RolloutPlan:
    return RolloutPlan(
        rollout_webhooks=hooks, rollout_batches=(RolloutBatch(batch_rollout_webhooks=batch), RolloutBatch())
    )


def called(asking: HookStep) -> HookCall:
    assert asking.call is not None
    assert asking.wait is None
    assert not asking.refused
    assert not asking.is_done
    return asking.call


def ask(
    asked: RolloutPlan, status: RolloutStatus, point: HookPoint = BEFORE, now: datetime = NOW, who: HookIdentity = WHO
) -> HookStep:
    return next_call(asked, status, point, who, now)


def answered(
    asked: RolloutPlan, outcome: HookOutcome, point: HookPoint = BEFORE, *, times: int = 1
) -> tuple[RolloutStatus, datetime]:
    """The status after this outcome came so many times, and the time of the last."""
    status, now = FRESH, NOW
    for attempt in range(times):
        now = ask(asked, status, point, now).until or now if attempt else now
        status = recorded(status, called(ask(asked, status, point, now)), outcome, now)
    return status, now


# What answers mean


@pytest.mark.parametrize(
    ("expected", "status", "means"),
    [
        ((), 200, HookState.accepted),
        ((), 201, HookState.accepted),
        ((), 202, HookState.accepted),
        ((), 203, HookState.refused),
        ((), 204, HookState.refused),
        ((), 208, HookState.refused),
        ((), 199, HookState.refused),
        ((), 302, HookState.refused),
        ((), 400, HookState.refused),
        ((), 404, HookState.refused),
        ((), 499, HookState.refused),
        ((204, 208), 208, HookState.accepted),
        ((204, 208), 204, HookState.accepted),
        ((204, 208), 200, HookState.refused),
        ((204, 208), 410, HookState.refused),
        ((404,), 404, HookState.accepted),
        ((), 500, HookState.failed),
        ((), 501, HookState.failed),
        ((500, 501), 500, HookState.failed),
        ((501,), 501, HookState.failed),
        ((), 408, HookState.failed),
        ((), 425, HookState.failed),
        ((), 429, HookState.failed),
        ((429,), 429, HookState.accepted),
    ],
)
def test_what_a_status_means(expected: tuple[int, ...], status: int, means: HookState) -> None:
    assert verdict(expected, Answered(status)) is means


def test_no_answer_is_a_failure() -> None:
    assert verdict((200,), Unanswered("it hangs")) is HookState.failed


# Who is called


def test_the_hooks_of_the_rollout_come_first_then_those_of_the_batch_in_order() -> None:
    asked = plan(
        hook(PRE, "b"), hook(POST, "x"), hook(PRE, "a"), batch=(hook(PRE, "d"), hook(POST, "y"), hook(PRE, "c"))
    )
    status, names = FRESH, []
    while (call := ask(asked, status).call) is not None:
        names.append(call.name)
        status = recorded(status, call, YES, NOW)
    assert names == ["b", "a", "d", "c"]
    assert ask(asked, status).is_done


@pytest.mark.parametrize(
    ("point", "name"), [(START, "i"), (BEFORE, "p"), (AFTER, "q"), (END, "f")], ids=["start", "pre", "post", "end"]
)
def test_each_point_has_its_own_hooks(point: HookPoint, name: str) -> None:
    asked = plan(hook(FINALIZE, "f"), hook(POST, "q"), hook(PRE, "p"), hook(INITIALIZE, "i"))
    assert called(ask(asked, FRESH, point)).name == name


@pytest.mark.parametrize("batch", [None, -1, 1, 2])
def test_the_hooks_of_a_batch_are_not_called_at_others(batch: int | None) -> None:
    asked = plan(batch=(hook(PRE),))
    assert ask(asked, FRESH, HookPoint(PRE, batch, "batchInitializing")) == HookStep()
    assert called(ask(asked, FRESH)).name == "gate"


def test_a_plan_without_hooks_goes_on() -> None:
    assert ask(RolloutPlan(), FRESH).is_done


def test_a_call_says_who_asks_and_about_what() -> None:
    asked = plan(hook(PRE, metadata={"ticket": "T1"}))
    status = RolloutStatus(batches=(PlannedBatch(replicas=1, goal=1), PlannedBatch(replicas=1, goal=2)))
    call = called(ask(asked, status))
    assert msgspec.json.decode(call.body) == {
        "name": "web",
        "namespace": "shop",
        "phase": "batchInitializing",
        "metadata": {"ticket": "T1"},
        "id": call.id,
        "attempt": 1,
        "hook": "gate",
        "type": "pre-batch-rollout",
        "batch": 0,
        "batches": 2,
        "kind": "Rollout",
        "uid": "uid-1",
        "generation": 3,
        "target": "web-v2",
        "source": "web-v1",
    }
    assert (call.method, call.timeout, call.expected, call.attempt) == ("POST", 10.0, (), 1)
    assert call.url == "https://me:hunter2@hooks/gate?token=hunter2"


def test_what_is_not_known_is_left_out_of_a_call() -> None:
    who = replace(WHO, source="")
    said = msgspec.json.decode(called(ask(plan(hook(INITIALIZE)), FRESH, START, who=who)).body)
    assert not {"metadata", "batch", "batches", "source"} & said.keys()


def test_a_call_is_made_as_the_hook_says() -> None:
    call = called(ask(plan(hook(PRE, method="put", timeoutSeconds=7, expectedStatus=[204])), FRESH))
    assert (call.method, call.timeout, call.expected) == ("PUT", 7.0, (204,))


# Answers


def test_a_hook_that_said_yes_is_not_called_again() -> None:
    asked = plan(hook(PRE))
    status, now = answered(asked, YES)
    assert ask(asked, status, now=now) == HookStep()
    assert status.hooks == (
        HookResult(
            id=status.hooks[0].id, name="gate", state="Accepted", attempts=1, message="answered with 200", time=now
        ),
    )


@pytest.mark.parametrize(
    ("point", "said"),
    [
        (START, "webhook gate refused before the first batch: it answered with 403: frozen"),
        (BEFORE, "webhook gate refused before batch 0: it answered with 403: frozen"),
        (AFTER, "webhook gate refused after batch 0: it answered with 403: frozen"),
    ],
    ids=["start", "pre", "post"],
)
def test_a_refusal_fails_the_rollout(point: HookPoint, said: str) -> None:
    asked = plan(hook(point.type), hook(point.type, "never"))
    status, now = answered(asked, NO, point)
    assert ask(asked, status, point, now + timedelta(days=1)) == HookStep(refused=said)
    assert not ask(asked, status, point).is_done
    assert status.hooks[0].state == "Refused"


def test_a_refusal_at_the_end_is_recorded_and_the_next_is_told() -> None:
    asked = plan(hook(FINALIZE), hook(FINALIZE, "next"))
    status, now = answered(asked, NO, END)
    assert status.hooks[0].state == "Refused"
    assert called(ask(asked, status, END, now)).name == "next"


@pytest.mark.parametrize("outcome", [DOWN, Answered(503, "busy"), Answered(429)], ids=["none", "503", "429"])
def test_a_failure_is_tried_again_later_with_the_same_id(outcome: HookOutcome) -> None:
    asked = plan(hook(PRE), hook(PRE, "next"))
    status, now = answered(asked, outcome)
    assert status.hooks[0].state == "Failed"
    waiting = ask(asked, status, now=now)
    assert waiting.call is None
    assert not waiting.is_done
    assert waiting.until == now + timedelta(seconds=1)
    again = called(ask(asked, status, now=waiting.until))
    assert (again.id, again.attempt) == (status.hooks[0].id, 2)
    assert msgspec.json.decode(again.body)["attempt"] == 2


@pytest.mark.parametrize(
    ("attempts", "seconds"), [(1, 1), (2, 2), (3, 4), (6, 32), (7, 60), (8, 60), (50, 60), (2_000_000_000, 60)]
)
def test_the_time_between_attempts_doubles_up_to_a_minute(attempts: int, seconds: int) -> None:
    asked = plan(hook(PRE))
    status, _ = answered(asked, DOWN)
    status = replace(status, hooks=(replace(status.hooks[0], attempts=attempts),))
    assert ask(asked, status).until == NOW + timedelta(seconds=seconds)
    assert called(ask(asked, status, now=NOW + timedelta(seconds=seconds))).attempt == attempts + 1


@pytest.mark.parametrize("time", [None, NOW + timedelta(seconds=1)], ids=["none", "future"])
def test_a_failure_at_an_unknown_time_is_tried_again_at_once(time: datetime | None) -> None:
    asked = plan(hook(PRE))
    status, _ = answered(asked, DOWN)
    assert called(ask(asked, replace(status, hooks=(replace(status.hooks[0], time=time),)))).attempt == 2


def test_a_wait_for_a_hook_is_said() -> None:
    asked = plan(hook(PRE))
    status, now = answered(asked, DOWN, times=2)
    waiting = ask(asked, status, now=now)
    assert waiting.wait is not None
    assert (waiting.wait.unit, waiting.wait.code, waiting.wait.numbers) == ("web", HookCode.failed, {"attempts": 2})
    assert (waiting.wait.blockers[0].since, waiting.wait.blockers[0].until) == (now, waiting.until)
    assert hook_wait_text(waiting.wait) == (
        "webhook gate has failed 2 times: no answer within 10 s; it is called again at 2026-03-01T12:00:03Z"
    )


def test_a_wait_without_an_end_is_said_without_one() -> None:
    wait = Wait("web", HookCode.failed, {"attempts": 1}, (Blocker("gate", reported="it is down"),))
    assert hook_wait_text(wait) == "webhook gate has failed 1 time: it is down"


def test_attempts_of_one_hook_are_not_those_of_another() -> None:
    asked = plan(hook(PRE, "one"), hook(PRE, "two"))
    status, now = answered(asked, YES)
    status = recorded(status, called(ask(asked, status, now=now)), DOWN, now)
    assert [(one.name, one.attempts) for one in status.hooks] == [("one", 1), ("two", 1)]


def test_a_call_that_takes_long_is_said() -> None:
    wait = under_way(called(ask(plan(hook(PRE)), FRESH)), WHO)
    assert (wait.unit, wait.code) == ("web", HookCode.under_way)
    assert hook_wait_text(wait) == "webhook gate is being called (attempt 1)"


def test_a_hook_at_the_end_that_never_answers_is_given_up() -> None:
    asked = plan(hook(FINALIZE), hook(FINALIZE, "next"))
    status, now = answered(asked, DOWN, END, times=FINAL_ATTEMPTS - 1)
    assert ask(asked, status, END, now).wait is not None
    status, now = answered(asked, DOWN, END, times=FINAL_ATTEMPTS)
    assert called(ask(asked, status, END, now)).name == "next"
    assert now - NOW == timedelta(seconds=1 + 2 + 4 + 8 + 16 + 32 + 60)


def test_a_hook_before_a_batch_is_not_given_up() -> None:
    asked = plan(hook(PRE))
    status, now = answered(asked, DOWN, times=FINAL_ATTEMPTS + 1)
    assert ask(asked, status, now=now).wait is not None


def test_a_hook_with_another_url_is_called_at_once() -> None:
    status, now = answered(plan(hook(PRE)), DOWN)
    assert called(ask(plan(hook(PRE, url="https://elsewhere")), status, now=now)).attempt == 1


def test_a_hook_that_comes_to_stand_elsewhere_in_the_list_is_not_called_again() -> None:
    status, _ = answered(plan(hook(PRE), hook(PRE, "b")), YES)
    assert called(ask(plan(hook(PRE, "new"), hook(PRE)), status)).name == "new"
    assert ask(plan(hook(POST, "new"), hook(PRE)), status).is_done


def test_two_hooks_that_are_alike_are_both_called() -> None:
    asked = plan(hook(PRE), hook(PRE), batch=(hook(PRE),))
    status, ids = FRESH, set()
    while (call := ask(asked, status).call) is not None:
        ids.add(call.id)
        status = recorded(status, call, YES, NOW)
    assert len(ids) == 3


# Ids


def test_ids_are_the_same_in_every_release() -> None:
    assert called(ask(plan(hook(PRE)), FRESH)).id == "52f35412115bf71a-0a0cb9bf4fd71b54"
    status, ids = FRESH, []
    asked = plan(hook(PRE), hook(PRE), hook(PRE), batch=(hook(PRE),))
    while (call := ask(asked, status).call) is not None:
        ids.append(call.id)
        status = recorded(status, call, YES, NOW)
    assert [one.partition("-")[2] for one in ids] == [
        "0a0cb9bf4fd71b54",
        "d3617859d3380d59",
        "7135c036378287ad",
        "7499f307a6648419",
    ]


OTHER = [
    (replace(WHO, uid="uid-2"), FRESH, BEFORE),
    (replace(WHO, target="web-v3"), FRESH, BEFORE),
    (WHO, RolloutStatus(runs=1), BEFORE),
    (WHO, FRESH, HookPoint(PRE, 1, "batchInitializing")),
    (WHO, FRESH, HookPoint(PRE, 0, "another")),
    (WHO, FRESH, HookPoint(POST, 0, "batchInitializing")),
]


def test_ids_differ_where_the_question_does() -> None:
    asked = plan(hook(PRE), hook(POST))
    ids = [called(ask(asked, status, point, who=who)).id for who, status, point in [(WHO, FRESH, BEFORE), *OTHER]]
    assert len(set(ids)) == len(ids)


def test_ids_do_not_depend_on_what_changes_during_a_rollout() -> None:
    asked = plan(hook(PRE))
    later = RolloutStatus(current_batch=3, upgraded_replicas=5, observed_generation=9)
    assert called(ask(asked, later, who=replace(WHO, generation=9))).id == called(ask(asked, FRESH)).id


# What is kept


def test_results_of_other_points_are_bounded_and_those_of_this_point_are_not() -> None:
    many = plan(*(hook(PRE, f"h{number}") for number in range(30)))
    status = FRESH
    for batch in range(3):
        point = HookPoint(PRE, batch, "batchInitializing")
        while (call := ask(many, status, point).call) is not None:
            status = recorded(status, call, YES, NOW)
        assert ask(many, status, point).is_done
    assert len(status.hooks) == 30 + 20
    assert [one.name for one in status.hooks[:20]] == [f"h{number}" for number in range(10, 30)]


def test_other_kinds_of_status_keep_their_fields() -> None:
    status = AppRolloutStatus(last_target_app_revision="v2")
    said = recorded(status, called(ask(plan(hook(PRE)), status)), YES, NOW)
    assert (said.last_target_app_revision, len(said.hooks)) == ("v2", 1)


def test_messages_are_cut() -> None:
    call = called(ask(plan(hook(PRE)), FRESH))
    for outcome in (Answered(403, "x" * 5000), Unanswered("x" * 5000)):
        assert len(recorded(FRESH, call, outcome, NOW).hooks[0].message) == 300


def test_no_secret_of_a_url_is_shown() -> None:
    asked = plan(hook(PRE))
    call = called(ask(asked, FRESH))
    assert "hunter2" not in repr(call)
    for outcome in (NO, DOWN):
        status = recorded(FRESH, call, outcome, NOW)
        assert "hunter2" not in repr(status)
        assert "hunter2" not in repr(ask(asked, status))


# Properties

OUTCOMES = st.sampled_from([YES, NO, DOWN, Answered(500), Answered(204), Answered(429)])
HOOKS = st.lists(st.builds(hook, st.sampled_from(HookType), st.sampled_from("abc")), max_size=6)


@given(HOOKS, HOOKS, st.lists(OUTCOMES, max_size=30), st.sampled_from([START, BEFORE, AFTER, END]))
def test_who_said_yes_is_never_called_again_and_nobody_is_left_out(
    of_rollout: list[RolloutWebhook], of_batch: list[RolloutWebhook], outcomes: list[HookOutcome], point: HookPoint
) -> None:
    asked = plan(*of_rollout, batch=tuple(of_batch))
    status, now, accepted = FRESH, NOW, set[str]()
    for outcome in outcomes:
        asking = ask(asked, status, point, now)
        if asking.call is None:
            now = asking.until or now
            assert asking.is_done or asking.refused or now > NOW
            continue
        assert asking.call.id not in accepted
        assert asking.call.attempt == 1 + sum(one.attempts for one in status.hooks if one.id == asking.call.id)
        status = msgspec.json.decode(
            msgspec.json.encode(recorded(status, asking.call, outcome, now)), type=RolloutStatus
        )
        accepted |= {one.id for one in status.hooks if one.state == HookState.accepted}
    if ask(asked, status, point, now).is_done and point is not END:
        batch = of_batch if point.batch is not None else []
        assert len(accepted) == sum(one.type is point.type for one in (*of_rollout, *batch))

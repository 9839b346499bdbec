"""What a run does, step by step."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.condition import FALSE, find_condition
from kedge.api.dialect import Dialect
from kedge.api.fleet import RETRY, ROLLBACK_OF
from kedge.api.selector import LabelSelector, LabelSelectorRequirement, Operator
from kedge.api.stage import Missing
from kedge.api.staged import RunState
from kedge.plan.staging.conditions import has_condition
from kedge.plan.staging.rollbacks import retried
from kedge.plan.staging.step import step
from plan.rolling.making import AVAILABLE, BAD, NOT_AVAILABLE, UNTRACKABLE, binding, scheduled, unscheduled
from plan.staging.making import (
    APPROVAL,
    NOW,
    TARGET,
    World,
    approval,
    approved,
    placement,
    stage,
    strategy,
    timed,
)

THREE = {"a": "one", "b": "two", "c": "two"}


def two_stages(**second: object) -> World:
    return World(THREE, stage("one"), stage("two", **second))


def test_clusters_move_one_by_one_and_stage_by_stage() -> None:
    world = two_stages()
    world.settle()
    assert world.given() == ["a"]
    world.arrive("a")
    assert world.given() == ["a", "b"]
    world.arrive("b")
    assert world.given() == ["a", "b", "c"]
    world.arrive("c")
    assert (world.says(), world.says(reasons.SUCCEEDED)) == ("False/UpdateRunSucceeded", "True/UpdateRunSucceeded")


@pytest.mark.parametrize(
    ("most", "first"), [(1, "a"), (2, "ab"), ("50%", "ab"), ("75%", "abc"), ("100%", "abcd"), (9, "abcd")]
)
def test_as_many_move_at_once_as_the_stage_allows(most: int | str, first: str) -> None:
    world = World(dict.fromkeys("abcd", "one"), stage("one", max_concurrency=most))
    world.settle()
    assert world.given() == list(first)


def test_a_cluster_that_is_done_makes_room_in_the_same_step() -> None:
    world = World(dict.fromkeys("abc", "one"), stage("one", max_concurrency=2))
    world.settle()
    world.say({**NOT_AVAILABLE}, "a")
    world.arrive("b")
    assert world.given() == ["a", "b", "c"]


def test_a_run_says_what_the_seed_says_while_it_moves() -> None:
    world = two_stages()
    world.settle()
    assert (world.says(), world.message()) == ("True/UpdateRunStarted", "")
    assert world.stage_says("one") == "True/StageUpdatingStarted"
    assert world.stage("one").start_time is not None
    world.arrive("a")
    assert world.stage_says("one") == "False/StageUpdatingWaiting"
    assert world.stage_says("one", reasons.SUCCEEDED) == "True/StageUpdatingSucceeded"
    assert world.stage("one").end_time is not None
    conditions = [(one.type, one.status, one.reason, one.message) for one in world.cluster("a").conditions]
    assert conditions == [
        ("Started", "True", "ClusterUpdatingStarted", ""),
        ("Succeeded", "True", "ClusterUpdatingSucceeded", ""),
    ]


def test_in_the_kubefleet_dialect_reasons_are_kubefleets() -> None:
    world = World(THREE, stage("one"), stage("two"), dialect=Dialect.kubefleet)
    world.settle()
    assert world.says() == "True/UpdateRunProgressing"
    world.arrive("a")
    assert world.stage_says("one") == "False/StageUpdatingSucceeded"


def test_a_run_that_only_initializes_moves_nothing() -> None:
    world = two_stages()
    world.set_state(RunState.initialize)
    planned = world.look()
    assert (planned.point, planned.request, world.says()) == ((), (), "")


@pytest.mark.parametrize(("dialect", "moves"), [(Dialect.seed, ["a"]), (Dialect.kubefleet, [])])
def test_a_run_that_does_not_say_what_is_wanted_runs_but_in_kubefleet(dialect: Dialect, moves: list[str]) -> None:
    world = World(THREE, stage("one"), stage("two"), dialect=dialect)
    world.run = replace(world.run, spec=replace(world.run.spec, state=None))
    world.settle()
    assert world.given() == moves


def test_a_stage_without_clusters_is_skipped_with_its_tasks() -> None:
    world = World({"b": "two"}, stage("one", after_stage_tasks=(APPROVAL, timed("1h"))), stage("two"))
    world.settle()
    assert world.stage_says("one") == "False/StageUpdatingSkippedNoClusters"
    assert world.stage_says("one", reasons.SUCCEEDED) == "True/StageUpdatingSkippedNoClusters"
    assert (world.given(), world.approvals) == (["b"], {})


# Gates


def test_nothing_of_the_next_stage_moves_before_the_wait_is_over() -> None:
    world = World(THREE, stage("one", after_stage_tasks=(timed("1h"),)), stage("two"))
    world.settle()
    world.wait(10)
    world.arrive("a")
    assert world.given() == ["a"]
    assert world.says() == "False/UpdateRunWaiting"
    assert world.message() == ("run waits: stage one is given 1h after its last cluster, until 2030-01-01T13:00:11Z")
    assert world.look().look_again == pytest.approx(3601)
    world.wait(3600)
    assert world.given() == ["a"]
    world.wait(1)
    assert world.given() == ["a", "b"]
    (task,) = world.stage("one").after_stage_task_status
    assert [(one.type, one.reason, one.message) for one in task.conditions] == [
        ("WaitTimeElapsed", "AfterStageTaskWaitTimeElapsed", "")
    ]


def test_stopping_and_resuming_does_not_shift_a_wait() -> None:
    world = World(THREE, stage("one", after_stage_tasks=(timed("1h"),)), stage("two"))
    world.settle()
    world.arrive("a")
    world.wait(1800)
    world.set_state(RunState.stop)
    world.wait(600)
    assert world.says() == "False/UpdateRunStopped"
    world.set_state(RunState.run)
    world.wait(1201)
    assert world.given() == ["a", "b"]


def test_nothing_moves_before_it_is_approved() -> None:
    world = World(THREE, stage("one", after_stage_tasks=(APPROVAL,)), stage("two"))
    world.settle()
    world.arrive("a")
    assert list(world.approvals) == ["run-one"]
    assert world.message() == (
        "run waits: stage one waits for approval: set condition Approved of run-one, or `kedge approve run one`"
    )
    world.wait(100_000)
    assert world.given() == ["a"]
    world.approve("run-one")
    world.settle()
    assert world.given() == ["a", "b"]
    accepted = find_condition(world.approvals["run-one"].status.conditions, reasons.APPROVAL_ACCEPTED)
    assert accepted is not None
    (task,) = world.stage("one").after_stage_task_status
    assert [one.reason for one in task.conditions] == [
        "StageTaskApprovalRequestCreated",
        "StageTaskApprovalRequestApproved",
    ]
    assert task.conditions[1].message == "approved at 2030-01-01T12:00:00Z: tested as OK: lgtm"


def test_a_stage_may_ask_before_it_begins() -> None:
    world = World(THREE, stage("one"), stage("two", before_stage_tasks=(APPROVAL,)))
    world.settle()
    world.arrive("a")
    assert (world.given(), list(world.approvals)) == (["a"], ["run-before-two"])
    assert world.stage_says("two") == "False/StageUpdatingWaiting"
    assert world.stage("two").start_time is None
    world.approve("run-before-two")
    world.settle()
    assert world.given() == ["a", "b"]


def test_tasks_after_a_stage_count_at_the_same_time() -> None:
    world = World(THREE, stage("one", after_stage_tasks=(timed("1h"), APPROVAL)), stage("two"))
    world.settle()
    world.arrive("a")
    assert list(world.approvals) == ["run-one"]
    world.wait(4000)
    assert world.given() == ["a"]
    world.approve("run-one")
    world.settle()
    assert world.given() == ["a", "b"]


@pytest.mark.parametrize(
    ("generation", "what"),
    [(2, "for generation 2"), (0, "for generation 0"), (None, "without an observedGeneration")],
)
def test_an_approval_for_another_generation_does_not_count_and_says_so(generation: int | None, what: str) -> None:
    world = World(THREE, stage("one", after_stage_tasks=(APPROVAL,)), stage("two"))
    world.settle()
    world.arrive("a")
    world.approve("run-one", generation=generation)
    world.settle()
    assert world.given() == ["a"]
    assert f"run-one was approved {what}: set observedGeneration to 1" in world.message()


def test_an_approval_that_is_taken_back_before_it_was_seen_does_not_count() -> None:
    world = World(THREE, stage("one", after_stage_tasks=(APPROVAL,)), stage("two"))
    world.settle()
    world.arrive("a")
    world.approve("run-one")
    world.approve("run-one", status=FALSE)
    world.settle()
    assert world.given() == ["a"]
    assert "stage one was not approved by run-one: tested as OK: lgtm" in world.message()


@pytest.mark.parametrize("said", [None, {"status": FALSE}, {"generation": 2}], ids=["nothing", "false", "another"])
def test_a_request_that_only_says_it_was_accepted_opens_no_gate(said: dict[str, Any] | None) -> None:
    """Whoever may write its status could say so; or it was accepted, and taken back before the run said so."""
    world = World(THREE, stage("one", after_stage_tasks=(APPROVAL,)), stage("two"))
    world.settle()
    world.arrive("a")
    world.approvals["run-one"] = approved(world.approvals["run-one"], kind=reasons.APPROVAL_ACCEPTED)
    if said is not None:
        world.approve("run-one", **said)
    world.settle()
    assert world.given() == ["a"]
    world.approve("run-one")
    world.settle()
    assert world.given() == ["a", "b"]


def test_an_approval_is_accepted_also_if_the_run_fails_in_the_same_moment() -> None:
    """The stage it opens is done at once, and the next one has a cluster that cannot be reached."""
    stages = (stage("one"), stage("two", before_stage_tasks=(APPROVAL,)), stage("three"))
    world = World(
        {"a": "one", "b": "two", "c": "three"}, *stages, strategy=strategy(*stages, unreachable_clusters=Missing.fail)
    )
    world.settle()
    world.arrive("a")
    world.point(world.bindings["b"])
    world.say(AVAILABLE, "b")
    world.unreachable = {"c": "no heartbeat since noon"}
    world.approve("run-before-two")
    assert world.look().accept
    assert world.says() == "False/UpdateRunFailed"
    assert find_condition(world.cluster("b").conditions, reasons.CLUSTER_STARTED) is not None


def test_an_approval_that_was_accepted_cannot_be_taken_back() -> None:
    world = World(THREE, stage("one", after_stage_tasks=(APPROVAL,)), stage("two"))
    world.settle()
    world.arrive("a")
    world.approve("run-one")
    world.settle()
    world.approve("run-one", status=FALSE)
    world.arrive("b")
    assert world.given() == ["a", "b", "c"]


def test_a_request_that_was_deleted_is_made_anew_and_once_approved_is_not_missed() -> None:
    world = World(THREE, stage("one", after_stage_tasks=(APPROVAL,)), stage("two"))
    world.settle()
    world.arrive("a")
    del world.approvals["run-one"]
    world.settle()
    assert list(world.approvals) == ["run-one"]
    world.approve("run-one")
    world.settle()
    del world.approvals["run-one"]
    world.settle()
    assert (world.given(), world.approvals) == (["a", "b"], {})


def test_what_was_approved_for_an_earlier_run_of_the_same_name_does_not_count() -> None:
    world = World(THREE, stage("one", after_stage_tasks=(APPROVAL,)), stage("two"))
    earlier = approval("run-one", "one", creation_timestamp=NOW - timedelta(hours=1))
    world.approvals["run-one"] = approved(approved(earlier), kind=reasons.APPROVAL_ACCEPTED)
    world.settle()
    world.arrive("a")
    assert world.given() == ["a"]
    assert world.look().withdraw == (world.approvals["run-one"],)
    assert "of an earlier run of this name, and will be made anew" in world.message()
    del world.approvals["run-one"]
    world.settle()
    world.approve("run-one")
    world.settle()
    assert world.given() == ["a", "b"]


def test_a_request_of_the_same_name_that_is_about_something_else_is_told() -> None:
    world = World(THREE, stage("one", after_stage_tasks=(APPROVAL,)), stage("two"))
    world.settle()
    world.arrive("a")
    request = world.approvals["run-one"]
    world.approvals["run-one"] = replace(request, spec=replace(request.spec, parent_stage_rollout="other"))
    world.approve("run-one")
    world.settle()
    assert world.given() == ["a"]
    assert "approval request run-one is about run other, stage one: delete it" in world.message()


# Proof


def test_a_cluster_that_is_not_available_holds_up_the_others_and_says_why() -> None:
    world = World(dict.fromkeys("ab", "one"), stage("one"))
    world.settle()
    world.say(NOT_AVAILABLE, "a")
    world.wait(29)
    assert (world.says(), world.cluster("a").conditions[0].message) == ("True/UpdateRunStarted", "")
    world.wait(1)
    assert world.cluster("a").conditions[0].message == "Deployment test-ns/web has 0 of 3 updated replicas"
    assert world.look().look_again == pytest.approx(270)
    world.wait(270)
    assert world.says() == "False/UpdateRunStuck"
    assert world.message() == (
        "a is not done since 2030-01-01T12:00:00Z: Deployment test-ns/web has 0 of 3 updated replicas"
    )
    assert world.given() == ["a"]
    world.arrive("a")
    assert (world.given(), world.says()) == (["a", "b"], "True/UpdateRunStarted")
    assert world.cluster("a").conditions[0].message == ""


def test_what_cannot_be_seen_to_work_is_given_its_time() -> None:
    world = World(dict.fromkeys("ab", "one"), stage("one"))
    world.settle()
    world.say(UNTRACKABLE, "a")
    world.settle()
    assert world.look().look_again == pytest.approx(30)
    world.wait(59)
    assert world.given() == ["a"]
    assert "it cannot be seen whether its resources work" in world.cluster("a").conditions[0].message
    world.wait(1)
    assert world.given() == ["a", "b"]


@pytest.mark.parametrize("seconds", [3600, 2**63 - 1])
def test_a_wait_for_what_cannot_be_seen_is_not_being_stuck(seconds: int) -> None:
    world = World({"a": "one"}, stage("one"))
    assert world.placement is not None
    period = replace(world.placement.spec.strategy.rolling_update, unavailable_period_seconds=seconds)  # type: ignore[union-attr, type-var]  # it has one
    strategy_ = replace(world.placement.spec.strategy, rolling_update=period)  # type: ignore[type-var]  # likewise
    world.placement = replace(world.placement, spec=replace(world.placement.spec, strategy=strategy_))
    world.settle()
    world.say(UNTRACKABLE, "a")
    world.wait(1000)
    assert world.says() == "True/UpdateRunStarted"


def test_what_a_status_says_of_an_earlier_generation_proves_nothing() -> None:
    world = World(dict.fromkeys("ab", "one"), stage("one"))
    world.bindings["a"] = binding("a")
    world.settle()
    assert world.given() == ["a"]
    assert world.moving("one") == ["a"]


def test_a_cluster_that_has_it_all_already_is_done_at_once() -> None:
    world = World(dict.fromkeys("ab", "one"), stage("one"))
    world.point(world.bindings["a"])
    world.say({"Available": ("True", "AllWorkAreAvailable")}, "a")
    planned = world.look()
    assert [one.spec.target_cluster for one in planned.point] == ["b"]
    assert find_condition(world.cluster("a").conditions, reasons.SUCCEEDED) is not None


@pytest.mark.parametrize(
    ("done", "most", "begun", "moving"),
    [
        ("b", 1, "a", "a"),
        ("a", 1, "ab", "b"),
        ("bd", 1, "a", "a"),
        ("ab", 1, "abc", "c"),
        ("b", 2, "abc", "ac"),
        ("bd", 2, "abc", "ac"),
        ("abd", 2, "abcd", "c"),
        ("abcd", 1, "abcd", ""),
        ("", 2, "ab", "ab"),
    ],
)
def test_a_cluster_that_has_it_all_takes_no_place_and_begins_in_its_turn(
    done: str, most: int, begun: str, moving: str
) -> None:
    world = World(dict.fromkeys("abcd", "one"), stage("one", max_concurrency=most))
    for name in done:
        world.point(world.bindings[name])
        world.say({"Available": ("True", "AllWorkAreAvailable")}, name)
    world.look()
    found = [name for name in "abcd" if has_condition(world.cluster(name), reasons.CLUSTER_STARTED)]
    assert ("".join(found), "".join(world.moving("one"))) == (begun, moving)


def test_a_binding_that_was_written_since_is_told_of_anew() -> None:
    world = two_stages()
    world.settle()
    world.arrive("a")
    one = world.bindings["a"]
    world.bindings["a"] = replace(one, metadata=replace(one.metadata, generation=9))
    assert [found.spec.target_cluster for found in world.look().point] == ["a"]


def test_a_binding_that_someone_pointed_elsewhere_while_it_moved_is_brought_back() -> None:
    world = two_stages()
    world.settle()
    one = world.bindings["a"]
    world.bindings["a"] = replace(one, spec=replace(one.spec, resource_snapshot_name="crp-0-snapshot"))
    world.settle()
    assert world.bindings["a"].spec.resource_snapshot_name == TARGET


def test_a_crash_after_the_run_was_written_loses_nothing() -> None:
    world = World(dict.fromkeys("abcd", "one"), stage("one", max_concurrency=2))
    world.look(lose=True)
    assert world.given() == []
    world.settle()
    assert world.given() == ["a", "b"]


# Stopping


def test_a_run_that_is_stopped_follows_what_has_begun_and_begins_nothing() -> None:
    world = World(dict.fromkeys("abcd", "one"), stage("one", max_concurrency=2))
    world.settle()
    world.set_state(RunState.stop)
    world.settle()
    assert (world.says(), world.message()) == ("Unknown/UpdateRunStopping", "still moving: a and b")
    assert world.stage_says("one") == "Unknown/StageUpdatingStopping"
    world.arrive("a")
    assert world.says() == "Unknown/UpdateRunStopping"
    world.arrive("b")
    assert (world.says(), world.stage_says("one")) == ("False/UpdateRunStopped", "False/StageUpdatingStopped")
    assert world.given() == ["a", "b"]
    world.set_state(RunState.run)
    world.settle()
    assert (world.given(), world.says()) == (["a", "b", "c", "d"], "True/UpdateRunStarted")
    assert {one.observed_generation for one in world.status.conditions} == {3}


def test_a_run_that_is_stopped_and_does_not_come_to_rest_is_stuck_and_says_why() -> None:
    world = World(dict.fromkeys("ab", "one"), stage("one"))
    world.settle()
    world.say(NOT_AVAILABLE, "a")
    world.set_state(RunState.stop)
    world.settle()
    assert world.says() == "Unknown/UpdateRunStopping"
    world.wait(300)
    assert world.says() == "False/UpdateRunStuck"
    assert world.message().startswith("a is not done since ")
    assert "Deployment test-ns/web has 0 of 3 updated replicas" in world.message()
    assert world.stage_says("one") == "Unknown/StageUpdatingStopping"
    world.arrive("a")
    assert (world.says(), world.stage_says("one")) == ("False/UpdateRunStopped", "False/StageUpdatingStopped")
    assert world.given() == ["a"]


def test_a_run_that_is_stopped_gives_nothing_to_clusters_that_were_only_to_begin() -> None:
    world = two_stages()
    world.look(lose=True)
    world.set_state(RunState.stop)
    world.settle()
    assert (world.given(), world.says()) == ([], "False/UpdateRunStopped")
    world.set_state(RunState.run)
    world.settle()
    assert world.given() == ["a"]


def test_a_run_that_is_stopped_asks_nobody_and_clears_nothing() -> None:
    world = World({"a": "one"}, stage("one", after_stage_tasks=(APPROVAL,)))
    world.bindings["z"] = unscheduled("z")
    world.settle()
    world.set_state(RunState.stop)
    world.arrive("a")
    assert (world.approvals, world.says()) == ({}, "False/UpdateRunStopped")
    assert "z" in world.bindings


# The last stage


def test_clusters_that_are_no_longer_picked_are_cleared_after_the_last_stage() -> None:
    world = World({"a": "one"}, stage("one"))
    world.bindings["y"], world.bindings["z"] = unscheduled("y"), unscheduled("z")
    world.settle()
    assert sorted(world.bindings) == ["a", "y", "z"]
    world.arrive("a")
    assert sorted(world.bindings) == ["a"]
    last = world.status.deletion_stage_status
    assert last is not None
    assert [one.cluster_name for one in last.clusters] == ["y", "z"]
    assert [one.reason for one in last.conditions] == ["StageUpdatingSucceeded", "StageUpdatingSucceeded"]
    assert world.says(reasons.SUCCEEDED) == "True/UpdateRunSucceeded"


def test_the_run_has_not_ended_before_the_last_of_them_is_really_gone() -> None:
    world = World({"a": "one"}, stage("one"))
    world.settle()
    world.bindings["z"] = unscheduled("z", deleting=True)
    world.arrive("a")
    assert (world.says(), world.says(reasons.SUCCEEDED)) == ("True/UpdateRunStarted", "")
    world.wait(300)
    assert (world.says(), world.message()) == (
        "False/UpdateRunStuck",
        "z is not cleared: what was placed there is not gone yet",
    )
    del world.bindings["z"]
    world.settle()
    assert world.says(reasons.SUCCEEDED) == "True/UpdateRunSucceeded"


def test_the_last_stage_ends_also_if_there_is_nothing_to_clear() -> None:
    world = World({"a": "one"}, stage("one"))
    world.arrive_all()
    last = world.status.deletion_stage_status
    assert last is not None
    assert last.start_time is not None
    assert last.end_time is not None


def test_clearing_can_be_guarded() -> None:
    guarded = strategy(stage("one"), delete_stage_tasks=(APPROVAL,))
    world = World({"a": "one"}, stage("one"), strategy=guarded)
    world.bindings["z"] = unscheduled("z")
    world.arrive_all()
    assert "z" in world.bindings
    assert list(world.approvals) == ["run-before-delete-stage"]
    world.approve("run-before-delete-stage")
    world.settle()
    assert "z" not in world.bindings


def test_a_wait_before_clearing_counts_from_the_very_last_cluster() -> None:
    guarded = strategy(stage("one"), delete_stage_tasks=(timed("60s"),))
    world = World({"a": "one", "b": "one"}, stage("one"), strategy=guarded)
    world.bindings["z"] = unscheduled("z")
    world.settle()
    world.arrive("a")
    world.wait(100)
    world.arrive("b")
    assert "z" in world.bindings
    world.wait(59)
    assert "z" in world.bindings
    world.wait(2)
    assert "z" not in world.bindings


def test_a_wait_before_clearing_counts_from_the_beginning_if_there_is_nothing_else() -> None:
    skipping = strategy(stage("one"), delete_stage_tasks=(timed("60s"),), unmatched_clusters=Missing.skip)
    world = World({"a": "none"}, stage("one"), strategy=skipping)
    world.bindings["z"] = unscheduled("z")
    world.settle()
    world.wait(59)
    assert "z" in world.bindings
    world.wait(2)
    assert world.says(reasons.SUCCEEDED) == "True/UpdateRunSucceeded"
    assert "z" not in world.bindings


def test_nobody_is_asked_to_clear_nothing() -> None:
    world = World({"a": "one"}, stage("one"), strategy=strategy(stage("one"), delete_stage_tasks=(APPROVAL,)))
    world.arrive_all()
    assert (world.approvals, world.says(reasons.SUCCEEDED)) == ({}, "True/UpdateRunSucceeded")


def test_a_member_that_is_leaving_the_fleet_keeps_what_was_placed() -> None:
    world = World({"a": "one"}, stage("one"))
    world.bindings["z"] = unscheduled("z")
    world.around["parting"] = {"z"}
    world.arrive_all()
    assert "z" in world.bindings


def test_a_cluster_that_is_picked_again_is_not_cleared() -> None:
    world = World({"a": "one"}, stage("one"))
    world.bindings["z"] = unscheduled("z")
    world.settle()
    world.bindings["z"] = binding("z")
    world.arrive_all()
    assert "z" in world.bindings
    assert world.says(reasons.SUCCEEDED) == "True/UpdateRunSucceeded"


# Clusters that come and go


def test_a_cluster_that_joins_before_its_stage_begins_is_part_of_it() -> None:
    world = two_stages()
    world.settle()
    world.join("aa", "two")
    world.arrive("a")
    assert [one.cluster_name for one in world.stage("two").clusters] == ["aa", "b", "c"]
    assert world.given() == ["a", "aa"]


@pytest.mark.parametrize("label", ["one", "nowhere"])
def test_a_cluster_that_joins_too_late_is_left_to_the_next_run(label: str) -> None:
    world = two_stages()
    world.settle()
    world.join("d", label)
    world.arrive_all()
    assert world.given() == ["a", "b", "c"]
    assert world.says(reasons.SUCCEEDED) == "True/UpdateRunSucceeded"
    assert world.message(reasons.SUCCEEDED).startswith("d joined too late, or belongs to no stage")


def test_several_clusters_that_join_too_late_are_named_in_order() -> None:
    world = two_stages()
    world.settle()
    for name in "fed":
        world.join(name, "none")
    world.arrive_all()
    assert world.message(reasons.SUCCEEDED).startswith("d, e and f joined too late, or belongs to no stage")


def test_a_run_that_all_clusters_were_part_of_has_nothing_to_add() -> None:
    world = two_stages()
    world.arrive_all()
    assert (world.says(reasons.SUCCEEDED), world.message(reasons.SUCCEEDED)) == ("True/UpdateRunSucceeded", "")


@pytest.mark.parametrize("missing", ["picked", "binding", "labels"])
def test_only_a_member_that_is_picked_and_has_a_binding_joins(missing: str) -> None:
    world = World({"a": "one"}, stage("one"), stage("two"))
    world.settle()
    world.join("d", "two")
    if missing == "picked":
        assert world.picked is not None
        world.picked.discard("d")
    elif missing == "binding":
        del world.bindings["d"]
    else:
        del world.labels["d"]
    world.settle()
    assert world.stage("two").clusters == ()


def test_a_cluster_joins_only_its_own_stage() -> None:
    world = World({"a": "one", "b": "two", "c": "three"}, stage("one"), stage("two"), stage("three"))
    world.settle()
    before = world.stage("three")
    world.join("d", "two")
    world.settle()
    assert [one.cluster_name for one in world.stage("two").clusters] == ["b", "d"]
    assert world.stage("three") == before


def test_no_cluster_joins_a_stage_of_which_one_cluster_has_begun() -> None:
    world = World(dict.fromkeys("ab", "one"), stage("one", max_concurrency=1))
    world.settle()
    world.join("c", "one")
    world.settle()
    assert [one.cluster_name for one in world.stage("one").clusters] == ["a", "b"]


def test_a_label_that_is_no_number_keeps_a_cluster_out_of_its_stage_for_the_peer() -> None:
    sorted_ = stage("two", sorting_label_key="order")
    world = World({"a": "one"}, stage("one"), sorted_, dialect=Dialect.kubefleet)
    world.settle()
    world.join("d", "two")
    world.labels["d"] = {"stage": "two", "order": "x"}
    world.settle()
    assert world.stage("two").clusters == ()


def test_nobody_joins_a_rollback() -> None:
    world = World({"a": "one"}, stage("one"), stage("two"))
    world.run = replace(world.run, metadata=replace(world.run.metadata, annotations={ROLLBACK_OF: "other"}))
    world.settle()
    world.join("d", "two")
    world.arrive_all()
    assert world.stage("two").clusters == ()
    assert world.message(reasons.SUCCEEDED) == ""


def test_a_run_that_fails_says_so_of_the_stage_it_was_in_alone() -> None:
    world = World({"a": "one", "b": "two", "c": "three"}, stage("one"), stage("two", max_failures=0), stage("three"))
    world.settle()
    world.arrive("a")
    world.now += timedelta(microseconds=5)
    world.say(NOT_AVAILABLE, "b")
    world.wait(300)
    assert world.says(reasons.SUCCEEDED) == "False/UpdateRunFailed"
    said = {name: world.stage_says(name, reasons.SUCCEEDED) for name in ("one", "two", "three")}
    assert said == {"one": "True/StageUpdatingSucceeded", "two": "False/StageUpdatingFailed", "three": ""}
    assert [one.stage_name for one in world.status.stages_status] == ["one", "two", "three"]
    assert world.stage("two").end_time == NOW + timedelta(seconds=300)
    assert world.status.deletion_stage_status is not None
    assert world.status.deletion_stage_status.conditions == ()


def test_a_run_that_fails_while_it_clears_says_so_of_the_last_stage() -> None:
    world = World({"a": "one"}, stage("one"))
    world.settle()
    world.bindings["z"] = unscheduled("z", deleting=True)
    world.arrive("a")
    world.placement = None
    world.settle()
    last = world.status.deletion_stage_status
    assert last is not None
    assert [one.reason for one in last.conditions] == ["StageUpdatingFailed", "StageUpdatingFailed"]
    world.run = replace(world.run, status=replace(world.status, deletion_stage_status=None, conditions=()))
    world.settle()
    assert (world.says(reasons.SUCCEEDED), world.status.deletion_stage_status) == ("False/UpdateRunFailed", None)


def test_a_run_that_is_stopped_before_anything_began_says_nothing_of_its_stages() -> None:
    world = two_stages()
    world.set_state(RunState.stop)
    world.settle()
    assert (world.says(), world.stage_says("one")) == ("False/UpdateRunStopped", "")
    last = world.status.deletion_stage_status
    assert last is not None
    assert last.conditions == ()


def test_a_run_that_is_stopped_leaves_clusters_alone_that_have_not_begun() -> None:
    world = World(dict.fromkeys("abc", "one"), stage("one", max_concurrency=1))
    world.settle()
    before = world.stage("one").clusters[1:]
    world.set_state(RunState.stop)
    world.settle()
    assert world.stage("one").clusters[1:] == before
    assert world.message() == "still moving: a"


def test_a_cluster_that_two_stages_select_joins_neither() -> None:
    def too(name: str) -> LabelSelector:
        either = LabelSelectorRequirement(key="stage", operator=Operator.in_, values=(name, "both"))
        return LabelSelector(match_expressions=(either,))

    stages = (stage("one"), *(stage(name, label_selector=too(name)) for name in ("two", "three")))
    world = World({"a": "one", "b": "two", "c": "three"}, *stages)
    world.settle()
    world.join("d", "both")
    world.settle()
    assert [one.cluster_name for found in world.status.stages_status for one in found.clusters] == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_cluster_that_leaves_is_skipped_whether_it_has_begun_or_not(name: str) -> None:
    world = two_stages()
    world.settle()
    world.unpick(name, leave_binding=False)
    world.arrive_all()
    assert world.says(reasons.SUCCEEDED) == "True/UpdateRunSucceeded"
    skipped = find_condition(world.cluster(name).conditions, reasons.SUCCEEDED)
    assert skipped is not None
    assert (skipped.status, skipped.reason) == ("False", "ClusterUpdatingSkipped")


def test_a_cluster_that_is_unpicked_midway_is_cleared_in_the_end() -> None:
    world = two_stages()
    world.settle()
    world.unpick("b")
    world.arrive("a")
    world.arrive_all()
    assert sorted(world.bindings) == ["a", "c"]


def test_while_clusters_are_being_picked_nothing_begins() -> None:
    world = two_stages()
    world.picked = None
    world.settle()
    assert (world.given(), world.says()) == ([], "False/UpdateRunWaiting")
    assert world.message() == "run waits: clusters are being picked for crp"


def test_a_binding_that_is_made_anew_is_waited_for() -> None:
    world = two_stages()
    world.settle()
    old = world.bindings.pop("a")
    world.wait(30)
    assert world.cluster("a").conditions[0].message == "its binding is being made anew"
    world.bindings["a"] = replace(old, spec=replace(old.spec, state="Scheduled", resource_snapshot_name=""))
    world.settle()
    world.arrive("a")
    assert world.given() == ["a", "b"]


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (Missing.wait, ("True/UpdateRunStarted", "")),
        (Missing.skip, ("False/UpdateRunSucceeded", "True/UpdateRunSucceeded")),
        (Missing.fail, ("False/UpdateRunFailed", "False/UpdateRunFailed")),
    ],
)
def test_a_cluster_that_cannot_be_reached_is_treated_as_the_strategy_says(
    policy: Missing, says: tuple[str, str]
) -> None:
    world = World({"a": "one", "b": "one"}, stage("one"), strategy=strategy(stage("one"), unreachable_clusters=policy))
    world.settle()
    world.unreachable = {"a": "no heartbeat since noon"}
    world.settle()
    world.arrive("b") if policy is Missing.skip else world.settle()
    assert (world.says(), world.says(reasons.SUCCEEDED)) == says


# Clusters that break after they were done


def _soaking(**how: Any) -> World:
    """Stage one is done, and given an hour; two has not begun."""
    world = World(
        {"a": "one", "b": "one", "c": "two"}, stage("one", after_stage_tasks=(timed("1h"),), **how), stage("two")
    )
    world.settle()
    world.arrive_all()
    assert world.given() == ["a", "b"]
    return world


def test_a_gate_opens_only_while_the_clusters_before_it_are_available() -> None:
    world = _soaking()
    world.wait(600)
    world.say(NOT_AVAILABLE, "a")
    world.settle()
    ill = f"stage one is done, and a is not available any more: {BAD}"
    assert world.message().endswith(f"; {ill}")
    world.wait(3001)
    assert (world.given(), world.says()) == (["a", "b"], "False/UpdateRunStuck")
    assert world.message() == ill
    assert world.stage_says("one") == "False/StageUpdatingWaiting"
    world.arrive("a")
    assert world.given() == ["a", "b", "c"]


def test_a_stage_without_tasks_is_not_over_either_while_a_cluster_of_it_does_not_work() -> None:
    world = World({"a": "one", "b": "one", "c": "two"}, stage("one"), stage("two"))
    world.settle()
    world.arrive("a")
    world.say(NOT_AVAILABLE, "a")
    world.arrive("b")
    assert world.given() == ["a", "b"]
    world.arrive("a")
    assert world.given() == ["a", "b", "c"]


def test_what_is_asked_before_a_stage_opens_it_only_while_the_one_before_it_works() -> None:
    world = World(THREE, stage("one"), stage("two", before_stage_tasks=(APPROVAL,)))
    world.settle()
    world.arrive("a")
    world.say(NOT_AVAILABLE, "a")
    world.approve("run-before-two")
    world.settle()
    assert (world.given(), world.stage_says("one", reasons.SUCCEEDED)) == (["a"], "True/StageUpdatingSucceeded")
    assert world.message() == f"run waits: stage one is done, and a is not available any more: {BAD}"
    world.arrive("a")
    assert world.given() == ["a", "b"]


@pytest.mark.parametrize(("may_fail", "fails"), [(0, True), (1, False), ("50%", False)])
def test_a_cluster_that_stays_broken_after_it_was_done_counts_as_failed(may_fail: Any, fails: bool) -> None:
    world = _soaking(max_failures=may_fail)
    world.now += timedelta(seconds=600)
    world.say(NOT_AVAILABLE, "a")
    world.wait(299)
    assert not world.says(reasons.SUCCEEDED)
    world.wait(1)
    assert world.says(reasons.SUCCEEDED) == ("False/UpdateRunFailed" if fails else "")
    if fails:
        assert world.message() == f"1 cluster of stage one failed, and 0 may: a; a: {BAD}"
        assert find_condition(world.cluster("a").conditions, reasons.SUCCEEDED).reason == "ClusterUpdatingFailed"  # type: ignore[union-attr]  # it is there
        return
    world.wait(2702)
    assert world.given() == ["a", "b", "c"]  # as many as may fail hold up nothing


def test_the_moment_at_which_it_counts_as_failed_is_waited_for() -> None:
    world = _soaking(max_failures=0)
    world.now += timedelta(seconds=600)
    world.say(NOT_AVAILABLE, "a")
    assert world.look().look_again == 300.0


def test_a_run_that_failed_over_an_earlier_stage_goes_on_once_that_works_and_it_is_tried_again() -> None:
    world = World(THREE, stage("one", max_failures=0), stage("two", before_stage_tasks=(APPROVAL,)))
    world.settle()
    world.arrive("a")
    world.say(NOT_AVAILABLE, "a")
    world.wait(300)
    assert world.says() == "False/UpdateRunFailed"
    assert has_condition(world.cluster("a"), reasons.SUCCEEDED)
    world.now += timedelta(seconds=60)
    asked = replace(world.run.metadata, annotations={RETRY: world.now.isoformat()})
    world.run = replace(world.run, metadata=asked)
    world.run = replace(world.run, status=retried(world.run))
    world.say(AVAILABLE, "a")
    world.approve("run-before-two")
    world.settle()
    assert world.given() == ["a", "b"]


def test_nothing_holds_up_the_way_back() -> None:
    world = World({"a": "one", "b": "two"}, stage("one"), stage("two", before_stage_tasks=(APPROVAL,)))
    world.run = replace(world.run, metadata=replace(world.run.metadata, annotations={ROLLBACK_OF: "other"}))
    world.settle()
    world.arrive("a")
    world.say(NOT_AVAILABLE, "a")
    world.approve("run-before-two")
    world.settle()
    assert world.given() == ["a", "b"]


@pytest.mark.parametrize("what", ["gone", "parting", "not picked", "given nothing"])
def test_a_cluster_that_has_left_or_has_nothing_any_more_keeps_no_gate_shut(what: str) -> None:
    world = _soaking()
    world.say(NOT_AVAILABLE, "a")
    match what:
        case "not picked":
            world.picked = {"b", "c"}
        case "given nothing":
            world.bindings["a"] = scheduled("a")
        case _:
            world.around[what] = {"a"}
    world.wait(3601)
    assert world.given()[-1] == "c"


@pytest.mark.parametrize(("policy", "given"), [(Missing.wait, ["a", "b"]), (Missing.skip, ["a", "b", "c"])])
def test_a_cluster_that_cannot_be_reached_after_it_was_done_is_waited_for_unless_such_are_skipped(
    policy: Missing, given: list[str]
) -> None:
    stages = (stage("one", after_stage_tasks=(timed("1h"),)), stage("two"))
    world = World(
        {"a": "one", "b": "one", "c": "two"}, *stages, strategy=strategy(*stages, unreachable_clusters=policy)
    )
    world.settle()
    world.arrive_all()
    world.unreachable = {"a": "a was last heard of at noon"}
    world.wait(3601)
    assert world.given() == given
    if policy is Missing.wait:
        assert "a is not available any more: a was last heard of at noon" in world.message()


# Failing


def test_without_max_failures_a_run_waits_for_as_long_as_it_takes() -> None:
    world = World(dict.fromkeys("ab", "one"), stage("one"))
    world.settle()
    world.say(NOT_AVAILABLE, "a")
    world.wait(1_000_000)
    assert (world.says(), world.given()) == ("False/UpdateRunStuck", ["a"])


def test_some_clusters_may_fail() -> None:
    world = World(dict.fromkeys("abc", "one"), stage("one", max_failures=1))
    world.settle()
    world.say(NOT_AVAILABLE, "a")
    world.wait(299)
    assert world.given() == ["a"]
    world.wait(1)
    failed = find_condition(world.cluster("a").conditions, reasons.SUCCEEDED)
    assert failed is not None
    assert (failed.status, failed.reason, failed.message) == (
        "False",
        "ClusterUpdatingFailed",
        "Deployment test-ns/web has 0 of 3 updated replicas",
    )
    assert world.given() == ["a", "b"]
    world.arrive("b")
    world.arrive("c")
    assert world.says(reasons.SUCCEEDED) == "True/UpdateRunSucceeded"


def test_a_cluster_that_has_failed_is_given_nothing_more() -> None:
    """It began, and the hub died before it could be given anything."""
    world = World({"a": "one", "b": "one"}, stage("one", max_failures=1))
    world.look(lose=True)
    world.now += timedelta(minutes=5)
    planned = world.look()
    assert find_condition(world.cluster("a").conditions, reasons.SUCCEEDED) is not None
    assert [one.spec.target_cluster for one in planned.point] == ["b"]


@pytest.mark.parametrize("allowed", [0, "0%", "33%"])
def test_one_more_is_too_many(allowed: int | str) -> None:
    world = World(dict.fromkeys("abc", "one"), stage("one", max_failures=allowed))
    world.settle()
    world.say(NOT_AVAILABLE, "a")
    world.wait(300)
    assert world.says(reasons.SUCCEEDED) == "False/UpdateRunFailed"
    assert world.message(reasons.SUCCEEDED) == (
        "1 cluster of stage one failed, and 0 may: a; a: Deployment test-ns/web has 0 of 3 updated replicas"
    )
    assert world.stage_says("one", reasons.SUCCEEDED) == "False/StageUpdatingFailed"
    assert world.given() == ["a"]


@pytest.mark.parametrize("gone", [True, False])
def test_a_run_whose_placement_goes_has_failed(gone: bool) -> None:
    world = two_stages()
    world.settle()
    world.placement = None if gone else placement(deletion_timestamp=NOW)
    world.settle()
    assert (world.says(), world.says(reasons.SUCCEEDED)) == ("False/UpdateRunFailed", "False/UpdateRunFailed")
    assert "parent placement not found" in world.message()


@pytest.mark.parametrize("state", [RunState.run, RunState.stop])
@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"staged_update_strategy_snapshot": None}, "status.stagedUpdateStrategySnapshot was removed"),
        (
            {"stages_status": ()},
            "it has no stages, and the strategy that the run was begun with has stages one and two",
        ),
        (
            {"staged_update_strategy_snapshot": strategy(stage("one"), stage("two"), stage("x")).spec},
            "has stages one, two and x",
        ),
        ({"staged_update_strategy_snapshot": strategy(stage("other"), stage("two")).spec}, "has stages other and two"),
    ],
)
def test_a_run_whose_status_somebody_changed_fails_and_says_so(
    changed: dict[str, Any], problem: str, state: RunState
) -> None:
    world = two_stages()
    world.settle()
    world.set_state(state)
    world.run = replace(world.run, status=replace(world.run.status, **changed))
    world.arrive("a")
    assert (world.given(), world.says()) == (["a"], "False/UpdateRunFailed")
    assert world.says(reasons.SUCCEEDED) == "False/UpdateRunFailed"
    assert problem in world.message()


def test_a_run_whose_resources_are_gone_gives_them_to_no_further_cluster() -> None:
    world = two_stages()
    world.settle()
    world.around["is_kept"] = False
    world.arrive("a")
    assert (world.given(), world.says()) == (["a"], "False/UpdateRunStuck")
    assert world.message().startswith(f"{TARGET} is gone")


def test_a_run_waits_for_the_one_that_moves_the_placement() -> None:
    world = two_stages()
    world.around["ahead"] = "first"
    world.settle()
    assert (world.given(), world.says()) == ([], "False/UpdateRunWaiting")
    assert world.message().startswith("run waits: run first moves the placement")


def test_a_step_is_a_function_of_what_is_seen() -> None:
    world = two_stages()
    later = NOW + timedelta(seconds=5)
    assert step(world.seen, later) == step(world.seen, later)

"""What becomes of a run that failed: it is tried once more, or taken back."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.dialect import Dialect
from kedge.api.fleet import RETRY, ROLLBACK_OF
from kedge.api.placement_kinds import Run
from kedge.api.staged import RunState
from kedge.plan.staging.rollbacks import (
    as_not_rolled_back,
    as_rolled_back,
    begun_clusters,
    failed_at,
    is_rollback_of,
    retried,
    rollback_name,
    rollback_of,
    rollback_run_of,
    wants_rollback,
    without_gates,
)
from kedge.plan.staging.step import ahead_of
from plan.rolling.making import NOT_AVAILABLE, binding
from plan.staging.making import APPROVAL, NOW, World, run, stage, strategy, timed


def failed(**how: Any) -> World:
    """A run of which the first of three clusters failed, and none may."""
    one = stage("one", max_failures=0)
    world = World(dict.fromkeys("abc", "one"), one, strategy=strategy(one, **how))
    world.settle()
    world.say(NOT_AVAILABLE, "a")
    world.wait(300)
    assert world.says(reasons.SUCCEEDED) == "False/UpdateRunFailed"
    return world


def rollback(**how: Any) -> Run:
    return run(index="0", **{"name": "run-rollback", "uid": "b", "annotations": {ROLLBACK_OF: "run"}, **how})


def annotated(world: World, value: str) -> World:
    meta = replace(world.run.metadata, annotations={RETRY: value})
    world.run = replace(world.run, metadata=meta)
    world.run = replace(world.run, status=retried(world.run))
    return world


def test_what_failed_is_tried_once_more() -> None:
    world = failed()
    world.now = world.now.replace(minute=30)
    world = annotated(world, "2030-01-01T12:05:00Z")
    assert world.says(reasons.SUCCEEDED) == ""
    world.settle()
    assert (world.moving("one"), world.says()) == (["a"], "True/UpdateRunStarted")
    world.arrive_all()
    assert world.says(reasons.SUCCEEDED) == "True/UpdateRunSucceeded"


def test_a_run_that_is_tried_again_waits_for_the_one_that_moves_the_placement_by_now() -> None:
    world = failed()
    world.now = world.now.replace(minute=30)
    again = annotated(world, "2030-01-01T12:05:00Z").run
    other = World(dict.fromkeys("abc", "one"), stage("one"))
    other.settle()
    other_run = replace(other.run, metadata=replace(other.run.metadata, name="other", uid="other"))
    runs = [again, other_run]
    assert [ahead_of(one, runs, Dialect.seed) for one in runs] == ["other", ""]
    assert ahead_of(again, [again], Dialect.seed) == ""


def test_a_cluster_that_fails_again_after_it_was_asked_has_failed() -> None:
    world = annotated(failed(), "2030-01-01T12:05:00Z")
    world.settle()
    world.wait(300)
    world.run = replace(world.run, status=retried(world.run))
    assert world.says(reasons.SUCCEEDED) == "False/UpdateRunFailed"


@pytest.mark.parametrize("value", ["2030-01-01T12:04:59Z", "soon", ""])
def test_what_failed_later_or_is_no_time_changes_nothing(value: str) -> None:
    assert annotated(failed(), value).says(reasons.SUCCEEDED) == "False/UpdateRunFailed"


def some_failed(*, over: bool) -> World:
    """The first of three clusters failed, and one may; the stage is over or not."""
    world = World(dict.fromkeys("abc", "one") | {"d": "two"}, stage("one", max_failures=1), stage("two"))
    world.settle()
    world.say(NOT_AVAILABLE, "a")
    world.wait(300)
    world.arrive("b")
    if over:
        world.arrive("c")
    assert world.cluster("a").conditions[-1].reason == reasons.UPDATING_FAILED
    return world


def test_a_cluster_that_failed_in_a_stage_that_is_over_is_not_tried_again() -> None:
    over = some_failed(over=True)
    assert failed_at(over.status) is None
    assert annotated(over, "2030-01-01T13:00:00Z").cluster("a").conditions[-1].reason == reasons.UPDATING_FAILED


def test_a_cluster_that_failed_is_tried_again_while_its_stage_is_under_way_and_the_others_stay_as_they_are() -> None:
    world = some_failed(over=False)
    before = world.status
    assert failed_at(before) == NOW.replace(minute=5)
    after = annotated(world, "2030-01-01T13:00:00Z").status
    assert world.cluster("a").conditions == ()
    assert after.stages_status[0].clusters[1:] == before.stages_status[0].clusters[1:]
    assert (after.conditions, after.stages_status[0].conditions) == (
        before.conditions,
        before.stages_status[0].conditions,
    )


def test_a_stage_that_failed_has_no_end_once_it_is_tried_again() -> None:
    world = failed()
    assert world.stage("one").end_time is not None
    world = annotated(world, "2030-01-01T12:05:00Z")
    assert (world.stage("one").end_time, world.stage_says("one", reasons.SUCCEEDED)) == (None, "")
    assert world.stage_says("one") == "False/StageUpdatingFailed"


def test_the_last_of_several_failures_counts() -> None:
    one = stage("one", max_failures=1, max_concurrency=1)
    world = World(dict.fromkeys("abc", "one"), one)
    world.settle()
    for name in "ab":
        world.say(NOT_AVAILABLE, name)
        world.wait(300)
    assert world.says(reasons.SUCCEEDED) == "False/UpdateRunFailed"
    assert failed_at(world.status) == NOW.replace(minute=10)


def test_a_run_may_fail_though_no_cluster_did_and_one_that_succeeded_has_not() -> None:
    world = World({"a": "one"}, stage("one"))
    world.placement = None
    world.wait(60)
    assert failed_at(world.status) == NOW.replace(minute=1)
    done = World({"a": "one"}, stage("one"))
    done.arrive_all()
    assert done.says(reasons.SUCCEEDED) == "True/UpdateRunSucceeded"
    assert failed_at(done.status) is None


def test_it_is_known_when_something_failed_last() -> None:
    assert failed_at(failed().status) == NOW.replace(minute=5)
    assert failed_at(World({"a": "one"}, stage("one")).status) is None


def test_a_run_knows_what_most_of_its_clusters_had() -> None:
    had = [binding("a"), binding("b"), binding("c", has="crp-1-snapshot")]
    world = World(dict.fromkeys("abc", "one"), stage("one"), bindings=had)
    assert world.status.previous_resource_snapshot_index == "0"
    assert World({"a": "one"}, stage("one")).status.previous_resource_snapshot_index is None
    of_the_peer = World(dict.fromkeys("abc", "one"), stage("one"), bindings=had, dialect=Dialect.kubefleet)
    assert of_the_peer.status.previous_resource_snapshot_index is None


def test_a_run_that_fails_is_taken_back_only_if_the_strategy_says_so() -> None:
    assert not wants_rollback(failed().run)
    world = failed(rollback_on_failure=True)
    assert wants_rollback(world.run)
    world.run = replace(world.run, status=as_rolled_back(world.run, rollback(), NOW))
    assert not wants_rollback(world.run)


def test_a_rollback_is_a_run_over_the_clusters_that_were_touched() -> None:
    world = failed(rollback_on_failure=True)
    undone = replace(world.run, status=replace(world.status, previous_resource_snapshot_index="0"))
    made = rollback_of(undone)
    assert made["metadata"] == {"name": "run-rollback", "annotations": {ROLLBACK_OF: "run"}}
    assert made["spec"] == {
        "placementName": "crp",
        "stagedRolloutStrategyName": "strategy",
        "resourceSnapshotIndex": "0",
        "state": "Run",
    }
    assert begun_clusters(world.run) == {"a"}


def test_a_run_that_was_taken_back_is_not_tried_again() -> None:
    """What it had done was undone: it would end as if that were still there."""
    world = failed(rollback_on_failure=True)
    world.run = replace(world.run, status=replace(world.status, previous_resource_snapshot_index="0"))
    world.run = replace(world.run, status=as_rolled_back(world.run, rollback(), NOW))
    assert failed_at(world.status) is None
    assert annotated(world, "2030-01-01T12:05:00Z").says(reasons.SUCCEEDED) == "False/UpdateRunFailed"


def test_a_run_is_rolled_back_as_soon_as_a_run_says_so_of_itself() -> None:
    world = World({"a": "one", "b": "one"}, stage("one"))
    world.settle()
    assert rollback_run_of(world.run, [world.run]) is None
    assert rollback_run_of(world.run, [world.run, rollback(deletion_timestamp=NOW)]) is None
    by = rollback_run_of(world.run, [world.run, rollback()])
    assert by is not None
    world.run = replace(world.run, status=as_rolled_back(world.run, by, NOW))
    said = "run run-rollback brings its clusters back to resources 0"
    assert (world.says("RolledBack"), world.message("RolledBack")) == ("True/RollbackStarted", said)
    assert (world.says(), world.message()) == ("False/RolledBack", said)
    assert world.says(reasons.SUCCEEDED) == "False/RolledBack"
    assert world.stage_says("one") == "False/StageUpdatingStopped"


@pytest.mark.parametrize("state", list(RunState))
def test_a_run_that_was_rolled_back_moves_nothing_whatever_is_asked_of_it(state: RunState) -> None:
    world = World({"a": "one", "b": "one"}, stage("one"))
    world.settle()
    world.run = replace(world.run, status=as_rolled_back(world.run, rollback(), NOW))
    world.set_state(state)
    world.arrive("a")
    planned = world.look()
    assert (planned.point, planned.request, planned.look_again) == ((), (), None)
    assert world.given() == ["a"]
    assert {one.observed_generation for one in world.status.conditions} == {world.run.metadata.generation}


def test_a_run_that_had_ended_still_says_how_it_ended_and_that_it_was_rolled_back() -> None:
    world = World({"a": "one"}, stage("one"))
    world.settle()
    world.arrive("a")
    world.run = replace(world.run, status=as_rolled_back(world.run, rollback(), NOW))
    assert world.says(reasons.SUCCEEDED) == "True/UpdateRunSucceeded"
    assert world.says("RolledBack") == "True/RollbackStarted"


def test_a_rollback_of_an_earlier_run_of_the_same_name_is_not_this_ones() -> None:
    ours = rollback()
    earlier = replace(ours, metadata=replace(ours.metadata, creation_timestamp=NOW.replace(hour=1)))
    other = replace(ours, metadata=replace(ours.metadata, annotations={}))
    assert [is_rollback_of(one, run()) for one in (ours, earlier, other)] == [True, False, False]


def test_where_there_was_nothing_before_it_says_so() -> None:
    said = as_not_rolled_back(failed(rollback_on_failure=True).run, NOW).conditions[-1]
    assert (said.type, said.status, said.reason) == ("RolledBack", "False", "NothingToGoBackTo")


def test_no_gate_holds_up_the_way_back() -> None:
    guarded = strategy(
        stage("one", before_stage_tasks=(APPROVAL,), after_stage_tasks=(timed("1h"),), max_failures=1),
        delete_stage_tasks=(APPROVAL,),
        rollback_on_failure=True,
    )
    assert without_gates(guarded.spec).stages == (stage("one"),)
    assert without_gates(guarded.spec).delete_stage_tasks == ()


@pytest.mark.parametrize("length", [1, 54, 63])
@pytest.mark.parametrize("number", [1, 2, 10])
def test_the_name_of_a_rollback_fits(length: int, number: int) -> None:
    assert len(rollback_name(run(name="r" * length), number)) <= 63


def test_a_name_that_is_taken_is_followed_by_another() -> None:
    assert [rollback_name(run(), number) for number in (1, 2)] == ["run-rollback", "run-rollback-2"]
    assert rollback_name(run()) == "run-rollback"
    assert len(rollback_name(run(name="r" * 63))) == 63

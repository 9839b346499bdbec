"""The last stage of a run: clusters that are no longer picked lose what was placed on them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.condition import find_condition
from kedge.api.fleet import ROLLBACK_OF
from kedge.api.staged import RunState
from kedge.api.staged_status import StageStatus
from plan.rolling.making import AVAILABLE, binding, unscheduled
from plan.staging.making import APPROVAL, NOW, World, stage, strategy, timed


def clearing(*leaving: str, going: str = "", **how: object) -> World:
    """A run whose only cluster has the change; those that are `going` are being deleted already."""
    world = World({"a": "one"}, stage("one"), strategy=strategy(stage("one"), **how))
    world.settle()
    for name in leaving:
        world.bindings[name] = unscheduled(name, deleting=name in going)
    world.arrive("a")
    return world


def last(world: World) -> StageStatus:
    found = world.status.deletion_stage_status
    assert found is not None
    return found


def came_of(world: World) -> dict[str, str]:
    """What became of each cluster: why it is done, and else whether it has begun."""
    found = {}
    for one in last(world).clusters:
        done = find_condition(one.conditions, reasons.SUCCEEDED)
        begun = find_condition(one.conditions, reasons.CLUSTER_STARTED)
        found[one.cluster_name] = done.reason if done else "begun" if begun else ""
    return found


def test_each_binding_is_removed_once() -> None:
    world = World({"a": "one"}, stage("one"))
    world.bindings |= {name: unscheduled(name) for name in "yz"}
    world.settle()
    world.say(AVAILABLE, "a")
    planned = world.look(lose=True)
    assert [one.spec.target_cluster for one in planned.remove] == ["y", "z"]


def test_it_begins_and_ends_at_whole_seconds() -> None:
    world = World({"a": "one"}, stage("one"))
    world.now = NOW + timedelta(seconds=1.5)
    world.arrive_all()
    assert (last(world).start_time, last(world).end_time) == (NOW + timedelta(seconds=1), NOW + timedelta(seconds=1))


def test_a_run_says_that_it_waits_for_clearing_to_be_approved() -> None:
    world = clearing("z", delete_stage_tasks=(APPROVAL,))
    assert world.says() == "False/UpdateRunWaiting"
    assert "waits for approval: set condition Approved of run-before-delete-stage" in world.message()
    assert find_condition(last(world).conditions, reasons.PROGRESSING).reason == "StageUpdatingWaiting"  # type: ignore[union-attr]
    assert [task.approval_request_name for task in last(world).before_stage_task_status] == ["run-before-delete-stage"]


def test_a_wait_has_no_request() -> None:
    world = clearing("z", delete_stage_tasks=(timed("60s"),))
    assert [task.approval_request_name for task in last(world).before_stage_task_status] == [None]


def test_a_cluster_that_takes_long_is_looked_at_again_when_it_is_too_long() -> None:
    world = clearing("z", going="z")
    assert world.look().look_again == pytest.approx(300)
    world.wait(299)
    assert world.says() == "True/UpdateRunStarted"
    world.wait(1)
    assert world.says() == "False/UpdateRunStuck"


def test_a_cluster_that_is_picked_again_meanwhile_is_skipped_and_one_that_was_cleared_stays_so() -> None:
    world = clearing("x", "y", "z", going="xyz")
    del world.bindings["x"]
    world.settle()
    assert came_of(world) == {"x": "ClusterUpdatingSucceeded", "y": "begun", "z": "begun"}
    world.bindings |= {"x": binding("x"), "y": binding("y")}
    world.settle()
    assert came_of(world) == {
        "x": "ClusterUpdatingSucceeded",
        "y": reasons.UPDATING_SKIPPED,
        "z": "begun",
    }


def test_a_rollback_clears_nothing() -> None:
    world = World({"a": "one"}, stage("one"))
    world.run = replace(world.run, metadata=replace(world.run.metadata, annotations={ROLLBACK_OF: "other"}))
    world.bindings["z"] = unscheduled("z")
    world.arrive_all()
    assert (came_of(world), "z" in world.bindings) == ({}, True)


def test_what_is_going_when_the_run_is_stopped_is_followed_to_its_end() -> None:
    world = clearing("y", "z", going="yz")
    world.set_state(RunState.stop)
    world.settle()
    assert (world.says(), world.message()) == ("Unknown/UpdateRunStopping", "still moving: y and z")
    del world.bindings["y"]
    world.settle()
    assert came_of(world) == {"y": "ClusterUpdatingSucceeded", "z": "begun"}
    del world.bindings["z"]
    world.settle()
    assert (world.says(), came_of(world)["z"]) == ("False/UpdateRunStopped", "ClusterUpdatingSucceeded")


def test_what_was_only_to_be_removed_is_not_once_the_run_is_stopped() -> None:
    world = World({"a": "one"}, stage("one"))
    world.bindings |= {"y": unscheduled("y"), "z": unscheduled("z", deleting=True)}
    world.settle()
    world.say(AVAILABLE, "a")
    world.look(lose=True)
    world.set_state(RunState.stop)
    planned = world.look()
    assert (planned.remove, world.message()) == ((), "still moving: z")
    del world.bindings["z"]
    world.settle()
    assert (sorted(world.bindings), world.says()) == (["a", "y"], "False/UpdateRunStopped")


def test_a_run_that_is_stopped_before_clearing_was_approved_begins_with_none() -> None:
    world = clearing("y", "z", delete_stage_tasks=(APPROVAL,))
    world.set_state(RunState.stop)
    world.settle()
    assert (world.says(), came_of(world)) == ("False/UpdateRunStopped", {"y": "", "z": ""})

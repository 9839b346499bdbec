"""What a run waits for: requests in odd states, waits and clocks, clusters in trouble."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.condition import FALSE, find_condition
from kedge.api.stage import Missing
from kedge.plan.staging.gates import FoundRequest
from plan.rolling.making import IN_PROGRESS, NOT_AVAILABLE, UNTRACKABLE
from plan.staging.making import APPROVAL, NOW, World, approval, approved, stage, strategy, timed


def asking(*tasks: object) -> World:
    """A run that has done its first stage and waits for these tasks."""
    world = World({"a": "one", "b": "two"}, stage("one", after_stage_tasks=tasks), stage("two"))
    world.settle()
    world.arrive("a")
    return world


@pytest.mark.parametrize(
    ("made", "since", "is_of_another"),
    [(-1, 0, True), (0, 0, False), (1, 0, False), (None, 0, False), (-1, None, False)],
)
def test_a_request_is_of_another_run_if_it_was_made_before_this_one(
    made: int | None, since: int | None, is_of_another: bool
) -> None:
    times = [None if each is None else NOW + timedelta(seconds=each) for each in (made, since)]
    request = approval("run-one", "one", creation_timestamp=times[0])
    assert FoundRequest(request, times[1]).is_of_another is is_of_another
    assert not FoundRequest(None, NOW).is_of_another


def test_what_was_approved_once_is_not_asked_for_again() -> None:
    world = asking(APPROVAL, timed("1h"))
    world.approve("run-one")
    world.settle()
    del world.approvals["run-one"]
    world.settle()
    assert world.approvals == {}
    world.wait(3601)
    assert world.given() == ["a", "b"]


def test_a_wait_that_is_over_stays_over_whatever_the_clock_says() -> None:
    world = asking(timed("1h"), APPROVAL)
    world.wait(3601)
    world.now -= timedelta(seconds=100)
    world.approve("run-one")
    world.settle()
    assert world.given() == ["a", "b"]


def test_a_request_that_is_being_deleted_does_not_count_and_is_made_anew() -> None:
    world = asking(APPROVAL)
    world.approve("run-one")
    request = world.approvals["run-one"]
    world.approvals["run-one"] = replace(request, metadata=replace(request.metadata, deletion_timestamp=NOW))
    world.settle()
    assert world.given() == ["a"]
    assert world.message() == "run waits: approval request run-one is being deleted, and will be made anew"


@pytest.mark.parametrize(("accepted", "told"), [(None, True), ("True", False), (FALSE, True)])
def test_a_request_is_told_that_it_was_accepted_unless_it_was(accepted: str | None, told: bool) -> None:
    world = asking(APPROVAL)
    world.approve("run-one")
    if accepted is not None:
        request = world.approvals["run-one"]
        world.approvals["run-one"] = approved(request, kind=reasons.APPROVAL_ACCEPTED, status=accepted)
    planned = world.look()
    assert [one.metadata.name for one in planned.accept] == ["run-one"] * told
    assert world.stage_says("one", reasons.SUCCEEDED) == "True/StageUpdatingSucceeded"


def test_what_cannot_be_seen_is_looked_at_again_when_its_time_is_over() -> None:
    world = World({"a": "one"}, stage("one"))
    world.settle()
    world.say(UNTRACKABLE, "a")
    assert world.look().look_again == pytest.approx(30)
    world.wait(31)
    assert world.look().look_again == pytest.approx(29)


@pytest.mark.parametrize("how", ["deleting", "unscheduled"])
def test_a_binding_that_is_on_its_way_out_brings_nothing(how: str) -> None:
    world = World({"a": "one"}, stage("one"))
    world.settle()
    one = world.bindings["a"]
    world.bindings["a"] = (
        replace(one, metadata=replace(one.metadata, deletion_timestamp=NOW))
        if how == "deleting"
        else replace(one, spec=replace(one.spec, state="Unscheduled"))
    )
    world.wait(30)
    assert world.cluster("a").conditions[0].message == "its binding is being made anew"
    assert world.look().point == ()


@pytest.mark.parametrize(
    ("told", "said"), [("no heartbeat since noon", "no heartbeat since noon"), ("", "it is not heard of")]
)
def test_a_cluster_that_cannot_be_reached_says_since_when(told: str, said: str) -> None:
    world = World({"a": "one"}, stage("one"))
    world.settle()
    world.say(NOT_AVAILABLE, "a")
    world.unreachable = {"a": told}
    world.wait(30)
    assert world.cluster("a").conditions[0].message == said


# Clusters that are done, and clusters that failed


def two_of_one(**how: object) -> World:
    """A stage of two clusters, the first of which is done."""
    world = World(dict.fromkeys("ab", "one"), stage("one", **how))
    world.settle()
    world.arrive("a")
    return world


def test_a_cluster_that_is_done_stays_done_whatever_becomes_of_it_while_its_stage_goes_on() -> None:
    world = two_of_one()
    done = world.cluster("a")
    world.unpick("a", leave_binding=False)
    world.settle()
    assert world.cluster("a") == done


def test_a_cluster_that_is_done_is_told_again_only_if_its_binding_was_written_since() -> None:
    world = two_of_one()
    assert [one.spec.target_cluster for one in world.look(lose=True).point] == []
    one = world.bindings["a"]
    world.bindings["a"] = replace(one, metadata=replace(one.metadata, generation=one.metadata.generation + 1))
    assert [one.spec.target_cluster for one in world.look(lose=True).point] == ["a"]
    world.bindings["a"] = replace(one, spec=replace(one.spec, resource_snapshot_name="crp-7-snapshot"))
    assert [one.spec.target_cluster for one in world.look(lose=True).point] == []


def test_a_cluster_that_failed_is_told_nothing_more() -> None:
    world = World(dict.fromkeys("ab", "one"), stage("one", max_failures=1))
    world.settle()
    world.say(NOT_AVAILABLE, "a")
    world.wait(300)
    one = world.bindings["a"]
    world.bindings["a"] = replace(one, metadata=replace(one.metadata, generation=one.metadata.generation + 1))
    assert [one.spec.target_cluster for one in world.look(lose=True).point] == []


def test_a_run_whose_only_cluster_failed_and_may_waits_for_what_follows() -> None:
    world = World({"a": "one"}, stage("one", max_failures=1, after_stage_tasks=(APPROVAL,)))
    world.settle()
    world.say(NOT_AVAILABLE, "a")
    world.wait(300)
    assert world.says() == "False/UpdateRunWaiting"
    assert "waits for approval" in world.message()


def test_a_run_says_in_the_moment_a_cluster_fails_that_it_moves_no_longer_and_is_not_stuck() -> None:
    """One look, not the one after it: that is what is written, and told in an event."""
    world = World({"a": "one"}, stage("one", max_failures=1, after_stage_tasks=(APPROVAL,)))
    world.settle()
    world.say(NOT_AVAILABLE, "a")
    world.wait(299)
    world.now += timedelta(seconds=1)
    world.look()
    assert find_condition(world.cluster("a").conditions, reasons.SUCCEEDED) is not None
    assert world.says() == "False/UpdateRunWaiting"
    assert "waits for approval" in world.message()


def test_a_cluster_that_failed_does_not_hide_another_that_is_stuck() -> None:
    """The second is about to fail, too, when its time has come."""
    world = World(dict.fromkeys("ab", "one"), stage("one", max_failures=1, max_concurrency=2))
    world.settle()
    world.say(NOT_AVAILABLE, "a", "b")
    world.wait(300)
    assert world.says(reasons.SUCCEEDED) == "False/UpdateRunFailed"
    assert world.message(reasons.SUCCEEDED).startswith("2 clusters of stage one failed, and 1 may: a and b; b: ")


def test_only_the_cluster_that_cannot_be_reached_has_failed() -> None:
    one = stage("one", max_concurrency=2)
    world = World(dict.fromkeys("ab", "one"), one, strategy=strategy(one, unreachable_clusters=Missing.fail))
    world.unreachable = {"b": "no heartbeat since noon"}
    world.settle()
    assert world.says(reasons.SUCCEEDED) == "False/UpdateRunFailed"
    failed = [one.cluster_name for one in world.stage("one").clusters if find_condition(one.conditions, "Succeeded")]
    assert failed == ["b"]


def test_a_cluster_takes_its_time_while_its_resources_are_applied() -> None:
    world = World({"a": "one"}, stage("one"))
    world.settle()
    world.say(IN_PROGRESS, "a")
    world.wait(30)
    assert world.cluster("a").conditions[0].message == "its resources are being applied"


def test_a_stage_begins_once_and_ends_at_whole_seconds() -> None:
    world = World({"a": "one"}, stage("one"))
    world.now += timedelta(seconds=1.5)
    world.settle()
    world.wait(60)
    assert world.stage("one").start_time == NOW + timedelta(seconds=1)
    world.arrive("a")
    assert world.stage("one").end_time == NOW + timedelta(seconds=61)


def test_a_gate_that_waits_withdraws_nothing() -> None:
    planned = asking(APPROVAL).look()
    assert (planned.withdraw, planned.request, planned.accept) == ((), (), ())

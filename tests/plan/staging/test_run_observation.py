"""What a run's next step depends on, from objects; and what it waits for, as data."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.cluster import MemberCluster
from kedge.api.condition import new_condition
from kedge.api.meta import ObjectMeta
from kedge.api.wire import read_plain
from kedge.plan.moving.gate import GateCode
from kedge.plan.staging.run_observation import RunObjects, approval_names, observe_run, resources_of, run_waits
from kedge.plan.staging.run_story import tell_run
from kedge.plan.staging.wait_text import RunCode
from plan.rolling.making import NOT_AVAILABLE
from plan.staging.making import APPROVAL, NOW, TARGET, World, approval, placement, policy, run, stage, timed
from support.fleets import IDENTITY

TWO = {"a": "one", "b": "two"}


def codes(world: World) -> list[tuple[str, str, list[str]]]:
    """Each wait: whose it is, what for, and who is waited for."""
    return [(one.unit, one.code, [it.key for it in one.blockers]) for one in run_waits(world.seen, world.now)]


def test_a_run_that_moves_waits_for_nothing() -> None:
    world = World(TWO, stage("one"), stage("two"))
    world.settle()
    assert codes(world) == []


def test_a_wait_after_a_stage_is_data_of_the_run_and_of_the_stage() -> None:
    world = World(TWO, stage("one", after_stage_tasks=(timed("1h"),)), stage("two"))
    world.settle()
    world.arrive("a")
    assert codes(world) == [("one", GateCode.time, ["one"])]
    waits = run_waits(world.seen, world.now)
    assert waits[0].blockers[0].until == NOW + timedelta(hours=1, seconds=1)
    story = tell_run(world.run, waits=waits)
    assert (story.waits, [one.waits for one in story.stages]) == (waits, [waits, ()])


def test_an_approval_is_named_by_its_request() -> None:
    world = World(TWO, stage("one", after_stage_tasks=(APPROVAL,)), stage("two"))
    world.settle()
    world.arrive("a")
    assert codes(world) == [("one", RunCode.approval_pending, ["run-one"])]


def test_a_run_that_could_not_begin_waits_for_nothing() -> None:
    world = World(TWO, stage("one"), stage("two"))
    told = new_condition(
        reasons.INITIALIZED, status="False", reason=reasons.RUN_NOT_INITIALIZED, message="", generation=1, now=NOW
    )
    ended = replace(world.seen.run, status=replace(world.seen.run.status, conditions=(told,)))
    assert run_waits(replace(world.seen, run=ended), world.now) == ()


def test_what_takes_long_comes_first_and_once() -> None:
    world = World(TWO, stage("one"), stage("two"))
    world.settle()
    world.say(NOT_AVAILABLE, "a")
    world.wait(301)
    assert codes(world) == [("a", RunCode.cluster_stuck, ["a"])]
    [wait] = run_waits(world.seen, world.now)
    assert wait.blockers[0].reported == "Deployment test-ns/web has 0 of 3 updated replicas"
    assert wait.numbers == {"blockers": 1}


def test_a_run_that_is_not_its_turn_waits_for_the_other() -> None:
    world = World(TWO, stage("one"), stage("two"))
    world.around = {"ahead": "earlier"}
    waits = run_waits(world.seen, world.now)
    assert codes(world) == [("run", RunCode.other_run, ["earlier"])]
    world.look()
    said = "run earlier moves the placement: this one goes on when that has ended, is stopped or deleted"
    assert world.message() == f"run waits: {said}"
    assert [one.waits for one in tell_run(world.run, waits=waits).stages] == [(), ()]


def test_a_run_that_has_not_begun_waits_for_its_placement() -> None:
    world = World(TWO, stage("one"), stage("two"))
    world.run = run()
    assert codes(world) == [("run", RunCode.not_initialized, ["crp"])]


def test_a_run_that_has_ended_waits_for_nothing() -> None:
    world = World({"a": "one"}, stage("one"))
    world.settle()
    world.arrive("a")
    assert codes(world) == []


def test_only_the_first_few_of_many_blockers_are_shown_and_all_are_counted() -> None:
    names = [f"c{number:02}" for number in range(12)]
    gates = stage("one", max_concurrency="100%", after_stage_tasks=(timed("1h"),))
    world = World(dict.fromkeys(names, "one"), gates)
    world.settle()
    world.arrive(*names)
    world.say(NOT_AVAILABLE, *names)
    lost = next(one for one in run_waits(world.seen, world.now) if one.code == GateCode.proof_lost)
    assert ([one.key for one in lost.blockers], lost.numbers["blockers"]) == (names[:10], 12)


# From objects


def member(name: str) -> MemberCluster:
    plain = {"metadata": {"name": name, "labels": {"stage": "one"}}, "spec": {"identity": IDENTITY}}
    return read_plain(plain, MemberCluster)


def objects(world: World, **other: Any) -> RunObjects:
    known: dict[str, Any] = {
        "placement": placement(),
        "bindings": tuple(world.bindings.values()),
        "policies": (policy("a", "b"),),
        "snapshot": ObjectMeta(name=TARGET),
        "approvals": (approval("run-one", "one"),),
        "members": {"a": member("a")},
        "runs": (world.run,),
    }
    return RunObjects(**known | other)


def test_members_snapshot_and_policy_are_read_as_they_are() -> None:
    world = World(TWO, stage("one"), stage("two"))
    seen = observe_run(world.run, objects(world))
    assert (seen.resources, seen.is_kept, seen.picked, seen.ahead) == (TARGET, True, {"a", "b"}, "")
    assert (seen.gone, seen.parting, dict(seen.labels)) == ({"b"}, set(), {"a": {"stage": "one"}})
    assert list(seen.approvals) == ["run-one"]


@pytest.mark.parametrize("snapshot", [None, ObjectMeta(name=TARGET, deletion_timestamp=NOW)])
def test_resources_that_are_gone_or_going_are_not_kept(snapshot: ObjectMeta | None) -> None:
    world = World(TWO, stage("one"), stage("two"))
    assert not observe_run(world.run, objects(world, snapshot=snapshot)).is_kept


def test_members_that_may_not_be_read_do_not_count_as_gone() -> None:
    world = World(TWO, stage("one"), stage("two"))
    assert observe_run(world.run, objects(world, members=None)).gone == frozenset()


def test_while_clusters_are_picked_or_the_placement_is_gone_none_are_known() -> None:
    world = World(TWO, stage("one"), stage("two"))
    assert observe_run(world.run, objects(world, policies=())).picked is None
    assert observe_run(world.run, objects(world, placement=None)).picked is None


def test_a_run_goes_by_the_requests_of_its_tasks_and_of_its_clearing() -> None:
    world = World(TWO, stage("one", after_stage_tasks=(APPROVAL,)), stage("two"))
    world.settle()
    assert list(approval_names(world.run)) == ["run-one", "run-before-delete-stage"]
    status = replace(world.status, resource_snapshot_index_used=None)
    assert resources_of(replace(world.run, status=status)) == "crp-0-snapshot"

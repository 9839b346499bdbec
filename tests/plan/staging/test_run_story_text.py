"""Why a run is where it is, in sentences."""

from __future__ import annotations

from msgspec.structs import replace

from kedge.api.staged import RunState
from kedge.plan.moving.unit import Proof
from kedge.plan.moving.wait import Blocker, Code, Wait
from kedge.plan.staging.initializing import initialize
from kedge.plan.staging.rollbacks import as_rolled_back
from kedge.plan.staging.run_story import clusters_of, explained_cluster, explained_run, tell_cluster, tell_run
from kedge.plan.state import State
from plan.rolling.making import NOT_AVAILABLE
from plan.staging.making import APPROVAL, NOW, World, beginning, run, stage
from plan.staging.test_rollbacks import rollback


def world() -> World:
    found = World(
        {"a": "one", "b": "two", "c": "two"},
        stage("one", after_stage_tasks=(APPROVAL,)),
        stage("two", max_failures=0),
        stage("nobody"),
    )
    found.settle()
    return found


def explained(found: World) -> list[str]:
    return explained_run(tell_run(found.run))


def cluster(found: World, name: str) -> str:
    story = tell_cluster(found.run, name)
    assert story is not None
    return explained_cluster(story)


def test_a_run_that_moves_says_of_each_stage_how_far_it_is() -> None:
    assert explained(world()) == [
        "ClusterStagedUpdateRun run moves crp to revision 1: moving",
        "one: 0 of 1 cluster done, a not done yet",
        "two: 0 of 2 clusters done",
        "nobody: no clusters",
    ]


def test_a_run_that_waits_for_approval_says_how_to_give_it() -> None:
    found = world()
    found.arrive("a")
    assert "kedge approve run one" in explained(found)[1]
    assert cluster(found, "a") == "a: stage one: done"
    assert cluster(found, "b") == "b: stage two: waits: the run has not begun with it"


def test_a_cluster_whose_turn_comes_later_waits_for_those_that_move() -> None:
    found = World({"a": "one", "b": "one", "c": "one"}, stage("one", max_concurrency=2))
    assert [story.wait for name in "abc" if (story := tell_cluster(found.run, name))] == [None] * 3
    found.settle()
    stories = {name: tell_cluster(found.run, name) for name in "abc"}
    waits = {name: story.wait for name, story in stories.items() if story is not None}
    numbers = {"desired": 3, "maxUnavailable": 2, "available": 1, "missing": 0}
    blockers = tuple(Blocker(name, Proof.pending, NOW) for name in "ab")
    assert waits == {"a": None, "b": None, "c": Wait("c", Code.budget_spent, numbers, blockers)}


def test_a_run_that_is_stopped_or_has_failed_says_what_there_is_to_do() -> None:
    found = world()
    found.set_state(RunState.stop)
    found.arrive("a")
    assert explained(found)[-1].startswith("It is stopped: `kedge resume run` lets it go on")
    found.set_state(RunState.run)
    found.settle()
    found.approve("run-one")
    found.settle()
    found.say(NOT_AVAILABLE, "b")
    found.wait(300)
    assert "two: 1 of 2 clusters done, b failed" in explained(found)[2]
    assert explained(found)[-1].startswith("`kedge retry run` tries once more what failed")
    assert cluster(found, "b").startswith("b: stage two: failed: Deployment test-ns/web")


def test_a_run_that_was_rolled_back_says_so_and_what_there_is_to_do() -> None:
    found = world()
    found.run = replace(found.run, status=as_rolled_back(found.run, rollback(), NOW))
    lines = explained(found)
    assert lines[0] == "ClusterStagedUpdateRun run moves crp to revision 1: rolled back"
    assert lines[1].endswith(": run run-rollback brings its clusters back to resources 0")
    assert lines[-1] == "It is over: to bring the change out after all, make a new run."


def test_a_run_is_told_to_be_rolled_back_before_the_hub_has_said_so() -> None:
    story = tell_run(world().run, rollback())
    assert (story.state, story.is_done, story.has_ended) == (State.rolled_back, False, True)


def test_a_run_that_could_not_begin_says_that_it_never_will() -> None:
    bad = replace(run(), status=initialize(beginning({"a": "one"}, stage("one"), strategy=None), NOW))
    first, last = explained_run(tell_run(bad))
    assert first.startswith("ClusterStagedUpdateRun run moves crp to revision 1: failed: referenced updateStrategy not")
    assert last == "It has not begun, and never will: correct what is wrong, and make a new run."


def test_a_cluster_that_is_no_part_of_a_run_is_not_told_of() -> None:
    found = world()
    assert tell_cluster(found.run, "z") is None
    assert clusters_of(found.run) == ["a", "b", "c"]

"""Where a run stands, stage by stage; and how that is shown."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace
from rich.console import Console

from kedge.api.fleet import RETRY
from kedge.api.staged import RunState
from kedge.cli.runs import run_tree
from kedge.plan.staging.run_story import RunStory, tell_run
from kedge.plan.state import State
from kedge.plan.text import moment
from plan.rolling.making import NOT_AVAILABLE, unscheduled
from plan.staging.making import APPROVAL, NOW, World, run, stage, strategy, timed


def world() -> World:
    return World(
        {"a": "one", "b": "two", "c": "two"},
        stage("one", after_stage_tasks=(timed("1h"),)),
        stage("two", max_failures=0, after_stage_tasks=(APPROVAL,)),
        stage("nobody"),
    )


def shown(story: RunStory, after: float = 0.0) -> list[str]:
    console = Console(width=200, highlight=False)
    with console.capture() as drawn:
        console.print(run_tree(story, NOW + timedelta(seconds=after), drawn=False))
    return [line.strip() for line in drawn.get().splitlines()]


def test_each_stage_has_a_bar_and_what_moves() -> None:
    found = world()
    found.settle()
    story = tell_run(found.run)
    assert (story.state, [stage.state for stage in story.stages]) == (
        State.moving,
        [State.moving, State.waiting, State.waiting],
    )
    assert shown(story)[1].endswith("one  .................... 0/1, moving a")
    assert shown(story)[3].endswith("nobody  no clusters")


def test_a_wait_shows_the_time_that_is_left() -> None:
    found = world()
    found.settle()
    found.arrive("a")
    story = tell_run(found.run)
    assert story.stages[0].until == NOW + timedelta(seconds=3601)
    assert shown(story, 1801)[1].endswith("one  #################### 1/1, 30m to wait")


def test_a_stage_shows_who_approved_it() -> None:
    found = world()
    found.settle()
    found.arrive("a")
    found.wait(3601)
    found.arrive("b")
    found.arrive("c")
    found.approve("run-two")
    found.settle()
    (said,) = tell_run(found.run).stages[1].approved
    assert said == "approved at 2030-01-01T12:00:00Z: tested as OK: lgtm"
    assert shown(tell_run(found.run))[2].endswith(f"two  #################### 2/2, {said}")


def test_a_cluster_that_takes_long_shows_what_it_waits_for() -> None:
    found = world()
    found.settle()
    found.say(NOT_AVAILABLE, "a")
    assert tell_run(found.run).stages[0].why == ""
    found.wait(31)
    why = "a is not done: Deployment test-ns/web has 0 of 3 updated replicas"
    assert tell_run(found.run).stages[0].why == why
    assert shown(tell_run(found.run))[1].endswith(f"0/1, moving a, {why}")


def test_a_run_that_is_stopped_fails_or_ends_is_told_so() -> None:
    found = world()
    found.settle()
    found.set_state(RunState.stop)
    found.settle()
    assert tell_run(found.run).state is State.paused
    found.wait(301)
    assert tell_run(found.run).state is State.paused
    assert "a is not done since" in tell_run(found.run).why
    found.set_state(RunState.run)
    found.arrive("a")
    found.wait(3601)
    found.say(NOT_AVAILABLE, "b")
    found.wait(300)
    story = tell_run(found.run)
    assert (story.state, story.has_ended, story.is_done) == (State.failed, True, False)
    assert story.stages[1].failed == ("b",)
    assert "failed b" in shown(story)[2]


def test_a_run_that_was_just_asked_to_try_again_has_not_ended() -> None:
    found = World({"a": "one"}, stage("one", max_failures=0))
    found.settle()
    found.say(NOT_AVAILABLE, "a")
    found.wait(301)
    assert tell_run(found.run).state is State.failed
    asked = replace(found.run.metadata, annotations={RETRY: moment(found.now)})
    story = tell_run(replace(found.run, metadata=asked))
    assert (story.state, story.has_ended, story.stages[0].failed) == (State.waiting, False, ())
    assert story.why == "what failed is about to be tried once more"


def test_a_run_that_was_not_looked_at_says_so() -> None:
    story = tell_run(run())
    assert (story.state, story.why, story.stages) == (State.waiting, "it was not looked at yet", ())


def test_a_run_that_has_succeeded_is_done() -> None:
    found = World({"a": "one"}, stage("one"))
    found.arrive_all()
    story = tell_run(found.run)
    assert (story.state, story.is_done, story.has_ended, story.index) == (State.available, True, True, "1")
    assert [(each.name, each.state, each.why, each.until) for each in story.stages] == [
        ("one", State.available, "", None)
    ]


def test_a_run_that_clears_shows_the_clusters_it_clears() -> None:
    found = World({"a": "one"}, stage("one"))
    found.settle()
    found.bindings["z"] = unscheduled("z", deleting=True)
    found.arrive("a")
    last = tell_run(found.run).stages[-1]
    assert (last.name, last.moving, last.state) == ("(clearing)", ("z",), State.moving)


def test_a_run_that_is_stuck_or_waits_is_waiting() -> None:
    found = World({"a": "one"}, stage("one", after_stage_tasks=(APPROVAL,)))
    assert tell_run(found.run).state is State.waiting
    found.settle()
    found.say(NOT_AVAILABLE, "a")
    found.wait(300)
    story = tell_run(found.run)
    assert (found.says(), story.state) == ("False/UpdateRunStuck", State.waiting)
    assert story.why == found.message()
    found.arrive("a")
    story = tell_run(found.run)
    assert (story.state, [each.state for each in story.stages]) == (State.waiting, [State.waiting])
    assert story.stages[0].until is None


def test_a_stage_that_failed_shows_it() -> None:
    found = World(dict.fromkeys("ab", "one"), stage("one", max_failures=0))
    found.settle()
    found.say(NOT_AVAILABLE, "a")
    found.wait(300)
    assert [each.state for each in tell_run(found.run).stages] == [State.failed]


def test_only_clusters_that_still_move_are_slow() -> None:
    found = World(dict.fromkeys("ab", "one"), stage("one", max_concurrency=2))
    found.settle()
    found.say(NOT_AVAILABLE, "a", "b")
    found.wait(31)
    found.arrive("a")
    assert tell_run(found.run).stages[0].why.count("is not done") == 1


def test_time_is_left_only_while_a_stage_waits_for_it() -> None:
    one = stage("one", after_stage_tasks=(APPROVAL, timed("1h")))
    found = World({"a": "one", "b": "one", "c": "two"}, one, stage("two", after_stage_tasks=(timed("2h"),)))
    found.settle()
    found.arrive("a")
    assert tell_run(found.run).stages[0].until is None  # b has not begun
    found.arrive("b")
    assert [each.until for each in tell_run(found.run).stages] == [NOW + timedelta(seconds=3601), None]
    found.wait(3601)
    assert tell_run(found.run).stages[0].until is None  # it waits for the approval alone
    found.approve("run-one")
    found.settle()
    found.arrive("c")
    assert tell_run(found.run).stages[1].until == NOW + timedelta(seconds=3601 + 7201)
    bare = replace(found.run, status=replace(found.status, staged_update_strategy_snapshot=strategy().spec))
    assert tell_run(bare).stages[1].until is None


def test_a_run_that_names_its_resources_shows_them_before_it_begins() -> None:
    assert tell_run(run(index="7")).index == "7"
    assert tell_run(run(index=None)).index == ""

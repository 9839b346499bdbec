"""How far a run has got, in words."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from kedge.plan.staging.progress import progress, telling, turns
from plan.staging.making import APPROVAL, NOW, World, run, stage


def test_a_run_says_how_far_it_has_got_and_what_it_waits_for() -> None:
    world = World({"a": "one", "b": "two", "c": "two"}, stage("one", after_stage_tasks=(APPROVAL,)), stage("two"))
    world.settle()
    assert progress(world.run) == "run run has brought 0 of 3 clusters resources 1, and is in stage one (1 of 2)"
    world.arrive("a")
    assert progress(world.run).startswith(
        "run run has brought 1 of 3 clusters resources 1, and is in stage one (1 of 2): run waits: stage one waits for"
    )
    world.approve("run-one")
    world.settle()
    assert turns(world.run) == {"c": "Run run brings this cluster its resources in stage two"}
    world.arrive_all()
    assert progress(world.run) == "run run has brought 3 of 3 clusters resources 1"
    assert turns(world.run) == {}


def test_a_run_that_has_not_begun_says_so() -> None:
    assert progress(run()) == "run run has not begun"


def test_the_run_under_way_is_spoken_of_before_those_that_have_ended() -> None:
    world = World({"a": "one"}, stage("one"))
    world.arrive_all()
    ended = world.run
    later = replace(
        run(name="later"), metadata=replace(run().metadata, name="later", creation_timestamp=NOW + timedelta(1))
    )
    assert telling([ended, later]) is later
    assert telling([ended]) is ended
    assert telling([]) is None

"""How far a run has got, in words."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.staged import ClusterStagedUpdateRun
from kedge.api.staged_status import RunStatus
from kedge.plan.staging.initializing import initialize
from kedge.plan.staging.progress import current, progress, run_to_report, turn_texts
from plan.rolling.making import unscheduled
from plan.staging.making import APPROVAL, NOW, World, beginning, run, stage


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
    assert turn_texts(world.run) == {"c": "Run run brings this cluster its resources in stage two"}
    world.arrive_all()
    assert progress(world.run) == "run run has brought 3 of 3 clusters resources 1"
    assert turn_texts(world.run) == {}


def test_a_run_that_has_not_begun_says_so() -> None:
    assert progress(run()) == "run run has not begun"


def test_the_run_under_way_is_spoken_of_before_those_that_have_ended() -> None:
    world = World({"a": "one"}, stage("one"))
    world.arrive_all()
    ended = world.run
    later = replace(
        run(name="later"), metadata=replace(run().metadata, name="later", creation_timestamp=NOW + timedelta(1))
    )
    assert run_to_report([ended, later]) is later
    assert run_to_report([ended]) is ended
    assert run_to_report([]) is None


def test_a_run_that_cannot_begin_says_why() -> None:
    waiting = initialize(beginning({"a": "one"}, stage("one"), policies=[]), NOW)
    said = progress(replace(run(), status=waiting))
    assert said == "run run has not begun: run waits: clusters are being picked for crp"


def test_a_run_is_in_the_first_stage_that_is_not_over() -> None:
    world = World({"a": "one", "b": "two"}, stage("one"), stage("two"))
    world.settle()
    world.bindings["z"] = unscheduled("z", deleting=True)
    for name, where in (("a", "two"), ("b", "kubernetes-fleet.io/deleteStage")):
        world.arrive(name)
        found = current(world.status)
        assert found is not None
        assert found.stage_name == where
    assert progress(world.run) == "run run has brought 2 of 2 clusters resources 1, and clears clusters"
    assert current(replace(world.status, deletion_stage_status=None)) is None
    assert current(RunStatus()) is None
    del world.bindings["z"]
    world.settle()
    assert current(world.status) is None


def test_a_run_that_failed_is_in_no_stage_any_more() -> None:
    world = World({"a": "one"}, stage("one"))
    world.settle()
    world.placement = None
    world.settle()
    assert world.says(reasons.SUCCEEDED) == "False/UpdateRunFailed"
    assert ", and is in stage" not in progress(world.run)


def test_of_several_runs_under_way_the_first_is_spoken_of_and_of_several_that_ended_the_last() -> None:
    world = World({"a": "one"}, stage("one"))
    live = world.run
    world.arrive_all()

    def made(found: ClusterStagedUpdateRun, name: str, hours: float | None) -> ClusterStagedUpdateRun:
        at = None if hours is None else NOW + timedelta(hours=hours)
        return replace(found, metadata=replace(live.metadata, name=name, creation_timestamp=at))

    def told(*runs: ClusterStagedUpdateRun) -> str:
        found = run_to_report(runs)
        return found.metadata.name if found is not None else ""

    for found, wanted in ((live, "a"), (world.run, "c")):
        assert told(made(found, "b", 2), made(found, "a", 1), made(found, "c", 3)) == wanted
    ageless = made(live, "b", None), made(live, "a", None)
    assert told(*ageless) == "a"
    assert told(*ageless, made(live, "0", 1)) == "a"

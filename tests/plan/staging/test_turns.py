"""Which of several runs moves a placement."""

from __future__ import annotations

from msgspec.structs import replace

from kedge.api.dialect import Dialect
from kedge.api.staged import ClusterStagedUpdateRun, RunState
from kedge.api.staged_status import RunStatus
from kedge.plan.staging.step import ahead_of, holds
from plan.rolling.making import unscheduled
from plan.staging.making import NOW, World, stage


def run(name: str, state: RunState = RunState.run, *, begun: bool = False, told: bool = True) -> ClusterStagedUpdateRun:
    """A run that has begun or not, asked for this; `told` if it says already what it was asked for."""
    world = World({"a": "one"}, stage("one"))
    if begun:
        world.settle()
    if state is RunState.stop:
        world.set_state(state)
    if told and begun:
        world.settle()
    return replace(world.run, metadata=replace(world.run.metadata, name=name, uid=name))


def turn(*runs: ClusterStagedUpdateRun) -> list[str]:
    """What each waits for."""
    return [ahead_of(one, runs, Dialect.seed) for one in runs]


def test_one_that_has_ended_or_is_being_deleted_or_has_no_stages_yet_holds_nobody_up() -> None:
    world = World({"a": "one"}, stage("one"))
    world.arrive_all()
    ended = replace(world.run, metadata=replace(world.run.metadata, name="one", uid="one"))
    begun = run("one", begun=True)
    deleted = replace(begun, metadata=replace(begun.metadata, deletion_timestamp=NOW))
    unready = replace(run("one"), status=RunStatus())
    for first in (ended, deleted, unready):
        assert ahead_of(run("two"), [first, run("two")], Dialect.seed) == ""


def test_nothing_is_ahead_if_nobody_wants_to_run() -> None:
    assert turn(run("one", RunState.stop), run("two", RunState.stop)) == ["", ""]


def test_a_run_holds_the_placement_from_when_it_begins_until_it_stops_or_ends() -> None:
    world = World({"a": "one"}, stage("one"), stage("two"))
    assert not holds(world.status)
    world.settle()
    assert holds(world.status)
    world.set_state(RunState.stop)
    world.settle()
    assert not holds(world.status)
    world.set_state(RunState.run)
    world.settle()
    world.bindings["z"] = unscheduled("z", deleting=True)
    world.arrive("a")
    assert holds(world.status)  # it clears
    gone = replace(world.status, deletion_stage_status=None)
    assert not holds(gone)
    assert not holds(replace(world.status, conditions=()))
    del world.bindings["z"]
    world.settle()
    assert not holds(world.status)


def test_the_first_goes_first() -> None:
    assert turn(run("one"), run("two")) == ["", "one"]


def test_one_that_has_begun_goes_on_before_one_that_has_not() -> None:
    assert turn(run("one"), run("two", begun=True)) == ["two", ""]


def test_one_that_has_stopped_makes_room() -> None:
    assert turn(run("one", RunState.stop, begun=True), run("two")) == ["two", ""]


def test_one_that_is_asked_to_stop_makes_room_once_it_says_so() -> None:
    """Asked to go on in the same moment, it would go on beside the other."""
    assert turn(run("one", RunState.stop, begun=True, told=False), run("two")) == ["", "one"]


def test_one_that_goes_on_waits_for_the_one_it_made_room_for() -> None:
    stopped = run("one", RunState.stop, begun=True)
    resumed = replace(stopped, spec=replace(stopped.spec, state=RunState.run))
    assert turn(resumed, run("two", begun=True)) == ["two", ""]

"""Which of several runs moves a placement."""

from __future__ import annotations

from msgspec.structs import replace

from kedge.api.dialect import Dialect
from kedge.api.staged import ClusterStagedUpdateRun, RunState
from kedge.plan.staging.turns import ahead_of
from plan.staging.making import World, stage


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

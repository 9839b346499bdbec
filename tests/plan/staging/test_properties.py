"""What holds of every run, whatever its strategy and whatever happens: judged by what its clusters were given."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.condition import find_condition
from kedge.api.dialect import Dialect
from kedge.api.stage import Stage
from kedge.api.staged import RunState
from kedge.plan.staging.conditions import has_ended, is_over, is_settled
from kedge.plan.staging.grouping import most_at_once
from plan.rolling.making import AVAILABLE, NOT_AVAILABLE, UNTRACKABLE
from plan.staging.making import APPROVAL, World, stage, timed

NAMES = ("one", "two", "three")
TASKS = st.sampled_from([(), (APPROVAL,), (timed("10m"),), (timed("1m"), APPROVAL)])
STAGES = st.tuples(
    *(
        st.builds(
            lambda most, before, after, failures, name=name: stage(
                name,
                max_concurrency=most,
                before_stage_tasks=before,
                after_stage_tasks=after,
                max_failures=failures,
            ),
            st.sampled_from([1, 2, "50%", "100%"]),
            st.sampled_from([(), (), (APPROVAL,)]),
            TASKS,
            st.sampled_from([None, None, 0, 1]),
        )
        for name in NAMES
    )
)
CLUSTERS = st.dictionaries(st.sampled_from([f"c{n}" for n in range(8)]), st.sampled_from(NAMES), min_size=1)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("look"), st.booleans()),
        st.tuples(st.just("works"), st.integers(0, 7)),
        st.tuples(st.just("fails"), st.integers(0, 7)),
        st.tuples(st.just("unseen"), st.integers(0, 7)),
        st.tuples(st.just("time"), st.sampled_from([1, 40, 301, 700])),
        st.tuples(st.just("state"), st.sampled_from([RunState.run, RunState.stop])),
        st.tuples(st.just("approve"), st.integers(0, 5)),
        st.tuples(st.just("revoke"), st.integers(0, 5)),
        st.tuples(st.just("lose request"), st.integers(0, 5)),
        st.tuples(st.just("rewritten"), st.integers(0, 7)),
        st.tuples(st.just("unpick"), st.integers(0, 7)),
        st.tuples(st.just("join"), st.sampled_from(NAMES)),
        st.tuples(st.just("pick anew"), st.booleans()),
        st.tuples(st.just("unreachable"), st.integers(0, 7)),
    ),
    max_size=60,
)


class Judge:
    """Knows nothing of conditions of clusters: what counts is who was given what, and what they said."""

    def __init__(self, world: World, stages: tuple[Stage, ...]) -> None:
        self.world = world
        self.stages = stages
        self.proven: set[str] = set()

    def look(self, *, lose: bool) -> None:
        before = set(self.world.given())
        held = self.world.run.spec.state is RunState.stop
        self.world.look(lose=lose)
        new = set(self.world.given()) - before
        assert not (held and new), "something moved while stopped"
        for name in new:
            self._check_order(name)
        self._check_numbers()

    def _check_order(self, name: str) -> None:
        """Every stage before this one's is over, and its gates were passed."""
        mine = self._stage_of(name)
        for found in self.world.status.stages_status:
            if found.stage_name == mine:
                tasks = found.before_stage_task_status
                assert all(any(one.type == reasons.APPROVAL_GIVEN for one in task.conditions) for task in tasks)
                return
            assert is_over(found), f"{name} of {mine} moved before {found.stage_name} was over"
            if found.clusters:
                assert all(_passed(task) for task in found.after_stage_task_status)
                assert all(map(is_settled, found.clusters))

    def _check_numbers(self) -> None:
        for wanted, found in zip(self.stages, self.world.status.stages_status, strict=True):
            on_their_way = [
                one.cluster_name
                for one in found.clusters
                if one.cluster_name in self.world.given() and not is_settled(one)
            ]
            assert len(on_their_way) <= most_at_once(wanted, len(found.clusters))

    def _stage_of(self, name: str) -> str:
        return next(
            stage.stage_name
            for stage in self.world.status.stages_status
            for one in stage.clusters
            if one.cluster_name == name
        )


def _passed(task: Any) -> bool:
    return any(one.type in (reasons.APPROVAL_GIVEN, reasons.WAIT_ELAPSED) for one in task.conditions)


def play(world: World, judge: Judge, event: str, what: Any) -> None:
    """Let this happen."""
    names = sorted(world.bindings)
    name = names[what % len(names)] if isinstance(what, int) and names else ""
    requests = sorted(world.approvals)
    request = requests[what % len(requests)] if isinstance(what, int) and requests else ""
    match event:
        case "look":
            judge.look(lose=what)
        case "works" | "fails" | "unseen" if name:
            world.say({"works": AVAILABLE, "fails": NOT_AVAILABLE, "unseen": UNTRACKABLE}[event], name)
        case "time":
            world.now += timedelta(seconds=what)
        case "state":
            world.set_state(what)
        case "approve" if request:
            world.approve(request)
        case "revoke" if request:
            world.approve(request, status="False")
        case "lose request" if request:
            del world.approvals[request]
        case "rewritten" if name:
            one = world.bindings[name]
            world.bindings[name] = replace(one, metadata=replace(one.metadata, generation=one.metadata.generation + 1))
        case "unpick" if name and world.picked is not None and name in world.picked:
            world.unpick(name)
        case "join" if world.picked is not None and f"new-{what}" not in world.bindings:
            world.join(f"new-{what}", what)
        case "pick anew":
            there = {one for one, found in world.bindings.items() if found.spec.state != "Unscheduled"}
            world.picked = None if what else there
        case "unreachable" if name:
            world.unreachable = {} if name in world.unreachable else {name: "no heartbeat"}
        case _:
            pass


@settings(max_examples=150, deadline=None)
@given(CLUSTERS, STAGES, EVENTS, st.sampled_from(Dialect))
def test_a_run_keeps_its_promises_whatever_happens(
    clusters: dict[str, str], stages: tuple[Stage, ...], events: list[tuple[str, Any]], dialect: Dialect
) -> None:
    world = World(clusters, *stages, dialect=dialect)
    judge = Judge(world, stages)
    judge.look(lose=False)
    for event, what in events:
        play(world, judge, event, what)
        judge.look(lose=event == "look" and bool(what))
    _come_to_an_end(world, judge)


def _come_to_an_end(world: World, judge: Judge) -> None:
    """Once nothing goes wrong any more, every run ends."""
    world.set_state(RunState.run)
    world.unreachable = {}
    world.picked = {one for one, found in world.bindings.items() if found.spec.state != "Unscheduled"}
    for _ in range(60):
        judge.look(lose=False)
        for name in sorted(world.approvals):
            world.approve(name)
        world.say(AVAILABLE, *(one for one in world.given()))
        world.now += timedelta(seconds=700)
        if has_ended(world.status):
            break
    found = find_condition(world.status.conditions, reasons.PROGRESSING)
    assert has_ended(world.status), found


@settings(max_examples=60, deadline=None)
@given(CLUSTERS, STAGES)
def test_a_run_that_stands_still_says_what_it_waits_for(clusters: dict[str, str], stages: tuple[Stage, ...]) -> None:
    world = World(clusters, *stages)
    world.settle()
    while not has_ended(world.status):
        found = find_condition(world.status.conditions, reasons.PROGRESSING)
        assert found is not None
        moving = [name for stage in stages for name in world.moving(stage.name)]
        assert found.status == "True" if moving else found.message.startswith("run waits: stage ")
        for name in sorted(world.approvals):
            world.approve(name)
        planned = world.look()
        assert (
            moving or planned.look_again or planned.accept or planned.status != world.status or has_ended(world.status)
        )
        world.arrive(*world.given())
        world.wait(61)

"""What every verb comes to in every phase of a run: it does it, finds it done, or refuses and changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from kedge.api.fleet import ROLLBACK_OF
from kedge.api.placement_kinds import Run
from kedge.api.staged import RunState
from kedge.plan.staging.initializing import initialize
from kedge.plan.staging.rollbacks import as_rolled_back
from kedge.plan.staging.verbs import RunPhase, RunVerb, answer_to, phase_of
from plan.rolling.making import NOT_AVAILABLE, binding
from plan.staging.making import NOW, World, beginning, run, stage

ROLLBACK = run(name="run-rollback", uid="b", index="0", annotations={ROLLBACK_OF: "run"})


def world() -> World:
    """A run of two clusters that had revision 0 before it."""
    had = [binding("a"), binding("b")]
    found = World({"a": "one", "b": "one"}, stage("one", max_failures=0), bindings=had)
    found.settle()
    return found


def waiting() -> Run:
    return replace(run(), status=initialize(beginning({"a": "one"}, stage("one"), policies=[]), NOW))


def initialize_only() -> Run:
    asked = run(RunState.initialize)
    begun = beginning({"a": "one"}, stage("one"), run=asked, bindings=[binding("a")])
    return replace(asked, status=initialize(begun, NOW))


def stopped() -> Run:
    found = world()
    found.set_state(RunState.stop)
    found.settle()
    return found.run


def succeeded() -> Run:
    found = world()
    found.arrive_all()
    return found.run


def failed() -> Run:
    found = world()
    found.say(NOT_AVAILABLE, "a")
    found.wait(300)
    return found.run


def invalid() -> Run:
    return replace(run(), status=initialize(beginning({"a": "one"}, stage("one"), strategy=None), NOW))


def rolled_back() -> Run:
    return replace(stopped(), status=as_rolled_back(stopped(), ROLLBACK, NOW))


RUNS: dict[RunPhase, Callable[[], Run]] = {
    RunPhase.waiting: waiting,
    RunPhase.initialize: initialize_only,
    RunPhase.running: lambda: world().run,
    RunPhase.stopped: stopped,
    RunPhase.succeeded: succeeded,
    RunPhase.failed: failed,
    RunPhase.invalid: invalid,
    RunPhase.rolled_back: rolled_back,
}

DOES, DONE, NO = "does it", "is so already", "refuses"
TABLE: dict[RunPhase, dict[RunVerb, str]] = {
    phase: dict(zip((RunVerb.stop, RunVerb.resume, RunVerb.retry, RunVerb.rollback), row, strict=True))
    for phase, row in {
        # phase:             stop  resume retry rollback
        RunPhase.waiting:      (DOES, DONE,  NO,   NO),
        RunPhase.initialize:   (NO,   DOES,  NO,   NO),
        RunPhase.running:      (DOES, DONE,  NO,   DOES),
        RunPhase.stopped:      (DONE, DOES,  NO,   DOES),
        RunPhase.succeeded:    (NO,   NO,    NO,   DOES),
        RunPhase.failed:       (NO,   NO,    DOES, DOES),
        RunPhase.invalid:      (NO,   NO,    NO,   NO),
        RunPhase.rolled_back:  (NO,   NO,    NO,   DONE),
    }.items()
}  # fmt: skip
ROWS = [(phase, verb, what) for phase, row in TABLE.items() for verb, what in row.items()]


@pytest.mark.parametrize("phase", RUNS)
def test_runs_are_in_the_phase_they_are_named_after(phase: RunPhase) -> None:
    assert phase_of(RUNS[phase]()) is phase


@pytest.mark.parametrize(("phase", "verb", "what"), ROWS)
def test_what_a_verb_comes_to(phase: RunPhase, verb: RunVerb, what: str) -> None:
    rollback = ROLLBACK if phase is RunPhase.rolled_back else None
    answer = answer_to(verb, RUNS[phase](), rollback)
    assert answer.is_refused == (what == NO), answer
    writes = bool(answer.patch) or (verb is RunVerb.rollback and rollback is None and not answer.is_refused)
    assert writes == (what == DOES), answer
    assert answer.message


@pytest.mark.parametrize("verb", [verb for verb in RunVerb if verb is not RunVerb.rollback])
@pytest.mark.parametrize("is_seen", [True, False])
def test_what_is_refused_of_a_rolled_back_run_names_the_rollback_and_what_to_do(verb: RunVerb, is_seen: bool) -> None:
    """Also while the hub has not said of the run that it is."""
    answer = answer_to(verb, rolled_back() if is_seen else stopped(), ROLLBACK)
    assert answer.is_refused
    assert answer.message == (
        "run was rolled back by run run-rollback. It moves nothing any more: make a new run; "
        "`kedge status run-rollback` shows how far that is"
    )


def test_a_rollback_that_was_deleted_is_still_named_and_can_be_made_anew() -> None:
    said = answer_to(RunVerb.resume, rolled_back()).message
    assert said.startswith("run was rolled back: run run-rollback brings its clusters back to resources 0. It moves")
    assert not answer_to(RunVerb.rollback, rolled_back()).is_refused


def test_a_rollback_that_has_failed_says_so() -> None:
    failing = replace(failed(), metadata=ROLLBACK.metadata)
    answer = answer_to(RunVerb.rollback, rolled_back(), failing)
    assert not answer.is_refused
    assert "is rolled back already, by run run-rollback, which has failed: 1 cluster of stage one" in answer.message


def test_a_run_whose_clusters_had_nothing_before_is_not_rolled_back() -> None:
    first = World({"a": "one"}, stage("one"))
    first.settle()
    answer = answer_to(RunVerb.rollback, first.run)
    assert (answer.is_refused, "there is nothing to go back to" in answer.message) == (True, True)


def test_runs_are_called_by_their_namespace_and_name() -> None:
    inside = replace(stopped(), metadata=replace(stopped().metadata, namespace="shop"))
    assert answer_to(RunVerb.resume, inside).message == "shop/run goes on"

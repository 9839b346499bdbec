"""The words of a run: its conditions, its requests, and what it waits for."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.condition import TRUE
from kedge.api.dialect import Dialect
from kedge.api.fleet import IS_LATEST_APPROVAL, TARGET_RUN, TARGET_STAGE, TASK_TYPE
from kedge.api.rollout import ApplyStrategy
from kedge.api.staged_status import DELETE_STAGE, RunStatus
from kedge.plan.staging.approvals import When, new_approval_request, signed
from kedge.plan.staging.conditions import Stamp, at_generation, has_begun, settled_at, with_condition
from kedge.plan.text import first_few
from plan.staging.making import NOW, World, stage

AT = Stamp(NOW, 1)


@pytest.mark.parametrize("length", [1, 1023, 1024, 1025, 5000])
def test_a_message_is_cut_where_it_gets_too_long(length: int) -> None:
    [found] = with_condition(RunStatus(), reasons.PROGRESSING, TRUE, "Reason", "x" * length, AT).conditions
    assert found.message == ("x" * length if length <= 1024 else "x" * 1023 + "…")


@pytest.mark.parametrize("generations", [(1, 1), (1, 3), (3, 1), (3, 3)])
def test_all_that_was_said_is_said_of_the_run_as_it_is_now(generations: tuple[int, int]) -> None:
    status = RunStatus()
    for kind, generation in zip((reasons.INITIALIZED, reasons.PROGRESSING), generations, strict=True):
        status = with_condition(status, kind, TRUE, "Reason", "", Stamp(NOW, generation))
    assert [one.observed_generation for one in at_generation(status, 3).conditions] == [3, 3]


def test_a_stage_has_begun_once_something_was_said_of_it() -> None:
    world = World({"a": "one"}, stage("one"), stage("two"))
    assert not has_begun(world.stage("one"))
    world.settle()
    assert (has_begun(world.stage("one")), has_begun(world.stage("two"))) == (True, False)


def test_a_stage_was_done_when_its_last_cluster_was() -> None:
    world = World({"a": "one", "b": "one"}, stage("one"))
    assert settled_at(world.stage("one")) is None
    world.settle()
    world.arrive("a")
    world.now += timedelta(seconds=60)
    world.arrive("b")
    assert settled_at(world.stage("one")) == NOW + timedelta(seconds=60)


@pytest.mark.parametrize(
    ("stage_", "when", "dialect", "name", "told"),
    [
        ("one", When.after, Dialect.seed, "run-one", "one"),
        ("one", When.after, Dialect.kubefleet, "run-after-one", "one"),
        ("one", When.before, Dialect.seed, "run-before-one", "one"),
        (DELETE_STAGE, When.before, Dialect.seed, "run-before-delete-stage", "delete-stage"),
    ],
)
def test_a_request_says_what_it_is_about(stage_: str, when: When, dialect: Dialect, name: str, told: str) -> None:
    kind = "beforeStage" if when is When.before else "afterStage"
    labels = {TARGET_RUN: "run", TARGET_STAGE: told, TASK_TYPE: kind, IS_LATEST_APPROVAL: "true"}
    assert new_approval_request("run", stage_, when, dialect).body == {
        "metadata": {"name": name, "labels": labels},
        "spec": {"parentStageRollout": "run", "targetStage": told},
    }


@pytest.mark.parametrize(("message", "said"), [("", "by jane"), ("fine", "by jane: fine")])
def test_an_approval_is_signed(message: str, said: str) -> None:
    assert signed("jane", message) == said


@pytest.mark.parametrize(
    ("count", "said"), [(0, ""), (1, "0"), (3, "0; 1; 2"), (4, "0; 1; 2; and 1 more"), (9, "0; 1; 2; and 6 more")]
)
def test_of_many_sentences_the_first_are_said_and_the_rest_is_counted(count: int, said: str) -> None:
    assert first_few(map(str, range(count))) == said


def test_objects_are_written_as_the_placement_said_when_the_run_began() -> None:
    world, forced = World({"a": "one"}, stage("one")), ApplyStrategy(allow_co_ownership=True)
    for applied, wanted in ((None, ApplyStrategy()), (forced, forced)):
        world.run = replace(world.run, status=replace(world.status, applied_strategy=applied))
        assert world.seen.apply_strategy == wanted

"""How a run begins: its stages and resources, or why not (kubefleet.md §5.2)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api import reasons
from kedge.api.condition import FALSE, UNKNOWN, find_condition
from kedge.api.dialect import Dialect
from kedge.api.fleet import POLICY_INDEX
from kedge.api.placement import ClusterResourcePlacement
from kedge.api.rollout import ApplyStrategy
from kedge.api.snapshot import ClusterDecision
from kedge.api.stage import Missing
from kedge.api.staged import RunState
from kedge.api.staged_status import DELETE_STAGE, RunStatus
from kedge.plan.staging.initializing import (
    InitializationInput,
    Newest,
    apply_strategy,
    initialize,
    lacks_resources,
    may_need_newest,
    needs_newest,
    selected_by,
)
from plan.rolling.making import NOW, binding, scheduled, unscheduled
from plan.staging.making import APPROVAL, beginning, placement, policy, run, stage, strategy, timed

CLUSTERS = {"a": "one", "b": "two", "c": "one"}
STAGES = (
    stage("one", after_stage_tasks=(timed("1h"), APPROVAL)),
    stage("two", before_stage_tasks=(APPROVAL,)),
)


def begin(**how: Any) -> RunStatus:
    return initialize(beginning(CLUSTERS, *STAGES, **how), NOW)


def said(status: RunStatus) -> tuple[str, str, str]:
    found = find_condition(status.conditions, reasons.INITIALIZED)
    assert found is not None
    return found.status, found.reason, found.message


def test_a_run_works_out_its_stages() -> None:
    status = begin()
    assert said(status) == (
        "True",
        "UpdateRunInitializedSuccessfully",
        "ClusterStagedUpdateRun initialized successfully",
    )
    found = {one.stage_name: [cluster.cluster_name for cluster in one.clusters] for one in status.stages_status}
    assert found == {"one": ["a", "c"], "two": ["b"]}
    assert status.deletion_stage_status is not None
    assert (status.deletion_stage_status.stage_name, status.deletion_stage_status.clusters) == (DELETE_STAGE, ())
    assert (status.policy_snapshot_index_used, status.policy_observed_cluster_count) == ("0", 3)
    assert status.resource_snapshot_index_used == "1"
    assert status.staged_update_strategy_snapshot == strategy(*STAGES).spec


@pytest.mark.parametrize(
    ("dialect", "names"),
    [
        (Dialect.seed, [None, "run-one", "run-before-two"]),
        (Dialect.kubefleet, [None, "run-after-one", "run-before-two"]),
    ],
)
def test_requests_for_approval_have_their_names_from_the_beginning(dialect: Dialect, names: list[str | None]) -> None:
    one, two = begin(dialect=dialect).stages_status
    tasks = (*one.after_stage_task_status, *two.before_stage_task_status)
    assert [task.approval_request_name for task in tasks] == names


def test_clusters_that_are_no_longer_picked_are_in_the_last_stage_by_name() -> None:
    leaving = [unscheduled("z"), unscheduled("y")]
    status = begin(bindings=[*map(scheduled, CLUSTERS), *leaving])
    assert status.deletion_stage_status is not None
    assert [one.cluster_name for one in status.deletion_stage_status.clusters] == ["y", "z"]


@pytest.mark.parametrize(("index", "used"), [("0", "0"), ("1", "1"), (None, "7"), ("", "7")])
def test_a_run_moves_the_resources_it_names_or_the_newest(index: str | None, used: str) -> None:
    assert begin(run=run(index=index), newest=Newest(7)).resource_snapshot_index_used == used


FAILURES: list[tuple[dict[str, Any], str]] = [
    ({"placement": None, "dialect": Dialect.kubefleet}, "parent placement not found: there is no placement crp"),
    (
        {"placement": placement(deletion_timestamp=NOW), "dialect": Dialect.kubefleet},
        "parent placement not found: crp is being deleted",
    ),
    (
        {"placement": placement(external=False)},
        "parent placement does not have an external rollout strategy, current strategy: RollingUpdate",
    ),
    (
        {"policies": [policy(*CLUSTERS, status=FALSE)]},
        "policy snapshot `crp-0` not fully scheduled yet: found 1 cluster(s) instead",
    ),
    ({"policies": [policy()], "bindings": []}, "no scheduled or to-be-deleted clusterResourceBindings found"),
    ({"strategy": None}, "referenced updateStrategy not found: there is no strategy strategy"),
    ({"strategy": strategy(stage("one"))}, "not placed in any stage, total 1, showing up to 10: b"),
    (
        {"strategy": strategy(stage("one"), replace(stage("one"), name="two"))},
        "cluster `a` appears in more than one stages",
    ),
    ({"run": run(index="x")}, "invalid resource snapshot index `x` provided, expected an integer >= 0"),
    ({"run": run(index="-1")}, "invalid resource snapshot index `-1` provided"),
    ({"run": run(index="5")}, "no resourceSnapshots with index `5` found for placement `crp`: there are 0, 1"),
]


@pytest.mark.parametrize(("how", "told"), FAILURES, ids=[told[:40] for _, told in FAILURES])
def test_what_only_a_user_can_mend_is_a_failure(how: dict[str, Any], told: str) -> None:
    status, reason, message = said(begin(**how))
    assert (status, reason) == (FALSE, "UpdateRunInitializedFailed")
    assert told in message


def test_of_several_mistakes_the_first_is_told() -> None:
    gone = begin(placement=None, strategy=None, run=run(index="x"), dialect=Dialect.kubefleet)
    assert "parent placement not found" in said(gone)[2]
    assert "updateStrategy not found" in said(begin(strategy=None, run=run(index="x")))[2]


NEWEST = {"run": run(index=None), "newest": Newest()}


def test_the_newest_resources_are_asked_for_by_a_run_that_could_begin_with_them() -> None:
    assert lacks_resources(beginning(CLUSTERS, *STAGES, **NEWEST))
    assert not lacks_resources(beginning(CLUSTERS, *STAGES, **{**NEWEST, "newest": Newest(7)}))
    assert not lacks_resources(beginning(CLUSTERS, *STAGES))


LATER = {"run": run(index="2")}


@pytest.mark.parametrize(
    ("how", "asks"),
    [
        ({}, True),
        ({"newest": Newest(1)}, False),
        ({"dialect": Dialect.kubefleet}, False),
        ({"run": run(index="1")}, False),
        ({"run": run(index="x")}, False),
        ({"snapshots": []}, True),
    ],
)
def test_resources_that_a_run_names_and_are_not_there_may_be_on_their_way(how: dict[str, Any], asks: bool) -> None:
    seen = beginning(CLUSTERS, *STAGES, **{**LATER, "newest": Newest(), **how})
    assert lacks_resources(seen) is asks
    assert may_need_newest(seen.run, seen.snapshots, seen.dialect) is (asks or "newest" in how)


def test_a_run_waits_for_resources_that_it_names_while_they_are_written_down() -> None:
    waiting = begin(**LATER, newest=Newest(pending="they are being written down"))
    assert said(waiting) == (
        UNKNOWN,
        "UpdateRunWaiting",
        "run waits: there are no resources 2 yet: they are being written down",
    )
    assert begin(**LATER, newest=Newest(2)).resource_snapshot_index_used == "2"
    assert said(begin(**LATER, newest=Newest(1)))[1] == "UpdateRunInitializedFailed"


@pytest.mark.parametrize(
    "how", [how for how, _ in FAILURES if "run" not in how], ids=[t[:40] for h, t in FAILURES if "run" not in h]
)
def test_nothing_is_written_down_for_a_run_that_cannot_begin(how: dict[str, Any]) -> None:
    assert not lacks_resources(beginning(CLUSTERS, *STAGES, **NEWEST, **how))


@pytest.mark.parametrize(
    ("found", "why"),
    [(None, "there is no placement crp"), (placement(deletion_timestamp=NOW), "crp is being deleted")],
)
def test_a_run_waits_for_a_placement_that_is_not_there(found: ClusterResourcePlacement | None, why: str) -> None:
    told = said(begin(placement=found))
    assert told == (UNKNOWN, "UpdateRunWaiting", f"run waits: {why}: the run begins when there is one")


def of_policy(name: str, index: int, *picked: str) -> Any:
    found = policy(*picked)
    labels = {**found.metadata.labels, POLICY_INDEX: str(index)}
    return replace(found, metadata=replace(found.metadata, name=name, labels=labels))


def of_another_policy(cluster: str) -> Any:
    found = scheduled(cluster)
    return replace(found, spec=replace(found.spec, scheduling_policy_snapshot_name="crp-9"))


WAITS: list[dict[str, Any]] = [
    {"placement": None},
    {"policies": []},
    {"bindings": [scheduled("a"), scheduled("b"), of_another_policy("c")]},
    {"policies": [policy(*CLUSTERS), of_policy("crp-1", 1, *CLUSTERS)]},
    {"policies": [policy(*CLUSTERS, told=False)]},
    {"policies": [policy(*CLUSTERS, status=UNKNOWN)]},
    {"placement": placement(generation=2)},
    {"bindings": [scheduled("a")]},
    {"bindings": [*map(scheduled, CLUSTERS), scheduled("d")]},
    {"bindings": [*map(scheduled, CLUSTERS), binding("a", suffix="2")]},
    {"bindings": [scheduled("a"), scheduled("b"), binding("c", deleting=True)]},
    {"run": run(index=None), "newest": Newest()},
    {"labels": {"a": {"stage": "one"}, "b": {"stage": "two"}}},
]


@pytest.mark.parametrize("how", WAITS)
def test_what_comes_by_itself_is_waited_for(how: dict[str, Any]) -> None:
    status, reason, message = said(begin(**how))
    assert (status, reason) == (UNKNOWN, "UpdateRunWaiting")
    assert message.startswith("run waits: ")


def test_of_several_clusters_that_are_no_members_the_first_by_name_is_told() -> None:
    assert "waits: b is picked, and is no member" in said(begin(labels={"a": {"stage": "one"}}))[2]


def test_a_run_may_be_confined_to_some_clusters() -> None:
    found = begin(only={"a"}).stages_status
    assert [[one.cluster_name for one in stage_.clusters] for stage_ in found] == [["a"], []]


@pytest.mark.parametrize(("index", "newest"), [("0", False), ("1", False), (None, True), ("", True)])
def test_a_run_that_names_no_resources_needs_the_newest(index: str | None, newest: bool) -> None:
    assert needs_newest(run(index=index)) is newest


def test_a_placement_without_a_strategy_is_not_moved_by_runs() -> None:
    plain = placement()
    plain = replace(plain, spec=replace(plain.spec, strategy=None))
    assert "current strategy: RollingUpdate" in said(begin(placement=plain))[2]
    assert apply_strategy(plain) == ApplyStrategy()


def test_a_run_applies_as_its_placement_says_when_it_begins() -> None:
    assert begin().applied_strategy == ApplyStrategy()
    forced, plain = ApplyStrategy(allow_co_ownership=True), placement()
    assert plain.spec.strategy is not None
    strategy_ = replace(plain.spec.strategy, apply_strategy=forced)
    assert begin(placement=replace(plain, spec=replace(plain.spec, strategy=strategy_))).applied_strategy == forced


def test_clusters_are_those_that_the_policy_selected() -> None:
    found = policy("a", "b")
    assert found.status is not None
    other = ClusterDecision(cluster_name="c", selected=False, reason="worse")
    told = replace(found.status, target_clusters=(*found.status.target_clusters, other))
    assert selected_by(replace(found, status=told)) == {"a", "b"}
    assert selected_by(policy("a", told=False)) == set()


@pytest.mark.parametrize(
    ("policy_", "wanted"), [(Missing.fail, FALSE), (Missing.wait, UNKNOWN), (Missing.skip, "True")]
)
def test_clusters_that_match_no_stage_are_treated_as_the_strategy_says(policy_: Missing, wanted: str) -> None:
    status = begin(strategy=strategy(stage("one"), unmatched_clusters=policy_))
    assert said(status)[0] == wanted


def test_what_a_run_said_before_it_could_begin_gives_way() -> None:
    seen = beginning(CLUSTERS, *STAGES)
    waiting = initialize(replace_in(seen, policies=[]), NOW)
    begun = initialize(replace_in(seen, run=replace(run(RunState.run), status=waiting)), NOW)
    assert [one.type for one in begun.conditions] == ["Initialized"]
    assert said(begun)[0] == "True"


def replace_in(seen: InitializationInput, **how: Any) -> InitializationInput:
    return replace(seen, **how)

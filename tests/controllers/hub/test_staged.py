"""Staged runs on an embedded hub in virtual time; the tests play users, scheduler, snapshots and members."""

from __future__ import annotations

from typing import Any

import pytest

from controllers.hub.staging import APPROVAL, Staging, play, stage
from kedge.api.cluster import MemberCluster
from kedge.api.condition import FALSE, find_condition, is_true
from kedge.api.core import Event
from kedge.api.dialect import Dialect
from kedge.api.fleet import IS_LATEST_APPROVAL, RETRY, ROLLBACK_OF, RUN_FINALIZER, TARGET_RUN, TARGET_STAGE, TASK_TYPE
from kedge.api.placement_kinds import CLUSTER, NAMESPACED, PlacementKinds
from kedge.api.reasons import INITIALIZED, ROLLOUT_STARTED, SUCCEEDED
from kedge.kube.patches import MergePatch
from plan.rolling.making import NOT_AVAILABLE

THREE = {"a": "one", "b": "two", "c": "two"}
STAGES = (stage("one"), stage("two"))
ENDED = "True/UpdateRunSucceeded"


def given(a: str, b: str, c: str) -> dict[str, str]:
    return {"a": a, "b": b, "c": c}


async def begun(placed: Staging, *stages: dict[str, Any], **spec: Any) -> None:
    await placed.fleet(THREE, *(stages or STAGES), **spec)
    await placed.start()
    await placed.until_given(given("1", "", ""))


async def finish(placed: Staging) -> None:
    """Have every cluster arrive that moves, until the run has ended."""
    for _ in range(6):
        await placed.arrive(*[name for name, index in (await placed.given()).items() if index == "1"])


async def finish_all(placed: Staging, index: str) -> None:
    """Have every cluster arrive that is given these resources."""
    for _ in range(8):
        await placed.arrive(*[name for name, had in (await placed.given()).items() if had == index])


@pytest.mark.parametrize("placement_kinds", [CLUSTER, NAMESPACED])
def test_a_run_moves_clusters_stage_by_stage(placement_kinds: PlacementKinds) -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        assert RUN_FINALIZER in (await placed.run()).metadata.finalizers
        bindings = await placed.all()
        assert is_true(bindings["a"].status.conditions, ROLLOUT_STARTED, generation=bindings["a"].metadata.generation)
        said = find_condition(bindings["a"].status.conditions, ROLLOUT_STARTED)
        assert said is not None
        assert said.message == "a was given crp-1-snapshot by run run"
        assert bindings["b"].status.conditions == ()
        await placed.arrive("a")
        await placed.until_given(given("1", "1", ""))
        await placed.arrive("b")
        await placed.until_given(given("1", "1", "1"))
        await placed.arrive("c")
        await placed.until_says(ENDED, SUCCEEDED)

    play(act, placement_kinds)


@pytest.mark.parametrize("placement_kinds", [CLUSTER, NAMESPACED])
@pytest.mark.parametrize(("dialect", "name"), [(Dialect.seed, "run-one"), (Dialect.kubefleet, "run-after-one")])
def test_a_stage_waits_for_its_approval(placement_kinds: PlacementKinds, dialect: Dialect, name: str) -> None:
    async def act(placed: Staging) -> None:
        await placed.fleet(THREE, stage("one", afterStageTasks=[APPROVAL]), stage("two"))
        await placed.start(state="Run")
        await placed.until_given(given("1", "", ""))
        await placed.arrive("a")
        await placed.until_asked(name)
        request = (await placed.requests())[name]
        assert (request.spec.parent_stage_rollout, request.spec.target_stage) == ("run", "one")
        assert request.metadata.labels == {
            TARGET_RUN: "run",
            TARGET_STAGE: "one",
            TASK_TYPE: "afterStage",
            IS_LATEST_APPROVAL: "true",
        }
        await placed.rest(100_000)
        assert await placed.given() == given("1", "", "")
        await placed.approve(name)
        await placed.until_given(given("1", "1", ""))
        said = (await placed.requests())[name].status.conditions
        assert [(one.type, one.status, one.reason) for one in said] == [
            ("Approved", "True", "tested as OK"),
            ("ApprovalAccepted", "True", "ApprovalRequestApprovalAccepted"),
        ]

    play(act, placement_kinds, dialect=dialect)


def test_a_run_keeps_who_approved_when_and_why_also_if_the_request_goes() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed, stage("one", afterStageTasks=[APPROVAL]), stage("two"))
        await placed.arrive("a")
        await placed.until_asked("run-one")
        await placed.approve("run-one", manager="kubectl-patch")
        at = f"{placed.clock.now():%Y-%m-%dT%H:%M:%SZ}"
        await placed.until_given(given("1", "1", ""))
        await placed.drop(placed.kinds.approval, "run-one")
        await placed.rest()
        (task,) = (await placed.status()).stages_status[0].after_stage_task_status
        assert task.conditions[1].message == f"approved by kubectl-patch at {at}: tested as OK: lgtm"

    play(act)


def test_a_wait_is_one_timer_and_not_a_loop() -> None:
    async def act(placed: Staging) -> None:
        await placed.fleet(THREE, stage("one", afterStageTasks=[{"type": "TimedWait", "waitTime": "1h"}]), stage("two"))
        await placed.start()
        await placed.until_given(given("1", "", ""))
        await placed.arrive("a")
        before = (await placed.run()).metadata.resource_version
        await placed.rest(3590)
        assert (await placed.run()).metadata.resource_version == before
        assert await placed.given() == given("1", "", "")
        await placed.rest(15)
        assert await placed.given() == given("1", "1", "")

    play(act)


def test_a_run_that_was_stopped_begins_nothing_and_goes_on_where_it_was() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        await placed.set_state("Stop")
        await placed.until_says("Unknown/UpdateRunStopping")
        await placed.arrive("a")
        await placed.until_says("False/UpdateRunStopped")
        await placed.rest(1000)
        assert await placed.given() == given("1", "", "")
        await placed.set_state("Run")
        await placed.until_given(given("1", "1", ""))
        assert {one.observed_generation for one in (await placed.status()).conditions} == {3}

    play(act)


def test_a_run_whose_names_are_wrong_fails_at_once_and_for_good() -> None:
    async def act(placed: Staging) -> None:
        await placed.fleet(THREE, *STAGES)
        await placed.start("no-strategy", stagedRolloutStrategyName="nowhere")
        await placed.start("no-index", resourceSnapshotIndex="7")
        for name in ("no-strategy", "no-index"):
            await placed.until_says("False/UpdateRunInitializedFailed", INITIALIZED, name)
        assert "there are 0, 1" in await placed.message(INITIALIZED, "no-index")
        await placed.rest()
        assert await placed.given() == given("", "", "")

    play(act)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"placementName": ""}, "parent placement not found: spec.placementName is empty"),
        ({"stagedRolloutStrategyName": ""}, "referenced updateStrategy not found"),
        ({"resourceSnapshotIndex": "1" * 5000}, "invalid resource snapshot index `111"),
    ],
)
def test_a_run_that_names_nothing_or_no_number_has_failed_and_says_so(spec: dict[str, str], said: str) -> None:
    async def act(placed: Staging) -> None:
        await placed.fleet(THREE, *STAGES)
        await placed.start(**spec)
        await placed.until_says("False/UpdateRunInitializedFailed", INITIALIZED)
        assert (await placed.message(INITIALIZED)).startswith(said)

    play(act)


@pytest.mark.parametrize("index", [None, "1"])
def test_a_run_begins_with_the_strategy_and_the_labels_as_they_were_when_it_was_made(index: str | None) -> None:
    async def act(placed: Staging) -> None:
        await placed.fleet(THREE, stage("one"), stage("two"))
        await placed.rest()
        stages = [stage("one", beforeStageTasks=[APPROVAL]), stage("two")]
        body = {"spec": {"stages": stages}}
        await placed.client.patch(placed.kinds.strategy, "strategy", MergePatch(body), placed.namespace)
        await placed.client.patch(MemberCluster, "c", MergePatch({"metadata": {"labels": {"stage": "one"}}}))
        await placed.start(**({"resourceSnapshotIndex": index} if index else {}))
        await placed.until_says("False/UpdateRunWaiting")
        await placed.rest()
        assert await placed.given() == given("", "", "")
        found = (await placed.status()).stages_status
        assert [[one.cluster_name for one in stage_.clusters] for stage_ in found] == [["a", "c"], ["b"]]

    play(act)


def test_a_run_waits_until_clusters_are_picked() -> None:
    async def act(placed: Staging) -> None:
        await placed.member("a", "one")
        await placed.place(strategy={"type": "External"})
        await placed.snapshot(1)
        body = {"metadata": placed._meta("strategy"), "spec": {"stages": [stage("one")]}}
        await placed.client.create(placed.kinds.strategy, body)
        await placed.start()
        await placed.until_says("Unknown/UpdateRunWaiting", INITIALIZED)
        assert await placed.message(INITIALIZED) == "run waits: clusters are being picked for crp"
        await placed.decide("a")
        await placed.bind("a", applyStrategy=None)
        await placed.until_given({"a": "1"})

    play(act)


def test_what_happens_is_told_in_events() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed, stage("one", afterStageTasks=[APPROVAL]), stage("two"))
        await placed.arrive("a")
        await placed.approve("run-one")
        await finish(placed)
        await placed.until_says(ENDED, SUCCEEDED)
        await placed.rest()
        found = (await placed.client.list(Event, "default")).items
        told = {(one.reason, one.type) for one in found}
        assert told == {
            *(("UpdateRunInitializedSuccessfully", "Normal"), ("UpdateRunWaiting", "Normal")),
            *(
                ("StageUpdatingStarted", "Normal"),
                ("StageUpdatingSucceeded", "Normal"),
                ("UpdateRunSucceeded", "Normal"),
            ),
        }

    play(act)


# What may happen to a run midway (docs/staged.md has the same table)


def test_a_strategy_that_is_edited_or_deleted_midway_changes_nothing() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        body = {"spec": {"stages": [stage("two"), stage("one")]}}
        await placed.client.patch(placed.kinds.strategy, "strategy", MergePatch(body))
        await placed.drop(placed.kinds.strategy, "strategy")
        await finish(placed)
        await placed.until_says(ENDED, SUCCEEDED)

    play(act)


def test_a_cluster_that_joins_midway_is_part_of_its_stage_if_that_has_not_begun() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        await placed.member("aa", "two")
        await placed.bind("aa", applyStrategy=None)
        await placed.decide("a", "aa", "b", "c")
        await placed.rest()
        await placed.arrive("a")
        await placed.until_given({"a": "1", "aa": "1", "b": "", "c": ""})

    play(act)


def test_a_cluster_that_leaves_midway_is_skipped() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        await placed.decide("b", "c")
        await placed.change("a", {"spec": {"state": "Unscheduled"}})
        await placed.until_given({"a": "1", "b": "1", "c": ""})
        await placed.arrive("b")
        await placed.arrive("c")
        await placed.until_given({"a": "-", "b": "1", "c": "1"})
        await placed.let_binding_go("a")
        await placed.until_says(ENDED, SUCCEEDED)
        (cluster,) = (await placed.status()).stages_status[0].clusters
        assert [one.reason for one in cluster.conditions] == ["ClusterUpdatingStarted", "ClusterUpdatingSkipped"]

    play(act)


@pytest.mark.parametrize(
    ("policy", "says"),
    [("Wait", "False/UpdateRunStuck"), ("Skip", "True/UpdateRunStarted"), ("Fail", "False/UpdateRunFailed")],
)
def test_a_cluster_that_becomes_unreachable_midway_is_treated_as_the_strategy_says(policy: str, says: str) -> None:
    async def act(placed: Staging) -> None:
        await begun(placed, unreachableClusters=policy)
        await placed.silence("a", "no heartbeat since noon")
        await placed.until_says(says, within=400)

    play(act)


def test_a_placement_that_is_deleted_midway_ends_the_run() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        await placed.drop(placed.kinds.placement, placed.name)
        await placed.until_says("False/UpdateRunFailed", SUCCEEDED)
        assert "parent placement not found" in await placed.message(SUCCEEDED)

    play(act)


@pytest.mark.parametrize("placement_kinds", [CLUSTER, NAMESPACED])
@pytest.mark.parametrize("index", [None, "1"])
def test_a_run_that_is_made_before_its_placement_begins_when_that_is_there(
    placement_kinds: PlacementKinds, index: str | None
) -> None:
    async def act(placed: Staging) -> None:
        await placed.stages(stage("one"))
        await placed.start(**({"resourceSnapshotIndex": index} if index else {}))
        await placed.until_says("Unknown/UpdateRunWaiting", INITIALIZED)
        assert "there is no placement crp" in await placed.message(INITIALIZED)
        await placed.rest(60)
        await placed.placed_on({"a": "one"})
        await placed.until_given({"a": "1"})
        await placed.arrive("a")
        await placed.until_says(ENDED, SUCCEEDED)

    play(act, placement_kinds)


def test_a_run_of_the_peer_that_is_made_before_its_placement_has_failed() -> None:
    async def act(placed: Staging) -> None:
        await placed.start()
        await placed.until_says("False/UpdateRunInitializedFailed", INITIALIZED)
        assert "parent placement not found" in await placed.message(INITIALIZED)

    play(act, dialect=Dialect.kubefleet)


def test_a_placement_whose_apply_strategy_is_edited_midway_keeps_the_one_it_began_with() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        await placed.edit(strategy={"type": "External", "applyStrategy": {"type": "ServerSideApply"}})
        await placed.decide("a", "b", "c", generation=2)
        annotations = {"annotations": {"kubernetes-fleet.io/CRP-generation": "2"}}
        await placed.client.patch(placed.kinds.policy_snapshot, "crp-0", MergePatch({"metadata": annotations}))
        await finish(placed)
        await placed.until_says(ENDED, SUCCEEDED)
        kinds = {one.spec.apply_strategy.type.value for one in (await placed.all()).values() if one.spec.apply_strategy}
        assert kinds == {"ClientSideApply"}

    play(act)


def test_a_snapshot_that_is_deleted_midway_is_given_to_nobody_else() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        await placed.drop(placed.kinds.resource_snapshot, "crp-1-snapshot")
        await placed.rest()
        await placed.arrive("a")
        await placed.until_says("False/UpdateRunStuck")
        assert "crp-1-snapshot is gone" in await placed.message()
        assert await placed.given() == given("1", "", "")

    play(act)


def test_a_request_that_is_deleted_is_made_anew() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed, stage("one", afterStageTasks=[APPROVAL]), stage("two"))
        await placed.arrive("a")
        await placed.until_asked("run-one")
        first = (await placed.requests())["run-one"].metadata.uid
        await placed.drop(placed.kinds.approval, "run-one")
        await placed.rest()
        assert (await placed.requests())["run-one"].metadata.uid != first
        assert await placed.given() == given("1", "", "")

    play(act)


def test_a_stage_that_is_approved_twice_is_approved_once() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed, stage("one", afterStageTasks=[APPROVAL]), stage("two"))
        await placed.arrive("a")
        await placed.until_asked("run-one")
        await placed.approve("run-one")
        await placed.rest()
        await placed.approve("run-one")
        await placed.until_given(given("1", "1", ""))

    play(act)


def test_an_approval_that_is_revoked_after_it_was_accepted_changes_nothing() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed, stage("one", afterStageTasks=[APPROVAL]), stage("two"))
        await placed.arrive("a")
        await placed.until_asked("run-one")
        await placed.approve("run-one")
        await placed.until_given(given("1", "1", ""))
        await placed.approve("run-one", FALSE)
        await placed.arrive("b")
        await placed.until_given(given("1", "1", "1"))

    play(act)


def test_a_run_that_is_deleted_midway_takes_its_requests_along_and_leaves_clusters_as_they_are() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed, stage("one", afterStageTasks=[APPROVAL]), stage("two"))
        await placed.arrive("a")
        await placed.until_asked("run-one")
        await placed.drop(placed.kinds.run, "run")
        await placed.rest()
        assert await placed.is_gone()
        assert await placed.requests() == {}
        assert await placed.given() == given("1", "", "")

    play(act)


def test_of_two_runs_on_one_placement_the_later_waits_for_the_first() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        await placed.rest(2.0)
        await placed.start("second", resourceSnapshotIndex="0")
        await placed.until_says("False/UpdateRunWaiting", name="second")
        assert "second waits: run run moves the placement" in await placed.message(name="second")
        await placed.rest(1000)
        assert await placed.given() == given("1", "", "")
        await placed.set_state("Stop")
        await placed.arrive("a")
        await placed.until_given(given("0", "", ""))
        await placed.set_state("Run")
        await placed.until_says("False/UpdateRunWaiting")
        assert "run waits: run second moves the placement" in await placed.message()
        await placed.drop(placed.kinds.run, "second")
        await placed.rest()
        assert "a is not available any more: its resources are being applied" in await placed.message()
        await placed.arrive("a")
        assert await placed.given() == given("0", "1", "")

    play(act)


def test_a_run_that_has_ended_lets_the_next_one_go() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        await placed.rest(2.0)
        await placed.start("second", resourceSnapshotIndex="0")
        await finish(placed)
        await placed.until_says(ENDED, SUCCEEDED)
        await placed.until_given(given("0", "1", "1"))

    play(act)


def test_a_stage_that_matches_nothing_is_skipped() -> None:
    async def act(placed: Staging) -> None:
        await placed.fleet(THREE, stage("nobody", afterStageTasks=[APPROVAL]), *STAGES)
        await placed.start()
        await placed.until_given(given("1", "", ""))
        empty = (await placed.status()).stages_status[0]
        assert [one.reason for one in empty.conditions] == ["StageUpdatingSkippedNoClusters"] * 2

    play(act)


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("Fail", "False/UpdateRunInitializedFailed"),
        ("Wait", "Unknown/UpdateRunWaiting"),
        ("Skip", "True/UpdateRunInitializedSuccessfully"),
    ],
)
def test_clusters_that_match_no_stage_are_treated_as_the_strategy_says(policy: str, says: str) -> None:
    async def act(placed: Staging) -> None:
        await placed.fleet({"a": "one", "x": "nowhere"}, stage("one"), unmatchedClusters=policy)
        await placed.start()
        await placed.until_says(says, INITIALIZED)
        if policy == "Wait":
            await placed.client.patch(MemberCluster, "x", MergePatch({"metadata": {"labels": {"stage": "one"}}}))
            await placed.until_given({"a": "1", "x": ""})

    play(act)


def test_a_cluster_that_does_not_work_fails_the_run_if_none_may() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed, stage("one", maxFailures=0), stage("two"))
        await placed.say(NOT_AVAILABLE, "a")
        await placed.until_says("False/UpdateRunFailed", SUCCEEDED, within=400)
        assert "Deployment test-ns/web has 0 of 3 updated replicas" in await placed.message(SUCCEEDED)
        assert await placed.given() == given("1", "", "")

    play(act)


def test_a_binding_that_the_scheduler_rewrites_midway_is_told_of_anew() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        await placed.arrive("a")
        await placed.change("a", {"spec": {"clusterDecision": {"reason": "looked at again"}}})
        await placed.rest()
        one = (await placed.all())["a"]
        assert is_true(one.status.conditions, ROLLOUT_STARTED, generation=one.metadata.generation)

    play(act)


def test_nothing_is_written_that_does_not_change() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        before, writes = (await placed.run()).metadata.resource_version, len(placed.writes)
        await placed.client.patch(
            MemberCluster, "b", MergePatch({"metadata": {"labels": {"stage": "two", "more": "1"}}})
        )
        await placed.rest(20)
        assert ((await placed.run()).metadata.resource_version, len(placed.writes)) == (before, writes)

    play(act)


def test_a_run_that_has_ended_says_so_of_every_generation() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        await finish(placed)
        await placed.until_says(ENDED, SUCCEEDED)
        await placed.set_state("Stop")
        await placed.rest()
        run = await placed.run()
        assert {one.observed_generation for one in run.status.conditions} == {run.metadata.generation}
        assert is_true(run.status.conditions, SUCCEEDED)

    play(act)


def test_a_run_that_fails_is_taken_back_without_asking_anybody() -> None:
    async def act(placed: Staging) -> None:
        two = stage("two", beforeStageTasks=[APPROVAL], maxFailures=0)
        await placed.fleet(THREE, stage("one", maxFailures=0), two, rollbackOnFailure=True)
        await placed.start("first", resourceSnapshotIndex="0")
        for _ in range(8):
            await placed.arrive(*[name for name, index in (await placed.given()).items() if index == "0"])
            for name in await placed.requests():
                await placed.approve(name)
        await placed.until_says(ENDED, SUCCEEDED, "first")
        await placed.start()
        await placed.until_given(given("1", "0", "0"))
        await placed.arrive("a")
        await placed.approve("run-before-two")
        await placed.until_given(given("1", "1", "0"))
        await placed.say(NOT_AVAILABLE, "b")
        await placed.until_says("False/UpdateRunFailed", SUCCEEDED, within=400)
        await placed.until_says("True/RollbackStarted", "RolledBack")
        await placed.until_given(given("0", "1", "0"))
        await placed.arrive("a")
        await placed.until_given(given("0", "0", "0"))
        await placed.arrive("b")
        await placed.until_says(ENDED, SUCCEEDED, "run-rollback")
        stages = (await placed.status("run-rollback")).stages_status
        assert [[one.cluster_name for one in found.clusters] for found in stages] == [["a"], ["b"]]

    play(act)


def test_a_run_is_over_as_soon_as_there_is_one_that_takes_it_back_whoever_made_it() -> None:
    """As with kubectl, which stops nothing first, and may ask the run to go on later."""

    async def act(placed: Staging) -> None:
        await placed.fleet(THREE, stage("one"), stage("two"))
        await placed.start("first", resourceSnapshotIndex="0")
        await finish_all(placed, "0")
        await placed.until_says(ENDED, SUCCEEDED, "first")
        await placed.start()
        await placed.until_given(given("1", "0", "0"))
        spec = {"placementName": placed.name, "stagedRolloutStrategyName": "strategy", "resourceSnapshotIndex": "0"}
        meta = {"name": "back", "annotations": {ROLLBACK_OF: "run"}}
        await placed.client.create(placed.kinds.run, {"metadata": meta, "spec": {**spec, "state": "Run"}})
        await placed.until_says("True/RollbackStarted", "RolledBack")
        assert await placed.message() == "run back brings its clusters back to resources 0"
        assert (await placed.says(), await placed.says(SUCCEEDED)) == ("False/RolledBack", "False/RolledBack")
        await placed.until_given(given("0", "0", "0"))
        await placed.arrive("a")
        await placed.until_says(ENDED, SUCCEEDED, "back")
        for state in ("Stop", "Run"):
            await placed.set_state(state)
            await placed.rest(60)
        assert await placed.given() == given("0", "0", "0")
        run = await placed.run()
        assert {one.observed_generation for one in run.status.conditions} == {run.metadata.generation}
        await placed.drop(placed.kinds.run, "back")
        await placed.rest(60)
        assert await placed.says("RolledBack") == "True/RollbackStarted"
        assert await placed.given() == given("0", "0", "0")

    play(act)


def test_a_run_is_taken_back_also_if_one_of_its_name_was_before() -> None:
    async def act(placed: Staging) -> None:
        await placed.fleet(THREE, stage("one", maxFailures=0), stage("two"), rollbackOnFailure=True)
        await placed.start("first", resourceSnapshotIndex="0")
        await finish_all(placed, "0")
        await placed.until_says(ENDED, SUCCEEDED, "first")
        for name in ("run-rollback", "run-rollback-2"):
            await placed.start()
            await placed.until_given(given("1", "0", "0"))
            await placed.say(NOT_AVAILABLE, "a")
            await placed.until_says("True/RollbackStarted", "RolledBack", within=400)
            assert f"run {name} brings" in await placed.message("RolledBack")
            await placed.until_given(given("0", "0", "0"))
            await placed.arrive("a")
            await placed.until_says(ENDED, SUCCEEDED, name)
            await placed.drop(placed.kinds.run, "run")
            await placed.rest(1.0)

    play(act)


def test_what_failed_is_tried_once_more_if_asked() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed, stage("one", maxFailures=0), stage("two"))
        await placed.say(NOT_AVAILABLE, "a")
        await placed.until_says("False/UpdateRunFailed", SUCCEEDED, within=400)
        now = f"{placed.clock.now():%Y-%m-%dT%H:%M:%SZ}"
        body = {"metadata": {"annotations": {RETRY: now}}}
        await placed.client.patch(placed.kinds.run, "run", MergePatch(body))
        await placed.until_says("True/UpdateRunStarted")
        await finish(placed)
        await placed.until_says(ENDED, SUCCEEDED)

    play(act)

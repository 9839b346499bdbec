"""What may happen to a run midway, on an embedded hub in virtual time: rows of the table in docs/staged.md.

Those that are not here are in `test_staged.py` and `test_staged_crashing.py`; the table names them all.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controllers.hub.staging import APPROVAL, Staging, play, stage
from controllers.hub.test_staged import ENDED, begun, finish, given
from kedge.api.cluster import MemberCluster
from kedge.api.condition import FALSE
from kedge.api.dialect import Dialect
from kedge.api.fleet import PLACEMENT_GENERATION
from kedge.api.reasons import SUCCEEDED
from kedge.kube.patches import MergePatch
from kedge.kube.transport import Request, Response, Transport
from kedge.plan.staging.approvals import When, new_approval_request
from plan.rolling.making import NOT_AVAILABLE

GUARDED = (stage("one", afterStageTasks=[APPROVAL]), stage("two"))


class SlowToAccept:
    """A server whose answer to an approval that is noted takes two seconds."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.stream = inner.stream
        self.close = inner.close

    async def send(self, request: Request, *, timeout: float) -> Response:
        response = await self._inner.send(request, timeout=timeout)
        if request.method == "PATCH" and request.path.endswith("clusterapprovalrequests/run-one/status"):
            await asyncio.sleep(2.0)
        return response


async def reasons_of(placed: Staging, cluster: str) -> list[str]:
    """What the run says of a cluster, in a word each."""
    clusters = (one for found in (await placed.status()).stages_status for one in found.clusters)
    return [said.reason for one in clusters if one.cluster_name == cluster for said in one.conditions]


@pytest.mark.parametrize("label", ["one", "nowhere"])
def test_a_cluster_that_joins_too_late_is_left_to_the_next_run_which_the_run_says(label: str) -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        await placed.member("d", label)
        await placed.bind("d", applyStrategy=None)
        await placed.decide("a", "b", "c", "d")
        await finish(placed)
        await placed.until_says(ENDED, SUCCEEDED)
        assert await placed.given() == {**given("1", "1", "1"), "d": ""}
        assert (await placed.message(SUCCEEDED)).startswith("d joined too late, or belongs to no stage")

    play(act)


@pytest.mark.parametrize(("name", "said"), [("a", ["ClusterUpdatingStarted"]), ("b", [])])
def test_a_member_that_leaves_the_fleet_midway_is_skipped_whether_it_has_begun_or_not(
    name: str, said: list[str]
) -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        await placed.drop(MemberCluster, name)
        await placed.decide(*({"a", "b", "c"} - {name}))
        await placed.unbind(f"crp-{name}-0")
        await placed.rest(1)  # until the hub has seen that
        await finish(placed)
        await placed.until_says(ENDED, SUCCEEDED)
        assert await reasons_of(placed, name) == [*said, "ClusterUpdatingSkipped"]

    play(act)


def test_a_policy_that_is_edited_midway_holds_the_run_up_until_clusters_are_picked_anew() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        await placed.edit(policy={"placementType": "PickFixed", "clusterNames": ["a", "c", "d"]})
        await placed.rest()
        await placed.arrive("a")
        await placed.until_says("False/UpdateRunWaiting")
        assert await placed.message() == "run waits: clusters are being picked for crp"
        assert await placed.given() == given("1", "", "")
        await placed.member("d", "two")
        await placed.bind("d", applyStrategy=None)
        await placed.unpick("b")
        await repicked(placed, "a", "c", "d")
        await placed.until_given({"a": "1", "b": "", "c": "1", "d": ""})
        await placed.arrive("c")
        await placed.arrive("d")
        await placed.let_binding_go("b")
        await placed.until_says(ENDED, SUCCEEDED)
        assert await placed.given() == {"a": "1", "c": "1", "d": "1"}

    play(act)


async def repicked(placed: Staging, *clusters: str) -> None:
    """What snapshots and scheduler make of an edit."""
    body = {"metadata": {"annotations": {PLACEMENT_GENERATION: "2"}}}
    await placed.client.patch(placed.kinds.policy_snapshot, "crp-0", MergePatch(body))
    await placed.decide(*clusters, generation=2)


def test_a_request_that_is_deleted_after_it_was_approved_is_not_missed() -> None:
    async def act(placed: Staging) -> None:
        await asked(placed)
        await placed.approve("run-one")
        await placed.until_given(given("1", "1", ""))
        await placed.drop(placed.kinds.approval, "run-one")
        await finish(placed)
        await placed.until_says(ENDED, SUCCEEDED)
        assert await placed.requests() == {}

    play(act)


def test_an_approval_that_is_taken_back_before_the_run_takes_note_counts_as_taken_back() -> None:
    """A run that is stopped takes no note of anything."""

    async def act(placed: Staging) -> None:
        await asked(placed)
        await placed.set_state("Stop")
        await placed.rest()
        await placed.approve("run-one")
        await placed.rest()
        await placed.approve("run-one", FALSE)
        await placed.set_state("Run")
        await placed.until_says("False/UpdateRunWaiting")
        assert await placed.message() == "run waits: stage one was not approved by run-one: tested as OK: lgtm"
        assert await placed.given() == given("1", "", "")
        await placed.approve("run-one")
        await placed.until_given(given("1", "1", ""))

    play(act)


def test_a_request_of_the_same_name_about_something_else_is_to_be_deleted_and_then_made_anew() -> None:
    async def act(placed: Staging) -> None:
        other = {"parentStageRollout": "other", "targetStage": "one"}
        body = {"metadata": {"name": "run-one"}, "spec": other}
        await placed.fleet({"a": "one", "b": "two", "c": "two"}, *GUARDED)
        await placed.client.create(placed.kinds.approval, body)
        await placed.start()
        await placed.until_given(given("1", "", ""))
        await placed.arrive("a")
        await placed.approve("run-one")
        await placed.until_says("False/UpdateRunWaiting")
        assert "run-one is about run other, stage one: delete it, and it is made anew" in await placed.message()
        assert await placed.given() == given("1", "", "")
        await placed.drop(placed.kinds.approval, "run-one")
        await placed.rest()
        assert (await placed.requests())["run-one"].spec.parent_stage_rollout == "run"
        await placed.approve("run-one")
        await placed.until_given(given("1", "1", ""))

    play(act)


def test_a_request_that_an_earlier_run_of_the_same_name_made_does_not_count_and_is_made_anew() -> None:
    async def act(placed: Staging) -> None:
        body = {"metadata": {"name": "run-one"}, "spec": {"parentStageRollout": "run", "targetStage": "one"}}
        await placed.fleet({"a": "one", "b": "two", "c": "two"}, *GUARDED)
        earlier = await placed.client.create(placed.kinds.approval, body)
        await placed.approve("run-one")
        await asyncio.sleep(5)
        await placed.start()
        await placed.until_given(given("1", "", ""))
        await placed.arrive("a")
        await placed.until_says("False/UpdateRunWaiting")
        await placed.rest()
        assert (await placed.requests())["run-one"].metadata.uid != earlier.metadata.uid
        assert await placed.given() == given("1", "", "")
        await placed.approve("run-one")
        await placed.until_given(given("1", "1", ""))

    play(act)


def test_a_request_that_is_made_only_after_its_run_was_deleted_is_cleared_away_and_one_of_a_user_is_not() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed, *GUARDED)
        await placed.arrive("a")
        await placed.until_asked("run-one")
        await placed.drop(placed.kinds.run, "run")
        await placed.rest()
        late = new_approval_request("run", "one", When.after, Dialect.seed)
        other = {"parentStageRollout": "run", "targetStage": "two"}
        await placed.client.create(placed.kinds.approval, {"metadata": {"name": "mine"}, "spec": other})
        await placed.client.create(placed.kinds.approval, late.body)
        await placed.rest()
        assert list(await placed.requests()) == ["mine"]

    play(act)


def test_a_request_that_is_made_while_its_run_goes_is_cleared_away_once_it_is_gone() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed, *GUARDED)
        await hold(placed, ["users.example.com/mine"])
        await placed.drop(placed.kinds.run, "run")
        await placed.rest()
        await placed.client.create(
            placed.kinds.approval, new_approval_request("run", "two", When.after, Dialect.seed).body
        )
        await placed.rest()
        assert list(await placed.requests()) == ["run-two"]
        await hold(placed, None)
        await placed.rest()
        assert await placed.requests() == {}

    play(act)


async def hold(placed: Staging, finalizers: list[str] | None) -> None:
    kept = (await placed.run()).metadata.finalizers
    held = [*kept, *finalizers] if finalizers else []
    await placed.client.patch(placed.kinds.run, "run", MergePatch({"metadata": {"finalizers": held}}))


def test_a_binding_that_somebody_points_elsewhere_is_pointed_back_while_its_cluster_moves_and_left_otherwise() -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        await placed.arrive("a")
        await placed.until_given(given("1", "1", ""))
        elsewhere = {"spec": {"state": "Bound", "resourceSnapshotName": "crp-0-snapshot"}}
        for name in ("a", "b", "c"):
            await placed.change(name, elsewhere)
        await placed.until_given(given("0", "1", "0"))

    play(act)


async def asked(placed: Staging) -> None:
    """A run that waits for approval after its first stage."""
    await begun(placed, *GUARDED)
    await placed.arrive("a")
    await placed.until_asked("run-one")


def test_a_strategy_that_is_deleted_midway_changes_nothing_of_a_rollback_either() -> None:
    async def act(placed: Staging) -> None:
        await placed.fleet({"a": "one", "b": "two", "c": "two"}, *GUARDED)
        await placed.start("first", resourceSnapshotIndex="0")
        await arrived(placed, "0", "first")
        await placed.start()
        await placed.until_given(given("1", "0", "0"))
        await placed.drop(placed.kinds.strategy, "strategy")
        await placed.set_state("Stop")
        spec = {"placementName": "crp", "stagedRolloutStrategyName": "strategy", "resourceSnapshotIndex": "0"}
        meta: dict[str, Any] = {"name": "run-rollback", "annotations": {"kedge.dev/rollback-of": "run"}}
        await placed.client.create(placed.kinds.run, {"metadata": meta, "spec": {**spec, "state": "Run"}})
        await placed.until_given(given("0", "0", "0"))
        await placed.arrive("a")
        await placed.until_says(ENDED, SUCCEEDED, "run-rollback")

    play(act)


async def arrived(placed: Staging, index: str, name: str) -> None:
    """Let a run end, whatever it asks."""
    for _ in range(8):
        await placed.arrive(*[one for one, has in (await placed.given()).items() if has == index])
        for request in await placed.requests():
            await placed.approve(request)
    await placed.until_says(ENDED, SUCCEEDED, name)


# What a strategy can also say


def test_clusters_are_cleared_only_once_that_is_approved_and_its_wait_is_over() -> None:
    async def act(placed: Staging) -> None:
        tasks = [APPROVAL, {"type": "TimedWait", "waitTime": "10m"}]
        await placed.fleet({"a": "one"}, stage("one"), deleteStageTasks=tasks)
        await placed.bind("z", state="Unscheduled", resourceSnapshotName="crp-0-snapshot")
        await placed.start()
        await placed.until_given({"a": "1", "z": "0"})
        await placed.arrive("a")
        await placed.until_asked("run-before-delete-stage")
        await placed.approve("run-before-delete-stage")
        await placed.rest(590)
        assert await placed.given() == {"a": "1", "z": "0"}
        await placed.until_given({"a": "1", "z": "-"})
        await placed.let_binding_go("z")
        await placed.until_says(ENDED, SUCCEEDED)

    play(act)


def test_a_cluster_that_breaks_after_it_was_done_holds_up_the_next_stage_until_it_works_again() -> None:
    async def act(placed: Staging) -> None:
        wait = {"type": "TimedWait", "waitTime": "1m"}
        await begun(placed, stage("one", afterStageTasks=[wait]), stage("two"))
        await placed.arrive("a")
        await placed.say(NOT_AVAILABLE, "a")
        await placed.rest(600)
        assert await placed.given() == given("1", "", "")
        assert (await placed.message()).startswith("stage one is done, and a is not available any more: ")
        await placed.arrive("a")
        await placed.until_given(given("1", "1", ""))

    play(act)


def test_a_cluster_that_may_fail_is_left_behind_and_one_more_is_too_many() -> None:
    async def act(placed: Staging) -> None:
        clusters = {"a": "one", "b": "one", "c": "one", "d": "two"}
        await placed.fleet(clusters, stage("one", maxFailures="34%"), stage("two"))
        await placed.start()
        await placed.until_given({"a": "1", "b": "", "c": "", "d": ""})
        await placed.say(NOT_AVAILABLE, "a")
        await placed.until_given({"a": "1", "b": "1", "c": "", "d": ""}, within=400)
        assert await reasons_of(placed, "a") == ["ClusterUpdatingStarted", "ClusterUpdatingFailed"]
        await placed.say(NOT_AVAILABLE, "b")
        await placed.until_says("False/UpdateRunFailed", SUCCEEDED, within=400)
        assert (await placed.message(SUCCEEDED)).startswith("2 clusters of stage one failed, and 1 may: a and b; b: ")
        assert await placed.given() == {"a": "1", "b": "1", "c": "", "d": ""}

    play(act)


def test_a_cluster_that_breaks_while_an_approval_is_noted_holds_the_run_up() -> None:
    """The run looks again: what it had seen before may be old by then."""

    async def act(placed: Staging) -> None:
        await begun(placed, *GUARDED)
        await placed.arrive("a")
        await placed.until_asked("run-one")
        await placed.approve("run-one")
        await placed.rest(1.0)
        assert "ApprovalAccepted" in [one.type for one in (await placed.requests())["run-one"].status.conditions]
        await placed.say(NOT_AVAILABLE, "a")
        await placed.rest(10.0)
        assert await placed.given() == given("1", "", "")
        assert "a is not available any more" in await placed.message()
        await placed.arrive("a")
        await placed.until_given(given("1", "1", ""))

    play(act, link=SlowToAccept)


@pytest.mark.parametrize("changed", [{"stagesStatus": None}, {"stagedUpdateStrategySnapshot": None}])
def test_a_run_whose_stages_somebody_changes_in_its_status_fails(changed: dict[str, Any]) -> None:
    async def act(placed: Staging) -> None:
        await begun(placed)
        await placed.client.patch(placed.kinds.run, "run", MergePatch({"status": changed}), subresource="status")
        await placed.until_says("False/UpdateRunFailed", SUCCEEDED)
        (field,) = changed
        assert (await placed.message(SUCCEEDED)).startswith(f"status.{field} was ")
        await placed.until_given(given("1", "", ""))

    play(act)

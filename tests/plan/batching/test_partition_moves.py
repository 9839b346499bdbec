"""Partition moves: what each move does to a CloneSet and a StatefulSet, and what it waits for."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.oam.keys import CLAIM as CLAIM_KEY
from kedge.api.oam.keys import FROZEN
from kedge.api.oam.rollout_plan import RolloutBatch, RolloutPlan
from kedge.api.oam.rollout_status import RolloutStatus
from kedge.api.pods import PodCondition
from kedge.embedded.workloads.stateful_plan import OrdinalPod
from kedge.plan.batching.in_place import count_pods
from kedge.plan.batching.moves import DONE, Batch, Step, Verified, Workload, Workloads
from kedge.plan.batching.partition_moves import PartitionMoves
from kedge.plan.batching.waits import MoveCode, sentence
from kedge.plan.workloads import template_hash
from kedge.plan.workloads.clone_sets import CloneSets
from kedge.plan.workloads.stateful_sets import StatefulSets
from plan.batching.in_place_worlds import CLAIM, STATUS, CloneWorld, StatefulWorld, World, batch, drive, pod, template

CLONES, ORDERED = PartitionMoves(CloneSets()), PartitionMoves(StatefulSets())
KINDS = [(CLONES, CloneWorld), (ORDERED, StatefulWorld)]
V1, V2, V3 = (template_hash(template(image)) for image in ("web:1", "web:2", "web:3"))
PLAN = RolloutPlan()
WHEN = datetime(2030, 1, 1, tzinfo=UTC)
W = TypeVar("W", bound=World)


def moves_of(world: World) -> PartitionMoves:
    return CLONES if isinstance(world, CloneWorld) else ORDERED


def code(found: object) -> str:
    assert isinstance(found, Step)
    assert found.wait is not None, found
    assert sentence(found.wait)
    return found.wait.code


def partition(world: World) -> Any:
    strategy = world.obj["spec"]["updateStrategy"]
    return strategy["partition"] if "partition" in strategy else strategy["rollingUpdate"]["partition"]


def taken_over(world: W, image: str = "web:2") -> W:
    assert drive(world, lambda: moves_of(world).initialize(world.seen(image), STATUS, CLAIM))
    return world


def rolled(world: W, goal: int, image: str = "web:2") -> W:
    total = world.replicas
    assert drive(world, lambda: moves_of(world).roll(world.seen(image), STATUS, batch(goal, total)))
    return world


def roll(world: World, image: str | None, ask: Batch, watch: Callable[[], None] = lambda: None) -> bool:
    return drive(world, lambda: moves_of(world).roll(world.seen(image), STATUS, ask), watch)


def let_go(world: World, *, succeeded: bool) -> bool:
    return drive(world, lambda: moves_of(world).finalize(world.seen(), STATUS, succeeded=succeeded))


# The tables of the peer


def test_the_second_batch_of_a_clone_set_of_ten_asks_for_three_pods_with_a_partition_of_seven() -> None:
    world = taken_over(CloneWorld(10))
    step = CLONES.roll(world.seen("web:2"), STATUS, batch(3, 10))
    world.write(step)
    assert partition(world) == 7
    world.act()
    assert count_pods(CLONES.handler, world.seen("web:2").target, None).asked == 3


@pytest.mark.parametrize(("ready", "tolerated", "is_done"), [(3, 0, False), (3, 2, True), (4, 0, True), (2, 2, True)])
def test_a_clone_set_batch_of_four_is_done_when_enough_updated_pods_are_available(
    ready: int, tolerated: int, is_done: bool
) -> None:
    world = taken_over(CloneWorld(10))
    world.here = [(V2, at < ready) for at in range(4)] + [(V1, True)] * 6
    world.refresh()
    world.patch({"spec": {"updateStrategy": {"partition": 6}}})
    world.refresh()
    found = CLONES.check(world.seen("web:2"), STATUS, batch(4, 10, tolerated=tolerated))
    assert found.is_done == is_done
    assert CLONES.roll(world.seen("web:2"), STATUS, batch(4, 10, tolerated=tolerated)) == found


@pytest.mark.parametrize(("moves", "make"), KINDS)
def test_a_size_other_than_the_workloads_is_refused(moves: PartitionMoves, make: type[World]) -> None:
    world = make(3)
    kind = world.kind.lower()
    assert moves.verify(world.seen("web:2"), RolloutPlan(target_size=4), STATUS) == Step(
        failure=f"the rollout plan is attempting to scale the {kind}, target = 4, {kind} size = 3"
    )
    found = moves.verify(world.seen("web:2"), RolloutPlan(target_size=3), STATUS)
    assert found == Verified(3, 3, V2)


@pytest.mark.parametrize(("moves", "make"), KINDS)
def test_what_is_rolled_out_already_is_refused(moves: PartitionMoves, make: type[World]) -> None:
    world = make(3)
    status = RolloutStatus(last_applied_pod_template_identifier=V1)
    same = f"there is no difference between the source and target, hash = {V1}"
    assert moves.verify(world.seen("web:1"), PLAN, status) == Step(failure=same)
    assert moves.verify(world.seen(), PLAN, status) == Step(failure=same)
    assert moves.verify(world.seen("web:1"), PLAN, STATUS) == Verified(3, 3, V1)


@pytest.mark.parametrize(("moves", "make"), KINDS)
def test_the_hash_is_of_the_pod_template_alone(moves: PartitionMoves, make: type[World]) -> None:
    world = make(3)
    world.patch(
        {"metadata": {"labels": {"a": "b"}}, "spec": {"revisionHistoryLimit": 3, "updateStrategy": {"paused": True}}}
    )
    world.refresh()
    assert moves.verify(world.seen("web:2"), PLAN, STATUS) == Verified(3, 3, V2)
    assert moves.verify(world.seen(), PLAN, STATUS) == Verified(3, 3, V1)


# Verification


@pytest.mark.parametrize(("moves", "make"), KINDS)
def test_what_passes_by_itself_is_waited_for(moves: PartitionMoves, make: type[World]) -> None:
    world = make(3)
    world.patch({"spec": {"replicas": 5}})
    assert code(moves.verify(world.seen("web:2"), PLAN, STATUS)) == MoveCode.not_observed
    world.refresh()
    found = moves.verify(world.seen("web:2"), PLAN, STATUS)
    assert code(found) == MoveCode.scaling
    assert isinstance(found, Step)
    assert found.wait
    assert found.wait.numbers == {"pods": 3, "desired": 5}
    seen = world.seen("web:2")
    assert code(moves.verify(replace(seen, target=replace(seen.target, obj=None)), PLAN, STATUS)) == MoveCode.not_found


def with_meta(world: World, **meta: Any) -> Workloads:
    world.obj = {**world.obj, "metadata": {**world.obj["metadata"], **meta}}
    return world.seen("web:2")


@pytest.mark.parametrize(("moves", "make"), KINDS)
def test_a_workload_of_another_controller_is_refused(moves: PartitionMoves, make: type[World]) -> None:
    owner = {"apiVersion": "game.io/v1", "kind": "Game", "name": "chess", "uid": "u9", "controller": True}
    found = moves.verify(with_meta(make(3), ownerReferences=[owner]), PLAN, STATUS)
    assert found == Step(failure=f"{make.kind} shop/web has a controller owner: Game chess")
    for other in (
        {**owner, "controller": False},
        {**owner, "uid": "uid-1"},
        {**owner, "apiVersion": "core.oam.dev/v1beta1"},
    ):
        assert isinstance(moves.verify(with_meta(make(3), ownerReferences=[other]), PLAN, STATUS), Verified)


@pytest.mark.parametrize(("moves", "make"), KINDS)
def test_a_workload_of_another_rollout_is_waited_for(moves: PartitionMoves, make: type[World]) -> None:
    seen = with_meta(make(3), annotations={CLAIM_KEY: "Rollout/other/uid-2"})
    assert code(moves.verify(seen, PLAN, STATUS)) == MoveCode.claimed
    assert code(moves.initialize(seen, STATUS, CLAIM)) == MoveCode.claimed
    assert moves.finalize(seen, STATUS, succeeded=True) == DONE
    assert moves.revert(seen, STATUS, batch(0, 3)) == DONE


@pytest.mark.parametrize(("moves", "make"), KINDS)
def test_a_workload_that_goes_is_waited_for(moves: PartitionMoves, make: type[World]) -> None:
    seen = with_meta(make(3), deletionTimestamp="2030-01-01T00:00:00Z")
    assert code(moves.verify(seen, PLAN, STATUS)) == MoveCode.leaving


@pytest.mark.parametrize(("moves", "make"), KINDS)
def test_a_workload_that_rolls_by_itself_is_refused(moves: PartitionMoves, make: type[World]) -> None:
    world = make(3)
    world.patch({"spec": {"template": template("web:2")}})
    world.refresh()
    text = f"{make.kind} shop/web is in the middle of updating, need to be paused first"
    assert moves.verify(world.seen(), PLAN, STATUS) == Step(failure=text)
    assert moves.verify(world.seen("web:2"), PLAN, STATUS) == Step(failure=text)
    assert moves.verify(world.seen("web:3"), PLAN, STATUS) == Verified(3, 3, V3)


@pytest.mark.parametrize(
    ("make", "strategy"),
    [
        (CloneWorld, {"paused": True}),
        (CloneWorld, {"partition": 3}),
        (CloneWorld, {"partition": "100%"}),
        (CloneWorld, {"type": "OnDelete"}),
        (StatefulWorld, {"type": "RollingUpdate", "rollingUpdate": {"partition": 3}}),
        (StatefulWorld, {"type": "RollingUpdate", "rollingUpdate": {"partition": 100}}),
        (StatefulWorld, {"type": "OnDelete"}),
    ],
)
def test_a_user_may_write_the_template_into_a_workload_that_stands_still(
    make: type[World], strategy: dict[str, Any]
) -> None:
    world = make(3)
    world.patch({"spec": {"template": template("web:2"), "updateStrategy": strategy}})
    world.refresh()
    moves = moves_of(world)
    assert moves.verify(world.seen(), PLAN, STATUS) == Verified(3, 3, V2)
    assert drive(world, lambda: moves.initialize(world.seen(), STATUS, CLAIM))
    world.settle()
    assert world.held() == {V1: 3}
    assert partition(world) == 3
    for goal in (1, 3):
        assert roll(world, None, batch(goal, 3))
        world.settle()
        assert world.held().get(V2) == goal
    assert drive(world, lambda: moves.finalize(world.seen(), STATUS, succeeded=True))
    is_on_delete = strategy.get("type") == "OnDelete"
    assert (world.obj["spec"]["updateStrategy"].get("type") == "OnDelete") == is_on_delete
    assert not world.obj["spec"]["updateStrategy"].get("paused")
    assert is_on_delete or partition(world) == 0


# Freezing


@pytest.mark.parametrize(("moves", "make"), KINDS)
def test_the_template_is_written_in_the_write_that_freezes(moves: PartitionMoves, make: type[World]) -> None:
    world = make(3)
    step = moves.initialize(world.seen("web:2"), STATUS, CLAIM)
    assert len(step.writes) == 1
    world.write(step)
    world.settle()
    assert world.held() == {V1: 3}
    assert world.update == V2
    assert world.obj["metadata"]["annotations"][CLAIM_KEY] == CLAIM
    assert world.obj["metadata"]["labels"] == {"v": "web:2"}


@pytest.mark.parametrize(("moves", "make"), KINDS)
def test_taking_over_ends_with_all_pods_kept_back(moves: PartitionMoves, make: type[World]) -> None:
    world = taken_over(make(3))
    assert partition(world) == 3
    assert moves.initialize(world.seen("web:2"), STATUS, CLAIM) == DONE
    assert moves.ready_pods(world.seen("web:2")) == 0


def test_fields_that_the_new_template_lacks_are_removed() -> None:
    world = StatefulWorld(1)
    world.patch({"spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}})
    world.refresh()
    world.write(ORDERED.initialize(world.seen("web:2"), STATUS, CLAIM))
    assert world.obj["spec"]["template"] == template("web:2")


def test_a_server_that_adds_to_the_template_does_not_make_it_written_twice() -> None:
    world = StatefulWorld(2)
    world.write(ORDERED.initialize(world.seen("web:2"), STATUS, CLAIM))
    world.patch({"spec": {"template": {"spec": {"priorityClassName": "added"}}}})
    world.refresh()
    step = ORDERED.initialize(world.seen("web:2"), STATUS, CLAIM)
    assert step == DONE
    other = replace(world.seen("web:2"), claim="Rollout/other/uid-2")
    world.patch({"metadata": {"annotations": {CLAIM_KEY: None}}})
    assert ORDERED.initialize(world.seen("web:2"), STATUS, other.claim).writes[0].patch is not None


# Rolling


def test_old_pods_prove_nothing() -> None:
    """All three pods were ready while the new one did not come up: upstream counted the old ones."""
    world = taken_over(StatefulWorld(3))
    world.bad = {V2}
    assert not drive(world, lambda: ORDERED.roll(world.seen("web:2"), STATUS, batch(1, 3)))
    world.obj["status"]["readyReplicas"] = 3
    found = ORDERED.check(world.seen("web:2"), STATUS, batch(1, 3))
    assert code(found) == MoveCode.not_available
    assert found.wait
    assert [one.key for one in found.wait.blockers] == ["web-2"]
    assert ORDERED.check(world.seen("web:2"), STATUS, batch(1, 3, tolerated=1)).is_done


@pytest.mark.parametrize("make", [CloneWorld, StatefulWorld])
def test_the_partition_is_only_lowered(make: type[World]) -> None:
    world = rolled(taken_over(make(5)), 3)
    assert partition(world) == 2
    step = moves_of(world).roll(world.seen("web:2"), STATUS, batch(1, 5))
    assert step == DONE
    assert world.held() == {V1: 2, V2: 3}


def test_pods_that_have_to_be_ready_for_a_time_count_from_then() -> None:
    world = rolled(taken_over(StatefulWorld(2)), 1)
    world.patch({"spec": {"minReadySeconds": 10}})
    world.refresh()
    found = ORDERED.check(world.seen("web:2"), STATUS, batch(1, 2))
    assert code(found) == MoveCode.not_available


def test_a_pause_by_somebody_else_is_respected() -> None:
    world = taken_over(CloneWorld(3))
    world.patch({"spec": {"updateStrategy": {"paused": True}}})
    world.refresh()
    assert code(CLONES.roll(world.seen("web:2"), STATUS, batch(1, 3))) == MoveCode.paused


def test_another_strategy_by_somebody_else_is_respected() -> None:
    world = taken_over(StatefulWorld(3))
    world.patch({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}})
    world.refresh()
    assert code(ORDERED.roll(world.seen("web:2"), STATUS, batch(1, 3))) == MoveCode.strategy_changed


@pytest.mark.parametrize("make", [CloneWorld, StatefulWorld])
def test_the_last_batch_takes_all_pods_of_a_workload_that_was_scaled_meanwhile(make: type[World]) -> None:
    world = rolled(taken_over(make(4)), 2)
    moves = moves_of(world)
    world.patch({"spec": {"replicas": 3}})
    if isinstance(world, CloneWorld):
        world.here = world.here[:3]
    world.settle()
    assert drive(world, lambda: moves.roll(world.seen("web:2"), STATUS, batch(4, 4)))
    assert world.held() == {V2: 3}


@pytest.mark.parametrize("parallel", [True, False])
def test_a_fix_reaches_pods_that_are_broken(parallel: bool) -> None:
    """A StatefulSet in order waits for its broken pod: somebody has to delete it."""
    world = taken_over(StatefulWorld(3, parallel=parallel))
    world.bad = {V2}
    assert not drive(world, lambda: ORDERED.roll(world.seen("web:2"), STATUS, batch(1, 3)))
    assert drive(world, lambda: ORDERED.finalize(world.seen("web:2"), STATUS, succeeded=False))
    assert ORDERED.verify(world.seen("web:3"), PLAN, STATUS) == Verified(3, 3, V3)
    taken_over(world, "web:3")
    rolled(world, 3, "web:3")
    assert world.held() == {V3: 3}


def half_broken() -> StatefulWorld:
    """A set whose last rollout was given up: web-3 is of it and broken, and web-4 is not created for that."""
    world = StatefulWorld(5)
    world.bad = {V2}
    world.here[3] = OrdinalPod(3, V2, ready=False, available=False)
    del world.here[4]
    world.patch({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 5}}}})
    world.settle()
    assert world.held() == {V1: 3, V2: 1}
    return world


def test_a_set_that_lacks_pods_because_of_a_broken_one_is_rolled_out_in_small_batches() -> None:
    world = half_broken()
    assert ORDERED.verify(world.seen("web:3"), PLAN, STATUS) == Verified(5, 5, V3)
    taken_over(world, "web:3")
    for goal in range(1, 6):
        rolled(world, goal, "web:3")
        assert world.held() == ({V1: 5 - goal, V3: goal} if goal < 5 else {V3: 5})


def test_a_broken_pod_that_is_kept_back_is_deleted_only_if_nobody_wants_its_revision() -> None:
    world = taken_over(half_broken(), "web:3")
    for revision in (V1, V3):
        world.here[2] = OrdinalPod(2, revision, ready=False, available=False)
        (write,) = ORDERED.roll(world.seen("web:3"), STATUS, batch(0, 5)).writes
        assert [one.name for one in write.delete_pods] == ["web-3"]
    seen = world.seen("web:3")
    unknown = {**world.obj, "status": {**world.obj["status"], "currentRevision": ""}}
    assert code(ORDERED.roll(replace(seen, target=replace(seen.target, obj=unknown)), STATUS, batch(1, 5)))


def test_a_broken_pod_that_is_kept_back_stays_if_others_of_its_revision_work() -> None:
    world = taken_over(half_broken(), "web:3")
    world.here[1] = OrdinalPod(1, V2, ready=True, available=True)
    assert not ORDERED.roll(world.seen("web:3"), STATUS, batch(0, 5)).writes


def test_a_set_with_more_pods_than_it_asks_for_is_still_scaling() -> None:
    world = half_broken()
    world.here[5] = OrdinalPod(5, V1, ready=True, available=True)
    world.refresh()
    world.here[4] = OrdinalPod(4, V1, ready=True, available=True)
    world.refresh()
    assert code(ORDERED.verify(world.seen("web:3"), PLAN, STATUS)) == MoveCode.scaling


def test_pods_of_others_with_the_same_labels_count_for_nothing() -> None:
    world = taken_over(StatefulWorld(2))
    seen = world.seen("web:2")
    alien = pod("web-1", V2, owner="other")
    seen = replace(seen, target=replace(seen.target, pods=(*seen.target.pods, alien)))
    assert ORDERED.ready_pods(seen) == 0


# Several revisions


@pytest.mark.parametrize("make", [CloneWorld, StatefulWorld])
def test_all_old_revisions_are_one_pool(make: type[World]) -> None:
    world = rolled(taken_over(make(4)), 2)
    moves_of(world).finalize(world.seen("web:2"), STATUS, succeeded=False)
    taken_over(world, "web:3")
    assert world.held() == {V1: 2, V2: 2}
    for goal in (1, 2, 3, 4):
        rolled(world, goal, "web:3")
        world.settle()
        assert world.held()[V3] == goal


@pytest.mark.parametrize("make", [CloneWorld, StatefulWorld])
def test_back_midway_counts_the_pods_that_never_left(make: type[World]) -> None:
    world = rolled(taken_over(make(5)), 2)
    moves = moves_of(world)
    world.write(moves.finalize(world.seen("web:2"), STATUS, succeeded=False))
    world.settle()
    status = RolloutStatus(last_applied_pod_template_identifier=V1)
    assert moves.verify(world.seen("web:1"), PLAN, status) == Verified(5, 5, V1)
    taken_over(world, "web:1")
    for goal, there in ((2, 3), (3, 3), (4, 4), (5, 5)):
        rolled(world, goal, "web:1")
        world.settle()
        assert world.held()[V1] == there


@pytest.mark.parametrize("make", [CloneWorld, StatefulWorld])
def test_a_retry_goes_on_where_it_stopped(make: type[World]) -> None:
    world = rolled(taken_over(make(5)), 2)
    moves = moves_of(world)
    assert drive(world, lambda: moves.finalize(world.seen("web:2"), STATUS, succeeded=False))
    assert moves.verify(world.seen("web:2"), PLAN, STATUS) == Verified(5, 5, V2)
    taken_over(world)
    world.settle()
    assert world.held() == {V1: 3, V2: 2}
    assert moves.ready_pods(world.seen("web:2")) == 2


def test_a_template_that_a_user_writes_midway_is_taken_over_from_a_half_frozen_set() -> None:
    world = rolled(taken_over(StatefulWorld(5)), 2)
    world.patch({"spec": {"template": template("web:3")}})
    assert drive(world, lambda: ORDERED.finalize(world.seen(), STATUS, succeeded=False))
    world.act()
    assert ORDERED.verify(world.seen(), PLAN, STATUS) == Verified(5, 5, V3)
    assert drive(world, lambda: ORDERED.initialize(world.seen(), STATUS, CLAIM))
    moved = world.held().get(V3, 0)
    world.settle()
    assert world.held().get(V3, 0) == moved <= 2
    assert roll(world, None, batch(5, 5))
    assert world.held() == {V3: 5}


# Letting go


def test_after_a_failure_the_partition_stays_and_a_clone_set_is_paused() -> None:
    for world, paused in ((CloneWorld(5), True), (StatefulWorld(5), None)):
        rolled(taken_over(world), 2)
        moves_of(world)
        assert let_go(world, succeeded=False)
        assert partition(world) == 3
        assert world.obj["spec"]["updateStrategy"].get("paused") is paused
        assert CLAIM_KEY not in world.obj["metadata"]["annotations"]
        assert FROZEN in world.obj["metadata"]["annotations"]


def test_what_was_let_go_of_is_the_users_own() -> None:
    world = rolled(taken_over(CloneWorld(3)), 1)
    assert let_go(world, succeeded=False)
    world.patch({"spec": {"updateStrategy": {"paused": False}}})
    assert CLONES.finalize(world.seen(), STATUS, succeeded=False) == DONE


def test_after_a_success_the_strategy_of_before_is_given_back() -> None:
    world = StatefulWorld(3)
    world.patch({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}}})
    world.refresh()
    rolled(taken_over(world), 3)
    assert drive(world, lambda: ORDERED.finalize(world.seen("web:2"), STATUS, succeeded=True))
    given = world.obj["spec"]["updateStrategy"]
    assert given == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 2}}
    assert world.obj["metadata"]["annotations"] == {}


def test_what_was_frozen_by_a_failure_is_not_taken_for_the_users_own() -> None:
    world = StatefulWorld(3)
    world.patch({"spec": {"updateStrategy": {"type": "OnDelete"}}})
    world.refresh()
    rolled(taken_over(world), 1)
    assert drive(world, lambda: ORDERED.finalize(world.seen("web:2"), STATUS, succeeded=False))
    rolled(taken_over(world, "web:3"), 3, "web:3")
    assert json.loads(world.obj["metadata"]["annotations"][FROZEN])["strategy"]["type"] == "OnDelete"
    assert drive(world, lambda: ORDERED.finalize(world.seen("web:3"), STATUS, succeeded=True))
    assert world.obj["spec"]["updateStrategy"]["type"] == "OnDelete"


@pytest.mark.parametrize(("moves", "make"), KINDS)
def test_a_workload_that_was_never_taken_over_or_is_gone_is_let_go_of_at_once(
    moves: PartitionMoves, make: type[World]
) -> None:
    seen = make(3).seen("web:2", "web:1")
    gone = replace(seen, target=replace(seen.target, obj=None))
    for one in (seen, gone):
        assert moves.finalize(one, STATUS, succeeded=False) == DONE
        assert moves.finalize(one, STATUS, succeeded=True) == DONE
        assert moves.revert(one, STATUS, batch(0, 3)) == DONE
    assert moves.ready_pods(gone) == 0


def test_a_record_that_nobody_can_read_is_as_none() -> None:
    world = rolled(taken_over(StatefulWorld(2)), 2)
    world.patch({"metadata": {"annotations": {FROZEN: "{"}}})
    assert drive(world, lambda: ORDERED.finalize(world.seen("web:2"), STATUS, succeeded=True))
    assert partition(world) == 0


# Going back


@pytest.mark.parametrize("make", [CloneWorld, StatefulWorld])
@pytest.mark.parametrize("is_bad", [True, False])
def test_revert_ends_with_no_pod_of_the_target_and_the_strategy_of_before(make: type[World], is_bad: bool) -> None:
    world = taken_over(make(5))
    before = make(5).obj["spec"]["updateStrategy"]
    moves = moves_of(world)
    if is_bad:
        world.bad = {V2}
        drive(world, lambda: moves.roll(world.seen("web:2"), STATUS, batch(3, 5)))
    else:
        rolled(world, 3)
    floor = min(4, world.available())
    assert drive(world, lambda: moves.revert(world.seen("web:2", "web:1"), STATUS, batch(0, 5)), _floor(world, floor))
    assert world.held() == {V1: 5}
    after = {name: value for name, value in world.obj["spec"]["updateStrategy"].items() if value is not None}
    assert after.get("rollingUpdate") is None
    assert {**after, **before} == after
    assert world.obj["metadata"]["annotations"] == {}
    assert moves.finalize(world.seen("web:2", "web:1"), STATUS, succeeded=False) == DONE


def _floor(world: World, floor: int) -> Any:
    def watch() -> None:
        assert world.available() >= floor

    return watch


def test_revert_needs_to_know_what_was_before() -> None:
    world = taken_over(StatefulWorld(3))
    assert ORDERED.revert(world.seen("web:2"), STATUS, batch(0, 3)).failure == (
        "StatefulSet shop/web cannot go back: what it was before is not known"
    )


def back_in(partition: int, updated: int, updated_available: int, available: int) -> CloneWorld:
    """A CloneSet of ten on its way back, with these counts."""
    world = taken_over(CloneWorld(10))
    world.write(CLONES.revert(world.seen("web:2", "web:1"), STATUS, batch(0, 10)))
    world.patch({"spec": {"updateStrategy": {"paused": None, "partition": partition}}})
    world.report(
        replicas=10,
        availableReplicas=available,
        updatedReplicas=updated,
        updatedReadyReplicas=updated_available,
        updatedAvailableReplicas=updated_available,
        updateRevision=V1,
        currentRevision=V2,
    )
    return world


@pytest.mark.parametrize(
    ("counts", "unavailable", "expected"),
    [
        ((10, 0, 0, 10), 3, 7),
        ((10, 0, 0, 10), 1, 9),
        ((10, 0, 0, 10), 0, 9),  # without surge it has to take down at least one
        ((7, 0, 0, 10), 3, None),  # three that are still to come are as good as taken down
        ((7, 2, 2, 9), 3, 6),
        ((7, 3, 2, 9), 0, None),
        ((7, 3, 3, 10), 0, 6),
        ((10, 0, 0, 6), 0, 6),  # four that do not work are free
        ((0, 9, 9, 10), 3, None),
    ],
)
def test_the_way_back_goes_as_far_as_the_budget(
    counts: tuple[int, int, int, int], unavailable: int, expected: int | None
) -> None:
    world = back_in(*counts)
    ask = batch(0, 10, max_unavailable=unavailable)
    found = CLONES.revert(world.seen("web:2", "web:1"), STATUS, ask)
    if expected is None:
        assert found.wait is not None
        assert found.wait.numbers == {"available": counts[2], "goal": max(10 - counts[0], counts[1]), "tolerated": 0}
    else:
        (write,) = found.writes
        assert (write.patch, write.takes_away) == ({"spec": {"updateStrategy": {"partition": expected}}}, True)


@pytest.mark.parametrize(("planned", "unavailable", "expected"), [(1, 1, 9), (4, 3, 7), (20, 3, 7)])
def test_the_way_back_of_a_workload_that_was_scaled_midway_keeps_the_floor_of_its_new_size(
    planned: int, unavailable: int, expected: int
) -> None:
    world = back_in(10, 0, 0, 10)
    ask = batch(0, planned, max_unavailable=unavailable)
    (write,) = CLONES.revert(world.seen("web:2", "web:1"), STATUS, ask).writes
    assert write.patch == {"spec": {"updateStrategy": {"partition": expected}}}


def test_the_way_back_waits_for_a_report_and_undoes_what_others_did() -> None:
    world = back_in(10, 0, 0, 10)
    world.patch({"spec": {"minReadySeconds": 1}})
    assert code(CLONES.revert(world.seen("web:2", "web:1"), STATUS, batch(0, 10))) == MoveCode.not_observed
    ordered = rolled(taken_over(StatefulWorld(3)), 1)
    ordered.write(ORDERED.revert(ordered.seen("web:2", "web:1"), STATUS, batch(0, 3)))
    ordered.patch({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}})
    ordered.refresh()
    (write,) = ORDERED.revert(ordered.seen("web:2", "web:1"), STATUS, batch(0, 3)).writes
    assert write.patch is not None
    strategy = write.patch["spec"]["updateStrategy"]
    assert (strategy["type"], strategy["rollingUpdate"]["partition"]) == ("RollingUpdate", 3)
    assert not write.takes_away


def test_a_way_back_after_a_failure_claims_the_workload_again() -> None:
    world = rolled(taken_over(StatefulWorld(3)), 1)
    assert let_go(world, succeeded=False)
    seen = world.seen("web:2", "web:1")
    unknown = Workload(world.ref)
    (write,) = ORDERED.revert(replace(seen, sources=(unknown, *seen.sources)), STATUS, batch(0, 3)).writes
    assert write.patch is not None
    assert write.patch["metadata"]["annotations"][CLAIM_KEY] == CLAIM


# What is waited for, and what is written, one by one


@pytest.mark.parametrize(("moves", "make"), KINDS)
def test_nothing_is_said_of_a_workload_before_it_has_reported(moves: PartitionMoves, make: type[World]) -> None:
    world = make(3)
    gone = replace(world.seen("web:2"), target=replace(world.seen("web:2").target, obj=None))
    assert code(moves.initialize(gone, STATUS, CLAIM)) == MoveCode.not_found
    world.write(moves.initialize(world.seen("web:2"), STATUS, CLAIM))
    assert code(moves.initialize(world.seen("web:2"), STATUS, CLAIM)) == MoveCode.not_observed
    world.refresh()
    taken_over(world)
    world.patch({"spec": {"minReadySeconds": 1}})
    for ask in (moves.roll, moves.check):
        assert code(ask(world.seen("web:2"), STATUS, batch(1, 3))) == MoveCode.not_observed


def test_a_stateful_set_that_does_not_say_its_revision_is_waited_for() -> None:
    world = taken_over(StatefulWorld(3))
    del world.obj["status"]["updateRevision"]
    seen = world.seen("web:2")
    assert code(ORDERED.roll(seen, STATUS, batch(1, 3))) == MoveCode.not_observed
    known = replace(seen, target=replace(seen.target, update_revision=V2))
    assert ORDERED.roll(known, STATUS, batch(1, 3)).writes
    clones = taken_over(CloneWorld(3))
    del clones.obj["status"]["updateRevision"]
    assert CLONES.roll(clones.seen("web:2"), STATUS, batch(1, 3)).writes


def test_a_batch_takes_pods_away_and_is_not_checked_while_somebody_paused_it() -> None:
    world = taken_over(CloneWorld(3))
    (write,) = CLONES.roll(world.seen("web:2"), STATUS, batch(1, 3)).writes
    assert write.takes_away
    world.patch({"spec": {"updateStrategy": {"paused": True}}})
    world.refresh()
    assert code(CLONES.check(world.seen("web:2"), STATUS, batch(1, 3))) == MoveCode.paused


def test_a_clone_set_keeps_its_own_way_of_updating() -> None:
    world = CloneWorld(3)
    world.patch({"spec": {"updateStrategy": {"type": "InPlaceIfPossible"}}})
    world.refresh()
    assert taken_over(world).obj["spec"]["updateStrategy"]["type"] == "InPlaceIfPossible"


def test_who_wrote_a_template_is_remembered_only_of_this_rollout() -> None:
    world = taken_over(StatefulWorld(3))
    assert json.loads(world.obj["metadata"]["annotations"][FROZEN])["written"] == V2
    assert let_go(world, succeeded=False)
    taken_over(world)
    assert "written" not in json.loads(world.obj["metadata"]["annotations"][FROZEN])
    world.patch({"metadata": {"annotations": {FROZEN: "{"}}})
    taken_over(world)
    assert json.loads(world.obj["metadata"]["annotations"][FROZEN]) != {}


def test_a_success_gives_the_partition_back_also_without_a_record() -> None:
    for forget in (False, True):
        world = rolled(taken_over(StatefulWorld(3)), 2)
        if forget:
            world.patch({"metadata": {"annotations": {FROZEN: "{"}}})
        (write,) = ORDERED.finalize(world.seen("web:2"), STATUS, succeeded=True).writes
        world.patch(write.patch or {})
        assert (world.obj["spec"]["updateStrategy"]["rollingUpdate"] or {}).get("partition") in (0, None)
        assert CLAIM_KEY not in world.obj["metadata"]["annotations"]


def test_the_last_batch_takes_pods_that_came_meanwhile() -> None:
    world = rolled(taken_over(StatefulWorld(4)), 2)
    world.patch({"spec": {"replicas": 6}})
    world.settle()
    assert drive(world, lambda: ORDERED.roll(world.seen("web:2"), STATUS, batch(4, 4)))
    assert world.held() == {V2: 6}


def test_only_broken_pods_that_are_to_be_replaced_are_deleted() -> None:
    world = taken_over(StatefulWorld(6))
    world.patch({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}})
    world.refresh()
    seen = world.seen("web:2")
    broken = tuple(
        pod(one.metadata.name, V1, ready=one.metadata.name not in ("web-1", "web-2", "web-4"))
        for one in seen.target.pods
        if one.metadata.name != "web-0"
    )
    seen = replace(seen, target=replace(seen.target, pods=broken))
    (write,) = ORDERED.roll(seen, STATUS, batch(4, 6)).writes
    assert [one.name for one in write.delete_pods] == ["web-2", "web-4"]
    assert write.takes_away


def test_pods_of_a_clone_set_are_never_deleted_for_their_numbers() -> None:
    world = taken_over(CloneWorld(2))
    world.patch({"spec": {"updateStrategy": {"partition": 1}}})
    world.refresh()
    seen = world.seen("web:2")
    numbered = (pod("web-0", V1, ready=False), pod("web-1", V1, ready=False))
    seen = replace(seen, target=replace(seen.target, pods=numbered))
    assert code(CLONES.roll(seen, STATUS, batch(1, 2))) == MoveCode.not_available


def test_pods_that_are_waited_for_are_those_of_the_target() -> None:
    world = rolled(taken_over(StatefulWorld(3)), 1)
    world.patch({"spec": {"minReadySeconds": 10}})
    world.refresh()
    seen = replace(world.seen("web:2"), now=WHEN + timedelta(seconds=5))
    ready = PodCondition(type="Ready", status="True", last_transition_time=WHEN)
    pods = tuple(
        replace(one, status=replace(one.status, conditions=(ready,)))
        if one.metadata.name == "web-2"
        else pod(one.metadata.name, V1, ready=False)
        for one in seen.target.pods
    )
    found = ORDERED.check(replace(seen, target=replace(seen.target, pods=pods)), STATUS, batch(1, 3))
    assert found.wait is not None
    assert [(one.key, one.until) for one in found.wait.blockers] == [("web-2", WHEN + timedelta(seconds=10))]


# Pods by name


@pytest.mark.parametrize(
    ("batches", "problem"),
    [
        ((("web-3", "web-2"), ("web-1", "web-0")), ""),
        ((("web-2", "web-3"), 2), ""),
        ((1, ("web-2",), 2), ""),
        ((("web-0",), 3), "rolloutBatches[0].podList names web-0"),
        ((1, ("web-3",), 2), "the pods of this batch are web-2"),
    ],
)
def test_a_stateful_set_replaces_named_pods_only_in_its_own_order(batches: tuple[Any, ...], problem: str) -> None:
    made = tuple(RolloutBatch(replicas=one) if isinstance(one, int) else RolloutBatch(pod_list=one) for one in batches)
    found = ORDERED.verify(StatefulWorld(4).seen("web:2"), RolloutPlan(rollout_batches=made), STATUS)
    if problem:
        assert isinstance(found, Step)
        assert problem in found.failure
    else:
        assert isinstance(found, Verified)


def test_named_pods_count_from_the_first_number_of_the_set() -> None:
    plan = RolloutPlan(rollout_batches=(RolloutBatch(pod_list=("web-11",)), RolloutBatch(replicas=1)))
    assert isinstance(ORDERED.verify(StatefulWorld(2, start=10).seen("web:2"), plan, STATUS), Verified)


def test_a_batch_that_cannot_be_read_is_refused() -> None:
    plan = RolloutPlan(rollout_batches=(RolloutBatch(replicas="some"), RolloutBatch(replicas=2)))
    found = ORDERED.verify(StatefulWorld(3).seen("web:2"), plan, STATUS)
    assert isinstance(found, Step)
    assert found.failure.startswith("rolloutBatches[0].replicas: ")


def test_a_clone_set_refuses_named_pods() -> None:
    plan = RolloutPlan(rollout_batches=(RolloutBatch(pod_list=("web-a",)), RolloutBatch(replicas=2)))
    found = CLONES.verify(CloneWorld(3).seen("web:2"), plan, STATUS)
    assert found == Step(
        failure="rolloutBatches[0].podList is set, but a CloneSet chooses the pods itself: use replicas instead"
    )


# Properties


@given(data=st.data(), size=st.integers(0, 6), ordered=st.booleans(), parallel=st.booleans())
def test_any_way_of_batches_and_revisions_keeps_its_promises(
    data: st.DataObject, size: int, ordered: bool, parallel: bool
) -> None:
    """Never past the goal, never fewer pods than there were, and it always comes to its end."""
    world: World = (
        StatefulWorld(size, parallel=parallel) if ordered else CloneWorld(size, rolls_back=data.draw(st.booleans()))
    )
    moves = moves_of(world)
    for image in data.draw(st.lists(st.sampled_from(["web:1", "web:2", "web:3"]), max_size=3)):
        taken_over(world, image)
        already = world.held().get(world.update, 0)
        for goal in sorted(data.draw(st.lists(st.integers(0, size), max_size=3))):

            def never_past(goal: int = goal, already: int = already) -> None:
                assert world.held().get(world.update, 0) <= max(goal, already)
                assert world.available() >= size - 1

            ask = batch(goal, size)
            assert roll(world, image, ask, never_past)
            assert moves.check(world.seen(image), STATUS, ask).is_done
            world.settle(3)
            never_past()
        assert let_go(world, succeeded=False)


@given(
    size=st.integers(1, 6),
    goal=st.integers(0, 6),
    unavailable=st.integers(0, 3),
    ordered=st.booleans(),
    is_bad=st.booleans(),
    rolls_back=st.booleans(),
)
def test_going_back_keeps_the_floor_and_ends(
    size: int, goal: int, unavailable: int, ordered: bool, is_bad: bool, rolls_back: bool
) -> None:
    world: World = StatefulWorld(size) if ordered else CloneWorld(size, rolls_back=rolls_back)
    if not ordered:
        world.obj["spec"]["updateStrategy"]["maxUnavailable"] = size
    moves = moves_of(world)
    taken_over(world)
    world.bad = {V2} if is_bad else set()
    drive(world, lambda: moves.roll(world.seen("web:2"), STATUS, batch(min(goal, size), size)), most=40)
    floor = min(world.available(), size - max(1, unavailable))
    ask = batch(0, size, max_unavailable=unavailable)
    assert drive(world, lambda: moves.revert(world.seen("web:2", "web:1"), STATUS, ask), _floor(world, floor))
    assert world.held() == {V1: size}
    world.settle(3)
    assert world.held() == {V1: size}

"""Daemon moves: pods of a DaemonSet are deleted batch by batch, and come back on their nodes with the new template."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.meta import ObjectMeta
from kedge.api.oam.keys import CLAIM as CLAIM_KEY
from kedge.api.oam.keys import FROZEN
from kedge.api.oam.rollout_plan import RolloutBatch, RolloutPlan
from kedge.api.oam.rollout_status import RolloutStatus
from kedge.api.pods import ContainerState, ContainerStatus, Pod, PodSpec, Waiting
from kedge.plan.batching.daemon_moves import DaemonMoves
from kedge.plan.batching.moves import DONE, Batch, Step, Verified, Workload, Workloads
from kedge.plan.batching.waits import MoveCode, sentence
from kedge.plan.moving.wait import Code
from kedge.plan.workloads import template_hash
from plan.batching.in_place_worlds import CLAIM, World, batch, drive, pod, template

MOVES = DaemonMoves()
STATUS, CREATED = RolloutStatus(target_before=1), RolloutStatus(target_before=0)
PLAN = RolloutPlan()
V1, V2, V3 = (template_hash(template(image)) for image in ("web:1", "web:2", "web:3"))
ROLLING = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}


class DaemonWorld(World):
    """A DaemonSet that is OnDelete replaces what is deleted; one that rolls replaces one old pod at a time."""

    kind, api_version = "DaemonSet", "apps/v1"

    def __init__(self, nodes: int, image: str = "web:1", *, says_revision: bool = True) -> None:
        super().__init__(nodes, image)
        self.obj["spec"]["updateStrategy"] = ROLLING
        self.says_revision = says_revision
        self.nodes = [f"n{at}" for at in range(nodes)]
        self.serial = 0
        self.here: dict[str, Pod] = {}
        self.leaving: list[Pod] = []
        self.is_slow = False
        self._fill()
        self.refresh()

    def _fill(self) -> None:
        for node in self.nodes:
            if node not in self.here:
                self.serial += 1
                self.here[node] = self._pod(node, f"web-{self.serial}", is_ready=self.update not in self.bad)

    def _pod(self, node: str, name: str, *, is_ready: bool) -> Pod:
        made = pod(name, self.update, ready=is_ready)
        status = made.status
        if not is_ready:
            waiting = ContainerStatus(state=ContainerState(waiting=Waiting(reason="CrashLoopBackOff")))
            status = replace(status, container_statuses=(waiting,))
        return replace(made, spec=PodSpec(node_name=node), status=status)

    def act(self) -> None:
        self.here = {node: one for node, one in self.here.items() if node in self.nodes}
        if self.obj["spec"]["updateStrategy"]["type"] != "OnDelete":
            old = [
                node
                for node, one in self.here.items()
                if one.metadata.labels["controller-revision-hash"] != self.update
            ]
            for node in old[:1]:
                del self.here[node]
        if self.leaving and self.is_slow:
            self.refresh()
            self.is_slow = False
            return
        self.leaving = []
        self._fill()
        self.refresh()

    def refresh(self) -> None:
        revisions = [one.metadata.labels["controller-revision-hash"] for one in self.here.values()]
        self.report(
            desiredNumberScheduled=len(self.nodes),
            currentNumberScheduled=len(self.here),
            updatedNumberScheduled=revisions.count(self.update),
            numberAvailable=self.available(),
        )

    def delete(self, meta: ObjectMeta) -> None:
        assert meta.uid
        assert meta.resource_version
        node = next(node for node, one in self.here.items() if one.metadata.name == meta.name)
        gone = self.here.pop(node)
        self.leaving.append(pod(gone.metadata.name, gone.metadata.labels["controller-revision-hash"], terminating=True))

    def pods(self) -> tuple[Pod, ...]:
        return (*self.here.values(), *self.leaving)

    def seen(self, target: str | None = None, source: str | None = None) -> Workloads:
        found = super().seen(target, source)
        return replace(found, target=replace(found.target, update_revision=self.update if self.says_revision else ""))

    def held(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for one in self.here.values():
            revision = one.metadata.labels["controller-revision-hash"]
            found[revision] = found.get(revision, 0) + 1
        return found

    def available(self) -> int:
        return sum(one.status.conditions[0].status == "True" for one in self.here.values())


def taken_over(world: DaemonWorld, image: str = "web:2") -> DaemonWorld:
    assert drive(world, lambda: MOVES.initialize(world.seen(image), STATUS, CLAIM))
    return world


def roll(world: DaemonWorld, ask: Batch, image: str = "web:2") -> bool:
    return drive(world, lambda: MOVES.roll(world.seen(image), STATUS, ask), most=60)


def code(found: object) -> str:
    assert isinstance(found, Step)
    assert found.wait is not None, found
    assert sentence(found.wait)
    return found.wait.code


# Verification


def test_the_size_is_the_number_of_nodes() -> None:
    world = DaemonWorld(4)
    assert MOVES.verify(world.seen("web:2"), PLAN, STATUS) == Verified(4, 4, V2)
    assert MOVES.verify(world.seen("web:2"), RolloutPlan(target_size=4), STATUS) == Verified(4, 4, V2)
    assert MOVES.verify(world.seen("web:2"), RolloutPlan(target_size=3), STATUS) == Step(
        failure="the rollout plan is attempting to scale the daemonset, target = 3, daemonset size = 4"
    )


def test_what_passes_by_itself_is_waited_for() -> None:
    world = DaemonWorld(3)
    world.nodes.append("n9")
    world.refresh()
    assert code(MOVES.verify(world.seen("web:2"), PLAN, STATUS)) == MoveCode.scaling
    world.patch({"spec": {"minReadySeconds": 1}})
    assert code(MOVES.verify(world.seen("web:2"), PLAN, STATUS)) == MoveCode.not_observed


def test_what_is_rolled_out_already_is_refused() -> None:
    status = RolloutStatus(last_applied_pod_template_identifier=V1)
    same = Step(failure=f"there is no difference between the source and target, hash = {V1}")
    assert MOVES.verify(DaemonWorld(3).seen("web:1"), PLAN, status) == same
    assert MOVES.verify(DaemonWorld(3).seen(), PLAN, status) == same
    assert MOVES.verify(DaemonWorld(3).seen(), PLAN, STATUS) == Verified(3, 3, V1)


def test_a_set_that_rolls_by_itself_is_refused_and_one_on_delete_is_not() -> None:
    world = DaemonWorld(3)
    world.patch({"spec": {"template": template("web:2")}})
    world.refresh()
    text = "DaemonSet shop/web is in the middle of updating, need to be paused first"
    assert MOVES.verify(world.seen(), PLAN, STATUS) == Step(failure=text)
    world.patch({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}})
    world.refresh()
    assert MOVES.verify(world.seen(), PLAN, STATUS) == Verified(3, 3, V2)


def test_named_pods_must_be_there() -> None:
    plan = RolloutPlan(rollout_batches=(RolloutBatch(pod_list=("web-1", "web-8")), RolloutBatch(replicas=1)))
    found = MOVES.verify(DaemonWorld(3).seen("web:2"), plan, STATUS)
    assert found == Step(failure="rolloutBatches[0].podList names web-8, which DaemonSet shop/web does not have")


# Taking over


def test_the_template_is_written_in_the_write_that_freezes() -> None:
    world = DaemonWorld(3)
    (write,) = MOVES.initialize(world.seen("web:2"), STATUS, CLAIM).writes
    assert write.patch is not None
    assert write.patch["spec"]["updateStrategy"] == {"type": "OnDelete", "rollingUpdate": None}
    taken_over(world)
    world.settle(5)
    assert world.held() == {V1: 3}
    assert world.obj["metadata"]["annotations"][CLAIM_KEY] == CLAIM


def test_a_template_of_the_user_is_only_claimed() -> None:
    world = DaemonWorld(3)
    world.patch(
        {"spec": {"template": template("web:2"), "updateStrategy": {"type": "OnDelete", "rollingUpdate": None}}}
    )
    world.refresh()
    assert drive(world, lambda: MOVES.initialize(world.seen(), STATUS, CLAIM))
    assert drive(world, lambda: MOVES.roll(world.seen(), STATUS, batch(3, 3)))
    assert drive(world, lambda: MOVES.finalize(world.seen(), STATUS, succeeded=True))
    assert world.obj["spec"]["updateStrategy"]["type"] == "OnDelete"


def test_another_rollout_is_waited_for_and_left_alone() -> None:
    world = DaemonWorld(3)
    world.patch({"metadata": {"annotations": {CLAIM_KEY: "Rollout/other/uid-2"}}})
    seen = world.seen("web:2", "web:1")
    assert code(MOVES.verify(seen, PLAN, STATUS)) == MoveCode.claimed
    assert code(MOVES.initialize(seen, STATUS, CLAIM)) == MoveCode.claimed
    assert MOVES.finalize(seen, STATUS, succeeded=True) == DONE
    assert MOVES.revert(seen, STATUS, batch(0, 3)) == DONE


# Rolling


def test_a_batch_deletes_as_many_pods_as_it_asks_for_within_the_budget() -> None:
    world = taken_over(DaemonWorld(5))
    step = MOVES.roll(world.seen("web:2"), STATUS, batch(3, 5, max_unavailable=2))
    (write,) = step.writes
    assert [one.name for one in write.delete_pods] == ["web-1", "web-2"]
    assert write.takes_away
    assert write.delete_pods[0] == ObjectMeta(
        name="web-1", namespace="shop", uid=f"uid-web-1-{V1}", resource_version="7"
    )
    assert roll(world, batch(3, 5, max_unavailable=2))
    world.settle(5)
    assert world.held() == {V1: 2, V2: 3}


def test_a_set_that_does_not_exist_is_created_as_it_is_taken_over() -> None:
    manifest = {
        "metadata": {"labels": {"v": "1"}, "annotations": {"note": "kept"}},
        "spec": {"template": template("web:1"), "updateStrategy": ROLLING},
        "status": {"numberReady": 3},
    }
    world = DaemonWorld(3)
    unmade = Workloads(Workload(world.ref, manifest=manifest), in_place=True, claim=CLAIM)
    (write,) = as_step(MOVES.verify(unmade, PLAN, CREATED)).writes
    made = dict(write.create or {})
    record = json.loads(made["metadata"]["annotations"].pop(FROZEN))
    assert (record["strategy"]["type"], record["written"]) == ("RollingUpdate", V1)
    assert made == {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "labels": {"v": "1"},
            "annotations": {"note": "kept", CLAIM_KEY: CLAIM},
        },
        "spec": {"template": template("web:1"), "updateStrategy": {"type": "OnDelete", "rollingUpdate": None}},
    }
    assert code(MOVES.verify(replace(unmade, target=Workload(world.ref)), PLAN, CREATED)) == MoveCode.not_found
    assert code(MOVES.verify(unmade, PLAN, STATUS)) == MoveCode.not_found  # somebody deleted it


def test_a_set_that_was_created_is_proved_in_batches_and_goes_when_it_is_taken_back() -> None:
    world = created()
    assert MOVES.roll(world.seen("web:1"), STATUS, batch(1, 3)) == DONE
    (write,) = MOVES.revert(world.seen("web:1"), CREATED, batch(3, 3)).writes
    assert (write.ref, write.delete, write.uid, write.takes_away) == (world.ref, True, "u", True)
    theirs = replace(world.seen("web:1"), claim="Rollout/other/uid-2")
    assert MOVES.revert(theirs, CREATED, batch(3, 3)) == DONE


def created(by: str = CLAIM) -> DaemonWorld:
    """A DaemonSet as a rollout created it."""
    world = DaemonWorld(3)
    unmade = Workloads(Workload(world.ref, manifest=world.manifest("web:1")), in_place=True, claim=by)
    (write,) = as_step(MOVES.verify(unmade, PLAN, CREATED)).writes
    made: Any = write.create
    world.patch({"metadata": {"annotations": made["metadata"]["annotations"]}, "spec": made["spec"]})
    world.settle()
    return world


def test_a_set_that_was_there_before_is_never_deleted_whatever_the_status_says() -> None:
    world = taken_over(DaemonWorld(3))
    assert roll(world, batch(2, 3))
    assert drive(world, lambda: MOVES.revert(world.seen("web:2", "web:1"), CREATED, batch(2, 3)))
    assert world.held() == {V1: 3}
    unknown = taken_over(DaemonWorld(3)).seen("web:2")
    assert MOVES.revert(unknown, CREATED, batch(2, 3)).failure


def test_a_set_that_another_rollout_created_is_not_deleted() -> None:
    for by in ("Rollout/other/uid-2", ""):
        world = created(by)
        world.patch({"metadata": {"annotations": {CLAIM_KEY: None}}})
        for claim in (CLAIM, ""):
            found = MOVES.revert(replace(world.seen("web:1", "web:1"), claim=claim), CREATED, batch(3, 3))
            assert not any(write.delete for write in found.writes)


def as_step(found: object) -> Step:
    assert isinstance(found, Step)
    return found


def test_a_bad_revision_stops_after_as_many_pods_as_the_budget_has() -> None:
    world = taken_over(DaemonWorld(5))
    world.bad = {V2}
    assert not roll(world, batch(4, 5, max_unavailable=2))
    assert world.held() == {V1: 3, V2: 2}
    found = MOVES.roll(world.seen("web:2"), STATUS, batch(4, 5, max_unavailable=2))
    assert code(found) in (Code.budget_spent, Code.revision_unproven)
    found = MOVES.check(world.seen("web:2"), STATUS, batch(4, 5))
    assert code(found) == MoveCode.not_available
    assert found.wait is not None
    assert found.wait.numbers == {"available": 0, "goal": 4, "tolerated": 0}
    assert [one.reported for one in found.wait.blockers] == ["CrashLoopBackOff"] * 2
    assert MOVES.check(world.seen("web:2"), STATUS, batch(2, 5, tolerated=2)).is_done


def test_broken_old_pods_are_replaced_first_and_need_no_budget() -> None:
    world = DaemonWorld(4)
    world.here["n2"] = world._pod("n2", "web-3", is_ready=False)
    taken_over(world)
    step = MOVES.roll(world.seen("web:2"), STATUS, batch(1, 4))
    assert [one.name for one in step.writes[0].delete_pods] == ["web-3"]


def test_named_pods_are_replaced_and_no_others() -> None:
    world = taken_over(DaemonWorld(4))
    ask = replace(batch(2, 4), pods=("web-2", "web-4"))
    assert roll(world, ask)
    kept = {one.metadata.name for one in world.here.values() if one.metadata.labels["controller-revision-hash"] == V1}
    assert kept == {"web-1", "web-3"}


def test_a_named_pod_that_is_left_is_waited_for() -> None:
    world = taken_over(DaemonWorld(3))
    assert roll(world, batch(1, 3))
    left = replace(batch(1, 3), pods=("web-3",))
    assert code(MOVES.check(world.seen("web:2"), STATUS, left)) == MoveCode.not_available


def test_another_strategy_by_somebody_else_is_respected() -> None:
    world = taken_over(DaemonWorld(3))
    world.patch({"spec": {"updateStrategy": ROLLING}})
    world.refresh()
    assert code(MOVES.roll(world.seen("web:2"), STATUS, batch(1, 3))) == MoveCode.strategy_changed


def test_nodes_that_come_and_go_do_not_break_it() -> None:
    world = taken_over(DaemonWorld(5))
    assert roll(world, batch(2, 5))
    world.nodes = [*world.nodes[1:], "n7", "n8"]
    world.act()
    assert MOVES.ready_pods(world.seen("web:2")) == 3
    assert roll(world, batch(5, 5))
    assert world.held() == {V2: 6}
    world.nodes = world.nodes[:2]
    world.act()
    assert MOVES.check(world.seen("web:2"), STATUS, batch(5, 5)).is_done


def test_pods_of_others_with_the_same_labels_are_left_alone() -> None:
    world = taken_over(DaemonWorld(2))
    world.leaving = [pod("alien", V1, owner="other"), replace(pod("orphan", V1), metadata=ObjectMeta(name="orphan"))]
    names = {
        one.name
        for one in MOVES.roll(world.seen("web:2"), STATUS, batch(2, 2, max_unavailable=2)).writes[0].delete_pods
    }
    assert names == {"web-1", "web-2"}
    plan = RolloutPlan(rollout_batches=(RolloutBatch(pod_list=("alien",)), RolloutBatch(replicas=1)))
    found = MOVES.verify(world.seen("web:2"), plan, STATUS)
    assert isinstance(found, Step)
    assert "names alien" in found.failure


# Which revision is the present one


def test_pods_tell_the_revision_if_nobody_says_it() -> None:
    world = DaemonWorld(4, says_revision=False)
    taken_over(world)
    assert MOVES.ready_pods(world.seen("web:2")) == 0
    seen = world.seen("web:2")
    seen = replace(seen, target=replace(seen.target, obj={**world.obj, "status": {**world.obj["status"]}}))
    assert len(MOVES.roll(seen, STATUS, batch(1, 4)).writes) == 1


def test_the_template_generation_tells_the_revision() -> None:
    world = taken_over(DaemonWorld(3, says_revision=False))
    world.patch({"metadata": {"annotations": {"deprecated.daemonset.template.generation": "2"}}})
    first = next(iter(world.here.values()))
    labels = {"controller-revision-hash": V2, "pod-template-generation": "2"}
    world.here["n0"] = replace(first, metadata=replace(first.metadata, labels=labels))
    world.refresh()
    assert MOVES.ready_pods(world.seen("web:2")) == 1


def test_a_revision_that_cannot_be_told_is_waited_for() -> None:
    world = taken_over(DaemonWorld(4))
    assert roll(world, batch(2, 4))
    world.says_revision = False
    assert code(MOVES.roll(world.seen("web:2"), STATUS, batch(3, 4))) == MoveCode.not_observed
    assert MOVES.ready_pods(world.seen("web:2")) == 0


# Letting go and going back


def test_after_a_failure_no_pod_moves_and_a_retry_goes_on() -> None:
    world = taken_over(DaemonWorld(4))
    assert roll(world, batch(2, 4))
    assert drive(world, lambda: MOVES.finalize(world.seen("web:2"), STATUS, succeeded=False))
    world.settle(5)
    assert world.held() == {V1: 2, V2: 2}
    assert CLAIM_KEY not in world.obj["metadata"]["annotations"]
    assert MOVES.verify(world.seen("web:2"), PLAN, STATUS) == Verified(4, 4, V2)
    taken_over(world)
    assert roll(world, batch(4, 4))
    assert drive(world, lambda: MOVES.finalize(world.seen("web:2"), STATUS, succeeded=True))
    assert world.obj["spec"]["updateStrategy"] == ROLLING
    assert world.obj["metadata"]["annotations"] == {}


def test_a_set_that_is_gone_or_was_never_taken_over_is_let_go_of_at_once() -> None:
    seen = DaemonWorld(2).seen("web:2", "web:1")
    gone = replace(seen, target=replace(seen.target, obj=None))
    for one in (seen, gone):
        assert MOVES.finalize(one, STATUS, succeeded=False) == DONE
        assert MOVES.revert(one, STATUS, batch(0, 2)) == DONE
    assert code(MOVES.verify(gone, PLAN, STATUS)) == MoveCode.not_found
    assert code(MOVES.initialize(gone, STATUS, CLAIM)) == MoveCode.not_found


def test_going_back_takes_all_pods_whichever_the_batch_names() -> None:
    world = taken_over(DaemonWorld(3))
    assert roll(world, batch(2, 3))
    ask = replace(batch(2, 3), pods=("web-1", "web-2"))
    assert drive(world, lambda: MOVES.revert(world.seen("web:2", "web:1"), STATUS, ask))
    assert world.held() == {V1: 3}


def test_going_back_needs_to_know_what_was_before() -> None:
    found = MOVES.revert(taken_over(DaemonWorld(2)).seen("web:2"), STATUS, batch(0, 2))
    assert found.failure == "DaemonSet shop/web cannot go back: what it was before is not known"


@given(
    nodes=st.integers(1, 6),
    goal=st.integers(0, 6),
    unavailable=st.integers(0, 3),
    is_bad=st.booleans(),
    is_slow=st.booleans(),
)
def test_going_back_keeps_the_floor_and_ends_as_it_was(
    nodes: int, goal: int, unavailable: int, is_bad: bool, is_slow: bool
) -> None:
    world = taken_over(DaemonWorld(nodes))
    world.bad = {V2} if is_bad else set()
    roll(world, batch(min(goal, nodes), nodes, max_unavailable=unavailable))
    world.settle(3)
    floor = min(world.available(), nodes - max(1, unavailable))

    def watch() -> None:
        assert world.available() >= floor

    world.is_slow = is_slow
    ask = batch(0, nodes, max_unavailable=unavailable)
    assert drive(world, lambda: MOVES.revert(world.seen("web:2", "web:1"), STATUS, ask), watch)
    assert world.held() == {V1: nodes}
    assert world.obj["spec"]["updateStrategy"] == ROLLING
    assert FROZEN not in world.obj["metadata"]["annotations"]
    assert MOVES.finalize(world.seen("web:2", "web:1"), STATUS, succeeded=False) == DONE


@given(data=st.data(), nodes=st.integers(0, 6), unavailable=st.integers(0, 3))
def test_any_way_of_batches_and_revisions_keeps_its_promises(data: st.DataObject, nodes: int, unavailable: int) -> None:
    """Never past the goal, never below the floor, and it always comes to its end."""
    world = DaemonWorld(nodes)
    for image in data.draw(st.lists(st.sampled_from(["web:1", "web:2", "web:3"]), max_size=3)):
        taken_over(world, image)
        already = world.held().get(world.update, 0)
        for goal in sorted(data.draw(st.lists(st.integers(0, nodes), max_size=3))):
            ask = batch(goal, nodes, max_unavailable=unavailable)
            world.is_slow = data.draw(st.booleans())
            assert _rolled_within(world, image, ask, already)
            assert MOVES.check(world.seen(image), STATUS, ask).is_done


def _rolled_within(world: DaemonWorld, image: str, ask: Batch, already: int) -> bool:
    floor = len(world.nodes) - max(1, ask.budget.max_unavailable)

    def watch() -> None:
        assert world.held().get(world.update, 0) <= max(ask.goal, already)
        assert world.available() >= floor

    return drive(world, lambda: MOVES.roll(world.seen(image), STATUS, ask), watch)


def test_all_old_revisions_are_one_pool() -> None:
    world = taken_over(DaemonWorld(4))
    assert roll(world, batch(2, 4))
    taken_over(world, "web:3")
    for goal in (1, 3, 4):
        assert roll(world, batch(goal, 4), "web:3")
        assert world.held()[V3] == goal


# What is waited for, and what is written, one by one


def test_nothing_is_said_of_a_set_before_it_has_reported() -> None:
    world = DaemonWorld(3)
    gone = replace(world.seen("web:2"), target=replace(world.seen("web:2").target, obj=None))
    assert code(MOVES.initialize(gone, STATUS, CLAIM)) == MoveCode.not_found
    taken_over(world)
    world.patch({"spec": {"minReadySeconds": 1}})
    seen = world.seen("web:2", "web:2")
    for ask in (MOVES.roll, MOVES.check, MOVES.revert):
        assert code(ask(seen, STATUS, batch(1, 3))) == MoveCode.not_observed
    assert MOVES.ready_pods(seen) == 0


def test_another_strategy_by_somebody_else_is_respected_by_every_move() -> None:
    world = taken_over(DaemonWorld(3))
    world.patch({"spec": {"updateStrategy": ROLLING}})
    world.refresh()
    for ask in (MOVES.roll, MOVES.check):
        assert code(ask(world.seen("web:2"), STATUS, batch(1, 3))) == MoveCode.strategy_changed
    world.write(MOVES.initialize(world.seen("web:1"), STATUS, CLAIM))
    world.patch({"spec": {"updateStrategy": ROLLING}})
    world.refresh()
    assert code(MOVES.revert(world.seen("web:2", "web:1"), STATUS, batch(0, 3))) == MoveCode.strategy_changed


def test_a_template_that_is_there_is_not_written_again() -> None:
    world = DaemonWorld(3)
    for image in (None, "web:1"):
        (write,) = MOVES.initialize(world.seen(image), STATUS, CLAIM).writes
        assert write.patch is not None
        assert "template" not in write.patch["spec"]
        assert "written" not in json.loads(write.patch["metadata"]["annotations"][FROZEN])


def test_a_server_that_adds_to_the_template_does_not_make_it_written_twice() -> None:
    world = taken_over(DaemonWorld(2))
    assert json.loads(world.obj["metadata"]["annotations"][FROZEN])["written"] == V2
    world.patch({"spec": {"template": {"spec": {"priorityClassName": "added"}}}})
    world.refresh()
    assert MOVES.initialize(world.seen("web:2"), STATUS, CLAIM) == DONE


def test_who_wrote_a_template_is_remembered_only_of_this_rollout() -> None:
    world = taken_over(DaemonWorld(2))
    assert drive(world, lambda: MOVES.finalize(world.seen("web:2"), STATUS, succeeded=False))
    taken_over(world)
    assert "written" not in json.loads(world.obj["metadata"]["annotations"][FROZEN])
    world.patch({"metadata": {"annotations": {FROZEN: "{"}}})
    taken_over(world)
    assert json.loads(world.obj["metadata"]["annotations"][FROZEN]) != {}


def test_a_set_is_let_go_of_also_without_a_record() -> None:
    for succeeded in (True, False):
        world = taken_over(DaemonWorld(2))
        world.patch({"metadata": {"annotations": {FROZEN: "{"}}})
        (write,) = MOVES.finalize(world.seen("web:2"), STATUS, succeeded=succeeded).writes
        assert write.patch is not None
        assert write.patch["metadata"]["annotations"][CLAIM_KEY] is None
        assert "spec" not in write.patch


def test_a_way_back_after_a_failure_claims_the_set_again() -> None:
    world = taken_over(DaemonWorld(3))
    assert drive(world, lambda: MOVES.finalize(world.seen("web:2"), STATUS, succeeded=False))
    seen = world.seen("web:2", "web:1")
    unknown = Workload(world.ref)
    (write,) = MOVES.revert(replace(seen, sources=(unknown, *seen.sources)), STATUS, batch(0, 3)).writes
    assert write.patch is not None
    assert write.patch["metadata"]["annotations"][CLAIM_KEY] == CLAIM


def test_another_template_is_rolled_out_even_if_it_was_the_last_one() -> None:
    status = RolloutStatus(last_applied_pod_template_identifier=V2)
    assert MOVES.verify(DaemonWorld(3).seen("web:2"), PLAN, status) == Verified(3, 3, V2)


def test_a_set_whose_revision_nobody_tells_is_waited_for() -> None:
    world = DaemonWorld(3, says_revision=False)
    world.obj["status"]["updatedNumberScheduled"] = 1
    assert code(MOVES.verify(world.seen("web:1"), PLAN, STATUS)) == MoveCode.not_observed


def test_the_way_back_waits_for_pods_that_are_leaving() -> None:
    world = taken_over(DaemonWorld(3))
    assert roll(world, batch(1, 3))
    world.write(MOVES.revert(world.seen("web:2", "web:1"), STATUS, batch(0, 3)))
    world.refresh()
    world.write(MOVES.revert(world.seen("web:2", "web:1"), STATUS, batch(0, 3)))
    wait = MOVES.revert(world.seen("web:2", "web:1"), STATUS, batch(0, 3)).wait
    assert wait is not None
    assert (wait.code, wait.numbers) == (MoveCode.not_available, {"available": 2, "goal": 3, "tolerated": 0})


def test_pods_that_are_ready_for_too_short_a_time_are_named() -> None:
    world = taken_over(DaemonWorld(2))
    assert roll(world, batch(1, 2))
    world.patch({"spec": {"minReadySeconds": 10}})
    world.refresh()
    found = MOVES.check(world.seen("web:2"), STATUS, batch(1, 2))
    assert found.wait is not None
    assert len(found.wait.blockers) == 1

"""Scale moves: a target without a source gets its pods batch by batch, on the way up and on the way down."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.oam.keys import CLAIM as CLAIM_KEY
from kedge.api.oam.rollout_plan import RolloutBatch, RolloutPlan
from kedge.api.oam.rollout_status import RolloutStatus
from kedge.embedded.json_patch import merge_patch
from kedge.plan.batching.moves import DONE, Step, Verified, Workload, WorkloadRef, Workloads
from kedge.plan.batching.scale_moves import ScaleMoves
from kedge.plan.batching.waits import MoveCode, sentence
from kedge.plan.workloads import WorkloadHandler, template_hash
from kedge.plan.workloads.clone_sets import CloneSets
from kedge.plan.workloads.daemon_sets import DaemonSets
from kedge.plan.workloads.deployments import Deployments
from kedge.plan.workloads.stateful_sets import StatefulSets
from plan.batching.in_place_worlds import CLAIM, batch, pod, template

HANDLERS: list[WorkloadHandler] = [Deployments(), StatefulSets(), CloneSets()]
MOVES = ScaleMoves(Deployments())
HASH = template_hash(template("web:1"))
MANIFEST: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "x", "labels": {"app": "web"}},
    "spec": {"replicas": 9, "template": template("web:1")},
    "status": {"replicas": 9},
}


def ref(handler: WorkloadHandler) -> WorkloadRef:
    return WorkloadRef(f"{handler.group}/v1", handler.kind, "shop", "web")


def scaled(
    replicas: int,
    *,
    pods: int | None = None,
    available: int | None = None,
    updated: int | None = None,
    handler: WorkloadHandler = HANDLERS[0],
    observed: int = 2,
    spec: dict[str, Any] | None = None,
    **meta: Any,
) -> Workloads:
    """A workload; its pods are all there, available and updated, unless said."""
    there = replicas if pods is None else pods
    counts = {
        "replicas": there,
        "readyReplicas": there,
        "availableReplicas": there if available is None else available,
        "updatedReplicas": there if updated is None else updated,
    }
    obj = {
        "metadata": {"name": "web", "uid": "u", "resourceVersion": "5", "generation": 2, **meta},
        "spec": {"replicas": replicas, "template": template("web:1"), **(spec or {})},
        "status": {"observedGeneration": observed, **counts},
    }
    return Workloads(Workload(ref(handler), obj), claim=CLAIM)


def sized(original: int) -> RolloutStatus:
    return RolloutStatus(rollout_original_size=original)


def code(found: object) -> str:
    assert isinstance(found, Step)
    assert found.wait is not None, found
    assert sentence(found.wait)
    return found.wait.code


def patch_of(step: Step) -> Any:
    return step.writes[0].patch


# Verification


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda one: one.kind)
def test_the_size_is_what_there_is_and_what_the_plan_asks_for(handler: WorkloadHandler) -> None:
    found = ScaleMoves(handler).verify(scaled(3, handler=handler), RolloutPlan(target_size=5), RolloutStatus())
    assert found == Verified(3, 5, HASH)


def test_a_size_is_needed() -> None:
    assert MOVES.verify(scaled(3), RolloutPlan(), RolloutStatus()) == Step(
        failure="the rollout plan has no source to move from and no targetSize to scale Deployment shop/web to"
    )
    assert MOVES.verify(scaled(3), RolloutPlan(target_size=0), RolloutStatus()) == Verified(3, 0, HASH)


def test_a_daemon_set_cannot_be_scaled() -> None:
    found = ScaleMoves(DaemonSets()).verify(
        scaled(3, handler=DaemonSets()), RolloutPlan(target_size=3), RolloutStatus()
    )
    assert found == Step(failure="DaemonSet shop/web cannot be scaled: a DaemonSet has no replicas")


def test_named_pods_are_refused() -> None:
    batches = (RolloutBatch(replicas=1), RolloutBatch(pod_list=("web-1",)))
    found = MOVES.verify(scaled(3), RolloutPlan(target_size=5, rollout_batches=batches), RolloutStatus())
    assert found == Step(failure="rolloutBatches[1].podList is set, but pods are only added or removed")


@pytest.mark.parametrize(
    ("seen", "waits_for"),
    [
        (scaled(3, pods=2), MoveCode.scaling),
        (scaled(3, pods=4), MoveCode.scaling),
        (scaled(3, updated=2), MoveCode.updating),
        (scaled(3, observed=1), MoveCode.not_observed),
        (scaled(3, deletionTimestamp="2030-01-01T00:00:00Z"), MoveCode.leaving),
        (scaled(3, annotations={CLAIM_KEY: "Rollout/other/uid-2"}), MoveCode.claimed),
        (replace(scaled(3), target=Workload(ref(Deployments()))), MoveCode.not_found),
        (scaled(3, updated=2, spec={"paused": True}), MoveCode.updating),
        (scaled(3, spec={"paused": True}), None),
        (scaled(3, available=0), None),
        (scaled(3, annotations={CLAIM_KEY: CLAIM}), None),
    ],
)
def test_a_workload_that_is_not_steady_is_waited_for(seen: Workloads, waits_for: str | None) -> None:
    found = MOVES.verify(seen, RolloutPlan(target_size=5), RolloutStatus())
    if waits_for is None:
        assert isinstance(found, Verified)
    else:
        assert code(found) == waits_for


def test_pods_of_an_old_template_are_waited_for_also_if_a_partition_keeps_them_back() -> None:
    held = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}
    moves, plan = ScaleMoves(StatefulSets()), RolloutPlan(target_size=5)
    seen = scaled(3, updated=1, spec=held, handler=StatefulSets())
    assert code(moves.verify(seen, plan, RolloutStatus())) == MoveCode.updating
    seen = scaled(3, spec=held, handler=StatefulSets())
    assert isinstance(moves.verify(seen, plan, RolloutStatus()), Verified)


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda one: one.kind)
@pytest.mark.parametrize(("original", "total"), [(0, 4), (6, 4), (4, 4)])
def test_pods_of_an_old_template_prove_no_batch_and_count_for_nothing(
    handler: WorkloadHandler, original: int, total: int
) -> None:
    moves, status = ScaleMoves(handler), sized(original)
    last = batch(total, before=original, total=total)
    for outdated in (1, 4):
        seen = scaled(total, updated=total - outdated, handler=handler)
        assert code(moves.roll(seen, status, last)) == MoveCode.updating
        assert code(moves.check(seen, status, last)) == MoveCode.updating
        assert moves.ready_pods(seen) == total - outdated
    assert moves.check(scaled(total, handler=handler), status, last) == DONE


# First deployment


def test_a_target_that_does_not_exist_is_created_without_pods() -> None:
    seen = Workloads(Workload(ref(Deployments()), manifest=MANIFEST), claim=CLAIM)
    assert MOVES.verify(seen, RolloutPlan(target_size=4), RolloutStatus()) == Verified(0, 4, HASH)
    (write,) = MOVES.initialize(seen, RolloutStatus(), CLAIM).writes
    assert write.create == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "shop",
            "labels": {"app": "web"},
            "annotations": {CLAIM_KEY: CLAIM},
        },
        "spec": {"replicas": 0, "template": template("web:1")},
    }
    assert MANIFEST["spec"]["replicas"] == 9


def test_a_target_that_is_there_is_claimed() -> None:
    (write,) = MOVES.initialize(scaled(3), RolloutStatus(), CLAIM).writes
    assert write.patch == {"metadata": {"annotations": {CLAIM_KEY: CLAIM}}}
    assert (write.uid, write.resource_version, write.takes_away) == ("u", "5", False)
    assert MOVES.initialize(scaled(3, annotations={CLAIM_KEY: CLAIM}), RolloutStatus(), CLAIM) == DONE
    other = scaled(3, annotations={CLAIM_KEY: "Rollout/other/uid-2"})
    assert code(MOVES.initialize(other, RolloutStatus(), CLAIM)) == MoveCode.claimed
    gone = Workloads(Workload(ref(Deployments())))
    assert code(MOVES.initialize(gone, RolloutStatus(), CLAIM)) == MoveCode.not_found


@pytest.mark.parametrize(
    ("replicas", "pods", "held", "spec"),
    [
        (5, 0, 0, {"paused": None, "replicas": 0}),
        (5, 2, 2, {"paused": None, "replicas": 2}),
        (0, 0, 0, {"paused": None}),
        (5, 5, 5, None),
        (1, 1, 1, None),
    ],
)
def test_a_target_that_was_written_paused_makes_its_pods_batch_by_batch(
    replicas: int, pods: int, held: int, spec: dict[str, Any] | None
) -> None:
    seen = scaled(replicas, pods=pods, spec={"paused": True})
    assert MOVES.verify(seen, RolloutPlan(target_size=7), RolloutStatus()) == Verified(held, 7, HASH)
    (write,) = MOVES.initialize(seen, sized(held), CLAIM).writes
    claimed = {"metadata": {"annotations": {CLAIM_KEY: CLAIM}}}
    assert write.patch == (claimed if spec is None else claimed | {"spec": spec})


def test_a_paused_target_is_waited_for_until_its_pods_are_counted() -> None:
    unseen = scaled(1, pods=0, spec={"paused": True}, observed=1)
    assert code(MOVES.initialize(unseen, RolloutStatus(), CLAIM)) == MoveCode.not_observed
    fewer = scaled(1, pods=3, spec={"paused": True})
    assert code(MOVES.verify(fewer, RolloutPlan(target_size=5), RolloutStatus())) == MoveCode.scaling


# Batches


@pytest.mark.parametrize("handler", HANDLERS, ids=lambda one: one.kind)
@pytest.mark.parametrize(
    ("original", "total", "replicas", "goal", "written"),
    [
        (2, 10, 2, 4, 4),
        (2, 10, 4, 4, None),
        (2, 10, 6, 4, None),  # somebody has scaled it up further: it is not taken back
        (2, 10, 12, 10, 10),  # until the last batch
        (10, 2, 10, 7, 7),
        (10, 2, 5, 7, None),
        (10, 2, 1, 2, 2),
        (3, 3, 3, 3, None),
        (3, 3, 5, 3, 3),
    ],
)
def test_replicas_are_set_to_what_the_batch_asks_for(
    handler: WorkloadHandler, original: int, total: int, replicas: int, goal: int, written: int | None
) -> None:
    seen = scaled(replicas, handler=handler)
    step = ScaleMoves(handler).roll(seen, sized(original), batch(goal, total))
    if written is None:
        assert step == DONE
    else:
        assert patch_of(step) == {"spec": {"replicas": written}}
        assert step.writes[0].takes_away == (written < replicas)


@pytest.mark.parametrize(
    ("original", "total", "seen", "tolerated", "waits_for"),
    [
        (2, 10, scaled(4, available=4), 0, None),
        (2, 10, scaled(4, available=3), 0, MoveCode.not_available),
        (2, 10, scaled(4, available=3), 1, None),
        (2, 10, scaled(4, observed=1), 0, MoveCode.not_observed),
        (10, 2, scaled(4, pods=4), 0, None),
        (10, 2, scaled(4, pods=5), 0, MoveCode.pods_left),
        (10, 2, scaled(4, pods=3, available=0), 0, None),
        (4, 4, scaled(4, available=3), 0, MoveCode.not_available),
    ],
)
def test_a_batch_is_done_when_its_pods_are_available_or_gone(
    original: int, total: int, seen: Workloads, tolerated: int, waits_for: str | None
) -> None:
    ask = batch(4, total, tolerated=tolerated)
    found = MOVES.check(seen, sized(original), ask)
    assert found == DONE if waits_for is None else code(found) == waits_for
    assert MOVES.roll(seen, sized(original), ask) == found


def test_pods_that_are_not_available_are_named() -> None:
    seen = scaled(2, available=1)
    seen = replace(seen, target=replace(seen.target, pods=(pod("web-0", "r"), pod("web-1", "r", ready=False))))
    wait = MOVES.check(seen, sized(0), batch(2, 2)).wait
    assert wait is not None
    assert [one.key for one in wait.blockers] == ["web-1"]
    assert wait.numbers == {"available": 1, "goal": 2, "tolerated": 0}


def test_nothing_is_scaled_before_the_workload_has_reported() -> None:
    assert code(MOVES.roll(scaled(2, observed=1), sized(2), batch(4, 10))) == MoveCode.not_observed


def test_pods_that_have_to_be_ready_for_a_time_are_named() -> None:
    seen = scaled(1, available=0, spec={"minReadySeconds": 10})
    seen = replace(seen, target=replace(seen.target, pods=(pod("web-0", "r"),)))
    wait = MOVES.check(seen, sized(0), batch(1, 1)).wait
    assert wait is not None
    assert [one.key for one in wait.blockers] == ["web-0"]


# Letting go and going back


def test_letting_go_drops_the_claim_and_nothing_else() -> None:
    claimed = scaled(3, annotations={CLAIM_KEY: CLAIM})
    for succeeded in (True, False):
        step = MOVES.finalize(claimed, sized(2), succeeded=succeeded)
        assert patch_of(step) == {"metadata": {"annotations": {CLAIM_KEY: None}}}
    other = scaled(3, annotations={CLAIM_KEY: "Rollout/other/uid-2"})
    for seen in (scaled(3), other, Workloads(Workload(ref(Deployments())))):
        assert MOVES.finalize(seen, sized(2), succeeded=True) == DONE
        assert MOVES.revert(seen, sized(2), batch(0, 3)) == DONE


@pytest.mark.parametrize(
    ("original", "seen", "answer"),
    [
        (2, {"replicas": 9}, 6),
        (2, {"replicas": 9, "available": 0}, 6),
        (2, {"replicas": 9, "pods": 10}, MoveCode.pods_left),
        (2, {"replicas": 9, "pods": 8}, 6),
        (2, {"replicas": 4}, 2),
        (2, {"replicas": 3, "observed": 1}, MoveCode.not_observed),
        (2, {"replicas": 2, "pods": 4}, MoveCode.pods_left),
        (2, {"replicas": 2, "observed": 1}, MoveCode.not_observed),
        (2, {"replicas": 2}, None),
        (2, {"replicas": 2, "pods": 1}, None),  # that it gets there is its own matter
        (9, {"replicas": 2}, 5),
        (9, {"replicas": 2, "pods": 1}, MoveCode.scaling),
        (9, {"replicas": 8, "available": 0}, 9),
        (9, {"replicas": 9, "pods": 8}, None),
    ],
)
def test_going_back_is_to_the_size_of_before_as_many_at_once_as_a_batch(
    original: int, seen: dict[str, Any], answer: int | str | None
) -> None:
    found = MOVES.revert(scaled(**seen, annotations={CLAIM_KEY: CLAIM}), sized(original), batch(5, 10, before=2))
    match answer:
        case None:
            assert found == DONE
        case str():
            assert code(found) == answer
        case _:
            assert patch_of(found) == {"spec": {"replicas": answer}}
            assert found.writes[0].takes_away == (seen["replicas"] > answer)


def test_going_back_does_not_leave_fewer_than_there_were_before_the_first_attempt() -> None:
    seen = scaled(4, annotations={CLAIM_KEY: CLAIM})
    found = MOVES.revert(seen, replace(sized(0), target_before=5), batch(4, 4))
    assert patch_of(found) == {"spec": {"replicas": 5}}


def test_going_back_comes_to_its_end_also_if_no_batch_moved_anything() -> None:
    found = MOVES.revert(scaled(4, annotations={CLAIM_KEY: CLAIM}), sized(2), batch(4, 4, before=4))
    assert patch_of(found) == {"spec": {"replicas": 3}}


def test_pods_that_are_ready_are_counted() -> None:
    assert MOVES.ready_pods(scaled(4, available=3)) == 4
    assert MOVES.ready_pods(Workloads(Workload(ref(Deployments())))) == 0


@given(
    original=st.integers(0, 8),
    total=st.integers(0, 8),
    share=st.lists(st.floats(0, 1), max_size=4),
    handler=st.sampled_from(HANDLERS),
)
def test_every_batch_comes_to_its_end_and_none_goes_past_its_goal(
    original: int, total: int, share: list[float], handler: WorkloadHandler
) -> None:
    moves, seen = ScaleMoves(handler), scaled(original, handler=handler)
    goals = sorted((original + round((total - original) * one) for one in share), reverse=total < original)
    for goal in (*goals, total):
        for _ in range(40):
            step = moves.roll(seen, sized(original), batch(goal, total))
            if step.is_done:
                break
            seen = _after(seen, step)
            assert seen.target.obj is not None
            here = seen.target.obj["spec"]["replicas"]
            assert min(original, goal) <= here <= max(original, goal)
        else:
            pytest.fail("it never ends")
        assert seen.target.obj is not None
        assert seen.target.obj["spec"]["replicas"] == goal


def _after(seen: Workloads, step: Step) -> Workloads:
    """The server takes the write; then the controller adds or removes one pod."""
    obj: Any = seen.target.obj
    for write in step.writes:
        obj = merge_patch(obj, write.patch)
    desired, there = obj["spec"]["replicas"], obj["status"]["replicas"]
    now = there + (desired > there) - (desired < there)
    status = {**obj["status"], "replicas": now, "availableReplicas": now, "updatedReplicas": now}
    return replace(seen, target=replace(seen.target, obj={**obj, "status": status}))

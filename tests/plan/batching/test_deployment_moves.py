"""Deployment moves: KubeVela's tables of two Deployments, and what holds beyond them: a floor, a ceiling, one pool."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from kedge.api.oam.keys import CLAIM as CLAIM_KEY
from kedge.api.oam.keys import LEFT
from kedge.api.oam.rollout_plan import RolloutBatch, RolloutPlan, RolloutStrategy
from kedge.api.oam.rollout_status import RolloutStatus, SourceRecord
from kedge.plan.batching.deployment_moves import DeploymentMoves, taken_from
from kedge.plan.batching.moves import DONE, Batch, Step, Verified, Workload, Workloads
from kedge.plan.batching.pod_choice import DELETION_COST, LOWEST
from kedge.plan.batching.rollout_waits import BatchCode, sentence
from kedge.plan.batching.waits import MoveCode
from kedge.plan.moving.budget import Budget
from kedge.plan.workloads import template_hash
from kedge.plan.workloads.deployments import Deployments
from plan.batching.in_place_worlds import CLAIM, pod, template
from plan.batching.making import (
    DECREASE,
    INCREASE,
    OTHER,
    R,
    batch_of,
    deployment,
    plan_of,
    ref,
    sizes_in,
    wait_in,
    workloads,
)

MOVES = DeploymentMoves(Deployments())
STATUS = RolloutStatus()
PLAN = RolloutPlan()
V1, V2 = (template_hash(template(f"app:{name}")) for name in ("v1", "v2"))
MANIFEST: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "v2", "namespace": "shop", "annotations": {"a": "b"}},
    "spec": {"replicas": 7, "template": template("app:v2")},
}
Counts = tuple[int, int, int]
"""How many pods a Deployment asks for, has, and has available."""


def two(source: Counts, target: Counts) -> Workloads:
    old, new = (
        deployment(name, asked, pods=pods, available=available)
        for name, (asked, pods, available) in (("v1", source), ("v2", target))
    )
    return workloads(new, old)


def well(number: int) -> Counts:
    return number, number, number


def answer(step: Step) -> dict[str, int] | str:
    """What is written, or what is waited for."""
    return wait_in(step).code if step.wait is not None else sizes_in(step)


# KubeVela's tables (batches of 20 %, 2, 2 and the rest)


@pytest.mark.parametrize(
    ("strategy", "index", "source", "target", "expected"),
    [
        (INCREASE, 0, well(10), well(0), {"v2": 2}),
        (INCREASE, 0, well(10), (2, 2, 1), MoveCode.not_available),
        (INCREASE, 0, well(10), well(2), {"v1": 8}),
        (INCREASE, 0, (8, 9, 9), well(2), {}),
        (INCREASE, 0, well(8), well(2), {}),
        (INCREASE, 3, well(4), well(6), {"v2": 10}),
        (INCREASE, 3, well(4), (10, 10, 9), MoveCode.not_available),
        (INCREASE, 3, well(4), well(10), {"v1": 0}),
        (DECREASE, 0, well(10), well(0), {"v1": 8}),
        (DECREASE, 0, (8, 9, 9), well(0), MoveCode.pods_left),
        (DECREASE, 0, well(8), well(0), {"v2": 2}),
        (DECREASE, 0, well(8), (2, 2, 0), {}),
        (DECREASE, 3, well(4), well(6), {"v1": 0}),
        (DECREASE, 3, well(0), well(6), {"v2": 10}),
    ],
)
def test_a_batch_of_two_deployments_of_ten(
    strategy: RolloutStrategy, index: int, source: Counts, target: Counts, expected: dict[str, int] | str
) -> None:
    plan = plan_of(*R, strategy=strategy)
    assert answer(MOVES.roll(two(source, target), STATUS, batch_of(plan, 10, index))) == expected


@pytest.mark.parametrize(
    ("strategy", "source", "target", "expected"),
    [
        (INCREASE, 6, 14, [{}, {}, {}, {"v2": 20}]),
        (DECREASE, 14, 6, [{}, {}, {"v1": 12}]),
    ],
)
def test_batches_that_are_behind_already_are_done_at_once(
    strategy: RolloutStrategy, source: int, target: int, expected: list[dict[str, int]]
) -> None:
    plan, seen = plan_of(*R, strategy=strategy), two(well(source), well(target))
    found = [answer(MOVES.roll(seen, STATUS, batch_of(plan, 20, index))) for index in range(len(expected))]
    assert found == expected


@pytest.mark.parametrize(
    ("source", "target", "total", "expected"),
    [(10, 0, 12, {"v2": 2}), (7, 5, 10, {"v2": 3}), (10, 0, 10, {}), (4, 6, 10, {}), (12, 3, 10, {"v2": 0})],
)
def test_the_target_begins_with_what_the_source_lacks(
    source: int, target: int, total: int, expected: dict[str, int]
) -> None:
    step = MOVES.initialize(two(well(source), well(target)), RolloutStatus(rollout_target_size=total), CLAIM)
    assert answer(step) == expected
    assert [write.takes_away for write in step.writes] == [size < target for size in expected.values()]


@pytest.mark.parametrize(
    ("strategy", "index", "source", "target", "tolerated", "expected"),
    [
        (INCREASE, 0, (16, 17, 17), well(4), None, MoveCode.pods_left),
        (INCREASE, 0, well(16), well(4), None, {}),
        (INCREASE, 0, (16, 15, 15), well(4), None, {}),
        (INCREASE, 3, (0, 1, 1), well(20), None, MoveCode.pods_left),
        (DECREASE, 1, well(14), well(7), None, {}),
        (DECREASE, 1, well(14), well(6), None, {}),
        (DECREASE, 1, well(14), (6, 6, 5), None, MoveCode.not_available),
        (DECREASE, 1, well(14), (6, 6, 5), "10%", {}),
        # Beyond KubeVela: a target that somebody has lowered is not what the batch asked for.
        (INCREASE, 0, well(16), (3, 4, 4), None, MoveCode.not_available),
        # And a source that somebody has raised gets its pods.
        (INCREASE, 0, (17, 16, 16), well(4), None, MoveCode.pods_left),
    ],
)
def test_whether_a_batch_of_twenty_is_done(
    strategy: RolloutStrategy, index: int, source: Counts, target: Counts, tolerated: str | None, expected: Any
) -> None:
    plan = plan_of(*R, strategy=strategy, max_unavailable=tolerated)
    assert answer(MOVES.check(two(source, target), STATUS, batch_of(plan, 20, index))) == expected


# The size


@pytest.mark.parametrize(
    ("plan", "status", "expected"),
    [
        (PLAN, STATUS, Verified(5, 5, V2)),
        (RolloutPlan(target_size=8), STATUS, Verified(5, 8, V2)),
        (RolloutPlan(target_size=5), STATUS, Verified(5, 5, V2)),
        (RolloutPlan(target_size=4), STATUS, Step(failure="target size `4` less than source size `5`")),
        (RolloutPlan(target_size=0), STATUS, Step(failure="target size `0` less than source size `5`")),
        # Midway the old ones are only a part of the whole, or have too many pods for a moment.
        (PLAN, RolloutStatus(desired_size=9), Verified(5, 9, V2)),
        (RolloutPlan(target_size=8), RolloutStatus(desired_size=9), Verified(5, 8, V2)),
        (RolloutPlan(target_size=4), RolloutStatus(desired_size=9), Verified(5, 4, V2)),
        (PLAN, RolloutStatus(last_applied_pod_template_identifier=V1), Verified(5, 5, V2)),
        (
            PLAN,
            RolloutStatus(last_applied_pod_template_identifier=V2),
            Step(failure=f"there is no difference between the source and target, hash = {V2}"),
        ),
    ],
)
def test_the_size_is_that_of_all_old_ones_unless_it_is_given(
    plan: RolloutPlan, status: RolloutStatus, expected: object
) -> None:
    seen = workloads(deployment("v2", 0), deployment("v0", 2), deployment("v1", 3))
    assert MOVES.verify(seen, plan, status) == expected


@pytest.mark.parametrize(("pool", "size"), [(0, 6), (2, 2)])
def test_without_any_pods_to_move_the_size_is_that_of_the_target(pool: int, size: int) -> None:
    seen = workloads(deployment("v2", 6), deployment("v1", pool))
    assert MOVES.verify(seen, PLAN, STATUS) == Verified(pool, size, V2)
    assert MOVES.verify(seen, RolloutPlan(target_size=9), STATUS) == Verified(pool, 9, V2)


def test_a_target_that_is_still_to_be_created_is_known_by_its_manifest() -> None:
    seen = workloads(Workload(ref("v2"), manifest=MANIFEST), deployment("v1", 3))
    assert MOVES.verify(seen, PLAN, STATUS) == Verified(3, 3, V2)


OWNED = {"apiVersion": "apps/v1", "kind": "Thing", "name": "t", "uid": "x", "controller": True}


def with_meta(one: Workload, **meta: Any) -> Workload:
    obj = dict(one.obj or {})
    return replace(one, obj={**obj, "metadata": {**obj["metadata"], **meta}})


@pytest.mark.parametrize(
    ("seen", "unit", "code"),
    [
        (workloads(Workload(ref("v2")), deployment("v1", 3)), "v2", MoveCode.not_found),
        (workloads(deployment("v2", 0), Workload(ref("v1"))), "v1", MoveCode.not_found),
        (workloads(deployment("v2", 0), Workload(ref("v1"), manifest=MANIFEST)), "v1", MoveCode.not_found),
        (workloads(deployment("v2", 0), Workload(ref("v1"), revision="r1")), "v1", MoveCode.not_found),
        (workloads(deployment("v2", 0), deployment("v0", 3), Workload(ref("v1"))), "v1", MoveCode.not_found),
        (workloads(deployment("v2", 0), deployment("v1", 3, claim=OTHER)), "v1", MoveCode.claimed),
        (workloads(deployment("v2", 0), deployment("v1", 3, pods=2)), "v1", MoveCode.scaling),
        (workloads(deployment("v2", 0), deployment("v1", 3, pods=4)), "v1", MoveCode.scaling),
        (workloads(deployment("v2", 0), deployment("v1", 3, observed=1)), "v1", MoveCode.scaling),
        (workloads(deployment("v2", 1, pods=0), deployment("v1", 3)), "v2", MoveCode.scaling),
    ],
)
def test_what_passes_by_itself_is_waited_for(seen: Workloads, unit: str, code: str) -> None:
    wait = wait_in(MOVES.verify(seen, PLAN, STATUS))
    assert (wait.unit, wait.code) == (f"Deployment shop/{unit}", code)


def test_a_deployment_that_scales_says_how_far_it_is() -> None:
    wait = wait_in(MOVES.verify(workloads(deployment("v2", 0), deployment("v1", 3, pods=2)), PLAN, STATUS))
    assert wait.numbers == {"pods": 2, "desired": 3}


def test_a_paused_deployment_stands_still_and_may_be_moved() -> None:
    seen = workloads(deployment("v2", 0), deployment("v1", 3, pods=2, paused=True))
    assert MOVES.verify(seen, PLAN, STATUS) == Verified(3, 3, V2)


def test_a_deployment_of_another_controller_is_refused() -> None:
    owned = with_meta(deployment("v1", 3), ownerReferences=[OWNED])
    found = MOVES.verify(workloads(deployment("v2", 0), owned), PLAN, STATUS)
    assert found == Step(failure="Deployment shop/v1 has a controller owner: Thing t")


# Taking over and letting go


def test_all_are_claimed_before_anything_moves() -> None:
    seen = workloads(deployment("v2", 0, claim="", paused=True), deployment("v1", 3, claim=""), Workload(ref("v0")))
    step = MOVES.initialize(seen, RolloutStatus(rollout_target_size=4), CLAIM)
    claimed = {"metadata": {"annotations": {CLAIM_KEY: CLAIM}}}
    assert [(write.ref.name, write.patch) for write in step.writes] == [
        ("v1", claimed),
        ("v2", claimed | {"spec": {"paused": None}}),
    ]
    assert all((write.uid, write.resource_version) == (f"uid-{write.ref.name}", "5") for write in step.writes)
    assert not any(write.takes_away for write in step.writes)


@pytest.mark.parametrize(
    ("asked", "pods", "spec"),
    [
        (10, 0, {"paused": None, "replicas": 0}),
        (10, 4, {"paused": None, "replicas": 4}),
        (4, 4, {"paused": None}),
        (4, 5, {"paused": None}),
        (0, 0, {"paused": None}),
    ],
)
def test_a_paused_target_goes_on_with_the_pods_it_has(asked: int, pods: int, spec: dict[str, Any]) -> None:
    seen = workloads(deployment("v2", asked, pods=pods, claim="", paused=True), deployment("v1", 10))
    (write,) = MOVES.initialize(seen, RolloutStatus(rollout_target_size=10), CLAIM).writes
    assert (write.ref.name, write.patch) == ("v2", {"metadata": {"annotations": {CLAIM_KEY: CLAIM}}, "spec": spec})


def test_how_many_pods_a_paused_target_has_is_waited_for() -> None:
    status = RolloutStatus(rollout_target_size=10)
    unseen = workloads(deployment("v2", 1, pods=0, observed=1, paused=True), deployment("v1", 10))
    assert wait_in(MOVES.initialize(unseen, status, CLAIM)).code == MoveCode.not_observed
    empty = workloads(deployment("v2", 0, observed=1, paused=True), deployment("v1", 10))
    assert MOVES.initialize(empty, status, CLAIM).writes
    running = workloads(deployment("v2", 1, observed=1, claim=""), deployment("v1", 10))
    assert MOVES.initialize(running, status, CLAIM).writes


def test_a_target_that_is_not_there_is_created_without_pods() -> None:
    seen = workloads(Workload(ref("v2"), manifest=MANIFEST), deployment("v1", 3, claim=""))
    (write,) = MOVES.initialize(seen, STATUS, CLAIM).writes
    assert write.ref == ref("v2")
    assert write.create == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "v2", "namespace": "shop", "annotations": {"a": "b", CLAIM_KEY: CLAIM}},
        "spec": {"replicas": 0, "template": template("app:v2")},
    }
    plain = {**MANIFEST, "metadata": {"name": "v2"}}
    (write,) = MOVES.initialize(workloads(Workload(ref("v2"), manifest=plain)), STATUS, CLAIM).writes
    assert (write.create or {})["metadata"] == {"name": "v2", "annotations": {CLAIM_KEY: CLAIM}}
    gone = workloads(Workload(ref("v2")), deployment("v1", 3))
    assert wait_in(MOVES.initialize(gone, STATUS, CLAIM)).code == MoveCode.not_found


def test_what_another_rollout_moves_is_not_taken_from_it() -> None:
    for seen in (
        workloads(deployment("v2", 0, claim=""), deployment("v1", 3, claim=OTHER)),
        workloads(deployment("v2", 0, claim=OTHER), deployment("v1", 3, claim="")),
    ):
        assert wait_in(MOVES.initialize(seen, STATUS, CLAIM)).code == MoveCode.claimed


def test_too_many_pods_of_the_target_go_only_while_enough_stay_available() -> None:
    status = RolloutStatus(rollout_target_size=10)
    assert answer(MOVES.initialize(two((7, 7, 6), well(5)), status, CLAIM)) == {"v2": 4}
    assert MOVES.initialize(two((7, 7, 5), well(5)), status, CLAIM) == DONE


def test_letting_go_drops_the_claims_and_only_deletes_empty_sources_where_that_is_asked_for() -> None:
    seen = workloads(deployment("v2", 3), deployment("v1", 0), deployment("v0", 1), Workload(ref("x")))
    dropped = {"metadata": {"annotations": {CLAIM_KEY: None}}}
    left = {"metadata": {"annotations": {CLAIM_KEY: None, LEFT: seen.claim}}}
    for found, patch in (
        (MOVES.finalize(seen, STATUS, succeeded=True), dropped),
        (MOVES.finalize(replace(seen, removes_sources=True), STATUS, succeeded=False), left),
    ):
        assert [(one.ref.name, one.patch, one.delete) for one in found.writes] == [
            ("v2", patch, False),
            ("v1", patch, False),
            ("v0", patch, False),
        ]
    found = MOVES.finalize(replace(seen, removes_sources=True), STATUS, succeeded=True)
    assert [(one.ref.name, one.patch, one.delete, one.uid) for one in found.writes] == [
        ("v2", dropped, False, "uid-v2"),
        ("v0", dropped, False, "uid-v0"),
        ("v1", None, True, "uid-v1"),
    ]


def test_what_others_claim_is_theirs() -> None:
    """A rollout that waits for another one and is deleted must not free what the other one moves."""
    seen = workloads(deployment("v2", 3, claim=OTHER), deployment("v1", 0, claim=OTHER), removes_sources=True)
    assert MOVES.finalize(seen, STATUS, succeeded=False) == DONE
    assert MOVES.finalize(seen, STATUS, succeeded=True) == DONE
    assert MOVES.revert(seen, before(v1=10), batch_of(plan_of(*R), 10, 3)) == DONE


def test_what_nobody_claims_is_left_alone() -> None:
    seen = workloads(deployment("v2", 3, claim=""), deployment("v1", 0, claim=""), removes_sources=True)
    for one in (seen, replace(seen, claim="")):
        assert MOVES.finalize(one, STATUS, succeeded=True) == DONE
        assert MOVES.revert(one, before(v1=10), batch_of(plan_of(*R), 10, 3)) == DONE


# Floor and ceiling


def batch(goal: int, total: int, *, surge: int = 0, down: int = 0, tolerated: int = 0, **more: Any) -> Batch:
    return Batch(
        index=0,
        goal=goal,
        before=0,
        total=total,
        spec=RolloutBatch(),
        strategy=more.pop("strategy", INCREASE),
        tolerated=tolerated,
        budget=Budget(total, down, surge),
        **more,
    )


def test_one_of_several_old_revisions_that_is_gone_is_not_waited_for() -> None:
    seen = workloads(deployment("v3", 0), Workload(ref("v1"), revision="r1"), deployment("v2", 3))
    found = MOVES.verify(seen, RolloutPlan(), STATUS)
    assert isinstance(found, Verified)
    assert (found.original, found.total) == (3, 3)


@pytest.mark.parametrize(
    ("source", "target", "surge", "expected"),
    [
        (well(10), well(0), 5, {"v2": 4}),
        (well(10), well(0), 3, {"v2": 3}),
        (well(10), well(2), 3, {"v2": 3}),
        ((8, 11, 11), well(0), 2, {"v2": 1}),  # pods that go are still there
        ((8, 7, 7), well(0), 0, {"v2": 2}),  # pods that come are as good as there
        (well(10), (2, 5, 2), 6, {"v2": 3}),
        ((6, 10, 10), well(3), 3, BatchCode.ceiling),
        (well(10), well(4), 3, {"v1": 6}),
    ],
)
def test_the_target_is_raised_as_far_as_the_ceiling(
    source: Counts, target: Counts, surge: int, expected: dict[str, int] | str
) -> None:
    found = MOVES.roll(two(source, target), STATUS, batch(4, 10, surge=surge, down=10))
    assert answer(found) == expected


def test_what_holds_at_the_ceiling_is_said() -> None:
    wait = wait_in(MOVES.roll(two((6, 10, 10), well(3)), STATUS, batch(4, 10, surge=3)))
    assert sentence(wait) == "there may be at most 13 pods, and there are 13"
    assert wait.unit == "Deployment shop/v2"


@pytest.mark.parametrize(
    ("oldest", "bad", "expected"),
    [
        (well(10), (3, 3, 0), {"v1": 0}),  # a bad release that is replaced midway costs nothing
        ((10, 10, 9), (3, 3, 0), {"v0": 9, "v1": 0}),
        (well(10), well(3), {"v1": 0}),  # a good one as far as the floor allows
        (well(10), (3, 3, 1), {"v1": 0}),
        ((10, 13, 10), (0, 0, 0), BatchCode.ceiling),
    ],
)
def test_without_room_for_the_target_old_pods_that_nobody_needs_make_some(
    oldest: Counts, bad: Counts, expected: dict[str, int] | str
) -> None:
    v0, v1 = (deployment(name, one[0], pods=one[1], available=one[2]) for name, one in (("v0", oldest), ("v1", bad)))
    found = MOVES.roll(workloads(deployment("v2", 0), v0, v1), STATUS, batch(4, 10, surge=3))
    assert answer(found) == expected
    assert found.makes_room == bool(found.writes)


def test_a_status_of_before_a_change_counts_what_is_asked_for_and_what_was_there() -> None:
    late = deployment("v1", 8, pods=11, observed=1)
    found = MOVES.roll(workloads(deployment("v2", 0), late), STATUS, batch(4, 10, surge=2))
    assert answer(found) == {"v2": 1}
    early = deployment("v1", 8, pods=3, observed=1)
    found = MOVES.roll(workloads(deployment("v2", 0), early), STATUS, batch(4, 10, surge=0))
    assert answer(found) == {"v2": 2}
    down = replace(batch(4, 10), strategy=DECREASE)
    wait = wait_in(MOVES.roll(workloads(deployment("v2", 0), deployment("v1", 6, pods=7, observed=1)), STATUS, down))
    assert (wait.unit, wait.code, wait.numbers) == (
        "the pool of old revisions",
        MoveCode.pods_left,
        {"pods": 7, "goal": 6},
    )
    assert answer(MOVES.roll(workloads(deployment("v2", 0), Workload(ref("v1"))), STATUS, down)) == {"v2": 4}


@pytest.mark.parametrize(
    ("source", "target", "down", "expected"),
    [
        (well(10), well(4), 0, {"v1": 6}),
        ((10, 10, 8), well(4), 0, {"v1": 6}),  # two are broken, which is free; two are spare
        ((10, 10, 7), well(4), 0, {"v1": 6}),
        ((10, 10, 5), well(4), 0, {"v1": 6}),
        (well(10), (4, 4, 0), 0, BatchCode.floor),
        (well(10), (4, 4, 0), 1, {"v1": 9}),
        ((10, 10, 9), (4, 4, 0), 0, {"v1": 9}),
        ((10, 12, 12), (4, 4, 0), 0, BatchCode.floor),  # the two that go do not count
        ((7, 7, 7), (4, 4, 2), 0, BatchCode.floor),
        ((7, 7, 7), (4, 4, 4), 0, {"v1": 6}),
    ],
)
def test_old_ones_are_lowered_only_while_enough_stay_available(
    source: Counts, target: Counts, down: int, expected: dict[str, int] | str
) -> None:
    found = MOVES.roll(two(source, target), STATUS, batch(4, 10, surge=4, down=down, tolerated=4))
    assert answer(found) == expected
    assert all(write.takes_away for write in found.writes)


def test_what_holds_at_the_floor_is_said() -> None:
    wait = wait_in(MOVES.roll(two(well(10), (4, 4, 0)), STATUS, batch(4, 11, surge=4, down=1, tolerated=4)))
    assert sentence(wait) == "at least 10 of 11 pods have to stay available, and 10 are"
    assert wait.unit == "Deployment shop/v2"


def test_a_status_of_before_a_change_proves_nothing() -> None:
    late = deployment("v2", 4, observed=1)
    wait = wait_in(MOVES.roll(workloads(late, deployment("v1", 10)), STATUS, batch(4, 10, surge=4)))
    assert (wait.code, wait.numbers) == (MoveCode.not_available, {"available": 0, "goal": 4, "tolerated": 0})
    still = workloads(deployment("v2", 4), deployment("v1", 10, available=3, observed=1))
    found = MOVES.roll(still, STATUS, batch(4, 10, surge=4))
    assert wait_in(found).code == BatchCode.floor
    # Not even a goal that nothing has to be available for is reached on it.
    wait = wait_in(MOVES.roll(workloads(late, deployment("v1", 6)), STATUS, batch(4, 10, surge=4, tolerated=4)))
    assert wait.code == MoveCode.not_available


@pytest.mark.parametrize("ask", [MOVES.roll, MOVES.check])
def test_a_target_that_is_gone_is_waited_for(ask: Any) -> None:
    wait = wait_in(ask(workloads(Workload(ref("v2")), deployment("v1", 3)), STATUS, batch(1, 3)))
    assert (wait.unit, wait.code) == ("Deployment shop/v2", MoveCode.not_found)


def test_old_revisions_are_one_pool_and_the_newest_gives_first() -> None:
    seen = workloads(deployment("v3", 4), deployment("v1", 6), deployment("v2", 3))
    assert answer(MOVES.roll(seen, STATUS, batch(4, 10, surge=3))) == {"v2": 0}
    seen = workloads(deployment("v3", 4), deployment("v1", 6), deployment("v2", 2))
    assert answer(MOVES.roll(seen, STATUS, batch(5, 10, surge=3, tolerated=1))) == {"v3": 5}
    seen = workloads(deployment("v3", 5, available=4), deployment("v1", 6), deployment("v2", 2))
    assert answer(MOVES.roll(seen, STATUS, batch(5, 10, surge=3, tolerated=1))) == {"v2": 0}
    assert answer(MOVES.roll(seen, STATUS, batch(5, 10, surge=3, tolerated=1, down=1))) == {"v1": 5, "v2": 0}


def test_the_pods_that_a_batch_names_are_marked_before_they_go() -> None:
    assert (DELETION_COST, LOWEST) == ("controller.kubernetes.io/pod-deletion-cost", "-2147483648")
    source = replace(deployment("v1", 4), pods=tuple(pod(f"v1-{at}", "r") for at in range(3)))
    leaving = pod("v1-9", "r", terminating=True)
    seen = workloads(deployment("v2", 2), replace(source, pods=(*source.pods, leaving)))
    ask = batch(2, 4, surge=2, pods=("v1-2", "v1-0", "v1-9"))
    (write,) = MOVES.roll(seen, STATUS, ask).writes
    change = {"metadata": {"annotations": {DELETION_COST: LOWEST}}}
    assert [(meta.name, patch) for meta, patch in write.patch_pods] == [("v1-0", change), ("v1-2", change)]
    assert (write.ref, write.patch) == (ref("v1"), None)
    marked = tuple(
        replace(one, metadata=replace(one.metadata, annotations={DELETION_COST: LOWEST})) for one in source.pods
    )
    seen = workloads(deployment("v2", 2), replace(source, pods=marked))
    assert answer(MOVES.roll(seen, STATUS, ask)) == {"v1": 2}


@pytest.mark.parametrize(
    ("surplus", "unavailable", "most", "spare", "expected"),
    [
        ({"a": 3, "b": 2}, {"a": 0, "b": 0}, 5, 0, (0, 0)),
        ({"a": 3, "b": 2}, {"a": 0, "b": 0}, 5, 9, (3, 2)),
        ({"a": 3, "b": 2}, {"a": 0, "b": 0}, 3, 9, (1, 2)),
        ({"a": 3, "b": 2}, {"a": 0, "b": 0}, 5, 3, (1, 2)),
        ({"a": 3, "b": 2}, {"a": 2, "b": 0}, 5, 0, (2, 0)),
        ({"a": 3, "b": 2}, {"a": 2, "b": 0}, 1, 5, (1, 0)),
        ({"a": 3, "b": 2}, {"a": 5, "b": 5}, 9, 0, (3, 2)),
        ({"a": 3, "b": 2}, {"a": 1, "b": 1}, 4, 1, (1, 2)),
        ({"a": 3, "b": 2}, {"a": 1, "b": 1}, 4, 9, (2, 2)),
        ({"a": 3, "b": 2}, {"a": 1, "b": 1}, 1, 9, (0, 1)),
    ],
)
def test_what_is_not_available_goes_first_and_then_the_newest(
    surplus: dict[str, int], unavailable: dict[str, int], most: int, spare: int, expected: tuple[int, int]
) -> None:
    assert tuple(taken_from(surplus, unavailable, most, spare).values()) == expected


# Back


def before(target: int = 0, **sources: int) -> RolloutStatus:
    records = tuple(
        SourceRecord(api_version="apps/v1", kind="Deployment", name=name, replicas=number)
        for name, number in sources.items()
    )
    return RolloutStatus(sources=records, target_before=target)


@pytest.mark.parametrize(
    ("source", "target", "surge", "down", "expected"),
    [
        (well(6), well(4), 2, 0, {"v1": 8}),
        (well(6), well(4), 9, 0, {"v1": 10}),
        (well(8), well(4), 2, 0, {"v2": 2}),
        ((8, 8, 6), well(4), 2, 0, BatchCode.floor),
        ((8, 8, 6), well(4), 2, 1, {"v2": 3}),
        ((8, 8, 6), (4, 4, 2), 2, 0, {"v2": 2}),
        (well(10), well(2), 2, 0, {"v2": 0}),
        (well(10), (0, 2, 2), 2, 0, MoveCode.pods_left),
        (well(10), well(0), 2, 0, {}),
        (well(8), (0, 4, 4), 2, 0, BatchCode.ceiling),
        ((10, 11, 11), well(0), 2, 0, MoveCode.pods_left),
        ((10, 9, 9), well(0), 2, 0, {}),  # that it gets there is its own matter
    ],
)
def test_the_way_back_keeps_floor_and_ceiling(
    source: Counts, target: Counts, surge: int, down: int, expected: dict[str, int] | str
) -> None:
    found = MOVES.revert(two(source, target), before(v1=10), batch(4, 10, surge=surge, down=down))
    assert answer(found) == expected
    assert all(write.takes_away == (write.ref.name == "v2") for write in found.writes)


@pytest.mark.parametrize(
    ("source", "target", "size_before", "total", "expected"),
    [
        (well(6), well(4), 6, 10, {"v2": 0}),  # it was to grow: as many as before are enough
        (well(4), well(6), 6, 10, {"v1": 6}),
        ((6, 6, 5), well(4), 6, 10, {"v2": 1}),
        (well(4), well(2), 10, 6, {"v1": 10}),  # it was to shrink: as many as before are not too many
        (well(10), well(2), 10, 6, {"v2": 0}),
    ],
)
def test_the_way_back_to_another_size_ends(
    source: Counts, target: Counts, size_before: int, total: int, expected: dict[str, int]
) -> None:
    found = MOVES.revert(two(source, target), before(v1=size_before), batch(4, total, surge=2))
    assert answer(found) == expected


def test_the_way_back_says_what_it_waits_for() -> None:
    wait = wait_in(MOVES.revert(two(well(8), (0, 4, 4)), before(v1=10), batch(4, 10, surge=2)))
    assert sentence(wait) == "there may be at most 12 pods, and there are 12"
    wait = wait_in(MOVES.revert(two(well(10), (0, 2, 2)), before(v1=10), batch(4, 10, surge=2)))
    assert sentence(wait) == "Deployment shop/v2 has 2 pods and is to have 0"
    late = workloads(deployment("v2", 0), deployment("v1", 10, observed=1))
    assert wait_in(MOVES.revert(late, before(v1=10), batch(4, 10, surge=2))).code == MoveCode.not_observed


def test_the_way_back_leads_to_what_each_one_was() -> None:
    status = before(target=2, v0=1, v1=7)
    seen = workloads(deployment("v2", 8), deployment("v0", 0), deployment("v1", 2), Workload(ref("x")))
    found = []
    for _ in range(20):
        step = MOVES.revert(seen, status, batch(0, 10, surge=3))
        if step.is_done:
            break
        found.append(answer(step))
        seen = _scaled(seen, sizes_in(step))
    assert found[0] == {"v0": 1}
    assert found[1] == {"v1": 4}
    assert {one.ref.name: (one.obj or {})["spec"]["replicas"] for one in (seen.target, *seen.sources) if one.obj} == {
        "v0": 1,
        "v1": 7,
        "v2": 2,
    }


def test_what_is_not_recorded_keeps_its_pods() -> None:
    seen = workloads(deployment("v2", 0), deployment("v1", 10), deployment("v0", 2))
    assert MOVES.revert(seen, before(v1=10), batch(0, 10)) == DONE
    assert MOVES.revert(workloads(deployment("v2", 0), deployment("v0", 2)), before(), batch(0, 10)) == DONE
    gone = workloads(deployment("v2", 0), deployment("v0", 0, pods=1))
    assert wait_in(MOVES.revert(gone, before(v0=0), batch(0, 10))).numbers == {"pods": 1, "goal": 0}


def _scaled(seen: Workloads, sizes: dict[str, int]) -> Workloads:
    def one(workload: Workload) -> Workload:
        return deployment(workload.ref.name, sizes[workload.ref.name]) if workload.ref.name in sizes else workload

    return replace(seen, target=one(seen.target), sources=tuple(map(one, seen.sources)))


def test_pods_that_are_ready_are_counted() -> None:
    assert MOVES.ready_pods(two(well(1), (4, 3, 2))) == 3
    assert MOVES.ready_pods(workloads(Workload(ref("v2")))) == 0

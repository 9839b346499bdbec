"""What a rollout plan may say, and how it may be changed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kedge.api.oam.rollout_plan import RolloutBatch, RolloutPlan
from kedge.api.oam.rollout_rules import ENDED, MAX_BATCHES
from kedge.api.oam.rollout_status import PlannedBatch, RolloutStatus
from kedge.plan.batching.spec_rules import (
    PLAN,
    Problem,
    create_problems,
    effective_partition,
    fixed_part,
    remembered_problems,
    update_problems,
)
from support.bad_plans import BAD_PLANS, GOOD_PLANS, HOOK, METRIC, TRAFFIC, BadPlan

READABLE = {name: row for name, row in BAD_PLANS.items() if row.readable}


def plan(**said: Any) -> RolloutPlan:
    return msgspec.convert(said, RolloutPlan)


@pytest.mark.parametrize("row", READABLE.values(), ids=list(READABLE))
def test_a_bad_plan_is_refused_with_its_path_and_reason(row: BadPlan) -> None:
    (found,) = create_problems(plan(**row.plan))
    assert found.path == row.path
    assert row.message in found.message


def test_there_are_at_least_50_bad_plans() -> None:
    assert len(BAD_PLANS) >= 50


@pytest.mark.parametrize("said", GOOD_PLANS.values(), ids=list(GOOD_PLANS))
def test_a_good_plan_is_not(said: dict[str, Any]) -> None:
    assert create_problems(plan(**said), "shop") == []


def test_all_problems_are_found_at_once() -> None:
    found = create_problems(plan(targetSize=-1, numBatches=0, rolloutWebhooks=[HOOK | {"url": "x", "name": ""}]))
    assert [problem.path.removeprefix(f"{PLAN}.") for problem in found] == [
        "targetSize",
        "numBatches",
        "rolloutWebhooks[0].name",
        "rolloutWebhooks[0].url",
    ]


@pytest.mark.parametrize(
    ("said", "path"),
    [
        (
            {"canaryMetric": [METRIC | {"templateRef": {"name": "a", "namespace": "other"}}]},
            "canaryMetric[0].templateRef",
        ),
        ({"traffic": TRAFFIC | {"routeRef": {"name": "web", "namespace": "other"}}}, "traffic.routeRef"),
    ],
)
def test_a_rollout_refers_to_nothing_of_another_namespace(said: dict[str, Any], path: str) -> None:
    expected = Problem(f"{PLAN}.{path}.namespace", "can only be the namespace of the rollout, shop")
    assert create_problems(plan(**said), "shop") == [expected]
    assert create_problems(plan(**said), "other") == []
    assert create_problems(plan(**said)) == []


def test_as_many_batches_as_allowed_are_allowed() -> None:
    assert create_problems(RolloutPlan(rollout_batches=(RolloutBatch(replicas=1),) * MAX_BATCHES)) == []
    assert create_problems(RolloutPlan(num_batches=MAX_BATCHES)) == []


def test_a_problem_reads_as_path_and_reason() -> None:
    assert str(Problem("spec.a", "is wrong")) == "spec.a: is wrong"


# Updates

THREE = [{"replicas": 1}, {"replicas": 2}, {"replicas": 3}]
LOWERED = f"{PLAN}.batchPartition"
REWRITTEN = f"{PLAN}.rolloutBatches"


def changed(
    old: dict[str, Any], new: dict[str, Any], *, target: bool = False, ended: bool = False, current: int = 0
) -> list[str]:
    found = update_problems(plan(**old), plan(**new), target_changed=target, ended=ended, current_batch=current)
    return [problem.path for problem in found]


@pytest.mark.parametrize(
    ("old", "new", "problems"),
    [
        ({"batchPartition": 1}, {"batchPartition": 2}, []),
        ({"batchPartition": 1}, {"batchPartition": 1}, []),
        ({"batchPartition": 1}, {"batchPartition": 0}, [LOWERED]),
        ({"batchPartition": 1}, {}, []),
        ({}, {"batchPartition": 1}, [LOWERED]),
        ({}, {"batchPartition": 99}, [LOWERED]),
        ({"lastBatchToRollout": 1}, {"batchPartition": 1}, []),
        ({"lastBatchToRollout": 1}, {"batchPartition": 2}, []),
        ({"lastBatchToRollout": 1}, {"lastBatchToRollout": 0}, [LOWERED]),
        ({"batchPartition": 1}, {"lastBatchToRollout": 0}, [LOWERED]),
    ],
)
def test_the_partition_only_grows(old: dict[str, Any], new: dict[str, Any], problems: list[str]) -> None:
    assert changed(old, new) == problems
    assert changed(old, new, target=True) == []


@pytest.mark.parametrize(("old", "was"), [({}, "all batches"), ({"batchPartition": 1}, "1")])
def test_who_lowers_the_partition_is_told_what_it_was(old: dict[str, Any], was: str) -> None:
    found = update_problems(plan(**old), plan(batchPartition=0), target_changed=False, ended=False, current_batch=0)
    assert [problem.message for problem in found] == [
        f"the BatchPartition field can only increase unless the target ref has changed: it was {was}"
    ]


@pytest.mark.parametrize(
    ("old", "new", "problems"),
    [
        (THREE, THREE, []),
        (THREE, [{"replicas": 1}, {"replicas": 1}, {"replicas": 4}], []),
        (THREE, [{"replicas": 1}, {"replicas": 5}], []),
        (THREE, [{"replicas": 1}, {"replicas": 2}, {"replicas": 2}, {"replicas": 1}], []),
        (THREE, [{"replicas": 2}, {"replicas": 1}, {"replicas": 3}], [REWRITTEN]),
        (THREE, [{"replicas": 1, "maxUnavailable": 1}, *THREE[1:]], [REWRITTEN]),
        (THREE, [{"replicas": 1}], [REWRITTEN]),  # the first one would take all that is left
        ([{"replicas": 1}], [{"replicas": 1}, {"replicas": 1}], [REWRITTEN]),  # it took all that was left
        (THREE, None, [REWRITTEN]),
        (None, THREE, [REWRITTEN]),
    ],
)
def test_only_batches_after_the_partition_change(old: Any, new: Any, problems: list[str]) -> None:
    before, after = ({"batchPartition": 0, "rolloutBatches": batches} for batches in (old, new))
    assert changed(before, after) == problems
    assert changed(before, after, target=True) == []
    assert changed({"rolloutBatches": old}, {"rolloutBatches": new}) == ([] if new == old else [REWRITTEN])


def test_batches_that_began_in_spite_of_the_partition_stay() -> None:
    old, new = ({"batchPartition": 0, "rolloutBatches": [*THREE[:1], {"replicas": n}, {"replicas": 1}]} for n in (2, 3))
    assert changed(old, new, current=0) == []
    assert changed(old, new, current=1) == [REWRITTEN]


def test_batches_that_a_larger_partition_frees_may_not_change_with_it_before_they_are_free() -> None:
    old = {"batchPartition": 1, "rolloutBatches": THREE}
    assert changed(old, {"batchPartition": 2, "rolloutBatches": [*THREE[:2], {"replicas": 4}]}) == []
    assert changed(old, {"batchPartition": 2, "rolloutBatches": [THREE[0], THREE[0], THREE[2]]}) == [REWRITTEN]


@pytest.mark.parametrize(
    "change",
    [
        {"paused": True},
        {"revertOnDelete": True},
        {"canaryMetric": [METRIC]},
        {"progressDeadlineSeconds": 60},
        {"onDeadline": "Hold"},
        {"onAutoscaler": "TakeOver"},
    ],
)
def test_what_says_how_to_wait_is_free_until_the_rollout_ended(change: dict[str, Any]) -> None:
    assert changed({}, change) == changed(change, {}) == []
    assert changed({}, change, ended=True) == changed(change, {}, ended=True) == [PLAN]


@pytest.mark.parametrize(
    "change",
    [
        {"rolloutStrategy": "DecreaseFirst"},
        {"targetSize": 4},
        {"numBatches": 4},
        {"rolloutWebhooks": [HOOK]},
        {"traffic": TRAFFIC},
    ],
)
def test_nothing_else_changes_while_it_is_under_way(change: dict[str, Any]) -> None:
    (name,) = change
    assert changed({}, change) == changed(change, {}) == [f"{PLAN}.{name}"]
    assert changed({}, change, target=True) == []


def test_the_number_of_batches_follows_the_batches() -> None:
    old = {"batchPartition": 0, "numBatches": 3, "rolloutBatches": THREE}
    assert changed(old, old | {"numBatches": 2, "rolloutBatches": [{"replicas": 1}, {"replicas": 5}]}) == []


def test_one_that_ended_is_only_resized() -> None:
    old = {"targetSize": 3, "rolloutBatches": [{"replicas": 3}], "batchPartition": 0}
    assert changed(old, old, ended=True) == []
    assert changed(old, {"targetSize": 5, "rolloutBatches": [{"replicas": 2}]}, ended=True) == []
    (found,) = update_problems(
        plan(**old), plan(**old | {"batchPartition": 1}), target_changed=False, ended=True, current_batch=0
    )
    assert found == Problem(PLAN, ENDED)
    assert changed(old, old | {"batchPartition": 1}, ended=True, target=True) == []


def test_a_plan_by_which_nothing_has_begun_is_free() -> None:
    old, new = plan(batchPartition=1, targetSize=3), plan(batchPartition=0, numBatches=2)
    for ended in (False, True):
        found = update_problems(old, new, target_changed=False, ended=ended, current_batch=0, begun=False)
        assert found == []


def test_a_plan_that_was_refused_can_be_mended() -> None:
    assert changed({"numBatches": 0, "targetSize": 1}, {"numBatches": 1, "targetSize": 2}) == []


sizes = st.one_of(st.integers(0, 9), st.integers(0, 100).map(lambda share: f"{share}%"))
batches = st.lists(sizes.map(lambda size: RolloutBatch(replicas=size)), min_size=1, max_size=6).map(tuple)
partitions = st.none() | st.integers(0, 6)
plans = st.builds(RolloutPlan, rollout_batches=batches, batch_partition=partitions, paused=st.booleans())


@given(plans, st.booleans(), st.integers(0, 6))
def test_no_change_is_never_refused(one: RolloutPlan, ended: bool, current: int) -> None:
    assert update_problems(one, one, target_changed=False, ended=ended, current_batch=current) == []


@given(plans, plans, st.integers(0, 6))
def test_what_is_allowed_changes_no_batch_that_may_have_begun(
    one: RolloutPlan, other: RolloutPlan, current: int
) -> None:
    if update_problems(one, other, target_changed=False, ended=False, current_batch=current):
        return
    before, after = one.rollout_batches or (), other.rollout_batches or ()
    last = max(current, one.batch_partition if one.batch_partition is not None else len(before))
    assert after[: last + 1] == before[: last + 1]
    assert one.batch_partition is None or other.batch_partition is None or other.batch_partition >= one.batch_partition
    if last >= len(before) - 1:
        assert after == before


@given(plans, plans, plans, st.integers(0, 6))
def test_two_allowed_changes_are_allowed_as_one(a: RolloutPlan, b: RolloutPlan, c: RolloutPlan, current: int) -> None:
    def refused(old: RolloutPlan, new: RolloutPlan) -> bool:
        return bool(update_problems(old, new, target_changed=False, ended=False, current_batch=current))

    assert refused(a, b) or refused(b, c) or not refused(a, c)


# The partition in effect


@pytest.mark.parametrize(
    ("said", "current", "planned", "expected"),
    [
        ({}, 0, 3, 2),
        ({"batchPartition": 1}, 0, 3, 1),
        ({"lastBatchToRollout": 1}, 0, 3, 1),
        ({"batchPartition": 9}, 0, 3, 2),
        ({"batchPartition": 0}, 2, 3, 2),  # lowered below the current batch: it holds there
        ({"batchPartition": -1}, 0, 3, 0),
        ({}, 0, 0, 0),
        ({"numBatches": 4}, 0, 0, 3),
        ({"rolloutBatches": THREE}, 0, 0, 2),
        ({"rolloutBatches": THREE}, 0, 5, 4),
    ],
)
def test_the_partition_in_effect(said: dict[str, Any], current: int, planned: int, expected: int) -> None:
    status = RolloutStatus(current_batch=current, batches=(PlannedBatch(replicas=1, goal=1),) * planned)
    assert effective_partition(plan(**said), status) == expected


@pytest.mark.parametrize(
    "free",
    [{"numBatches": 3}, {"paused": True}, {"targetSize": 4}, {"revertOnDelete": True}, {"canaryMetric": [METRIC]}],
)
def test_what_may_change_of_a_plan_or_is_remembered_elsewhere_is_no_problem_midway(free: dict[str, Any]) -> None:
    status = RolloutStatus(fixed_plan=fixed_part(plan(numBatches=2)))
    assert remembered_problems(plan(**{"numBatches": 2, **free}), status) == []


@pytest.mark.parametrize(
    "fixed", [{"rolloutStrategy": "DecreaseFirst"}, {"rolloutWebhooks": [HOOK]}, {"traffic": TRAFFIC}]
)
def test_what_is_remembered_of_a_plan_may_not_change_midway(fixed: dict[str, Any]) -> None:
    changed = plan(numBatches=2, **fixed)
    found = remembered_problems(changed, RolloutStatus(fixed_plan=fixed_part(plan(numBatches=2))))
    said = "cannot be changed while the rollout is under way unless the target changes"
    assert found == [Problem(PLAN, f"rolloutStrategy, rolloutWebhooks and traffic {said}")]
    assert remembered_problems(changed, RolloutStatus()) == []
    assert len(fixed_part(changed)) == 16

"""Going back never deletes or empties a workload that was there with pods before the rollout began, whatever happened.

What the rollout itself created, or brought in without pods, is all that it may take away.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.oam.keys import CLAIM as CLAIM_KEY
from kedge.api.oam.keys import FROZEN, LEFT
from kedge.api.oam.rollout_status import RolloutStatus, SourceRecord
from kedge.embedded.json_patch import merge_patch
from kedge.plan.batching.claims import Frozen, is_ours
from kedge.plan.batching.daemon_moves import DaemonMoves
from kedge.plan.batching.deployment_moves import DeploymentMoves
from kedge.plan.batching.moves import Moves, Step, Workload, Workloads
from kedge.plan.batching.partition_moves import PartitionMoves
from kedge.plan.batching.records import at_beginning, with_old_target, with_records
from kedge.plan.batching.scale_moves import ScaleMoves
from kedge.plan.workloads.clone_sets import CloneSets
from kedge.plan.workloads.deployments import Deployments
from kedge.plan.workloads.stateful_sets import StatefulSets
from plan.batching.in_place_worlds import CLAIM, CloneWorld, StatefulWorld, batch
from plan.batching.making import OTHER, deployment, ref, workloads
from plan.batching.test_daemon_moves import DaemonWorld
from plan.batching.test_hostile_statuses import NUMBERS, STATUSES

SIZES = st.sampled_from([0, 0, 1, 2, 5])
NOTES = st.sampled_from([{}, {CLAIM_KEY: CLAIM}, {CLAIM_KEY: OTHER}, {LEFT: CLAIM}, {LEFT: OTHER}])
MARKS = st.sampled_from(["", CLAIM, OTHER])
SETS: dict[Any, Moves] = {
    StatefulWorld: PartitionMoves(StatefulSets()),
    CloneWorld: PartitionMoves(CloneSets()),
    DaemonWorld: DaemonMoves(),
}
GOES_BACK = DeploymentMoves(Deployments())


def size_of(one: Workload) -> int:
    return int((one.obj or {})["spec"]["replicas"])


def noted(one: Workload, notes: dict[str, str]) -> Workload:
    meta = {**(one.obj or {})["metadata"], "annotations": notes}
    return replace(one, obj={**(one.obj or {}), "metadata": meta})


def moved_by_others(seen: Workloads, data: st.DataObject) -> Workloads:
    """Each one may be scaled by somebody who claims it, and lets go of it again."""

    def one(found: Workload) -> Workload:
        return deployment(found.ref.name, data.draw(SIZES), claim="") if data.draw(st.booleans()) else found

    return replace(seen, target=one(seen.target), sources=tuple(map(one, seen.sources)))


def moved_by_us(seen: Workloads, data: st.DataObject) -> Workloads:
    def one(found: Workload) -> Workload:
        return deployment(found.ref.name, data.draw(SIZES))

    return replace(seen, target=one(seen.target), sources=tuple(map(one, seen.sources)))


def left(seen: Workloads) -> Workloads:
    """As they are after a failure."""

    def one(found: Workload) -> Workload:
        return noted(found, {LEFT: CLAIM})

    return replace(seen, target=one(seen.target), sources=tuple(map(one, seen.sources)))


@given(st.integers(1, 3), st.data())
def test_no_deployment_that_had_pods_is_emptied_however_often_the_rollout_was_tried(
    attempts: int, data: st.DataObject
) -> None:
    names = ("v1", "v0")[: data.draw(st.integers(1, 2))]
    seen = workloads(*(deployment(name, data.draw(SIZES), claim="") for name in ("v2", *names)))
    status, had = RolloutStatus(), dict[str, int]()
    for attempt in range(attempts):
        status = with_records(status, seen)
        seen = moved_by_others(seen, data)
        every = (seen.target, *seen.sources)
        had |= {one.ref.name: size_of(one) for one in every if not is_ours(one, CLAIM)}
        status = at_beginning(status, seen)
        seen = moved_by_us(seen, data)
        if attempt + 1 < attempts or data.draw(st.booleans()):
            status, seen = with_old_target(status, seen.target), left(seen)
    lost = data.draw(st.integers(0, len(status.sources)))
    found = GOES_BACK.revert(seen, replace(status, sources=status.sources[lost:]), batch(0, 9, max_unavailable=9))
    assert_keeps(found, {name for name, size in had.items() if size})


def assert_keeps(found: Step, had_pods: set[str]) -> None:
    assert not any(write.delete for write in found.writes)
    sizes = {write.ref.name: ((write.patch or {}).get("spec") or {}).get("replicas") for write in found.writes}
    assert not {name for name, size in sizes.items() if size == 0} & had_pods


@given(SIZES, NUMBERS | SIZES, NUMBERS | SIZES)
def test_nothing_that_had_pods_is_scaled_to_none(size: int, original: int, before: int) -> None:
    status = RolloutStatus(rollout_original_size=original, target_before=before)
    found = ScaleMoves(Deployments()).revert(workloads(deployment("web", size)), status, batch(5, 5))
    assert_keeps(found, {"web"} if max(original, before) > 0 else set())


@pytest.mark.parametrize("world", SETS)
@given(
    given_status=STATUSES,
    before=st.sampled_from([0, 1]),
    notes=NOTES,
    made_by=MARKS,
    is_frozen=st.sampled_from([True, True, True, False]),
    knows_source=st.booleans(),
)
def test_what_changes_in_place_is_not_deleted_unless_this_rollout_created_it(
    world: Any,
    given_status: dict[str, Any],
    before: int,
    notes: dict[str, str],
    made_by: str,
    is_frozen: bool,
    knows_source: bool,
) -> None:
    here: Any = world(3)
    moves = SETS[world]
    record = msgspec.json.encode(Frozen(revision="r1", created_by=made_by)).decode()
    here.obj = merge_patch(
        here.obj, {"metadata": {"annotations": {**notes, **({FROZEN: record} if is_frozen else {})}}}
    )
    seen = here.seen("web:2", "web:1" if knows_source else None)
    found = moves.revert(seen, RolloutStatus(**given_status | {"target_before": before}), batch(2, 3))
    if here.kind == "DaemonSet" and made_by == CLAIM:
        return
    assert_keeps(found, {"web"})


@given(st.integers(1, 3), st.booleans(), st.sampled_from(["", "r1"]))
def test_a_set_that_was_there_is_recorded_as_there_at_every_attempt(
    attempts: int, has_object: bool, revision: str
) -> None:
    here = DaemonWorld(3)
    seen = here.seen("web:2", "web:1")
    (source,) = seen.sources
    told = replace(source, obj=here.obj if has_object else None, revision=revision)
    status = RolloutStatus()
    for _ in range(attempts):
        status = at_beginning(with_records(status, replace(seen, sources=(told,))), replace(seen, sources=(told,)))
        assert status.target_before > 0
        status = with_old_target(status, seen.target)


def test_a_record_of_a_missing_source_empties_nothing_that_came_later() -> None:
    gone = SourceRecord(api_version="apps/v1", kind="Deployment", name="v1", replicas=0, revision="r1")
    late = replace(deployment("v1", 4, claim=""), revision="r1")
    status = at_beginning(RolloutStatus(sources=(gone,)), workloads(deployment("v2", 0, claim=""), late))
    assert status.sources == (replace(gone, replicas=4),)
    assert late.ref == ref("v1")

"""Which numbers are in use, and which revisions are kept no longer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kedge.api.binding import BindingSpec, BindingState, ClusterResourceBinding
from kedge.api.condition import TRUE, Condition
from kedge.api.dialect import Dialect
from kedge.api.fleet import IS_LATEST, PINNED, RESOURCE_INDEX
from kedge.api.meta import ObjectMeta
from kedge.api.placement import ClusterResourcePlacement, PlacementSpec
from kedge.api.reasons import RUN_SUCCEEDED, SUCCEEDED
from kedge.api.snapshot import ClusterDecision
from kedge.api.staged import ClusterStagedUpdateRun, RunSpec
from kedge.api.staged_status import RunStatus
from kedge.plan.revision_history import (
    LatestRevision,
    Uses,
    all_of_index,
    exceeds_limit,
    expired,
    numbers_in_use,
)
from kedge.plan.selecting.snapshots import NumberedSnapshot

NOW = datetime(2030, 1, 1, tzinfo=UTC)
BEFORE, AFTER = NOW - timedelta(hours=1), NOW + timedelta(hours=1)
ENDED = Condition(
    type=SUCCEEDED, status=TRUE, last_transition_time=NOW, reason=RUN_SUCCEEDED, message="", observed_generation=1
)


def placement(limit: int = 2, pinned: str = "") -> ClusterResourcePlacement:
    meta = ObjectMeta(name="crp", creation_timestamp=NOW, annotations={PINNED: pinned} if pinned else {})
    return ClusterResourcePlacement(
        metadata=meta, spec=PlacementSpec(resource_selectors=(), revision_history_limit=limit)
    )


def binding(
    snapshot: str, *, made: datetime | None = AFTER, going: datetime | None = None, policy: str = ""
) -> ClusterResourceBinding:
    spec = BindingSpec(
        state=BindingState.bound,
        resource_snapshot_name=snapshot,
        scheduling_policy_snapshot_name=policy,
        target_cluster="a",
        cluster_decision=ClusterDecision(cluster_name="a", selected=True, reason=""),
    )
    meta = ObjectMeta(name="b", creation_timestamp=made, deletion_timestamp=going)
    return ClusterResourceBinding(metadata=meta, spec=spec)


def run(used: str = "", *, wanted: str = "", ended: bool = False, made: datetime = AFTER) -> ClusterStagedUpdateRun:
    spec = RunSpec(placement_name="crp", resource_snapshot_index=wanted, staged_rollout_strategy_name="s")
    status = RunStatus(resource_snapshot_index_used=used or None, conditions=(ENDED,) if ended else ())
    return ClusterStagedUpdateRun(metadata=ObjectMeta(name="r", creation_timestamp=made), spec=spec, status=status)


def revisions(count: int, what: str = "crp-{}-snapshot") -> tuple[NumberedSnapshot, ...]:
    labels = [{IS_LATEST: "true"} if index == count - 1 else {} for index in range(count)]
    return tuple(NumberedSnapshot(ObjectMeta(name=what.format(n), labels=labels[n]), n, "h") for n in range(count))


USES = [
    (Uses(), set()),
    (Uses([binding("crp-4-snapshot"), binding("crp-7-snapshot")]), {4, 7}),
    (Uses([binding(""), binding("others-4-snapshot"), binding("crp-x-snapshot")]), set()),
    (Uses([binding("crp-4-snapshot", made=BEFORE)]), set()),
    (Uses([binding("crp-4-snapshot", made=NOW)]), {4}),
    (Uses([binding("crp-4-snapshot", made=None)]), {4}),
    (Uses([binding("crp-4-snapshot", going=AFTER)]), set()),
    (Uses(runs=[run("3"), run("5", ended=True), run("", wanted="9")]), {3, 5}),
    (Uses(runs=[run("3", made=BEFORE)]), set()),
]


@pytest.mark.parametrize(("uses", "numbers"), USES)
def test_numbers_that_clusters_or_runs_go_by_are_in_use(uses: Uses, numbers: set[int]) -> None:
    assert numbers_in_use(placement(), uses) == numbers


KEPT = [
    ("no more than the limit", placement(4), Uses(), Dialect.seed, set()),
    ("the oldest beyond it", placement(2), Uses(), Dialect.seed, {0, 1}),
    ("but what a cluster has", placement(2), Uses([binding("crp-0-snapshot")]), Dialect.seed, {1}),
    ("unless KubeFleet", placement(2), Uses([binding("crp-0-snapshot")]), Dialect.kubefleet, {0, 1}),
    ("but what is pinned", placement(2, pinned="1"), Uses(), Dialect.seed, {0}),
    ("but what a run moves", placement(2), Uses(runs=[run("1")]), Dialect.seed, {0}),
    ("or is to move", placement(2), Uses(runs=[run(wanted="1")]), Dialect.seed, {0}),
    ("unless it ended", placement(2), Uses(runs=[run("1", ended=True)]), Dialect.seed, {0, 1}),
    ("a run moves what it began with", placement(2), Uses(runs=[run("1", wanted="0")]), Dialect.seed, {0}),
]


@pytest.mark.parametrize(("whose", "uses", "dialect", "gone"), [pytest.param(*row[1:], id=row[0]) for row in KEPT])
def test_which_resources_are_kept_no_longer(
    whose: ClusterResourcePlacement, uses: Uses, dialect: Dialect, gone: set[int]
) -> None:
    assert expired(whose, revisions(4), (), uses, dialect).resources == gone


def test_which_policies_are_kept_no_longer() -> None:
    policies, uses = revisions(4, "crp-{}"), Uses([binding("", policy="crp-1")])
    assert [one.index for one in expired(placement(), (), policies, uses, Dialect.seed).policies] == [0]
    assert [one.index for one in expired(placement(), (), policies, uses, Dialect.kubefleet).policies] == [0, 1]
    assert expired(placement(4), (), policies, uses, Dialect.seed).policies == ()


@pytest.mark.parametrize(("resources", "policies", "exceeds"), [(2, 2, False), (3, 0, True), (0, 3, True)])
def test_more_than_the_limit_of_either_is_too_many(resources: int, policies: int, exceeds: bool) -> None:
    assert exceeds_limit(placement(), revisions(resources), revisions(policies)) is exceeds


def snapshot(index: int, name: str = "") -> ObjectMeta:
    return ObjectMeta(name=name or f"crp-{index}-snapshot", uid=f"u{index}", labels={RESOURCE_INDEX: str(index)})


def test_all_parts_of_a_revision_have_its_number() -> None:
    known = [snapshot(0), snapshot(1), snapshot(0, "crp-0-0"), ObjectMeta(name="other")]
    assert [meta.name for meta in all_of_index(known, frozenset((0,)))] == ["crp-0-snapshot", "crp-0-0"]


def test_what_is_remembered_of_the_newest_revision() -> None:
    made = LatestRevision().after(snapshot(7), "seven")
    assert made == LatestRevision("u7", "seven", "crp-7-snapshot", 7)
    assert made.after(snapshot(5), "five") == LatestRevision("u5", "five", "crp-5-snapshot", 7)
    assert made.read("u3", "three") == LatestRevision("u3", "three", "crp-7-snapshot", 7)
    assert LatestRevision().after(ObjectMeta(name="x", uid="u"), "").highest == 0

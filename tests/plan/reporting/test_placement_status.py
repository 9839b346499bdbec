"""What a placement's status says where no fleet was recorded."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kedge.api.condition import FALSE, TRUE, UNKNOWN, Condition, find_condition
from kedge.api.dialect import Dialect
from kedge.api.fleet import IS_LATEST, PARENT_PLACEMENT, PINNED, POLICY_INDEX, RESOURCE_HASH, RESOURCE_INDEX
from kedge.api.meta import ObjectMeta
from kedge.api.placement import ClusterResourcePlacement, PlacementSpec, ResourceSelector
from kedge.api.placement_kinds import Binding, Placement
from kedge.api.placement_status import FailedPlacement, PlacementStatus
from kedge.api.reasons import (
    APPLIED,
    APPLY_IN_PROGRESS,
    AVAILABLE,
    AVAILABLE_UNKNOWN,
    INVALID_SELECTORS,
    NOT_STARTED,
    OVERRIDDEN,
    ROLLOUT_STARTED,
    SCHEDULE_PENDING,
    SCHEDULED,
    STARTED_UNKNOWN,
    WORK_SYNCHRONIZED,
)
from kedge.api.rollout import (
    ReportBackDestination,
    ReportBackStrategy,
    ReportBackType,
    RolloutStrategy,
    RolloutStrategyType,
)
from kedge.api.snapshot import (
    ClusterDecision,
    ClusterSchedulingPolicySnapshot,
    PolicySnapshotSpec,
    PolicySnapshotStatus,
)
from kedge.plan.reporting.condition_order import CONDITION_STEPS
from kedge.plan.reporting.placement_status import (
    PlacementFacts,
    is_complete,
    only_clusters_or_messages_differ,
    placement_status,
    shortened_to_fit,
)
from plan.working.objects import LATER, NOON, binding, said

P = "ClusterResourcePlacement"
WELL = tuple(said(step.type) for step in CONDITION_STEPS)


def snapshot(index: int, *, latest: bool = False) -> ObjectMeta:
    labels = {PARENT_PLACEMENT: "crp", RESOURCE_INDEX: str(index), IS_LATEST: str(latest).lower()}
    return ObjectMeta(name=f"crp-{index}-snapshot", labels=labels, annotations={RESOURCE_HASH: "x"})


def policy(*picked: str, generation: int = 1) -> ClusterSchedulingPolicySnapshot:
    labels = {PARENT_PLACEMENT: "crp", POLICY_INDEX: "0", IS_LATEST: "true"}
    decisions = tuple(ClusterDecision(cluster_name=one, selected=True, reason="fits") for one in picked)
    status = PolicySnapshotStatus(
        observed_crp_generation=generation,
        conditions=(said(SCHEDULED, reason="SchedulingPolicyFulfilled"),),
        target_clusters=decisions,
    )
    meta = ObjectMeta(name="crp-0", generation=1, labels=labels)
    return ClusterSchedulingPolicySnapshot(metadata=meta, spec=PolicySnapshotSpec(policy_hash=""), status=status)


def seen(*bindings: Binding, **other: Any) -> PlacementFacts:
    selector = ResourceSelector(group="", version="v1", kind="Namespace", name="shop")
    meta = ObjectMeta(name="crp", generation=1, annotations=other.pop("annotations", {}))
    values: dict[str, Any] = {
        "placement": ClusterResourcePlacement(metadata=meta, spec=PlacementSpec(resource_selectors=(selector,))),
        "prefix": P,
        "policies": [policy(*(one.spec.target_cluster for one in bindings))],
        "snapshots": [snapshot(0, latest=True)],
        "bindings": bindings,
    }
    return PlacementFacts(**values | other)


def found(status: PlacementStatus, kind: str) -> Condition:
    condition = find_condition(status.conditions, f"{P}{kind}")
    assert condition is not None
    return condition


def last(status: PlacementStatus, cluster: int = 0) -> tuple[str, str, str]:
    condition = status.placement_statuses[cluster].conditions[-1]
    return condition.type, condition.status, condition.reason


def test_a_placement_with_every_cluster_available_is_complete() -> None:
    status = placement_status(seen(binding(*WELL), binding(*WELL, cluster="b")), LATER)
    assert is_complete(status)
    assert found(status, AVAILABLE).message == "2 of 2 clusters have every object available"


def test_times_are_those_of_the_bindings_and_of_real_transitions() -> None:
    first = placement_status(seen(binding(*WELL)), NOON)
    placement = replace(seen().placement, status=first)
    again = placement_status(seen(binding(*WELL), placement=placement), LATER)
    assert again == first


def test_the_message_names_the_clusters_that_wait_and_why() -> None:
    waits = said(ROLLOUT_STARTED, FALSE, NOT_STARTED, "b waits: 1 of 1 may be unavailable, and a is not available")
    old = binding(waits, *WELL[1:], cluster="b", resource_snapshot_name="crp-old-snapshot")
    status = placement_status(seen(binding(*WELL), old), LATER)
    assert last(status, 1) == (ROLLOUT_STARTED, FALSE, NOT_STARTED)
    assert (
        found(status, ROLLOUT_STARTED).message
        == "1 of 2 clusters waits: b: 1 of 1 may be unavailable, and a is not available"
    )
    assert find_condition(status.conditions, f"{P}{AVAILABLE}") is None


def test_more_than_a_few_clusters_are_counted() -> None:
    said_there = [said(AVAILABLE, FALSE, message=f"broken {number}") for number in range(10)]
    bindings = [binding(*WELL[:-1], bad, cluster=f"c{number}") for number, bad in enumerate(said_there)]
    message = found(placement_status(seen(*bindings), LATER), AVAILABLE).message
    assert message.startswith("10 of 10 clusters have objects that are not available: c0: broken 0; c1: broken 1;")
    assert message.endswith("and 7 more")


def test_changes_of_single_clusters_or_messages_leave_the_placement_conditions_as_they_are() -> None:
    bad = said(AVAILABLE, FALSE, message="broken")
    well, ill = binding(*WELL), binding(*WELL[:-1], bad)
    third = binding(*WELL[:-1], bad, cluster="c")
    both_ill = placement_status(seen(ill, binding(*WELL[:-1], bad, cluster="b"), third), NOON)
    one_well = placement_status(seen(well, binding(*WELL[:-1], bad, cluster="b"), third), LATER)
    assert both_ill != one_well
    assert only_clusters_or_messages_differ(both_ill, one_well), "it counts on"
    all_well = placement_status(seen(well, binding(*WELL, cluster="b"), binding(*WELL, cluster="c")), LATER)
    assert not only_clusters_or_messages_differ(one_well, all_well)
    assert not only_clusters_or_messages_differ(all_well, one_well)
    assert not only_clusters_or_messages_differ(PlacementStatus(), one_well)
    edited = replace(one_well, conditions=tuple(replace(one, observed_generation=2) for one in one_well.conditions))
    assert not only_clusters_or_messages_differ(one_well, edited)
    assert not only_clusters_or_messages_differ(one_well, replace(one_well, observed_resource_index="7"))
    copied = replace(one_well, conditions=(*one_well.conditions, said("StatusSynced", TRUE)))
    assert only_clusters_or_messages_differ(copied, one_well), "what is said of its copy is not how it stands"


def test_a_cluster_that_had_older_resources_has_not_started_with_the_new_ones() -> None:
    old = binding(*WELL, resource_snapshot_name="crp-0-snapshot")
    status = placement_status(seen(old, snapshots=[snapshot(0), snapshot(1, latest=True)]), LATER)
    assert status.observed_resource_index == "1"
    assert last(status) == (ROLLOUT_STARTED, UNKNOWN, STARTED_UNKNOWN)


def test_a_pinned_placement_reports_the_pinned_revision() -> None:
    snapshots = [snapshot(0), snapshot(1, latest=True)]
    status = placement_status(seen(binding(*WELL), snapshots=snapshots, annotations={PINNED: "0"}), LATER)
    assert status.observed_resource_index == "0"
    assert is_complete(status)


def test_conditions_of_an_older_generation_of_a_binding_do_not_count() -> None:
    moved = binding(said(ROLLOUT_STARTED, generation=2), *WELL[1:], generation=2)
    assert last(placement_status(seen(moved), LATER)) == (OVERRIDDEN, UNKNOWN, "OverriddenPending")


def test_objects_that_fail_are_listed_with_their_cluster() -> None:
    failure = FailedPlacement(version="v1", kind="ConfigMap", name="one", condition=said(AVAILABLE, FALSE))
    bad = binding(*WELL[:-1], said(AVAILABLE, FALSE))
    bad = replace(bad, status=replace(bad.status, failed_placements=(failure,)))
    assert placement_status(seen(bad), LATER).placement_statuses[0].failed_placements == (failure,)


def test_an_apply_in_progress_is_not_applied() -> None:
    status = placement_status(seen(binding(*WELL[:3], said(APPLIED, FALSE, APPLY_IN_PROGRESS, "not reported"))), LATER)
    assert (found(status, APPLIED).status, found(status, APPLIED).reason) == (FALSE, "ApplyFailed")
    assert "a: not reported" in found(status, APPLIED).message


# Members that cannot be reached

SILENCE = "No heartbeat since 12:00"


def test_availability_of_an_unreachable_member_is_unknown() -> None:
    status = placement_status(seen(binding(*WELL), unreachable={"a": SILENCE}), LATER)
    assert last(status) == (AVAILABLE, UNKNOWN, AVAILABLE_UNKNOWN)
    assert (found(status, AVAILABLE).status, found(status, AVAILABLE).reason) == (UNKNOWN, AVAILABLE_UNKNOWN)
    assert SILENCE in found(status, AVAILABLE).message


def test_in_the_kubefleet_dialect_only_the_message_says_that_a_member_is_unreachable() -> None:
    status = placement_status(seen(binding(*WELL), unreachable={"a": SILENCE}, dialect=Dialect.kubefleet), LATER)
    assert is_complete(status)
    assert status.placement_statuses[0].conditions[-1].message.startswith(SILENCE)


def test_a_cluster_that_waits_and_cannot_be_reached_says_both() -> None:
    waits = said(ROLLOUT_STARTED, FALSE, NOT_STARTED, "a waits: for others")
    status = placement_status(seen(binding(waits), unreachable={"a": SILENCE}), LATER)
    assert status.placement_statuses[0].conditions[-1].message == f"{SILENCE}. Last known: a waits: for others"


# Scheduling


def test_invalid_selectors_are_reported_first_and_clusters_are_still_shown() -> None:
    status = placement_status(seen(binding(*WELL), problem="spec.resourceSelectors[0].kind: no such kind"), LATER)
    assert [(one.type, one.status, one.reason) for one in status.conditions] == [
        (f"{P}{SCHEDULED}", FALSE, INVALID_SELECTORS)
    ]
    assert last(status)[0] == AVAILABLE


@pytest.mark.parametrize("policies", [[], [policy("a", generation=0)]])
def test_while_clusters_are_being_picked_only_scheduling_is_reported(policies: list[Any]) -> None:
    status = placement_status(seen(binding(*WELL), policies=policies), LATER)
    assert [(one.status, one.reason) for one in status.conditions] == [(UNKNOWN, SCHEDULE_PENDING)]
    assert status.placement_statuses == ()


def test_without_clusters_only_scheduling_is_reported() -> None:
    status = placement_status(seen(), LATER)
    assert [one.type for one in status.conditions] == [f"{P}{SCHEDULED}"]


def test_clusters_that_are_still_to_be_removed_are_named() -> None:
    leaving = binding(*WELL, cluster="b", state="Unscheduled")
    waits = {leaving.metadata.name: "b waits to be removed: a is not available"}
    status = placement_status(seen(binding(*WELL), leaving, policies=[policy("a")], removal_waits=waits), LATER)
    assert found(status, ROLLOUT_STARTED).message == (
        "1 of 1 cluster has started. Still to be removed: b waits to be removed: a is not available"
    )
    status = placement_status(seen(binding(*WELL), leaving, policies=[policy("a")]), LATER)
    assert found(status, ROLLOUT_STARTED).message.endswith("Still to be removed: b is to be removed")
    gone = replace(leaving, metadata=replace(leaving.metadata, deletion_timestamp=NOON))
    status = placement_status(seen(binding(*WELL), gone, policies=[policy("a")]), LATER)
    assert "b removes its objects" in found(status, ROLLOUT_STARTED).message


def test_a_binding_being_removed_does_not_count_for_its_cluster() -> None:
    old = binding(*WELL)
    old = replace(old, metadata=replace(old.metadata, deletion_timestamp=NOON))
    new = binding(name="crp-a-1", state="Scheduled", resource_snapshot_name="")
    status = placement_status(seen(new, old, policies=[policy("a")]), LATER)
    assert last(status) == (ROLLOUT_STARTED, UNKNOWN, STARTED_UNKNOWN)


# Size


def test_a_status_of_a_thousand_broken_clusters_fits_and_still_says_which_are_broken() -> None:
    bad = said(AVAILABLE, FALSE, message="x" * 900)
    failure = FailedPlacement(version="v1", kind="ConfigMap", name="n", condition=replace(bad, message="y" * 900))
    bindings = [binding(*WELL[:-1], bad, cluster=f"c{number}") for number in range(1000)]
    bindings = [replace(one, status=replace(one.status, failed_placements=(failure,) * 20)) for one in bindings]
    whole = placement_status(seen(*bindings), LATER)
    short = shortened_to_fit(whole)
    assert [one.cluster_name for one in short.placement_statuses] == [
        one.cluster_name for one in whole.placement_statuses
    ]
    assert all(one.conditions[-1].status == FALSE for one in short.placement_statuses)
    assert short.conditions == whole.conditions


def test_a_status_that_fits_is_left_as_it_is() -> None:
    status = placement_status(seen(binding(*WELL)), LATER)
    assert shortened_to_fit(status) is status


# Properties

STATUSES = st.sampled_from([TRUE, FALSE, UNKNOWN])
BINDINGS = st.lists(
    st.builds(
        lambda statuses, cluster, at, stale: binding(
            *(
                said(step.type, status, generation=1 - gap)
                for step, (status, gap) in zip(CONDITION_STEPS, statuses, strict=True)
            ),
            cluster=f"c{cluster}",
            resource_snapshot_name=at,
            generation=1 + stale,
        ),
        st.lists(st.tuples(STATUSES, st.integers(0, 1)), min_size=5, max_size=5),
        st.integers(0, 5),
        st.sampled_from(["", "crp-0-snapshot", "crp-1-snapshot"]),
        st.integers(0, 1),
    ),
    max_size=6,
    unique_by=lambda one: one.spec.target_cluster,
)


@given(BINDINGS, st.sampled_from(list(Dialect)))
def test_a_condition_of_the_placement_is_true_only_if_it_is_on_every_cluster(
    bindings: list[Binding], dialect: Dialect
) -> None:
    status = placement_status(seen(*bindings, dialect=dialect), LATER)
    for step in CONDITION_STEPS:
        condition = find_condition(status.conditions, f"{P}{step.type}")
        said_by = [find_condition(one.conditions, step.type) for one in status.placement_statuses]
        everyone = bool(said_by) and all(one is not None and one.status == TRUE for one in said_by)
        assert (condition is not None and condition.status == TRUE) == everyone


@given(BINDINGS)
def test_the_first_condition_that_is_not_true_is_the_last(bindings: list[Binding]) -> None:
    status = placement_status(seen(*bindings), LATER)
    for conditions in [status.conditions, *(one.conditions for one in status.placement_statuses)]:
        assert all(one.status == TRUE for one in conditions[:-1])


@given(BINDINGS, st.integers(1, 1000))
def test_the_same_facts_later_give_the_same_status(bindings: list[Binding], seconds: int) -> None:
    first = placement_status(seen(*bindings), NOON)
    placement = replace(seen().placement, status=first)
    assert placement_status(seen(*bindings, placement=placement), NOON + timedelta(seconds=seconds)) == first


def test_a_work_that_was_not_created_is_named() -> None:
    bad = said(WORK_SYNCHRONIZED, FALSE, "SyncWorkFailed", "the hub refused Work x")
    status = placement_status(seen(binding(*WELL[:2], bad)), LATER)
    assert found(status, WORK_SYNCHRONIZED).reason == "WorkNotSynchronizedYet"
    assert "a: the hub refused Work x" in found(status, WORK_SYNCHRONIZED).message


def test_OriginalResource_with_several_clusters_gives_a_warning() -> None:
    back = ReportBackStrategy(type=ReportBackType.mirror, destination=ReportBackDestination.original_resource)
    placement = seen().placement
    spec = replace(placement.spec, strategy=RolloutStrategy(report_back_strategy=back))
    asking = replace(placement, spec=spec)
    one = placement_status(seen(binding(*WELL), placement=asking), LATER)
    assert "OriginalResource" not in found(one, SCHEDULED).message
    two = placement_status(seen(binding(*WELL), binding(*WELL, cluster="b"), placement=asking), LATER)
    assert "which can show the status of one cluster, and 2 are picked" in found(two, SCHEDULED).message


def test_clusters_that_wait_for_the_same_reason_are_named_together() -> None:
    def waits(cluster: str, why: str) -> Any:
        told = said(ROLLOUT_STARTED, FALSE, NOT_STARTED, f"{cluster} waits: {why}")
        return binding(told, *WELL[1:], cluster=cluster, resource_snapshot_name="crp-old-snapshot")

    names = [f"w{number}" for number in range(1, 6)]
    others = [waits(name, "a is not available") for name in names] + [waits("x", "its turn")]
    status = placement_status(seen(*others, policies=[policy(*names, "x")]), LATER)
    assert found(status, ROLLOUT_STARTED).message == (
        "6 of 6 clusters wait: w1, w2, w3 and 2 more: a is not available; x: its turn"
    )


def external() -> Placement:
    spec = PlacementSpec(
        resource_selectors=seen().placement.spec.resource_selectors,
        strategy=RolloutStrategy(type=RolloutStrategyType.external),
    )
    return replace(seen().placement, spec=spec)


def test_clusters_under_staged_runs_wait_for_a_run() -> None:
    status = placement_status(seen(binding(), placement=external(), snapshots=[]), LATER)
    assert last(status) == (ROLLOUT_STARTED, UNKNOWN, STARTED_UNKNOWN)
    assert "staged update run" in status.placement_statuses[0].conditions[-1].message


def test_a_cluster_that_waited_in_a_rolling_update_waits_for_a_run_once_runs_are_to_move_it() -> None:
    told = said(ROLLOUT_STARTED, FALSE, NOT_STARTED, "a waits: at most 1 of 2 clusters may be unavailable")
    status = placement_status(seen(binding(told, *WELL[1:]), placement=external(), snapshots=[]), LATER)
    assert last(status) == (ROLLOUT_STARTED, FALSE, NOT_STARTED)
    assert status.placement_statuses[0].conditions[-1].message == (
        "This cluster keeps its resources until a staged update run brings it others"
    )


def test_a_pending_selection_is_reported() -> None:
    status = placement_status(seen(policies=[], pending="the hub has not said yet which kinds it serves"), LATER)
    assert found(status, SCHEDULED).reason == SCHEDULE_PENDING
    assert "the hub has not said yet which kinds it serves" in found(status, SCHEDULED).message


def test_a_cluster_that_cannot_be_reached_is_named_once() -> None:
    not_yet = binding(*WELL[:3], said(APPLIED, FALSE, APPLY_IN_PROGRESS, "b10 has not reported yet"), cluster="b1")
    silent = placement_status(seen(not_yet, unreachable={"b1": "b1 cannot be reached"}), LATER)
    assert "object: b1: cannot be reached. Last known" in found(silent, APPLIED).message
    assert "object: b1: b10 has not reported yet" in found(placement_status(seen(not_yet), LATER), APPLIED).message


@pytest.mark.parametrize("dialect", list(Dialect))
def test_what_is_wrong_with_a_cluster_is_added_to_its_last_report(dialect: Dialect) -> None:
    status = placement_status(
        seen(binding(*WELL), unhealthy={"a": "a is not healthy: no answer"}, dialect=dialect), LATER
    )
    assert is_complete(status)
    shown = status.placement_statuses[0].conditions
    unsure = [one.message.startswith("a is not healthy: no answer. Last known: ") for one in shown]
    assert unsure == [False, False, False, False, True, True]

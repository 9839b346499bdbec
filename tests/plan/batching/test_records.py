"""What each workload was before a rollout, and before the first of several that replace one another."""

from __future__ import annotations

from msgspec.structs import replace

from kedge.api.oam.keys import LEFT
from kedge.api.oam.rollout_plan import ObjectReference
from kedge.api.oam.rollout_status import RolloutStatus, SourceRecord
from kedge.api.oam.rollouts import AppRolloutStatus
from kedge.plan.batching.moves import Workload, WorkloadRef, Workloads
from kedge.plan.batching.records import (
    asked_of_all,
    at_beginning,
    in_mode,
    is_in_place,
    recorded_refs,
    target_ref,
    with_old_target,
    with_records,
)
from plan.batching.in_place_worlds import CLAIM
from plan.batching.making import OTHER, deployment, ref, workloads


def record(name: str, replicas: int, revision: str = "", kind: str = "Deployment") -> SourceRecord:
    return SourceRecord(api_version="apps/v1", kind=kind, name=name, replicas=replicas, revision=revision)


def test_each_workload_is_recorded_as_it_is() -> None:
    silent = deployment("v1", 1)
    spec = {name: value for name, value in (silent.obj or {})["spec"].items() if name != "replicas"}
    seen = workloads(
        replace(deployment("v3", 2), revision="r3"),
        Workload(ref("gone"), revision="r0"),
        replace(silent, obj={**(silent.obj or {}), "spec": spec}),
        replace(deployment("v2", 0), revision="r2"),
    )
    found = with_records(AppRolloutStatus(current_batch=2), seen)
    assert found == AppRolloutStatus(
        current_batch=2,
        sources=(record("gone", 0, "r0"), record("v1", 1), record("v2", 0, "r2")),
        target_before=2,
        target_workload=ObjectReference(api_version="apps/v1", kind="Deployment", name="v3"),
    )


def test_what_is_recorded_already_stays() -> None:
    status = RolloutStatus(sources=(record("v1", 9), record("v3", 5), record("v3", 7, kind="CloneSet")))
    seen = workloads(deployment("v3", 2), deployment("v1", 3), deployment("v2", 4))
    found = with_records(status, seen)
    assert found.sources == (record("v1", 9), record("v2", 4), record("v3", 7, kind="CloneSet"))
    assert found.target_before == 5
    assert with_records(found, seen).sources == found.sources


def test_a_target_without_pods_before_is_known_by_that() -> None:
    status = RolloutStatus(sources=(record("v3", 0),))
    assert with_records(status, workloads(deployment("v3", 2))).target_before == 0


def test_a_paused_target_is_recorded_with_the_pods_it_has() -> None:
    seen = workloads(
        deployment("v2", 10, pods=3, claim="", paused=True), deployment("v1", 5, pods=4, claim="", paused=True)
    )
    found = with_records(RolloutStatus(), seen)
    assert (found.target_before, found.sources) == (3, (record("v1", 5),))
    assert at_beginning(found, seen) == found
    assert at_beginning(replace(found, target_before=10), seen).target_before == 3
    assert asked_of_all(seen) == 8
    assert with_records(RolloutStatus(), workloads(Workload(ref("v2")), deployment("v1", 5))).target_before == 0


def test_the_target_of_a_rollout_that_is_replaced_joins_the_sources() -> None:
    status = RolloutStatus(sources=(record("v1", 9),), target_before=2)
    found = with_old_target(status, Workload(ref("v2"), revision="r2"))
    assert found.sources == (record("v1", 9), record("v2", 2, "r2"))
    assert with_old_target(found, Workload(ref("v2"))) == found
    other = WorkloadRef("apps/v1", "CloneSet", "shop", "v1")
    assert with_old_target(status, Workload(other)).sources == (record("v1", 9), record("v1", 2, kind="CloneSet"))


def test_records_name_workloads() -> None:
    status = RolloutStatus(sources=(record("v1", 9), record("v2", 1)))
    assert recorded_refs(status, "shop") == (ref("v1"), ref("v2"))


def test_the_target_is_known_by_what_was_recorded_of_it() -> None:
    named = ObjectReference(api_version="apps/v1", kind="StatefulSet", name="web")
    found = target_ref(RolloutStatus(target_workload=named), "shop")
    assert found == WorkloadRef("apps/v1", "StatefulSet", "shop", "web")
    assert target_ref(RolloutStatus(), "shop") is None


def test_what_others_moved_while_it_waited_is_recorded_as_it_is_when_it_begins() -> None:
    status = RolloutStatus(sources=(record("v1", 4, "r1"), record("v2", 0), record("gone", 3)), target_before=1)
    before = replace(status, sources=(record("v1", 0, "r1"), record("v2", 4), record("gone", 3)), target_before=2)
    seen = workloads(deployment("v3", 2, claim=""), deployment("v1", 0, claim=""), deployment("v2", 4, claim=OTHER))
    assert at_beginning(status, seen) == before
    gone = replace(seen, target=Workload(ref("v3")))
    assert at_beginning(status, gone) == replace(before, target_before=1)


def test_what_it_moved_before_and_left_stays_as_it_is_recorded() -> None:
    status = RolloutStatus(sources=(record("v1", 4), record("v2", 5)), target_before=1)
    left = deployment("v2", 0, claim="")
    meta = {**(left.obj or {})["metadata"], "annotations": {LEFT: CLAIM}}
    left = replace(left, obj={**(left.obj or {}), "metadata": meta})
    assert at_beginning(status, workloads(deployment("v3", 3), deployment("v1", 0), left)) == status
    assert at_beginning(status, workloads(deployment("v3", 3, claim=""))) == status  # it is scaled


# In place

WEB = WorkloadRef("apps/v1", "StatefulSet", "shop", "web")


def in_place(*revisions: str, replicas: int = 4) -> Workloads:
    """A StatefulSet that moves from these revisions."""
    obj = {"spec": {"replicas": replicas}}
    sources = tuple(Workload(WEB, obj, revision=name) for name in revisions)
    return Workloads(Workload(WEB, obj, revision="r9"), sources, in_place=True)


def test_a_workload_that_changes_in_place_is_recorded_once_for_each_revision() -> None:
    found = with_records(RolloutStatus(), in_place("r1", "r2"))
    assert found.sources == (record("web", 4, "r1", "StatefulSet"), record("web", 4, "r2", "StatefulSet"))
    assert found.target_before == 4


def test_in_place_the_oldest_record_says_how_it_was_before() -> None:
    kept = (
        record("other", 1, "r1", "StatefulSet"),
        record("web", 7, "r1", "StatefulSet"),
        record("web", 5, "r2", "StatefulSet"),
        record("web", 6, "r3"),
    )
    found = with_records(RolloutStatus(sources=kept), in_place("r1", "r4"))
    assert found.sources == (kept[1], kept[2], record("web", 4, "r4", "StatefulSet"))
    assert found.target_before == 7


def test_what_is_changed_in_place_is_its_own_source_also_if_its_revision_is_not_known() -> None:
    found = with_records(RolloutStatus(), in_place())
    assert found.sources == (record("web", 4, "", "StatefulSet"),)
    assert found.target_before == 4


def test_what_a_controller_revision_tells_in_place_has_the_size_of_the_workload() -> None:
    """It has no object of its own: that does not mean that there was none."""
    seen = in_place("r1")
    told = replace(seen, sources=tuple(replace(one, obj=None) for one in seen.sources))
    found = with_records(RolloutStatus(), told)
    assert found.sources == (record("web", 4, "r1", "StatefulSet"),)
    assert with_records(found, told).target_before == 4
    unmade = replace(told, target=Workload(WEB))
    assert with_records(with_records(RolloutStatus(), unmade), told).target_before == 0


def test_whether_it_changes_in_place_is_recorded_anew_when_that_is_seen_to_be_otherwise() -> None:
    scaled, moved = replace(in_place(), in_place=False), in_place()
    first = with_records(RolloutStatus(), scaled)
    assert first.sources == ()
    assert in_mode(first, scaled) is first
    second = in_mode(first, moved)
    assert second.sources == (record("web", 4, "", "StatefulSet"),)
    assert in_mode(second, moved) is second
    assert in_mode(second, scaled).sources == ()


def test_a_rollout_in_place_is_told_from_one_that_scaled_and_failed_by_its_size() -> None:
    recorded = RolloutStatus(sources=(record("web", 4, "", "StatefulSet"),), rollout_target_size=4)
    assert is_in_place(replace(recorded, rollout_original_size=4), WEB)
    assert not is_in_place(replace(recorded, rollout_original_size=2), WEB)
    assert not is_in_place(RolloutStatus(), WEB)


def test_the_pods_of_all_workloads_are_counted_once() -> None:
    assert asked_of_all(workloads(deployment("v3", 2), deployment("v1", 3), Workload(ref("gone")))) == 5
    assert asked_of_all(in_place("r1", "r2")) == 4

"""Which Works a binding wants, and how those there are differ."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kedge.api.fleet import (
    IS_LATEST,
    NUMBER_OF_SNAPSHOTS,
    ON_DELETE,
    PARENT_BINDING,
    PARENT_NAMESPACE,
    PARENT_PLACEMENT,
    RESOURCE_INDEX,
)
from kedge.api.meta import ObjectMeta
from kedge.api.placement import ClusterResourcePlacement, PlacementSpec
from kedge.api.rollout import (
    ApplyStrategy,
    ApplyType,
    DeleteStrategy,
    PropagationPolicy,
    ReportBackDestination,
    ReportBackStrategy,
    ReportBackType,
    RolloutStrategy,
    ServerSideApplyConfig,
)
from kedge.api.work import Work, Workload
from kedge.plan.placements import abandons, report_back, reports_to_original
from kedge.plan.working.desired_works import DesiredWork, WorkChanges, compare_works, desired_works
from kedge.plan.working.work_contents import RevisionContents, compacted, further_parts, revision_part
from plan.working.objects import NOON, binding

OBJECTS = ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},)
RESOURCES = RevisionContents("crp-0-snapshot", "0", (revision_part(OBJECTS),))


def wants(**other: Any) -> tuple[DesiredWork, ...]:
    options: dict[str, Any] = {"abandons": False, "report_back": None}
    return desired_works(binding(), RESOURCES, **options | other)


def as_made(wanted: DesiredWork) -> Work:
    """As the hub would have it."""
    encoded = msgspec.json.encode({"kind": "Work", **wanted.body()})
    made = msgspec.json.decode(encoded, type=Work)
    return compacted(replace(made, metadata=replace(made.metadata, uid="1", generation=1)))


def changes(work: Work, rivals: frozenset[str] = frozenset(), **other: Any) -> Any:
    return compare_works(binding(), wants(**other), (work,), {work.metadata.name: work}, rivals)


def test_a_created_work_needs_no_change() -> None:
    (wanted,) = wants(abandons=True)
    assert changes(as_made(wanted), abandons=True).same == (as_made(wanted),)


def test_a_part_has_a_size_and_no_manifests_if_it_is_empty() -> None:
    assert revision_part(OBJECTS).size == len(msgspec.json.encode(OBJECTS))
    assert (revision_part(()).manifests, revision_part(()).size) == (None, 0)


def test_the_body_of_a_desired_work() -> None:
    how = ApplyStrategy(type=ApplyType.server_side_apply)
    found = binding(apply_strategy=how)
    found = replace(found, metadata=replace(found.metadata, namespace="ns"))
    resources = RevisionContents("crp-0-snapshot", "0", (revision_part(OBJECTS), revision_part(()), revision_part(())))
    first, second, third = desired_works(found, resources, abandons=False, report_back=None)
    assert [each.name for each in (first, second, third)] == ["ns.crp-work", "ns.crp-0", "ns.crp-1"]
    made = msgspec.json.decode(msgspec.json.encode(first.body()))
    assert made["metadata"]["namespace"] == "fleet-member-a"
    assert made["metadata"]["labels"][PARENT_NAMESPACE] == "ns"
    assert made["spec"] == {"workload": {"manifests": list(OBJECTS)}, "applyStrategy": {"type": "ServerSideApply"}}
    assert second.body()["spec"]["workload"] == {}
    assert PARENT_NAMESPACE not in wants()[0].labels


def test_a_work_is_patched_kept_or_deleted() -> None:
    (wanted,) = wants()
    right = as_made(wanted)
    wrong = replace(right, spec=replace(right.spec, workload=Workload(manifests=({"digest": "x"},))))
    stray = replace(right, metadata=replace(right.metadata, name="crp-1"))
    going = replace(stray, metadata=replace(stray.metadata, deletion_timestamp=NOON))
    same = compare_works(binding(), [wanted], (right, stray, going), {right.metadata.name: right}, frozenset())
    assert (same.create, same.patch, same.delete, same.same) == ((), (), (stray,), (right,))
    changed = compare_works(binding(), [wanted], (wrong,), {wrong.metadata.name: wrong}, frozenset())
    ((_, body),) = changed.patch
    assert msgspec.json.decode(msgspec.json.encode(body)) == {"spec": {"workload": {"manifests": list(OBJECTS)}}}
    assert (changed.same, changed.delete, changed.changes_manifests) == ((), (), True)


def test_one_work_with_new_manifests_changes_manifests() -> None:
    work = as_made(wants()[0])
    assert WorkChanges(patch=((work, {"metadata": {}}), (work, {"spec": {}}))).changes_manifests
    assert not WorkChanges(patch=((work, {"metadata": {}}),)).changes_manifests


def test_a_missing_work_is_created() -> None:
    found = compare_works(binding(), wants(), (), {}, frozenset())
    assert (len(found.create), found.changes_manifests) == (1, True)


def test_new_manifests_change_manifests_and_a_new_index_does_not() -> None:
    (wanted,) = wants()
    moved = compare_works(
        binding(),
        desired_works(
            binding(), RevisionContents("crp-1-snapshot", "1", (revision_part(()),)), abandons=False, report_back=None
        ),
        (),
        {wanted.name: as_made(wanted)},
        frozenset(),
    )
    assert moved.changes_manifests
    renamed = compare_works(
        binding(),
        desired_works(
            binding(),
            RevisionContents("crp-1-snapshot", "1", (revision_part(OBJECTS),)),
            abandons=False,
            report_back=None,
        ),
        (),
        {wanted.name: as_made(wanted)},
        frozenset(),
    )
    assert (len(renamed.patch), renamed.changes_manifests) == (1, False)


def test_the_annotation_to_abandon_objects_is_added_and_removed() -> None:
    marked = as_made(wants(abandons=True)[0])
    ((_, body),) = changes(marked).patch
    assert body == {"metadata": {"annotations": {ON_DELETE: None}}}
    ((_, body),) = changes(as_made(wants()[0]), abandons=True).patch
    assert body == {"metadata": {"annotations": {ON_DELETE: "Abandon"}}}


def test_nothing_is_left_of_an_earlier_apply_strategy() -> None:
    forced = ApplyStrategy(type=ApplyType.server_side_apply, allow_co_ownership=True)
    work = as_made(wants()[0])
    work = replace(work, spec=replace(work.spec, apply_strategy=forced))
    ((_, body),) = compare_works(
        binding(apply_strategy=ApplyStrategy()),
        desired_works(binding(apply_strategy=ApplyStrategy()), RESOURCES, abandons=False, report_back=None),
        (),
        {work.metadata.name: work},
        frozenset(),
    ).patch
    assert body == {"spec": {"applyStrategy": {"type": None, "allowCoOwnership": None}}}


def test_the_report_back_strategy_is_added_and_removed() -> None:
    back = ReportBackStrategy(type=ReportBackType.mirror, destination=ReportBackDestination.work_api)
    ((_, body),) = changes(as_made(wants()[0]), report_back=back).patch
    assert body == {"spec": {"reportBackStrategy": {"type": "Mirror", "destination": "WorkAPI"}}}
    ((_, body),) = changes(as_made(wants(report_back=back)[0])).patch
    assert body == {"spec": {"reportBackStrategy": None}}


@pytest.mark.parametrize(
    ("meta", "rivals", "why"),
    [
        ({"deletion_timestamp": NOON}, (), "is being deleted"),
        ({"labels": {PARENT_PLACEMENT: "crp", PARENT_BINDING: "other"}}, ("other",), "still belongs to binding other"),
        ({"labels": {PARENT_PLACEMENT: "crp", PARENT_BINDING: "gone"}}, (), ""),
        ({"labels": {PARENT_PLACEMENT: "crp", PARENT_NAMESPACE: "ns"}}, (), "belongs to ns/crp: rename one"),
        ({"labels": {}}, (), "belongs to nobody known here"),
    ],
)
def test_a_work_of_the_same_name_is_used_only_if_no_other_owner_has_it(
    meta: dict[str, Any], rivals: tuple[str, ...], why: str
) -> None:
    work = as_made(wants()[0])
    found = changes(replace(work, metadata=replace(work.metadata, **meta)), frozenset(rivals))
    assert why in found.blocked
    assert bool(found.blocked) == bool(why)


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        ({RESOURCE_INDEX: "3", IS_LATEST: "true"}, {NUMBER_OF_SNAPSHOTS: "3"}, ("crp-3-0", "crp-3-1")),
        ({RESOURCE_INDEX: "3"}, {}, ()),
        ({}, {}, "does not say its index"),
        ({RESOURCE_INDEX: "3"}, {NUMBER_OF_SNAPSHOTS: "many"}, "no number of parts"),
        ({RESOURCE_INDEX: "3"}, {NUMBER_OF_SNAPSHOTS: "0"}, "no number of parts"),
        ({RESOURCE_INDEX: "3"}, {NUMBER_OF_SNAPSHOTS: "1"}, ()),
    ],
)
def test_the_first_snapshot_names_the_further_parts(
    labels: dict[str, str], annotations: dict[str, str], expected: Any
) -> None:
    meta = ObjectMeta(name="crp-3-snapshot", labels={PARENT_PLACEMENT: "crp", **labels}, annotations=annotations)
    if isinstance(expected, str):
        with pytest.raises(ValueError, match=expected):
            further_parts(meta)
    else:
        assert further_parts(meta) == expected


# What a placement asks for


def placing(strategy: RolloutStrategy | None) -> ClusterResourcePlacement:
    return ClusterResourcePlacement(spec=PlacementSpec(resource_selectors=(), strategy=strategy))


@pytest.mark.parametrize(
    ("strategy", "stays"),
    [
        (None, False),
        (RolloutStrategy(), False),
        (RolloutStrategy(delete_strategy=DeleteStrategy(propagation_policy=PropagationPolicy.abandon)), True),
        (RolloutStrategy(delete_strategy=DeleteStrategy(propagation_policy=PropagationPolicy.delete)), False),
    ],
)
def test_objects_are_abandoned_only_if_the_delete_strategy_says_so(
    strategy: RolloutStrategy | None, stays: bool
) -> None:
    assert abandons(placing(strategy)) is stays


MIRROR = ReportBackStrategy(type=ReportBackType.mirror, destination=ReportBackDestination.work_api)
ORIGINAL = ReportBackStrategy(type=ReportBackType.mirror, destination=ReportBackDestination.original_resource)
DISABLED = ReportBackStrategy(type=ReportBackType.disabled)


@pytest.mark.parametrize(
    ("strategy", "how", "original"),
    [
        (None, None, False),
        (RolloutStrategy(), None, False),
        (RolloutStrategy(report_back_strategy=DISABLED), None, False),
        (RolloutStrategy(report_back_strategy=MIRROR), MIRROR, False),
        (RolloutStrategy(report_back_strategy=ORIGINAL), ORIGINAL, True),
    ],
)
def test_statuses_are_reported_back_as_the_strategy_says(
    strategy: RolloutStrategy | None, how: ReportBackStrategy | None, original: bool
) -> None:
    assert (report_back(placing(strategy)), reports_to_original(placing(strategy))) == (how, original)


def test_a_work_that_lost_its_labels_gets_them_back() -> None:
    (wanted,) = wants()
    work = as_made(wanted)
    bare = replace(work, metadata=replace(work.metadata, labels={PARENT_PLACEMENT: "crp"}))
    ((_, body),) = changes(bare).patch
    assert set(body["metadata"]["labels"]) == set(wanted.labels) - {PARENT_PLACEMENT}


def test_nested_fields_of_an_apply_strategy_are_replaced_too() -> None:
    def how(**options: Any) -> ApplyStrategy:
        return ApplyStrategy(
            type=ApplyType.server_side_apply, server_side_apply_config=ServerSideApplyConfig(**options)
        )

    work = as_made(wants()[0])
    work = replace(work, spec=replace(work.spec, apply_strategy=how(force=True)))
    for new, patch in (
        (how(), {"serverSideApplyConfig": {"force": None}, "type": "ServerSideApply"}),
        (ApplyStrategy(type=ApplyType.server_side_apply), {"serverSideApplyConfig": None, "type": "ServerSideApply"}),
    ):
        found = binding(apply_strategy=new)
        wanted = desired_works(found, RESOURCES, abandons=False, report_back=None)
        ((_, body),) = compare_works(found, wanted, (), {work.metadata.name: work}, frozenset()).patch
        assert body == {"spec": {"applyStrategy": patch}}

"""The comparison itself: a recording is equal to itself, and one planted difference of any kind is found."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from fleet.comparing import NOT_THERE, THERE, Difference, compare, report
from fleet.traces import Fleet, Found, Table, Untyped, load, names, table

PLACED = "02"


def changed(fleet: Fleet, kind: str, change: Callable[[Untyped], object], where: str = "hub") -> Fleet:
    """The fleet with this done to a copy of the first object of the kind."""
    objects = list(fleet.objects)
    at = next(n for n, found in enumerate(objects) if (found.kind, found.where) == (kind, where))
    obj = copy.deepcopy(objects[at].obj)
    change(obj)
    objects[at] = Found(where, obj)
    return replace(fleet, objects=tuple(objects))


def found_in(change: Callable[[Fleet], Fleet], trace: str = PLACED) -> list[tuple[str, str]]:
    """Kind and path of what is found different after a change of ours."""
    recorded = load(trace)
    return [(one.kind, one.path) for one in compare(recorded, change(recorded))]


def give(*path: Any, value: Any) -> Callable[[Untyped], None]:
    def change(obj: Any) -> None:
        for key in path[:-1]:
            obj = obj[key]
        obj[path[-1]] = value

    return change


def lose(*path: Any) -> Callable[[Untyped], None]:
    def change(obj: Any) -> None:
        for key in path[:-1]:
            obj = obj[key]
        del obj[path[-1]]

    return change


@pytest.mark.parametrize("name", names())
def test_a_recorded_fleet_is_equal_to_itself(name: str) -> None:
    assert compare(load(name), load(name)) == []


@pytest.mark.parametrize("name", names())
def test_every_recorded_fleet_has_objects_and_tables(name: str) -> None:
    fleet = load(name)
    assert fleet.title
    assert fleet.objects
    assert all(one.rows for one in fleet.tables.values())


PLANTED: dict[str, tuple[str, Callable[[Untyped], object], str]] = {
    "a label": ("Work", give("metadata", "labels", "x", value="y"), "metadata.labels.x"),
    "a label's value": (
        "ClusterResourceSnapshot",
        give("metadata", "labels", "kubernetes-fleet.io/is-latest-snapshot", value="false"),
        "metadata.labels.kubernetes-fleet.io/is-latest-snapshot",
    ),
    "an annotation that is missing": (
        "ClusterSchedulingPolicySnapshot",
        lose("metadata", "annotations", "kubernetes-fleet.io/number-of-clusters"),
        "metadata.annotations.kubernetes-fleet.io/number-of-clusters",
    ),
    "an earlier generation of the placement": (
        "ClusterSchedulingPolicySnapshot",
        give("status", "observedCRPGeneration", value=0),
        "status.observedCRPGeneration",
    ),
    "a finalizer": (
        "ClusterResourceBinding",
        give("metadata", "finalizers", value=["x"]),
        "metadata.finalizers (length)",
    ),
    "an owner": (
        "ClusterResourceSnapshot",
        give("metadata", "ownerReferences", 0, "controller", value=False),
        "metadata.ownerReferences[0].controller",
    ),
    "a field of the spec": ("ClusterResourceBinding", give("spec", "state", value="Scheduled"), "spec.state"),
    "a manifest": (
        "Work",
        give("spec", "workload", "manifests", 1, "spec", "replicas", value=3),
        "spec.workload.manifests[1].spec.replicas",
    ),
    "a condition's status": (
        "ClusterResourcePlacement",
        give("status", "conditions", 5, "status", value="False"),
        "status.conditions.ClusterResourcePlacementAvailable.status",
    ),
    "a condition's reason": (
        "ClusterResourcePlacement",
        give("status", "placementStatuses", 0, "conditions", 4, "reason", value="ApplyInProgress"),
        "status.placementStatuses[0].conditions.Applied.reason",
    ),
    "a condition that is missing": (
        "ClusterResourceBinding",
        lose("status", "conditions", 1),
        "status.conditions.Overridden",
    ),
    "a condition of an earlier generation": (
        "ClusterResourceBinding",
        give("status", "conditions", 0, "observedGeneration", value=2),
        "status.conditions.RolloutStarted.observedGeneration",
    ),
    "the generation of a placement": (
        "ClusterResourcePlacement",
        give("metadata", "generation", value=2),
        "metadata.generation",
    ),
    "the order of clusters": (
        "ClusterResourcePlacement",
        lambda obj: obj["status"]["placementStatuses"].reverse(),
        "status.placementStatuses[0].clusterName",
    ),
    "the order of conditions": (
        "ClusterResourceBinding",
        lambda obj: obj["status"]["conditions"].reverse(),
        "status.conditions (order)",
    ),
    "a status that is missing": ("ClusterResourceBinding", lose("status"), "status"),
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_difference_is_found(kind: str) -> None:
    of, change, path = PLANTED[kind]
    assert (of, path) in found_in(lambda fleet: changed(fleet, of, change))


def test_what_members_hold_is_compared_to_the_letter() -> None:
    annotation = "kubernetes-fleet.io/last-applied-configuration"
    change = give("metadata", "annotations", annotation, value="{}\n")
    expected = [("Namespace", f"metadata.annotations.{annotation}")]
    assert found_in(lambda fleet: changed(fleet, "Namespace", change, "cluster-2")) == expected


def test_an_object_that_is_missing_is_found() -> None:
    recorded = load(PLACED)
    ours = replace(recorded, objects=recorded.objects[1:])
    (difference,) = (one for one in compare(recorded, ours) if one.path == "")
    assert (difference.kind, difference.recorded, difference.ours) == ("ClusterResourcePlacement", THERE, NOT_THERE)


def test_a_binding_too_many_is_found() -> None:
    recorded = load(PLACED)
    one = next(found for found in recorded.objects if found.kind == "ClusterResourceBinding")
    other = {**one.obj, "metadata": {**one.obj["metadata"], "name": "crp-cluster-1-00000000"}}
    (difference,) = compare(recorded, replace(recorded, objects=(*recorded.objects, Found("hub", other))))
    assert (difference.name, difference.recorded, difference.ours) == ("crp-cluster-1-SUFFIX", NOT_THERE, THERE)


def test_a_member_that_was_not_recorded_is_none_too_many() -> None:
    recorded = load("01")
    other = {**recorded.objects[0].obj, "metadata": {"name": "cluster-2", "generation": 1}}
    assert compare(recorded, replace(recorded, objects=(*recorded.objects, Found("hub", other)))) == []


MAY_DIFFER: dict[str, tuple[str, Callable[[Untyped], object]]] = {
    "a uid": ("Work", give("metadata", "uid", value="x")),
    "a resourceVersion": ("Work", give("metadata", "resourceVersion", value="7")),
    "a message": ("Work", give("status", "conditions", 0, "message", value="all is well")),
    "a time": ("Work", give("status", "conditions", 0, "lastTransitionTime", value="2030-01-01T00:00:00Z")),
    "the suffix of a binding": ("ClusterResourceBinding", give("metadata", "name", value="crp-cluster-2-01234567")),
    "the hash of a policy": ("ClusterSchedulingPolicySnapshot", give("spec", "policyHash", value="bm8=")),
    "the hash of resources": (
        "ClusterResourceSnapshot",
        give("metadata", "annotations", "kubernetes-fleet.io/resource-hash", value="0" * 64),
    ),
    "why a cluster was picked": (
        "ClusterResourceBinding",
        give("spec", "clusterDecision", "reason", value="Successfully scheduled resources for placement"),
    ),
    "what kubectl remembers": (
        "ClusterResourcePlacement",
        give("metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration", value="{}"),
    ),
}


@pytest.mark.parametrize("kind", MAY_DIFFER)
def test_what_may_differ_is_no_difference(kind: str) -> None:
    of, change = MAY_DIFFER[kind]
    assert found_in(lambda fleet: changed(fleet, of, change)) == []


def test_fewer_writes_are_no_difference_if_the_status_is_as_current() -> None:
    def fewer(obj: Untyped) -> None:
        obj["metadata"]["generation"] = 2
        for condition in obj["status"]["conditions"]:
            condition["observedGeneration"] = 2

    assert found_in(lambda fleet: changed(fleet, "ClusterResourceBinding", fewer)) == []


def test_of_two_bindings_for_one_cluster_the_one_being_deleted_is_told_apart() -> None:
    recorded = load("08")
    ours = replace(recorded, objects=tuple(reversed(recorded.objects)))
    assert compare(recorded, ours) == []


def test_a_cell_of_a_table_is_found() -> None:
    def change(fleet: Fleet) -> Fleet:
        printed = fleet.tables["works -A"]
        rows = (("fleet-member-cluster-2", "crp-work", "soon"), *printed.rows[1:])
        return replace(fleet, tables={**fleet.tables, "works -A": Table(printed.columns, rows)})

    assert found_in(change) == [("works -A", "AGE")]


def test_a_row_a_column_and_a_table_that_are_missing_are_found() -> None:
    recorded = load(PLACED)
    bindings, works = recorded.tables["clusterresourcebindings"], recorded.tables["works -A"]
    tables = {
        **recorded.tables,
        "clusterresourcebindings": replace(bindings, rows=bindings.rows[1:]),
        "works -A": Table(works.columns[:2], tuple(row[:2] for row in works.rows)),
    }
    del tables["clusterresourcesnapshots"]
    differences = compare(recorded, replace(recorded, tables=tables))
    assert {(one.kind, one.name, one.path) for one in differences} == {
        ("clusterresourcebindings", "crp-cluster-2-SUFFIX", ""),
        ("works -A", "", "columns"),
        ("clusterresourcesnapshots", "", ""),
    }


def test_a_printed_table_is_read_with_its_empty_cells() -> None:
    text = "#   NAME   GEN   SCHEDULED   AVAILABLE   AGE\n#   crp    1     True                    28s\n"
    assert table(text) == Table(("NAME", "GEN", "SCHEDULED", "AVAILABLE", "AGE"), (("crp", "1", "True", "", "28s"),))


def test_a_report_says_where_and_what() -> None:
    difference = Difference("hub", "Work", "fleet-member-cluster-1/crp-work", "spec.x", 1, NOT_THERE)
    assert report([difference]) == (
        "hub: Work fleet-member-cluster-1/crp-work, spec.x\n    recorded: 1\n    ours:     (not there)"
    )

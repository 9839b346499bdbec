"""What a Work says beside its manifest."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.karmada.bindings import BindingSpec
from kedge.api.karmada.works import Work
from kedge.plan.aligning.work_spec import is_same, is_suspended, shown_spec, unmarking, work_spec
from kedge.plan.fields import patched

MANIFEST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
LABELLED = {**MANIFEST, "metadata": {"name": "x", "labels": {"app": "x"}, "annotations": {"note": "1"}}}


def binding(**spec: Any) -> BindingSpec:
    return msgspec.convert({"resource": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}, **spec}, BindingSpec)


@pytest.mark.parametrize(
    ("suspension", "held"),
    [
        (None, []),
        ({}, []),
        ({"dispatching": True}, ["a", "b"]),
        ({"dispatchingOnClusters": {"clusterNames": ["b"]}}, ["b"]),
        ({"scheduling": True}, []),
    ],
)
def test_who_is_held_back(suspension: dict[str, Any] | None, held: list[str]) -> None:
    given = binding(suspension=suspension)
    assert [name for name in ("a", "b") if is_suspended(given, name)] == held
    assert [name for name in ("a", "b") if work_spec(given, name, MANIFEST)["suspendDispatching"]] == held


@pytest.mark.parametrize(
    "given",
    [
        binding(),
        binding(conflictResolution="Overwrite"),
        binding(preserveResourcesOnDeletion=True),
        binding(suspension={"dispatching": True}),
    ],
)
def test_what_was_written_is_found_again(given: BindingSpec) -> None:
    spec = work_spec(given, "a", MANIFEST)
    work = msgspec.convert({"spec": {name: value for name, value in spec.items() if value is not None}}, Work)
    assert shown_spec(work) == spec


def manifest(given: BindingSpec, of: dict[str, Any] = MANIFEST, *, uid: str = "") -> dict[str, Any]:
    (found,) = work_spec(given, "a", of, uid=uid)["workload"]["manifests"]
    return dict(found)


@pytest.mark.parametrize(("given", "note"), [(binding(conflictResolution="Overwrite"), "overwrite"), (binding(), None)])
def test_a_manifest_says_what_becomes_of_what_somebody_else_made(given: BindingSpec, note: str | None) -> None:
    assert manifest(given)["metadata"]["annotations"].get("work.karmada.io/conflict-resolution") == note


@pytest.mark.parametrize(
    ("own", "note"), [("overwrite", "overwrite"), ("abort", "abort"), ("Overwrite", "abort"), ("", "abort")]
)
def test_what_a_resource_says_of_conflicts_counts_more_than_what_its_policy_says(own: str, note: str) -> None:
    said = {**MANIFEST, "metadata": {"name": "x", "annotations": {"work.karmada.io/conflict-resolution": own}}}
    found = manifest(binding(conflictResolution="Abort"), said)["metadata"]["annotations"]
    assert found["work.karmada.io/conflict-resolution"] == note
    kept = manifest(binding(), said)["metadata"]["annotations"]["work.karmada.io/conflict-resolution"]
    assert kept == own


def test_a_manifest_is_marked_as_karmada_marks_it() -> None:
    marked = manifest(binding(), LABELLED, uid="u1")["metadata"]
    assert marked["labels"] == {"app": "x", "karmada.io/managed": "true"}
    assert marked["annotations"] == {
        "note": "1",
        "resourcetemplate.karmada.io/uid": "u1",
        "resourcetemplate.karmada.io/managed-labels": "app,karmada.io/managed",
        "resourcetemplate.karmada.io/managed-annotations": (
            "note,resourcetemplate.karmada.io/managed-annotations,resourcetemplate.karmada.io/managed-labels,"
            "resourcetemplate.karmada.io/uid"
        ),
    }


def test_what_is_marked_already_is_marked_the_same() -> None:
    once = manifest(binding(), LABELLED, uid="u1")
    assert manifest(binding(), once, uid="u1") == once


def test_all_marks_of_an_object_are_taken_away_and_nothing_else() -> None:
    sent = manifest(binding(conflictResolution="Overwrite"), LABELLED, uid="u1")
    own = {"kedge.dev/alignment-seq": "3", "resourcetemplate.karmada.io/generation": "2"}
    works = {"work.karmada.io/name": "x-1", "work.karmada.io/namespace": "karmada-es-a"}
    there = patched(sent, {"metadata": {"annotations": {**own, **works}}})
    assert patched(there, unmarking(there)) == LABELLED
    assert unmarking(LABELLED) == {}
    assert unmarking(MANIFEST) == {}


def asking(manifest: dict[str, Any]) -> dict[str, Any]:
    return {"workload": {"manifests": [manifest]}, "suspendDispatching": None}


@pytest.mark.parametrize(
    ("there", "expected"),
    [
        (MANIFEST, True),
        (manifest(binding(), uid="u1"), True),
        (manifest(binding(), uid="u2"), True),
        ({**MANIFEST, "data": {"a": "b"}}, False),
        (LABELLED, False),
        (manifest(binding(), LABELLED), False),
    ],
)
def test_marks_alone_are_no_reason_to_write(there: dict[str, Any], *, expected: bool) -> None:
    wanted = asking(manifest(binding(), uid="u1"))
    assert is_same(asking(there), wanted) is expected
    assert not is_same({**asking(there), "suspendDispatching": True}, wanted)

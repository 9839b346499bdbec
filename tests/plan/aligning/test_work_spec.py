"""What a Work says beside its manifest."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.karmada.bindings import BindingSpec
from kedge.api.karmada.works import Work
from kedge.plan.aligning.work_spec import is_suspended, shown_spec, work_spec

MANIFEST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}


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


def test_a_manifest_says_what_becomes_of_what_somebody_else_made() -> None:
    (manifest,) = work_spec(binding(conflictResolution="Overwrite"), "a", MANIFEST)["workload"]["manifests"]
    assert manifest["metadata"]["annotations"] == {"work.karmada.io/conflict-resolution": "overwrite"}
    (manifest,) = work_spec(binding(), "a", MANIFEST)["workload"]["manifests"]
    assert manifest == MANIFEST

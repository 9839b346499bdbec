"""What a member reports of an object that a Work made."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.api.karmada.keys import RETAIN_REPLICAS, SEQUENCE, TEMPLATE_GENERATION
from kedge.plan.aligning.reflecting import reflected

CONDITIONS = [{"type": "Complete", "status": "True"}]


@pytest.mark.parametrize(
    ("api_version", "kind", "is_whole"),
    [
        ("batch/v1", "Job", True),
        ("example.com/v1", "Shop", True),
        ("example.com/v1", "Deployment", True),
        ("v1", "Service", True),
        ("apps/v1", "Deployment", False),
        ("apps/v1", "StatefulSet", False),
        ("apps/v1", "DaemonSet", False),
        ("apps.kruise.io/v1alpha1", "CloneSet", False),
    ],
)
def test_conditions_are_reported_unless_the_kind_is_counted(api_version: str, kind: str, *, is_whole: bool) -> None:
    obj = {"apiVersion": api_version, "kind": kind, "status": {"active": 1, "conditions": CONDITIONS}}
    assert reflected(obj) == {"active": 1, **({"conditions": CONDITIONS} if is_whole else {})}


@pytest.mark.parametrize(
    ("meta", "found"),
    [
        ({"generation": 4}, {"generation": 4}),
        (
            {"annotations": {SEQUENCE: "7", TEMPLATE_GENERATION: "3"}},
            {"alignmentSeq": 7, "resourceTemplateGeneration": 3},
        ),
        ({"annotations": {SEQUENCE: "seven", TEMPLATE_GENERATION: "-1"}}, {}),
        ({"labels": {RETAIN_REPLICAS: "true"}}, {"specReplicas": 5}),
    ],
)
def test_a_report_says_what_it_is_about(meta: dict[str, Any], found: dict[str, int]) -> None:
    assert reflected({"metadata": meta, "spec": {"replicas": 5}}) == found

"""Kinds that come with the very Work that uses them are waited for."""

from __future__ import annotations

from typing import Any

import pytest

from kedge.api.resource import Resource
from kedge.plan.applying.manifests import DesiredObject, read_manifests
from kedge.plan.applying.work_status import ApplyResult, wait_for_definitions
from kedge.plan.availability import Verdict

CRDS = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
MAPS = Resource("", "v1", "ConfigMap", "configmaps")
THERE = Verdict(available=True, trackable=True, message="")
NOT_YET = Verdict(available=False, trackable=True, message="")


def definition(kind: str = "Thing", group: str = "example.com") -> dict[str, Any]:
    spec = {"group": group, "names": {"kind": kind}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": CRDS.kind,
        "metadata": {"name": f"{kind}.{group}"},
        "spec": spec,
    }


def thing(group: str = "example.com") -> dict[str, Any]:
    return {"apiVersion": f"{group}/v1", "kind": "Thing", "metadata": {"name": "t", "namespace": "shop"}}


def waits(*manifests: dict[str, Any], verdicts: tuple[Verdict | None, ...], age: float = 0.0) -> float | None:
    served = {each.kind: each for each in (CRDS, MAPS)}
    read = read_manifests(manifests, lambda *kind: served.get(kind[2]))
    placed = [one for one in read if isinstance(one, DesiredObject)]
    results = [
        ApplyResult(identifier=one.identifier, applied=True, reason="", message="", verdict=verdict)
        for one, verdict in zip(placed, verdicts, strict=True)
    ]
    return wait_for_definitions(read, results, age)


CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "shop"}}
LOOKALIKE = {**CONFIG, "spec": definition()["spec"]}
NAMELESS = {**definition(), "spec": {"group": "example.com"}}
EMPTY = {key: value for key, value in definition().items() if key != "spec"}


@pytest.mark.parametrize(
    ("manifests", "verdicts", "seconds"),
    [
        ([definition(), thing()], (THERE,), 0.2),  # it will be served in a moment
        ([definition(), thing()], (NOT_YET,), 10.0),  # an event will tell
        ([definition(), thing()], (None,), None),
        ([definition()], (THERE,), None),
        ([thing()], (), None),
        ([definition("Other"), thing()], (THERE,), None),
        ([definition(group="other.com"), thing()], (THERE,), None),
        ([definition(), definition("Other"), thing()], (THERE, NOT_YET), 0.2),
        ([definition(), definition(group="b.com"), thing(), thing("b.com")], (THERE, NOT_YET), 10.0),
        ([definition("ConfigMap", ""), CONFIG], (THERE, THERE), None),  # of a kind that is served already
        ([LOOKALIKE, thing()], (THERE,), None),
        ([NAMELESS, thing()], (THERE,), None),
        ([EMPTY, thing()], (THERE,), None),
        ([definition(), {"kind": "Thing"}], (THERE,), None),  # not a kind that is unknown, but no manifest
    ],
)
def test_objects_wait_for_their_definition_to_be_served(
    manifests: list[dict[str, Any]], verdicts: tuple[Verdict | None, ...], seconds: float | None
) -> None:
    assert waits(*manifests, verdicts=verdicts) == seconds


@pytest.mark.parametrize(
    ("age", "there", "not_yet"),
    [
        (4.0, 0.2, 6.0),
        (9.5, 0.2, 0.5),
        (9.9, pytest.approx(0.1), pytest.approx(0.1)),
        (10.0, None, None),
        (99, None, None),
    ],
)
def test_waiting_for_a_definition_ends(age: float, there: Any, not_yet: Any) -> None:
    assert waits(definition(), thing(), verdicts=(THERE,), age=age) == there
    assert waits(definition(), thing(), verdicts=(NOT_YET,), age=age) == not_yet

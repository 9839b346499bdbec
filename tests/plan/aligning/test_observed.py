"""A binding as it is observed: which clusters count, and whether its replicas are divided."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kedge.api.karmada.bindings import ResourceBinding
from kedge.api.karmada.clusters import Cluster
from kedge.api.karmada.keys import LEDGER
from kedge.api.karmada.works import Work
from kedge.plan.aligning.binding import BindingInput
from kedge.plan.aligning.ledger import Spec
from kedge.plan.aligning.ledger_text import Ledger, ledger_text
from kedge.plan.aligning.observed import binding_input

READY = {"type": "Ready", "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z", "reason": "x", "message": ""}
NOT_READY = {**READY, "status": "False"}


def cluster(name: str, condition: dict[str, str]) -> Cluster:
    return msgspec.convert({"metadata": {"name": name}, "status": {"conditions": [condition]}}, Cluster, strict=False)


def observed(
    ledger: str = "",
    works: dict[str, Work] | None = None,
    there: str = "abcd",
    condition: dict[str, str] = READY,
    **spec: Any,
) -> BindingInput:
    meta = {"name": "web-deployment", "namespace": "shop", "annotations": {LEDGER: ledger}}
    resource = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    body = {"resource": resource, "clusters": [{"name": "a", "replicas": 2}], **spec}
    binding = msgspec.convert({"metadata": meta, "spec": body}, ResourceBinding)
    return binding_input(binding, {}, works or {}, {name: cluster(name, condition) for name in there}, ())


def test_clusters_that_are_wanted_have_a_work_or_were_asked_for_something_count() -> None:
    ledger = ledger_text(Ledger({"c": (Spec(1, "t", 2),), "gone": (Spec(2, "t", 2),)}))
    assert list(observed(ledger, {"b": Work()}).clusters) == ["a", "b", "c"]
    assert list(observed(ledger, there="bc").clusters) == ["c"]


def test_a_ledger_that_cannot_be_read_is_handed_on() -> None:
    found = observed("{")
    assert (found.ledger, list(found.clusters)) == ("{", ["a"])


def test_a_cluster_is_reachable_while_it_is_ready() -> None:
    assert observed().clusters["a"].is_reachable
    assert not observed(condition=NOT_READY).clusters["a"].is_reachable


@pytest.mark.parametrize(
    ("placement", "is_divided"),
    [
        ({}, True),
        ({"clusterAffinity": {"clusterNames": ["a"]}}, False),
        ({"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}, False),
        ({"replicaScheduling": {"replicaSchedulingType": "Divided"}}, True),
        ({"replicaScheduling": {}}, True),
    ],
)
def test_replicas_are_divided_if_the_placement_says_so_or_there_is_none(
    placement: dict[str, Any], is_divided: bool
) -> None:
    assert observed(placement=placement).is_divided is is_divided
